package adapter

import (
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"voicegw/registry/document"
)

type schema struct {
	Type          string          `json:"type,omitempty"`
	Title         string          `json:"title,omitempty"`
	Description   string          `json:"description,omitempty"`
	Nullable      bool            `json:"nullable,omitempty"`
	Format        string          `json:"format,omitempty"`
	Enum          []string        `json:"enum,omitempty"`
	Default       json.RawMessage `json:"default,omitempty"`
	Example       json.RawMessage `json:"example,omitempty"`
	Pattern       string          `json:"pattern,omitempty"`
	MinLength     *int64          `json:"minLength,omitempty"`
	MaxLength     *int64          `json:"maxLength,omitempty"`
	Minimum       *float64        `json:"minimum,omitempty"`
	Maximum       *float64        `json:"maximum,omitempty"`
	MinItems      *int64          `json:"minItems,omitempty"`
	MaxItems      *int64          `json:"maxItems,omitempty"`
	Items         *schema         `json:"items,omitempty"`
	MinProperties *int64          `json:"minProperties,omitempty"`
	MaxProperties *int64          `json:"maxProperties,omitempty"`
	Properties    *object         `json:"properties,omitempty"` // of *schema
	Ordering      []string        `json:"propertyOrdering,omitempty"`
	Required      []string        `json:"required,omitempty"`
	AnyOf         []*schema       `json:"anyOf,omitempty"`

	// notes are sentences for the description, for constraints without a keyword.
	notes []string
}

// geminiType returns the name of one type.
func geminiType(t typeSet) string { return strings.ToUpper(t.String()) }

type gemini struct {
	p    Problems
	made int
	full bool
	// looser lists keywords with constraints that the form doesn't express.
	looser []string
}

// GeminiParameters returns a Gemini Schema with upper-case types, and propertyOrdering in the order of the schema's
// text. Members are ordered as type, title, description, nullable, format, enum, default, example, pattern,
// minLength, maxLength, minimum, maximum, minItems, maxItems, items, minProperties, maxProperties, properties,
// propertyOrdering, required; a schema of alternatives has only anyOf, because the server accepts nothing next to it.
// It is nil without an error for an object without properties. The error is [Problems].
func GeminiParameters(text json.RawMessage) (json.RawMessage, error) {
	return (&gemini{}).parameters(text)
}

func (g *gemini) parameters(text []byte) (json.RawMessage, error) {
	o := canonical(text, &g.p)
	if o == nil {
		return nil, g.p.asError()
	}
	for _, key := range []string{"anyOf", "oneOf"} {
		if o.has(key) {
			g.p.add(o.at(key), key, "Gemini accepts only an object at the root of the parameters, without alternatives; %s", rootAdvice)
			o = o.without("anyOf", "oneOf")
		}
	}
	if len(o.sub("properties").members) == 0 {
		g.refuse(o)
		return nil, g.p.asError()
	}
	form := g.schema(o)
	if len(g.p) > 0 {
		return nil, g.p.asError()
	}
	return document.Marshal(form)
}

// gap stands for a part without a form. A problem explains it, so that no form has a hole.
func (g *gemini) gap() *schema {
	if len(g.p) == 0 {
		g.p.add("", "", "a part of the schema has no Gemini form, and no problem explains why; please report this schema")
	}
	return nil
}

// schema returns nil if a problem explains the missing form.
func (g *gemini) schema(o *object) *schema {
	g.made++
	if g.full {
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
		if closed(o) {
			g.p.add(o.path, "type", `Gemini needs a type: without one, values other than objects are valid here; `+
				`write "type": "object"`)
		}
		return g.gap()
	case len((t &^ typeNull).Names()) > 1:
		s = g.union(byType(o, t))
	default:
		s = g.one(o, t)
	}
	if s != nil {
		g.annotate(s, o)
	}
	return s
}

func (g *gemini) refuse(o *object) bool {
	before := len(g.p)
	if o.has("allOf") {
		g.p.add(o.at("allOf"), "allOf", "parts of this allOf cannot be merged, and Gemini has no allOf%s; write the parts "+
			"as one schema", residue(o, "allOf"))
	}
	if o.has("anyOf") && o.has("oneOf") {
		g.p.add(o.at("oneOf"), "oneOf", "the schema has oneOf and anyOf, but Gemini has only one list of alternatives; write the "+
			"combinations as one list")
	}
	return len(g.p) == before
}

// annotations stay with the schema of alternatives; other keywords go into each alternative.
var annotations = []string{"title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly"}

// alternatives returns the branches of anyOf or oneOf that accept anything. The server accepts nothing next to anyOf
// ("it must be the only field set").
func (g *gemini) alternatives(o *object, key string) []*object {
	base := o.without(append([]string{key}, annotations...)...)
	var all []*object
	for i, alternative := range o.list(key) {
		merged, err := mergeFinish(base, alternative)
		if err != nil {
			continue // nothing is accepted
		}
		made, ok := merged.(*object)
		if !ok {
			g.gap() // otherwise the registry rejects it
			return nil
		}
		made = made.without()
		made.path = pointer(o.at(key), key, strconv.Itoa(i))
		all = append(all, made)
	}
	if len(all) == 0 {
		g.p.add(o.at(key), key, "no alternative agrees with the rest of the schema; correct one of the two")
	}
	if key == "oneOf" {
		g.exclusive(o, all)
	}
	return all
}

func (g *gemini) exclusive(o *object, all []*object) {
	for i, a := range all {
		for _, b := range all[i+1:] {
			if !disjoint(a, b) {
				g.p.add(o.at("oneOf"), "oneOf",
					"Gemini has only anyOf, and %s and %s may both accept the same value; give each alternative a required property "+
						"with a different const, or write anyOf if that is intended", a.path, b.path)
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
		if part, err := mergeFinish(base, newObject(o.path, "type", n.Name)); err == nil {
			if branch, ok := part.(*object); ok {
				all = append(all, branch)
			}
		}
	}
	if typesOf(o)&typeNull != 0 {
		all = append(all, newObject(o.path, "type", "null"))
	}
	return all
}

func (g *gemini) union(all []*object) *schema {
	var out []*schema
	null := false
	for _, o := range all {
		s := g.schema(o)
		switch {
		case s == nil:
		case s.Type == "NULL":
			null = true
		case s.AnyOf != nil:
			out = append(out, s.AnyOf...)
		default:
			out = append(out, s)
		}
	}
	if len(out) == 0 {
		if null {
			return &schema{Type: "NULL"}
		}
		return nil
	}
	for _, s := range out {
		s.Nullable = s.Nullable || null
	}
	if len(out) == 1 {
		return out[0]
	}
	return &schema{AnyOf: out}
}

func (g *gemini) one(o *object, t typeSet) *schema {
	s := &schema{}
	if t != typeNull {
		s.Nullable = t&typeNull != 0
		t &^= typeNull
	}
	s.Type = geminiType(t)
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
		if closed(o) { // the registry rejects an open one
			g.p.add(o.path, "properties", "Gemini rejects an object without properties below the root; list its properties, or remove it")
		}
		return g.gap()
	}
	s.Properties = &object{}
	for _, m := range props.members {
		path := pointer(props.path, m.key)
		if !geminiParam.MatchString(m.key) {
			g.p.add(path, "properties", "Gemini does not accept the property name %q; use a letter or _ first, then letters, "+
				"digits and _, at most 64", clip(m.key))
		}
		if made := g.any(m.value, path); made != nil {
			s.Properties.members = append(s.Properties.members, member{key: m.key, value: made})
			s.Ordering = append(s.Ordering, m.key)
		}
	}
	s.Required = o.names("required")
	s.MinProperties, s.MaxProperties = g.size(o, "minProperties"), g.size(o, "maxProperties")
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
	if v == false {
		g.p.add(path, "", "Gemini cannot express the schema false; describe the allowed values, or remove it")
	}
	return g.gap() // the registry rejects true
}

func (g *gemini) array(s *schema, o *object) *schema {
	items, ok := o.get("items")
	if !ok {
		return g.gap() // the registry rejects a list of anything
	}
	if s.Items = g.any(items, pointer(o.at("items"), "items")); s.Items == nil {
		return nil
	}
	s.MinItems, s.MaxItems = g.size(o, "minItems"), g.size(o, "maxItems")
	if v, _ := o.get("uniqueItems"); v == true {
		g.say(s, "uniqueItems", "No two items may be equal.")
	}
	return s
}

func (g *gemini) str(s *schema, o *object) {
	s.MinLength, s.MaxLength = g.size(o, "minLength"), g.size(o, "maxLength")
	s.Pattern = o.text("pattern")
	// Servers reject other formats with "only 'enum' and 'date-time' are supported for STRING type" (public issue
	// reports, 2025), although the reference lists more.
	if f := o.text("format"); f == "date-time" {
		s.Format = f
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

// size returns a size keyword (minLength, maxItems, …), where 3, 3.0 and 3e0 are equal; nil without one.
func (g *gemini) size(o *object, key string) *int64 {
	if !o.has(key) {
		return nil
	}
	r := bound(o, key)
	if !r.IsInt() || !r.Num().IsInt64() || r.Num().Int64() > 1<<53 {
		g.p.add(o.at(key), key, "%s is too large for the providers; use less than 2^53, or remove it", clip(number(o, key)))
		return nil
	}
	return new(r.Num().Int64())
}

func (g *gemini) say(s *schema, keyword, format string, args ...any) {
	s.notes = append(s.notes, fmt.Sprintf(format, args...))
	g.looser = append(g.looser, keyword)
}

func (g *gemini) annotate(s *schema, o *object) {
	notes := s.notes
	if v, _ := o.get("deprecated"); v == true {
		notes = append(notes, "Deprecated.")
	}
	s.notes = nil
	targets := s.AnyOf
	if targets == nil {
		targets = []*schema{s}
	}
	for _, one := range targets {
		if one.Title == "" {
			one.Title = o.text("title")
		}
		one.Description = sentences(append([]string{o.text("description"), one.Description}, notes...)...)
	}
	if v, ok := o.get("default"); ok && v != nil {
		if text, exact := floatNumbers(v); !exact {
			g.p.add(o.at("default"), "default",
				"Gemini's numbers are float64, which would round this default; choose one that float64 can represent")
		} else if one := taking(targets, v); one != nil {
			one.Default = text
		}
	}
	for _, v := range o.list("examples") {
		text, exact := floatNumbers(v)
		if one := taking(targets, v); one != nil && v != nil && exact {
			one.Example = text
			break
		}
	}
}

func taking(all []*schema, v any) *schema {
	t := typeOf(v)
	for _, s := range all {
		if s.Type == geminiType(t) || s.Type == "NUMBER" && t&typeNumber != 0 {
			return s
		}
	}
	return nil
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
		if i < len(kept)-1 && !strings.ContainsAny(kept[i][len(kept[i])-1:], ".!?:;)") && !strings.HasSuffix(kept[i], "…") {
			kept[i] += "."
		}
	}
	return strings.Join(kept, " ")
}

// floatNumbers encodes a value with its numbers as Go encodes floats, so that decoding and encoding a form with
// genai's types keeps its bytes. exact is false if that rounds a number.
func floatNumbers(v any) (text json.RawMessage, exact bool) {
	exact = true
	var convert func(v any) any
	convert = func(v any) any {
		switch v := v.(type) {
		case json.Number:
			f, same := float(rat(v))
			exact = exact && same
			return f
		case []any:
			made := make([]any, len(v))
			for i, e := range v {
				made[i] = convert(e)
			}
			return made
		case *object:
			made := v.without()
			for i, m := range made.members {
				made.members[i].value = convert(m.value)
			}
			return made
		}
		return v
	}
	text, _ = document.Marshal(convert(v)) // cannot fail: parse rejects numbers that are not finite
	return text, exact
}

// enum makes the form of a list of values of type t or null; Gemini's own enum is for strings.
func (g *gemini) enum(s *schema, o *object, t typeSet) *schema {
	values := slices.DeleteFunc(slices.Clone(o.list("enum")), func(v any) bool { return v == nil })
	switch t {
	case typeNull:
	case typeString:
		s.Enum = make([]string, 0, len(values))
		for _, v := range values {
			text, _ := v.(string)
			if text == "" {
				g.p.add(o.at("enum"), "enum",
					`Gemini's servers reject the empty string in an enum; make the property optional, or give the value a `+
						`name such as "none"`)
				return nil
			}
			s.Enum = append(s.Enum, text)
		}
		// Length, pattern and format may still exclude a value.
		g.str(s, o)
	case typeBoolean:
		if len(values) == 1 {
			g.say(s, "enum", "Must be %v.", values[0])
		}
	case typeInteger, typeNumber:
		return g.numbers(s, o, values)
	default:
		g.p.add(o.at("enum"), "enum", "Gemini's enums cannot have objects or arrays; describe the value with properties or items")
		return nil
	}
	return s
}

func (g *gemini) numbers(s *schema, o *object, values []any) *schema {
	var all []*big.Rat
	for _, v := range values {
		n, _ := v.(json.Number)
		if r := rat(n); within(r, o) {
			all = append(all, r)
		}
	}
	slices.SortFunc(all, (*big.Rat).Cmp)
	fractions := slices.ContainsFunc(all, func(r *big.Rat) bool { return !r.IsInt() })
	var runs [][2]*big.Rat
	for _, r := range all {
		if last := len(runs) - 1; last >= 0 && !fractions && new(big.Rat).Sub(r, runs[last][1]).Cmp(big.NewRat(1, 1)) == 0 {
			runs[last][1] = r
			continue
		}
		runs = append(runs, [2]*big.Rat{r, r})
	}
	switch {
	case len(runs) == 0:
		g.p.add(o.at("enum"), "enum", "no value of the enum is within the schema's bounds; correct one of the two")
		return nil
	case len(runs) > MaxAlternatives:
		g.p.add(o.at("enum"), "enum", "Gemini's form would need %d alternatives for these numbers, more than %d; use strings, "+
			"or bounds and multipleOf", len(runs), MaxAlternatives)
		return nil
	}
	made := make([]*schema, 0, len(runs))
	for _, run := range runs {
		one := &schema{Type: "INTEGER", Nullable: s.Nullable}
		if fractions {
			one.Type = "NUMBER"
		}
		one.Minimum, one.Maximum = g.bound(o, "enum", run[0]), g.bound(o, "enum", run[1])
		made = append(made, one)
	}
	if len(made) == 1 {
		return made[0]
	}
	return &schema{AnyOf: made}
}

func within(r *big.Rat, o *object) bool {
	low, lowOpen := tightest(o, "minimum", "exclusiveMinimum", 1)
	high, highOpen := tightest(o, "maximum", "exclusiveMaximum", -1)
	switch {
	case low != nil && (r.Cmp(low) < 0 || lowOpen && r.Cmp(low) == 0):
		return false
	case high != nil && (r.Cmp(high) > 0 || highOpen && r.Cmp(high) == 0):
		return false
	case o.has("multipleOf"):
		return new(big.Rat).Quo(r, bound(o, "multipleOf")).IsInt()
	}
	return true
}

func (g *gemini) number(s *schema, o *object, t typeSet) {
	s.Minimum = g.limit(s, o, t, "minimum", "exclusiveMinimum", 1)
	s.Maximum = g.limit(s, o, t, "maximum", "exclusiveMaximum", -1)
	if o.has("multipleOf") && (t != typeInteger || bound(o, "multipleOf").Cmp(big.NewRat(1, 1)) != 0) {
		g.say(s, "multipleOf", "Must be a multiple of %s.", number(o, "multipleOf"))
	}
}

// limit converts a lower bound (sign 1) or an upper bound (-1).
func (g *gemini) limit(s *schema, o *object, t typeSet, inclusive, exclusive string, sign int) *float64 {
	r, open := tightest(o, inclusive, exclusive, sign)
	key := inclusive
	switch {
	case r == nil:
		return nil
	case open:
		key = exclusive
	}
	if t == typeInteger {
		r = next(r, open, int64(sign))
	} else if open {
		than := "greater"
		if sign < 0 {
			than = "less"
		}
		g.say(s, key, "Must be %s than %s.", than, number(o, key))
	}
	return g.bound(o, key, r)
}

func number(o *object, key string) string {
	v, _ := o.get(key)
	n, _ := v.(json.Number)
	return n.String()
}

// next returns the first integer at a bound or, if it is open, after it, in the direction of sign.
func next(r *big.Rat, open bool, sign int64) *big.Rat {
	n := new(big.Int).Div(r.Num(), r.Denom()) // rounds down, because the denominator is positive
	if !r.IsInt() && sign > 0 {
		n.Add(n, big.NewInt(1))
	}
	if r.IsInt() && open {
		n.Add(n, big.NewInt(sign))
	}
	return new(big.Rat).SetInt(n)
}

// bound returns a bound; nil if a float64 does not represent it exactly.
func (g *gemini) bound(o *object, key string, r *big.Rat) *float64 {
	f, exact := float(r)
	if !exact {
		g.p.add(o.at(key), key, "Gemini's bounds are float64, which would round %s; choose one that float64 can represent",
			clip(r.RatString()))
		return nil
	}
	return &f
}
