package instance

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"voicegw/registry/jsontype"
)

// lists combines the constraints of several schemas on a list.
type lists struct {
	least, most size
	unique      bool
	prefixes    int     // how many items have schemas of their own
	contained   []*node // what an item must satisfy
	needed      int     // how many items
}

func (s *solver) lists(parts []*node) lists {
	var l lists
	l.least, l.most = s.sizes(parts, "minItems", "maxItems")
	for _, n := range parts {
		l.unique = l.unique || n.doc["uniqueItems"] == true
		l.prefixes = max(l.prefixes, len(n.list("prefixItems")))
		if c := s.doc.child(n, "contains"); c != nil && n.count("minContains", 1) > 0 {
			l.contained, l.needed = append(l.contained, c), max(l.needed, n.count("minContains", 1))
		}
	}
	if l.needed > l.least.n {
		l.least = size{l.needed, fmt.Sprintf("contains, %d times", l.needed)}
	}
	return l
}

// arrays searches for lists.
func (s *solver) arrays(f *finding, parts []*node, _ jsontype.Set, depth int) bool {
	l := s.lists(parts)
	if f.crossed(l.least, l.most, 2) {
		return true
	}
	if l.prefixes > 64 {
		return false
	}
	list := []any{}
	for i := range l.prefixes {
		a := s.solve(s.itemAt(parts, i), 1+i, depth+1)
		if len(a.values) > 0 {
			list = fill(list, a.values, len(list)+1, l.unique)
			continue
		}
		if i < l.least.n {
			f.because("item %d: %s", i, a.why)
			return a.none()
		}
		l.most.n = min(l.most.n, i)
		break
	}
	rest := s.itemAt(parts, l.prefixes)
	wanted := 1
	if l.unique {
		wanted = max(l.least.n, 1)
	}
	a := s.solve(rest, wanted, depth+1)
	if l.least.n > len(list) && s.short(f, l, a, len(list)) {
		return a.complete
	}
	if len(l.contained) > 0 && l.prefixes == 0 {
		in := s.solve(slices.Concat(rest, l.contained), l.needed, depth+1)
		if in.none() {
			f.because("no item is possible that contains asks for: %s", in.why)
			return true
		}
		list = append(list, in.values...)
	}
	s.tryLists(f, l, list, a.values)
	if l.least.n <= 1 && l.most.n >= 1 && l.prefixes == 0 && f.want > 1 {
		for _, v := range s.solve(rest, f.want, depth+1).values { // more values for a list of lists
			f.try([]any{v})
		}
	}
	return l.most.n == 0 || a.none() && l.prefixes == 0
}

// short reports whether there are too few items for the list, and why, if that is known.
func (s *solver) short(f *finding, l lists, a answer, have int) bool {
	switch {
	case a.none():
		f.because("%s, and no item is possible: %s", l.least.where, a.why)
	case l.unique && a.complete && l.prefixes == 0 && len(a.values) < l.least.n:
		f.because("uniqueItems and %s, and only %d different items are possible", l.least.where, len(a.values))
	default:
		return len(a.values) == 0
	}
	return true
}

// tryLists tries lists that begin with list and continue with values.
func (s *solver) tryLists(f *finding, l lists, list, values []any) {
	if len(list) <= l.most.n {
		f.try(slices.Clone(list)) // also the empty list
	}
	for _, n := range []int{l.least.n, 1, l.least.n + 1} {
		if n >= l.least.n && n <= l.most.n && !f.enough() {
			f.try(fill(slices.Clone(list), values, n, l.unique))
		}
	}
}

// fill extends the list to size, if there are enough values.
func fill(list, values []any, size int, unique bool) []any {
	used := map[string]bool{}
	for _, v := range list {
		used[canonical(v)] = true
	}
	for _, v := range values {
		for len(list) < size && !(unique && used[canonical(v)]) {
			list = append(list, v)
			used[canonical(v)] = true
		}
	}
	return list
}

// itemAt returns the schemas of item i.
func (s *solver) itemAt(parts []*node, i int) []*node {
	var all []*node
	for _, n := range parts {
		prefix := s.doc.children(n, "prefixItems")
		if i < len(prefix) {
			all = append(all, prefix[i])
		} else if items := s.doc.child(n, "items"); items != nil {
			all = append(all, items)
		}
	}
	return all
}

// shape combines the constraints of several schemas on an object's properties.
type shape struct {
	names     []string           // the names that some schema has, sorted
	props     map[string][]*node // their schemas
	closed    []*node            // the schemas that allow only their own properties
	required  map[string]string  // and where they say so
	dependent map[string][]string
	least     size
	most      size
}

func (s *solver) shape(parts []*node) *shape {
	o := &shape{props: map[string][]*node{}, required: map[string]string{}, dependent: map[string][]string{}}
	for _, n := range parts {
		for _, name := range sortedNames(n.sub("properties")) {
			if sub := s.doc.child(n, "properties", name); sub != nil {
				o.props[name] = append(o.props[name], sub)
			}
		}
		if n.doc["additionalProperties"] == false {
			o.closed = append(o.closed, n)
		}
		for _, name := range n.names("required") {
			o.required[name] = n.where("required", s.place)
		}
		if n.must != "" {
			o.required[n.must] = "this property"
		}
		for _, name := range sortedNames(n.sub("dependentRequired")) {
			list, _ := n.sub("dependentRequired")[name].([]any)
			for _, v := range list {
				if other, ok := v.(string); ok {
					o.dependent[name] = append(o.dependent[name], other)
				}
			}
		}
	}
	o.least, o.most = s.sizes(parts, "minProperties", "maxProperties")
	o.names = slices.Sorted(maps.Keys(o.props))
	return o
}

// closure adds to set the properties that those in it require.
func (o *shape) closure(set map[string]bool) map[string]bool {
	stack := slices.Sorted(maps.Keys(set))
	for len(stack) > 0 {
		name := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		for _, other := range o.dependent[name] {
			if !set[other] {
				set[other] = true
				stack = append(stack, other)
			}
		}
	}
	return set
}

// forbids names the schema that does not allow a property; nil if all allow it.
func (o *shape) forbids(name string) *node {
	for _, n := range o.closed {
		if _, has := n.sub("properties")[name]; has {
			continue
		}
		matched := false
		for pattern := range n.sub("patternProperties") {
			re, err := regexp.Compile(pattern)
			matched = matched || err != nil || re.MatchString(name)
		}
		if !matched {
			return n
		}
	}
	return nil
}

// objects searches for objects.
func (s *solver) objects(f *finding, parts []*node, _ jsontype.Set, depth int) bool {
	o := s.shape(parts)
	needed := map[string]bool{}
	for name := range o.required {
		needed[name] = true
	}
	needed = o.closure(needed)
	if len(needed) > o.most.n {
		f.because("%s, and %d properties are needed (%s)", o.most.where, len(needed), strings.Join(slices.Sorted(maps.Keys(needed)), ", "))
		return true
	}
	values := map[string]answer{}
	for _, name := range slices.Sorted(maps.Keys(needed)) {
		if n := o.forbids(name); n != nil {
			f.because("%q is needed and not defined, and %s is false", name, n.where("additionalProperties", s.place))
			return true
		}
		a := s.solve(o.props[name], f.want, depth+1)
		if a.none() {
			f.because("the needed property %q: %s", name, a.why)
			return true
		}
		values[name] = a
	}
	possible := len(needed) // how many properties there may be
	known := true           // for each, whether it has a value
	for _, name := range o.names {
		if needed[name] || o.forbids(name) != nil {
			continue
		}
		a := s.solve(o.props[name], f.want, depth+1)
		known = known && (a.complete || len(a.values) > 0)
		if !a.none() {
			possible++
			values[name] = a
		}
	}
	if o.least.n > o.most.n {
		f.because("%s is more than %s", o.least.where, o.most.where)
		return true
	}
	bounded := len(o.closed) > 0 && !slices.ContainsFunc(o.closed, func(n *node) bool { return len(n.sub("patternProperties")) > 0 })
	if bounded && o.least.n > possible {
		f.because("%s, and only %d properties are possible", o.least.where, possible)
		return true
	}
	s.compose(f, o, needed, values)
	return bounded && possible == 0 && known
}

// compose tries objects: with the required properties, with more, and with all.
func (s *solver) compose(f *finding, o *shape, needed map[string]bool, values map[string]answer) {
	set := maps.Clone(needed)
	optional := slices.DeleteFunc(slices.Sorted(maps.Keys(values)), func(name string) bool { return needed[name] })
	grow := func() {
		if len(set) >= o.least.n && len(set) <= o.most.n {
			f.tryVariants(set, values)
		}
	}
	grow()
	for _, name := range optional { // one optional property alone
		if f.enough() {
			return
		}
		set = o.closure(map[string]bool{name: true})
		for n := range needed {
			set[n] = true
		}
		grow()
	}
	set = maps.Clone(needed)
	for _, name := range optional { // and one more each time
		if f.enough() {
			return
		}
		set[name] = true
		set = o.closure(set)
		grow()
	}
}

// tryVariants tries the object with the first value of each property of set, and with
// each other value of one property.
func (f *finding) tryVariants(set map[string]bool, values map[string]answer) {
	object := build(set, values)
	if object == nil {
		return
	}
	f.try(object)
	for _, name := range slices.Sorted(maps.Keys(set)) {
		for _, v := range values[name].values {
			if f.enough() {
				return
			}
			other := maps.Clone(object)
			other[name] = v
			f.try(other)
		}
	}
}

// build makes an object with the first value of each property; nil if one has no value.
func build(set map[string]bool, values map[string]answer) map[string]any {
	object := map[string]any{}
	for name := range set {
		a := values[name]
		if len(a.values) == 0 {
			return nil
		}
		object[name] = a.values[0]
	}
	return object
}
