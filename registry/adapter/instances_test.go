package adapter_test

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"net/url"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
)

// instances makes random instances from a canonical schema, by construction where that is easy and otherwise by
// guess; the canonical validator judges them. It shares nothing with the package under test, so it cannot share its
// faults.
type instances struct {
	root map[string]any
	rng  *rand.Rand
}

func (g *instances) make() any {
	v := g.from(g.root, 0)
	for range g.rng.IntN(3) * g.rng.IntN(2) { // half of them unchanged
		v = g.spoil(v)
	}
	return v
}

func (g *instances) maybe() bool { return g.rng.IntN(2) == 0 }

func pickOne[T any](g *instances, list []T) T { return list[g.rng.IntN(len(list))] }

func (g *instances) from(schema any, depth int) any {
	s, ok := schema.(map[string]any)
	if !ok || depth > 12 {
		return g.scalar()
	}
	s = g.flatten(s, 0)
	if v, ok := s["const"]; ok {
		return v
	}
	if list, ok := s["enum"].([]any); ok && len(list) > 0 {
		return pickOne(g, list)
	}
	switch g.typeFor(s) {
	case "object":
		return g.object(s, depth)
	case "array":
		return g.array(s, depth)
	case "string":
		return g.text(s)
	case "integer":
		return g.number(s, true)
	case "number":
		return g.number(s, g.maybe())
	case "boolean":
		return g.maybe()
	case "null":
		return nil
	default:
		return g.scalar()
	}
}

// flatten merges references and one branch of each alternative into the schema.
func (g *instances) flatten(s map[string]any, depth int) map[string]any {
	if depth > 8 {
		return s
	}
	out := maps.Clone(s)
	var parts []any
	if ref, ok := s["$ref"].(string); ok {
		parts = append(parts, g.resolve(ref))
	}
	if all, ok := s["allOf"].([]any); ok {
		parts = append(parts, all...)
	}
	for _, key := range []string{"anyOf", "oneOf"} {
		if list, ok := s[key].([]any); ok && len(list) > 0 {
			parts = append(parts, pickOne(g, list))
		}
	}
	for _, key := range []string{"then", "else"} {
		if part, ok := s[key]; ok && g.maybe() {
			parts = append(parts, part)
		}
	}
	for _, key := range []string{"$ref", "allOf", "anyOf", "oneOf", "then", "else"} {
		delete(out, key)
	}
	for _, p := range parts {
		if m, ok := p.(map[string]any); ok {
			fold(out, g.flatten(m, depth+1))
		}
	}
	return out
}

// fold adds b to a: properties and required are combined, the tighter bounds win, and otherwise b.
func fold(a, b map[string]any) {
	for key, v := range b {
		old, both := a[key]
		switch {
		case !both:
			a[key] = v
		case key == "properties":
			props := maps.Clone(old.(map[string]any))
			for name, p := range v.(map[string]any) {
				if q, ok := props[name].(map[string]any); ok {
					if r, ok := p.(map[string]any); ok {
						q = maps.Clone(q)
						fold(q, r)
						p = q
					}
				}
				props[name] = p
			}
			a[key] = props
		case key == "required":
			a[key] = append(slices.Clone(old.([]any)), v.([]any)...)
		case key == "type":
			a[key] = commonTypes(old, v)
		case strings.HasPrefix(key, "min") || key == "exclusiveMinimum":
			if f(v) > f(old) {
				a[key] = v
			}
		case strings.HasPrefix(key, "max") || key == "exclusiveMaximum":
			if f(v) < f(old) {
				a[key] = v
			}
		case key == "items":
			if q, ok := old.(map[string]any); ok {
				if r, ok := v.(map[string]any); ok {
					q = maps.Clone(q)
					fold(q, r)
					a[key] = q
				}
			}
		default:
			a[key] = v
		}
	}
}

func commonTypes(a, b any) any {
	list := func(v any) []any {
		if l, ok := v.([]any); ok {
			return l
		}
		return []any{v}
	}
	var common []any
	for _, t := range list(a) {
		if slices.Contains(list(b), t) || t == "integer" && slices.Contains(list(b), any("number")) {
			common = append(common, t)
		}
	}
	if len(common) == 0 {
		return b
	}
	return common
}

func f(v any) float64 {
	n, _ := v.(json.Number)
	x, _ := n.Float64()
	return x
}

func (g *instances) resolve(ref string) any {
	fragment, _ := url.PathUnescape(strings.TrimPrefix(ref, "#"))
	if fragment != "" && fragment[0] != '/' {
		return anchored(g.root, fragment)
	}
	var at any = g.root
	for _, token := range strings.Split(fragment, "/")[1:] {
		token = strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
		m, _ := at.(map[string]any)
		at = m[token]
	}
	return at
}

func anchored(v any, name string) any {
	m, _ := v.(map[string]any)
	if m["$anchor"] == name {
		return m
	}
	for _, one := range m {
		if found := anchored(one, name); found != nil {
			return found
		}
	}
	return nil
}

func (g *instances) typeFor(s map[string]any) string {
	switch t := s["type"].(type) {
	case string:
		return t
	case []any:
		name, _ := pickOne(g, t).(string)
		return name
	}
	for _, guess := range [][2]string{{"properties", "object"}, {"required", "object"}, {"items", "array"}, {"pattern", "string"},
		{"minLength", "string"}, {"maxLength", "string"}, {"minimum", "number"}, {"maximum", "number"}} {
		if _, ok := s[guess[0]]; ok {
			return guess[1]
		}
	}
	return ""
}

func (g *instances) scalar() any {
	return pickOne(g, []any{nil, true, false, "", "a", "xyz", json.Number("0"), json.Number("1"), json.Number("-7"),
		json.Number("2.5"), json.Number("1e3"), json.Number("3.0"), []any{}, map[string]any{}})
}

func (g *instances) object(s map[string]any, depth int) any {
	out := map[string]any{}
	props, _ := s["properties"].(map[string]any)
	required, _ := s["required"].([]any)
	all := g.rng.IntN(4) == 0
	for _, name := range slices.Sorted(maps.Keys(props)) {
		if props[name] == false {
			continue
		}
		if slices.Contains(required, any(name)) || all || g.maybe() {
			out[name] = g.from(props[name], depth+1)
		}
	}
	if dependents, ok := s["dependentRequired"].(map[string]any); ok && g.maybe() {
		for _, names := range dependents {
			for _, name := range names.([]any) {
				out[name.(string)] = g.from(props[name.(string)], depth+1)
			}
		}
	}
	if most, ok := s["maxProperties"]; ok {
		for name := range out {
			if float64(len(out)) > f(most) && !slices.Contains(required, any(name)) {
				delete(out, name)
			}
		}
	}
	return out
}

func (g *instances) array(s map[string]any, depth int) any {
	out := []any{}
	least := int(f(s["minItems"]))
	most := least + 3
	if m, ok := s["maxItems"]; ok {
		most = int(f(m))
	}
	n := least
	if most > least {
		n += g.rng.IntN(most - least + 1)
	}
	items := s["items"]
	if items == false {
		return out
	}
	for len(out) < n {
		out = append(out, g.from(items, depth+1))
	}
	return out
}

// sampled are values of each format.
var sampled = map[string][]string{
	"date-time": {"2026-11-20T10:00:00Z", "2026-02-28T23:59:59.123+01:00"},
	"date":      {"2026-11-20", "2024-02-29"}, "time": {"10:00:00Z", "23:59:59+02:00"},
	"email": {"ada@example.com", "a.b+c@example.org"}, "uri": {"https://example.com/a?b#c", "urn:x:y"},
	"uuid": {"123e4567-e89b-12d3-a456-426614174000"}, "ipv4": {"192.0.2.1"}, "ipv6": {"2001:db8::1", "::"},
}

func (g *instances) text(s map[string]any) any {
	if name, ok := s["format"].(string); ok {
		return pickOne(g, append(sampled[name], "no such thing"))
	}
	if p, ok := s["pattern"].(string); ok {
		return g.matching(p)
	}
	least := int(f(s["minLength"]))
	most := least + 4
	if m, ok := s["maxLength"]; ok {
		most = int(f(m))
	}
	n := pickOne(g, []int{least, most, (least + most) / 2})
	var b strings.Builder
	for range n {
		b.WriteRune(pickOne(g, []rune("abz09 ü😀-\"\\<")))
	}
	return b.String()
}

// matching makes a string that usually matches a regular expression.
func (g *instances) matching(pattern string) string {
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return pattern
	}
	return g.regexp(re.Simplify())
}

func (g *instances) regexp(re *syntax.Regexp) string {
	sub := func() string {
		if len(re.Sub) == 0 {
			return ""
		}
		return g.regexp(re.Sub[0])
	}
	switch re.Op {
	case syntax.OpLiteral:
		return string(re.Rune)
	case syntax.OpCharClass:
		i := g.rng.IntN(len(re.Rune)/2) * 2
		return string(re.Rune[i] + rune(g.rng.IntN(int(min(re.Rune[i+1]-re.Rune[i], 20))+1)))
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return pickOne(g, []string{"a", "ü", "7", " "})
	case syntax.OpStar, syntax.OpQuest:
		if g.maybe() {
			return ""
		}
		return sub()
	case syntax.OpPlus:
		if g.maybe() {
			return sub() + sub()
		}
		return sub()
	case syntax.OpConcat:
		var b strings.Builder
		for _, r := range re.Sub {
			b.WriteString(g.regexp(r))
		}
		return b.String()
	case syntax.OpAlternate:
		return g.regexp(pickOne(g, re.Sub))
	case syntax.OpCapture:
		return sub()
	default:
		return ""
	}
}

// number prefers the limits, where forms differ.
func (g *instances) number(s map[string]any, integer bool) any {
	edges := []float64{0, 1, -1, 7}
	for _, key := range []string{"minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum"} {
		if v, ok := s[key]; ok {
			edges = append(edges, f(v), f(v)+1, f(v)-1, f(v)+0.5, f(v)-0.25)
		}
	}
	if v, ok := s["multipleOf"]; ok {
		for i := range 8 {
			edges = append(edges, f(v)*float64(i))
		}
	}
	x := pickOne(g, edges)
	if integer {
		x = float64(int64(x))
		if g.rng.IntN(8) == 0 {
			return json.Number(strconv.FormatFloat(x, 'f', 1, 64)) // 3.0 is an integer too
		}
	}
	return json.Number(strconv.FormatFloat(x, 'g', -1, 64))
}

// spoil makes one random change.
func (g *instances) spoil(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := maps.Clone(v)
		names := slices.Sorted(maps.Keys(out))
		switch {
		case g.rng.IntN(6) == 0 || len(names) == 0:
			out["unknown"] = g.scalar()
		case g.rng.IntN(4) == 0:
			delete(out, pickOne(g, names))
		default:
			name := pickOne(g, names)
			out[name] = g.spoil(out[name])
		}
		return out
	case []any:
		out := slices.Clone(v)
		switch {
		case len(out) == 0 || g.rng.IntN(4) == 0:
			return append(out, g.scalar())
		case g.rng.IntN(4) == 0:
			return append(out, pickOne(g, out))
		default:
			i := g.rng.IntN(len(out))
			out[i] = g.spoil(out[i])
			return out
		}
	case string:
		return pickOne(g, []any{v + "x", strings.TrimSuffix(v, "a"), "", g.scalar()})
	case json.Number:
		x := f(v)
		return pickOne(g, []any{json.Number(strconv.FormatFloat(x+1, 'g', -1, 64)), json.Number(strconv.FormatFloat(x-0.5, 'g', -1, 64)), g.scalar()})
	default:
		return g.scalar()
	}
}
