package adapter

import (
	"maps"
	"slices"
	"strings"
)

// properties are what an object may have.
type properties struct {
	dependent *object
	values    map[string][]any // those that were found, by property
	optional  []string
}

// with returns a set of properties and those that they require.
func (p *properties) with(names ...string) map[string]bool {
	set := map[string]bool{}
	for len(names) > 0 {
		name := names[len(names)-1]
		names = names[:len(names)-1]
		if !set[name] {
			set[name] = true
			names = append(names, p.dependent.names(name)...)
		}
	}
	return set
}

// objects searches for objects; the inlined schema is closed.
func (f *finding) objects() (complete bool) {
	schemas := f.o.sub("properties")
	p := &properties{dependent: f.o.sub("dependentRequired"), values: map[string][]any{}}
	needed := p.with(f.o.names("required")...)
	least, most := f.sizes("minProperties", "maxProperties")
	if len(needed) > most.n {
		f.because("%s, and %d properties are needed (%s)", most.where, len(needed), strings.Join(slices.Sorted(maps.Keys(needed)), ", "))
		return true
	}
	for _, name := range slices.Sorted(maps.Keys(needed)) {
		schema, has := schemas.get(name)
		if !has {
			f.because("%q is needed and not defined, and additionalProperties is false", clip(name))
			return true
		}
		a := f.s.any(schema, f.want)
		if a.none() {
			f.because("the needed property %q: %s", clip(name), a.why)
			return true
		}
		p.values[name] = a.values
	}
	possible, known := len(needed), true // how many properties there may be; whether each has a value
	for _, m := range schemas.members {
		if needed[m.key] {
			continue
		}
		a := f.s.any(m.value, f.want)
		known = known && (a.complete || len(a.values) > 0)
		if !a.none() {
			possible++
			p.values[m.key], p.optional = a.values, append(p.optional, m.key)
		}
	}
	switch {
	case least.n > most.n:
		f.because("%s is more than %s", least.where, most.where)
		return true
	case least.n > possible:
		f.because("%s, and only %d properties are possible", least.where, possible)
		return true
	}
	f.compose(p, needed, least.n, most.n)
	return possible == 0 && known
}

// compose tries objects: with the needed properties, with each optional one, and with more and
// more of these.
func (f *finding) compose(p *properties, needed map[string]bool, least, most int) {
	sets := [][]string{slices.Sorted(maps.Keys(needed))}
	for _, name := range p.optional {
		sets = append(sets, append(slices.Clone(sets[0]), name))
	}
	for i := range p.optional {
		sets = append(sets, append(slices.Clone(sets[0]), p.optional[:i+1]...))
	}
	for _, names := range sets {
		if f.enough() {
			return
		}
		if set := p.with(names...); len(set) >= least && len(set) <= most {
			f.tryVariants(set, p.values)
		}
	}
}

// tryVariants tries the object with the first value of each property of set, and with each
// other value of one property.
func (f *finding) tryVariants(set map[string]bool, values map[string][]any) {
	object := map[string]any{}
	for name := range set {
		if len(values[name]) == 0 {
			return
		}
		object[name] = values[name][0]
	}
	f.try(object)
	for _, name := range slices.Sorted(maps.Keys(set)) {
		for _, v := range values[name] {
			if f.enough() {
				return
			}
			other := maps.Clone(object)
			other[name] = v
			f.try(other)
		}
	}
}
