package adapter

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

type schema struct {
	typ         string
	title       string
	description string
	nullable    bool
	format      string
	enum        []string
	def         any // nil if missing
	example     any
	pattern     string
	sizes       map[string]int64   // minLength, maxItems, …
	bounds      map[string]float64 // minimum, maximum
	items       *schema
	properties  []property
	required    []string
	anyOf       []*schema
	// notes are sentences for the description, for constraints without a keyword.
	notes []string
}

type property struct {
	name string
	schema
}

var typeUpper = map[typeSet]string{
	typeObject: "OBJECT", typeArray: "ARRAY", typeString: "STRING", typeNumber: "NUMBER",
	typeInteger: "INTEGER", typeBoolean: "BOOLEAN", typeNull: "NULL",
}

type gemini struct {
	p    *problems
	made int
	full bool
	// looser lists keywords with constraints that the form doesn't express.
	looser []string
	// gaps means that a part has no form; a problem must explain it.
	gaps bool
}

func (g *gemini) gap() { g.gaps = true }

// GeminiParameters returns a Gemini Schema with upper-case types, and propertyOrdering in the order of the schema's
// text. Members are ordered as type, title, description, nullable, format, enum, default, example, pattern,
// minLength, maxLength, minimum, maximum, minItems, maxItems, items, minProperties, maxProperties, properties,
// propertyOrdering, required; a schema of alternatives has only anyOf, because the server accepts nothing next to it.
// It is nil without an error for an object without properties. The error is [Problems].
func GeminiParameters(text json.RawMessage) (json.RawMessage, error) {
	form, _, err := makeGemini(text)
	return form, err
}

func makeGemini(text []byte) (json.RawMessage, []string, error) {
	var p problems
	o := canonical(text, &p)
	if o == nil || o.unknown || typesOf(o) != typeObject {
		return nil, nil, p.list.asError()
	}
	g := &gemini{p: &p}
	if alternative := slices.IndexFunc([]string{"anyOf", "oneOf"}, o.has); alternative >= 0 {
		key := []string{"anyOf", "oneOf"}[alternative]
		p.add(o.at(key), key, "Gemini takes only an object at the root of the parameters, no alternatives. Instead: %s.", rootMend)
		o = o.without("anyOf", "oneOf")
	}
	if len(o.sub("properties").members) == 0 {
		g.refuse(o)
		return nil, g.looser, p.list.asError()
	}
	form := g.schema(o)
	if (form == nil || g.gaps) && len(p.list) == 0 {
		p.add("", "", "Gemini's form has gaps, and no rule says why; please report this schema") // never return a form with holes
	}
	if err := p.list.asError(); err != nil || form == nil {
		return nil, nil, err
	}
	return form.layOut().encode(), g.looser, nil
}

// schema returns nil if a problem explains the missing form.
func (g *gemini) schema(o *object) *schema {
	g.made++
	if o.unknown || g.full {
		g.gap()
		return nil
	}
	if g.made > MaxSchemas {
		g.full = true
		g.p.add("", "", "Gemini's form would have more than %d subschemas; use fewer alternatives", MaxSchemas)
		return nil
	}
	if !g.refuse(o) {
		return nil
	}
	var s *schema
	switch t := typesOf(o); {
	case o.has("anyOf"):
		s = g.union(g.alternatives(o, "anyOf"))
	case o.has("oneOf"):
		s = g.union(g.alternatives(o, "oneOf"))
	case !o.has("type"):
		// The registry rejects an open one without a type.
		if g.gap(); closed(o) {
			g.p.add(o.path, "type", `Gemini needs a type, and without one anything but an object is valid here as it stands; `+
				`say "type": "object"`)
		}
		return nil
	case several(t &^ typeNull):
		s = g.union(byType(o, t))
	default:
		s = g.one(o, t)
	}
	if s != nil {
		g.annotate(s, o)
	}
	return s
}

func several(t typeSet) bool { return len(t.Names()) > 1 }

// refuse reports keywords that Gemini's form cannot express.
func (g *gemini) refuse(o *object) bool {
	before := len(g.p.list)
	for _, m := range o.members {
		if m.key == "allOf" {
			k, _ := keyword(m.key)
			g.p.add(m.path, "allOf", "parts of this allOf do not merge into one schema, and Gemini has no "+
				"allOf%s. Instead: %s.", residue(o, "allOf"), k.Mend)
		}
	}
	if o.has("anyOf") && o.has("oneOf") {
		g.p.add(o.at("oneOf"), "oneOf", "oneOf stands beside anyOf, and Gemini has one list of alternatives; write the "+
			"combinations as one list")
	}
	return len(g.p.list) == before
}

// annotations stay with the schema of alternatives; other keywords go into each alternative.
var annotations = []string{"title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly"}

type branch struct {
	at     string // the alternative's pointer
	schema any
	err    error // why nothing is accepted
}

func branches(o *object, key string) []branch {
	base := o.without(append([]string{key}, annotations...)...)
	var all []branch
	for i, alternative := range o.list(key) {
		b := branch{at: pointer(o.at(key), key, strconv.Itoa(i))}
		if b.schema, b.err = merge(base, alternative); b.err == nil {
			b.schema, b.err = finish(b.schema)
		}
		if made, ok := b.schema.(*object); ok && !made.unknown {
			made = made.without()
			made.path = b.at
			b.schema = made
		}
		all = append(all, b)
	}
	return all
}

// alternatives returns the branches of anyOf or oneOf that accept anything. The server accepts nothing next to anyOf
// ("it must be the only field set").
func (g *gemini) alternatives(o *object, key string) []*object {
	var all []*object
	for _, b := range branches(o, key) {
		if b.err != nil {
			continue
		}
		made, ok := b.schema.(*object)
		if !ok || made.unknown {
			g.gap()
			return nil // cannot happen: the registry rejects it
		}
		all = append(all, made)
	}
	if len(all) == 0 {
		g.p.add(o.at(key), key, "none of the alternatives agrees with what stands beside them; correct one of the two")
	}
	if key == "oneOf" {
		g.exclusive(o, all)
	}
	return all
}

func (g *gemini) exclusive(o *object, all []*object) {
	k, _ := keyword("oneOf")
	for i, a := range all {
		for _, b := range all[i+1:] {
			if !disjoint(a, b) {
				g.p.add(o.at("oneOf"), "oneOf",
					"Gemini has only anyOf, and it cannot be seen that %s and %s never hold together. Instead: %s.", a.path, b.path, k.Mend)
				return
			}
		}
	}
}

func byType(o *object, t typeSet) []*object {
	base := o.without(annotations...)
	var all []*object
	for _, n := range namedTypes {
		one := t & n.Set
		if one != n.Set || n.Set == typeNull {
			continue
		}
		t &^= one
		if part, err := merge(base, newObject(o.path, "type", n.Name)); err == nil {
			if part, err = finish(part); err == nil {
				if branch, ok := part.(*object); ok {
					all = append(all, branch)
				}
			}
		}
	}
	if typesOf(o)&typeNull != 0 {
		all = append(all, newObject(o.path, "type", "null"))
	}
	return all
}

// union makes a schema of alternatives: nested ones are flattened, null becomes nullable, and a single one is
// returned directly.
func (g *gemini) union(all []*object) *schema {
	var out []*schema
	null := false
	for _, o := range all {
		s := g.schema(o)
		switch {
		case s == nil:
		case s.typ == "NULL":
			null = true
		case s.anyOf != nil:
			out = append(out, s.anyOf...)
		default:
			out = append(out, s)
		}
	}
	if len(out) == 0 {
		if null {
			return &schema{typ: "NULL"}
		}
		return nil
	}
	for _, s := range out {
		s.nullable = s.nullable || null
	}
	if len(out) == 1 {
		return out[0]
	}
	return &schema{anyOf: out}
}

func (g *gemini) one(o *object, t typeSet) *schema {
	s := &schema{nullable: t&typeNull != 0}
	if t != typeNull {
		t &^= typeNull
	} else {
		s.nullable = false
	}
	s.typ = typeUpper[t]
	if o.has("enum") {
		return g.enum(s, o, t)
	}
	switch t {
	case typeObject:
		return g.object(s, o)
	case typeArray:
		return g.array(s, o)
	case typeString:
		g.str(s, o)
	case typeNumber, typeInteger:
		g.number(s, o, t)
	}
	return s
}

func (g *gemini) object(s *schema, o *object) *schema {
	props := o.sub("properties")
	if len(props.members) == 0 {
		// The registry rejects an open one.
		if g.gap(); !closed(o) {
			return nil
		}
		g.p.add(o.path, "properties", "Gemini refuses an object without properties below the root; list properties, or "+
			"leave the object out")
		return nil
	}
	for _, m := range props.members {
		path := pointer(props.path, m.key)
		if !geminiParam.MatchString(m.key) {
			g.p.add(path, "properties", "Gemini does not take the property name %q; use a letter or _ first, then letters, "+
				"digits and _, at most 64", clip(m.key))
		}
		if made := g.any(m.value, path); made != nil {
			s.properties = append(s.properties, property{m.key, *made})
		}
	}
	s.required = o.names("required")
	g.sizes(s, o, "minProperties", "maxProperties")
	for _, m := range o.sub("dependentRequired").members {
		names := o.sub("dependentRequired").names(m.key)
		if len(names) > 0 && props.has(m.key) {
			g.say(s, "dependentRequired", "With %s also give %s.", m.key, strings.Join(names, ", "))
		}
	}
	return s
}

func (g *gemini) any(v any, path string) *schema {
	if o, ok := v.(*object); ok {
		return g.schema(o)
	}
	g.gap()
	if v == false {
		g.p.add(path, "", "Gemini has no schema false; describe what is allowed, or leave it out")
	}
	return nil // the registry rejects true
}

func (g *gemini) array(s *schema, o *object) *schema {
	items, ok := o.get("items")
	if !ok {
		g.gap()
		return nil // the registry rejects a list of anything
	}
	if s.items = g.any(items, pointer(o.at("items"), "items")); s.items == nil {
		return nil
	}
	g.sizes(s, o, "minItems", "maxItems")
	if v, _ := o.get("uniqueItems"); v == true {
		g.say(s, "uniqueItems", "No two items may be equal.")
	}
	return s
}

func (g *gemini) str(s *schema, o *object) {
	g.sizes(s, o, "minLength", "maxLength")
	s.pattern = o.text("pattern")
	// Servers reject other formats with "only 'enum' and 'date-time' are supported for STRING type" (public issue
	// reports, 2025), although the reference lists more.
	if f := o.text("format"); f == "date-time" {
		s.format = f
	} else if f != "" {
		g.say(s, "format", "Format: %s.", f)
	}
	if e := o.text("contentEncoding"); e != "" {
		s.notes = append(s.notes, "Encoded as "+e+".")
	}
	if m := o.text("contentMediaType"); m != "" {
		s.notes = append(s.notes, "Content of media type "+m+".")
	}
}

// sizes copies size limits.
func (g *gemini) sizes(s *schema, o *object, keys ...string) {
	for _, key := range keys {
		v, ok := o.get(key)
		if !ok {
			continue
		}
		n, _ := v.(json.Number)
		size, ok := count(n)
		if !ok {
			g.p.add(o.at(key), key, "%s is more than a provider can count; leave it out or use less than 2^53", clip(n.String()))
			continue
		}
		if s.sizes == nil {
			s.sizes = map[string]int64{}
		}
		s.sizes[key] = size
	}
}

func (g *gemini) say(s *schema, keyword, format string, args ...any) {
	s.notes = append(s.notes, fmt.Sprintf(format, args...))
	g.looser = append(g.looser, keyword)
}

// annotate adds o's annotations to s, before those of its parts.
func (g *gemini) annotate(s *schema, o *object) {
	notes := s.notes
	if v, _ := o.get("deprecated"); v == true {
		notes = append(notes, "Deprecated.")
	}
	s.notes = nil
	targets := s.anyOf
	if targets == nil {
		targets = []*schema{s}
	}
	for _, one := range targets {
		if one.title == "" {
			one.title = o.text("title")
		}
		one.description = sentences(append([]string{o.text("description"), one.description}, notes...)...)
	}
	if v, ok := o.get("default"); ok && v != nil {
		if !floats(v) {
			g.p.add(o.at("default"), "default",
				"Gemini's form holds numbers as float64, which would round this default; use one that it holds exactly")
		} else if one := taking(targets, v); one != nil {
			one.def = v
		}
	}
	for _, v := range o.list("examples") {
		if one := taking(targets, v); one != nil && v != nil && floats(v) {
			one.example = v
			break
		}
	}
}

func taking(all []*schema, v any) *schema {
	t := typeOf(v)
	for _, s := range all {
		if s.typ == typeUpper[t] || s.typ == "NUMBER" && t&typeNumber != 0 {
			return s
		}
	}
	return nil
}

func floats(v any) bool {
	switch v := v.(type) {
	case json.Number:
		_, exact := float(rat(v))
		return exact
	case []any:
		return !slices.ContainsFunc(v, func(e any) bool { return !floats(e) })
	case *object:
		return !slices.ContainsFunc(v.members, func(m member) bool { return !floats(m.value) })
	default:
		return true
	}
}

func sentences(texts ...string) string {
	var kept []string
	for _, t := range texts {
		t = strings.TrimSpace(t)
		if t != "" && !slices.Contains(kept, t) {
			kept = append(kept, t)
		}
	}
	for i := range kept {
		if i < len(kept)-1 && !strings.ContainsRune(".!?:;…)", lastRune(kept[i])) {
			kept[i] += "."
		}
	}
	return strings.Join(kept, " ")
}

func lastRune(s string) rune {
	r := []rune(s)
	return r[len(r)-1]
}
