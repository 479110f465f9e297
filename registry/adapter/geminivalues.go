package adapter

import (
	"encoding/json"
	"math/big"
	"slices"
)

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
					`Gemini's servers refuse the empty string in an enum; make the property optional, or give the value a `+
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
		g.p.add(o.at("enum"), "enum", "Gemini's form cannot list objects or arrays; describe the value with properties or items")
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
		g.p.add(o.at(key), key, "Gemini's form holds bounds as float64, which would round %s; use one that it holds exactly",
			clip(r.RatString()))
		return nil
	}
	return &f
}
