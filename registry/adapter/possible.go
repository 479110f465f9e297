package adapter

import (
	"encoding/json"
	"slices"
	"strconv"

	"voicegw/registry/jsontype"
)

// maxDoubts is how many problems of one schema Possible reports.
const maxDoubts = 50

// Possible finds out whether the parameters have a valid value, and the same for each schema in
// them that describes a value: for each property (which must also be possible together with the
// other properties that the object needs), for items and for each alternative. impossible are
// the innermost schemas that no value fits, and enum values that are never valid; doubtful are
// schemas for which no value was found although one may exist, and types that no value has. It
// accepts any bytes and reports nothing for a schema for which [All] has problems.
//
// The work is bounded by steps and not by a clock, so that a schema always gets the same answer.
func Possible(parameters json.RawMessage) (impossible, doubtful Problems) {
	var p problems
	root := parse(parameters, &p)
	if root == nil {
		return nil, nil
	}
	v := vet(root, &p)
	if _, _, err := All(parameters); err != nil || len(p.list) > 0 {
		return nil, nil
	}
	c := &checker{solver: newSolver(), raw: v.schemas, bad: map[string]bool{}}
	c.values()
	c.visit(inline(v, &p))
	if c.work > maxWork {
		c.doubtful.list = nil
		c.doubt("", "The schema is too intricate to find a valid value for each part of it; parts that nothing satisfies may be among them.")
	}
	return c.impossible.list.sorted(), c.doubtful.list.sorted()
}

// checker walks a schema.
type checker struct {
	solver

	raw                  map[string]any // the schemas as written, by their JSON pointers
	impossible, doubtful problems
	bad                  map[string]bool // pointers of impossible schemas
}

// refuse reports what nothing satisfies.
func (c *checker) refuse(at, format string, args ...any) {
	c.bad[at] = true
	if len(c.impossible.list) < maxDoubts {
		c.impossible.add(at, "", format, args...)
	}
}

func (c *checker) doubt(at, format string, args ...any) {
	if len(c.doubtful.list) < maxDoubts && !c.bad[at] {
		c.doubtful.add(at, "", format, args...)
	}
}

// visit checks a schema and its subschemas. It returns whether it called one of them impossible.
func (c *checker) visit(o *object) (told bool) {
	if c.work > maxWork {
		return false
	}
	for _, m := range o.sub("properties").members {
		told = c.inside(m.value) || told
	}
	if items, ok := o.get("items"); ok {
		told = c.inside(items) || told
	}
	for _, b := range c.alternatives(o) {
		if b.err != nil {
			c.refuse(b.at, "No value can be valid here: %v. Correct one of them.", b.err)
			told = true
		} else {
			told = c.inside(b.schema) || told
		}
	}
	if told {
		return true
	}
	switch a := c.solve(o, 1); {
	case a.none():
		c.refuse(o.path, "No value can be valid here: %s. Correct one of them.", a.why)
		return true
	case len(a.values) == 0:
		c.doubt(o.path, "No valid value was found here, but one may exist. If one does, name it in \"examples\".")
	default:
		c.optional(o)
		c.types(o)
	}
	return false
}

func (c *checker) inside(schema any) bool {
	o, ok := schema.(*object)
	return ok && c.visit(o)
}

// optional reports properties that need not be sent and never can be.
func (c *checker) optional(o *object) {
	for _, m := range o.sub("properties").members {
		property, ok := m.value.(*object)
		if !ok || slices.Contains(o.names("required"), m.key) {
			continue
		}
		with := o.without()
		with.replace("required", append(slices.Clone(o.list("required")), m.key))
		if a := c.solve(with, 1); a.none() {
			c.refuse(property.path, "%q can never be sent: %s. Correct one of them, or remove the property.", clip(m.key), a.why)
		}
	}
}

// types reports the types of a schema's list that no value has.
func (c *checker) types(o *object) {
	raw, ok := c.raw[o.path].(*object)
	if !ok {
		return
	}
	c.wide = several(typesOf(o) &^ jsontype.Null)
	defer func() { c.wide = false }()
	for _, name := range raw.names("type") {
		one, err := merge(o, newObject(o.path, "type", name))
		if err == nil {
			one, err = finish(one)
		}
		why := ""
		if err != nil {
			why = err.Error()
		} else if a := c.any(one, 1); a.none() {
			why = a.why
		}
		if why != "" {
			c.doubt(pointer(o.path, "type"), "No value of the type %s can be valid here (%s). Take the type out, or let its values in.", name, why)
		}
	}
}

// values reports the values of each enum that the keywords beside it refuse, unless they refuse
// all of them: then visit reports the schema.
func (c *checker) values() {
	for path, schema := range c.raw {
		o, ok := schema.(*object)
		if !ok || !o.has("enum") {
			continue
		}
		beside := o.without()
		beside.members = slices.DeleteFunc(beside.members, func(m member) bool {
			k, _ := keyword(m.key)
			return m.key != "type" && (k.applies == 0 || k.holds != holdsNone)
		})
		whys := map[int]string{}
		for i, v := range o.list("enum") {
			if valid, why := c.accepts(beside, plain(v)); !valid && why != "" {
				whys[i] = why
			}
		}
		if len(whys) == len(o.list("enum")) {
			continue
		}
		for i, why := range whys {
			c.refuse(pointer(path, "enum", strconv.Itoa(i)), "The value %s can never be sent: %s. Correct it or take it out.", clip(show(plain(o.list("enum")[i]))), why)
		}
	}
}

// typesIn returns the types of a schema, one at a time, in the order in which they are tried.
func typesIn(o *object) []jsontype.Set {
	var all []jsontype.Set
	for _, t := range []jsontype.Set{jsontype.String, jsontype.Number, jsontype.Boolean, jsontype.Object, jsontype.Array, jsontype.Null} {
		if typesOf(o)&t != 0 {
			all = append(all, typesOf(o)&t)
		}
	}
	return all
}
