package local

import "github.com/blevesearch/bleve/v2/index/scorch"

// Segments is how many segments a search visits.
func (x *Index) Segments() int {
	s, err := x.begin()
	if err != nil {
		return -1
	}
	defer x.end(s)
	return len(s.reader.(*scorch.IndexSnapshot).Segments())
}
