package registry

import (
	"maps"
	"slices"
	"strings"

	"voicegw/registry/spec"
)

// Only returns a snapshot of the same version with only the tools of these ids, the client's tools, and the built-in
// ones, which then use this snapshot. Unknown ids are ignored. If none of the ids is known, the built-in tools are
// dropped too.
func (s *Snapshot) Only(ids []string) *Snapshot {
	return s.having(func(t *Tool) bool { return slices.Contains(ids, t.ToolID) })
}

func (s *Snapshot) having(fits func(*Tool) bool) *Snapshot {
	some := slices.ContainsFunc(s.sorted, func(t *Tool) bool { return !isBuiltin(t.ToolID) && fits(t) })
	var tools []*Tool
	for _, t := range s.sorted {
		if t.client || isBuiltin(t.ToolID) && some || !isBuiltin(t.ToolID) && fits(t) {
			tools = append(tools, t)
		}
	}
	sub := s.holding(tools)
	sub.closed = maps.Clone(s.closed)
	maps.DeleteFunc(sub.closed, func(_ string, t *Tool) bool { return !fits(t) })
	return sub
}

// holding returns a snapshot of the same version with these tools, in any order, and without variants.
func (s *Snapshot) holding(tools []*Tool) *Snapshot {
	sub := *s
	sub.variants, sub.tools = nil, make(map[string]*Tool, len(tools))
	sub.sorted = slices.SortedFunc(slices.Values(tools), func(a, b *Tool) int { return strings.Compare(a.ToolID, b.ToolID) })
	for _, t := range sub.sorted {
		sub.tools[t.ToolID] = t
	}
	return &sub
}

func isBuiltin(id string) bool { return id == spec.DescribeTool }
