package adapter

import (
	"encoding/json"
	"strconv"
)

func (s *schema) layOut() *object {
	o := &object{}
	if s.anyOf != nil {
		list := make([]any, len(s.anyOf))
		for i, one := range s.anyOf {
			list[i] = one.layOut()
		}
		o.set("anyOf", list)
		return o
	}
	o.set("type", s.typ)
	o.setText("title", s.title)
	o.setText("description", s.description)
	if s.nullable {
		o.set("nullable", true)
	}
	o.setText("format", s.format)
	o.setTexts("enum", s.enum)
	if s.def != nil {
		o.set("default", floatNumbers(s.def))
	}
	if s.example != nil {
		o.set("example", floatNumbers(s.example))
	}
	o.setText("pattern", s.pattern)
	s.layOutSizes(o, "minLength", "maxLength")
	for _, name := range []string{"minimum", "maximum"} {
		if f, ok := s.bounds[name]; ok {
			o.set(name, floatText(f))
		}
	}
	s.layOutSizes(o, "minItems", "maxItems")
	if s.items != nil {
		o.set("items", s.items.layOut())
	}
	s.layOutSizes(o, "minProperties", "maxProperties")
	if len(s.properties) > 0 {
		properties, order := &object{}, []string(nil)
		for i := range s.properties {
			p := &s.properties[i]
			properties.members = append(properties.members, member{key: p.name, value: p.layOut()})
			order = append(order, p.name)
		}
		o.set("properties", properties)
		o.setTexts("propertyOrdering", order)
	}
	o.setTexts("required", s.required)
	return o
}

func (s *schema) layOutSizes(o *object, names ...string) {
	for _, name := range names {
		if n, ok := s.sizes[name]; ok {
			o.set(name, json.Number(strconv.FormatInt(n, 10)))
		}
	}
}

func (o *object) setText(key, value string) {
	if value != "" {
		o.set(key, value)
	}
}

func (o *object) setTexts(key string, values []string) {
	if len(values) == 0 {
		return
	}
	list := make([]any, len(values))
	for i, v := range values {
		list[i] = v
	}
	o.set(key, list)
}

// floatText formats a float like Go's encoder, so that decoding and encoding a form with genai's types keeps its
// bytes.
func floatText(f float64) json.RawMessage {
	text, err := json.Marshal(f)
	if err != nil { // not finite: cannot happen, parse rejects it
		return json.RawMessage("0")
	}
	return text
}

func floatNumbers(v any) any {
	switch v := v.(type) {
	case json.Number:
		f, _ := float(rat(v))
		return floatText(f)
	case []any:
		made := make([]any, len(v))
		for i, e := range v {
			made[i] = floatNumbers(e)
		}
		return made
	case *object:
		made := &object{}
		for _, m := range v.members {
			made.members = append(made.members, member{key: m.key, value: floatNumbers(m.value)})
		}
		return made
	default:
		return v
	}
}
