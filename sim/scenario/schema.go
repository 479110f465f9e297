package scenario

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"voicegw/internal/strict"
)

const maxSchemaDepth = 8

// schema is the part of a JSON Schema, or of Gemini's OpenAPI subset, for making arguments. The zero value allows
// anything.
type schema struct {
	kind     string // string, integer, number, boolean, array, object; "" if unknown
	format   string
	enum     []any
	def      any
	examples []any
	min      *float64
	props    []property // in order
	required []string
	items    *schema
}

type property struct {
	name   string
	schema schema
}

type rawSchema struct {
	Type       json.RawMessage   `json:"type"`
	Format     string            `json:"format"`
	Pattern    string            `json:"pattern"`
	Enum       []any             `json:"enum"`
	Const      any               `json:"const"`
	Default    any               `json:"default"`
	Example    any               `json:"example"`
	Examples   []any             `json:"examples"`
	Minimum    *float64          `json:"minimum"`
	Properties json.RawMessage   `json:"properties"`
	Required   []string          `json:"required"`
	Items      json.RawMessage   `json:"items"`
	AnyOf      []json.RawMessage `json:"anyOf"`
	OneOf      []json.RawMessage `json:"oneOf"`
}

func parseSchema(raw json.RawMessage) schema { return parseSchemaAt(raw, 0) }

func parseSchemaAt(raw json.RawMessage, depth int) schema {
	var r rawSchema
	if depth > maxSchemaDepth || len(raw) == 0 || json.Unmarshal(raw, &r) != nil {
		return schema{}
	}
	s := schema{
		kind: typeName(r.Type), format: formOf(r.Format, r.Pattern), enum: r.Enum, def: r.Default,
		examples: r.Examples, min: r.Minimum, required: r.Required,
	}
	if r.Const != nil {
		s.enum = []any{r.Const}
	}
	if r.Example != nil {
		s.examples = append(s.examples, r.Example)
	}
	members, _ := strict.Members(r.Properties)
	for _, m := range members {
		s.props = append(s.props, property{name: m.Key, schema: parseSchemaAt(m.Value, depth+1)})
	}
	if len(r.Items) > 0 {
		items := parseSchemaAt(r.Items, depth+1)
		s.items = &items
	}
	if s.kind == "" {
		for _, alt := range append(r.AnyOf, r.OneOf...) {
			if a := parseSchemaAt(alt, depth+1); a.kind != "" && a.kind != "null" {
				a.def = s.def
				return a
			}
		}
		if len(s.props) > 0 {
			s.kind = "object"
		}
	}
	return s
}

func typeName(raw json.RawMessage) string {
	var one string
	if json.Unmarshal(raw, &one) == nil {
		return strings.ToLower(one)
	}
	var many []string
	if json.Unmarshal(raw, &many) == nil {
		for _, t := range many {
			if !strings.EqualFold(t, "null") {
				return strings.ToLower(t)
			}
		}
	}
	return ""
}

func (s schema) needs(name string) bool { return slices.Contains(s.required, name) }

func (s schema) property(name string) schema {
	for _, p := range s.props {
		if p.name == name {
			return p.schema
		}
	}
	return schema{}
}

func (s schema) element() schema {
	if s.items == nil {
		return schema{}
	}
	return *s.items
}

func (s schema) convert(text string) any {
	switch s.kind {
	case "integer":
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return n
		}
		if f, ok := numberOf(text); ok && f == float64(int64(f)) {
			return int64(f)
		}
	case "number":
		if f, ok := numberOf(text); ok {
			return f
		}
	case "boolean":
		if b, err := strconv.ParseBool(strings.ToLower(text)); err == nil {
			return b
		}
	}
	return text
}

// localDateTime is for times with or without an offset; JSON Schema has no such format.
const localDateTime = "local-date-time"

// formOf returns the format of a text; localDateTime for a pattern that accepts times.
func formOf(format, pattern string) string {
	if format != "" || pattern == "" {
		return format
	}
	if re, err := regexp.Compile(pattern); err == nil && re.MatchString("2026-01-02T03:04:05Z") && !re.MatchString("text") {
		return localDateTime
	}
	return ""
}
