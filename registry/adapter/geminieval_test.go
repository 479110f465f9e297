package adapter_test

import (
	"encoding/json"
	"math/big"
	"regexp"
	"slices"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v5"
	"google.golang.org/genai"
)

// geminiAccepts evaluates Gemini's Schema by the reference of its fields. open allows properties that the schema does
// not list: the reference does not say, so a form must be right in both cases for instances of the canonical schema,
// which have no such properties.
func geminiAccepts(s *genai.Schema, v any, open bool) bool {
	if len(s.AnyOf) > 0 {
		return slices.ContainsFunc(s.AnyOf, func(one *genai.Schema) bool { return geminiAccepts(one, v, open) })
	}
	if v == nil && s.Nullable != nil && *s.Nullable {
		return true
	}
	switch s.Type {
	case genai.TypeNULL:
		return v == nil
	case genai.TypeBoolean:
		_, ok := v.(bool)
		return ok
	case genai.TypeString:
		text, ok := v.(string)
		return ok && geminiString(s, text)
	case genai.TypeInteger, genai.TypeNumber:
		n, ok := v.(json.Number)
		return ok && geminiNumber(s, n)
	case genai.TypeArray:
		list, ok := v.([]any)
		return ok && sized(len(list), s.MinItems, s.MaxItems) &&
			!slices.ContainsFunc(list, func(one any) bool { return !geminiAccepts(s.Items, one, open) })
	case genai.TypeObject:
		m, ok := v.(map[string]any)
		return ok && geminiObject(s, m, open)
	default:
		return false
	}
}

func sized(n int, least, most *int64) bool {
	return (least == nil || int64(n) >= *least) && (most == nil || int64(n) <= *most)
}

func geminiString(s *genai.Schema, text string) bool {
	if len(s.Enum) > 0 && !slices.Contains(s.Enum, text) {
		return false
	}
	if s.Pattern != "" && !regexp.MustCompile(s.Pattern).MatchString(text) {
		return false
	}
	if s.Format != "" && (s.Format != "date-time" || !jsonschema.Formats["date-time"](text)) {
		return false
	}
	return sized(utf8.RuneCountInString(text), s.MinLength, s.MaxLength)
}

func geminiNumber(s *genai.Schema, n json.Number) bool {
	r, ok := new(big.Rat).SetString(n.String())
	switch {
	case !ok, len(s.Enum) > 0:
		return false // an enum is for strings only
	case s.Type == genai.TypeInteger && !r.IsInt():
		return false
	case s.Minimum != nil && r.Cmp(decimal(*s.Minimum)) < 0:
		return false
	case s.Maximum != nil && r.Cmp(decimal(*s.Maximum)) > 0:
		return false
	}
	return true
}

// decimal is the number in the float's text.
func decimal(f float64) *big.Rat {
	text, _ := json.Marshal(f)
	r, _ := new(big.Rat).SetString(string(text))
	return r
}

func geminiObject(s *genai.Schema, m map[string]any, open bool) bool {
	for _, name := range s.Required {
		if _, ok := m[name]; !ok {
			return false
		}
	}
	for name, v := range m {
		p, ok := s.Properties[name]
		if !ok && !open || ok && !geminiAccepts(p, v, open) {
			return false
		}
	}
	return sized(len(m), s.MinProperties, s.MaxProperties)
}
