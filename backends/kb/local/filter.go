package local

import (
	"math"
	"slices"

	"voicegw/backends/kb"
)

// filter is the part of a query that does not depend on its text.
type filter struct {
	namespaces []kb.Namespace // empty means all
	kind       kb.Type
	tags       []string
	from, to   int64 // ms, both inclusive
}

func newFilter(q *kb.Query) *filter {
	f := &filter{namespaces: q.Namespaces, kind: q.Type, tags: kb.NormalizeTags(q.Tags), from: math.MinInt64, to: math.MaxInt64}
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

// passes reports whether a record passes the filter.
func (f *filter) passes(e *entry) bool {
	if len(f.namespaces) > 0 && !slices.Contains(f.namespaces, e.record.Namespace) || f.kind != "" && e.record.Type != f.kind {
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
