package local

// Numbers is the count of numbers of current and removed records.
func (x *Index) Numbers() int {
	s, err := x.begin()
	if err != nil {
		return -1
	}
	defer x.calls.Done()
	return len(s.docs)
}
