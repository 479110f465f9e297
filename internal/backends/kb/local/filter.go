package local

import (
	"math"
	"slices"

	"voicegw/internal/backends/kb"
)

// filter is the part of a query that does not depend on its text.
type filter struct {
	namespaces []kb.Namespace // empty means all
	kinds      []kb.Type      // and so on
	tags       []string
	authors    []string
	categories []string
	from, to   int64 // ms, both inclusive
}

func newFilter(q *kb.Query) *filter {
	f := &filter{namespaces: q.Namespaces, kinds: q.Types, tags: kb.NormalizeTags(q.Tags), authors: q.Authors,
		categories: q.Categories, from: math.MinInt64, to: math.MaxInt64}
	if !q.From.IsZero() {
		f.from = q.From.UnixMilli()
		if q.From.Nanosecond()%1e6 != 0 {
			f.from++ // records have whole milliseconds; From may be within one
		}
	}
	if !q.To.IsZero() {
		f.to = q.To.UnixMilli()
	}
	return f
}

func (f *filter) passes(e *entry) bool {
	if len(f.namespaces) > 0 && !slices.Contains(f.namespaces, e.record.Namespace) || len(f.kinds) > 0 &&
		!slices.Contains(f.kinds, e.record.Type) {
		return false
	}
	if len(f.authors) > 0 && !overlap(f.authors, e.record.Authors) || len(f.categories) > 0 && !overlap(f.categories, e.record.Categories) {
		return false
	}
	if e.updated < f.from || e.updated > f.to {
		return false
	}
	for _, tag := range f.tags {
		if _, ok := slices.BinarySearch(e.record.Tags, tag); !ok {
			return false
		}
	}
	return true
}

func overlap(some, others []string) bool {
	return slices.ContainsFunc(others, func(one string) bool { return slices.Contains(some, one) })
}
