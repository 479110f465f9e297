package registry

import (
	"maps"
	"reflect"
	"slices"

	"voicegw/registry/spec"
	"voicegw/registry/toolname"
)

// Only returns a snapshot of the same version that has no other tools than those with these ids, those of
// the client, and the built-in ones, which work on what is left. Ids that it does not have are left out.
// Without any of the tools with these ids there are no built-in ones either.
func (s *Snapshot) Only(ids []string) *Snapshot {
	return s.having(func(t *Tool) bool { return slices.Contains(ids, t.ToolID) })
}

// having returns a snapshot of the same version with the tools that fit, those of the client and, if any
// tool fits, the built-in ones.
func (s *Snapshot) having(fits func(*Tool) bool) *Snapshot {
	sub := &Snapshot{version: s.version, off: s.off, loaded: s.loaded, fillings: s.fillings, filled: s.filled, drawn: s.drawn, opts: s.opts, stats: s.stats, tools: map[string]*Tool{}}
	sub.closed = maps.Clone(s.closed)
	maps.DeleteFunc(sub.closed, func(_ string, t *Tool) bool { return !fits(t) })
	some := slices.ContainsFunc(s.sorted, func(t *Tool) bool { return !isBuiltin(t.ToolID) && fits(t) })
	for _, t := range s.sorted {
		if t.client || isBuiltin(t.ToolID) && some || !isBuiltin(t.ToolID) && fits(t) {
			t = t.within(s, sub)
			sub.tools[t.ToolID] = t
			sub.sorted = append(sub.sorted, t)
		}
	}
	return sub
}

// isBuiltin reports whether every registry has the tool.
func isBuiltin(id string) bool { return id == toolname.DescribeTool }

// within returns the tool for another snapshot: where it needs the snapshot that it is in, it gets that
// one.
func (t *Tool) within(was, now *Snapshot) *Tool {
	old, is := reflect.ValueOf(was), reflect.ValueOf(now)
	var changed map[spec.Mode][]source
	for mode, sources := range t.sources {
		for i, from := range sources {
			if !from.value.IsValid() || from.value.Type() != old.Type() || from.value.Pointer() != old.Pointer() {
				continue
			}
			if changed == nil {
				changed = maps.Clone(t.sources)
			}
			changed[mode] = slices.Clone(changed[mode])
			changed[mode][i].value = is
		}
	}
	if changed == nil {
		return t
	}
	moved := *t
	moved.sources = changed
	return &moved
}
