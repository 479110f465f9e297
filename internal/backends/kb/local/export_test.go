package local

// Numbers is how many numbers the records and the removed ones have.
func (x *Index) Numbers() int {
	s, err := x.begin()
	if err != nil {
		return -1
	}
	defer x.calls.Done()
	return len(s.docs)
}
