package httptool

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"voicegw/internal/strict"
)

type source string

const (
	fromArgs     source = "args"     // an argument of the call
	fromSettings source = "settings" // a setting of the tool
	fromSession  source = "session"
)

var sessionNames = []string{"id", "user", "vouched", "conversation", "agent", "mode", "turn", "time_zone"}

// template is a text with placeholders such as {args.city}. Its parts alternate: text, placeholder, text.
type template struct {
	texts []string
	holes []placeholder
}

type placeholder struct {
	from source
	name string
}

func (p placeholder) String() string { return "{" + string(p.from) + "." + p.name + "}" }

var placeholders = regexp.MustCompile(`\{([^{}]*)\}`)

// template reads a text. {{ and }} are not special: a brace that is not a placeholder is a problem.
func (r *reader) template(n *yaml.Node, what string) template {
	text, _ := r.Text(n, what)
	var t template
	rest := text
	for {
		at := placeholders.FindStringSubmatchIndex(rest)
		if at == nil {
			break
		}
		t.texts = append(t.texts, rest[:at[0]])
		t.holes = append(t.holes, r.placeholder(n, rest[at[2]:at[3]]))
		rest = rest[at[1]:]
	}
	t.texts = append(t.texts, rest)
	if strings.ContainsAny(strings.Join(t.texts, ""), "{}") {
		r.Problem(n, "%s has a brace that is not part of a placeholder such as {args.name}", what)
	}
	return t
}

func (r *reader) placeholder(n *yaml.Node, text string) placeholder {
	from, name, _ := strings.Cut(text, ".")
	known := map[source][]string{fromArgs: r.args, fromSettings: r.settings, fromSession: sessionNames}
	names, ok := known[source(from)]
	switch {
	case !ok:
		r.Problem(n, "{%s} is not a placeholder; write {args.name}, {settings.name} or {session.name}", text)
	case len(names) == 0:
		r.Problem(n, "{%s}: the tool has no %s", text, from)
	case !slices.Contains(names, name):
		r.Problem(n, "{%s}: there is no %q%s; there is %s", text, name, strict.Near(name, names), strict.Join(names))
	}
	return placeholder{source(from), name}
}

type values struct {
	args, session, settings map[string]any
}

func (v values) get(p placeholder) (value any, ok bool) {
	switch p.from {
	case fromArgs:
		value = v.args[p.name]
	case fromSettings:
		value = v.settings[p.name]
	case fromSession:
		value = v.session[p.name]
	}
	return value, value != nil && value != ""
}

// escape makes a value fit into its place.
type escape func(from source, text string) (string, error)

// fill returns the text with its values, each escaped; ok is false if a value is missing.
func (t template) fill(v values, escape escape) (text string, ok bool, err error) {
	var b strings.Builder
	b.WriteString(t.texts[0])
	for i, h := range t.holes {
		value, has := v.get(h)
		if !has {
			return "", false, nil
		}
		s, err := escape(h.from, textOf(value))
		if err != nil {
			return "", false, fmt.Errorf("%s %w", h, err)
		}
		b.WriteString(s + t.texts[i+1])
	}
	return b.String(), true, nil
}

// textOf writes a value as text: a list or an object as JSON.
func textOf(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case interface{ Reveal() string }:
		return v.Reveal()
	case json.Number:
		return v.String()
	case []any, map[string]any, bool, float64, nil:
		data, err := json.Marshal(v)
		if err != nil { // decoded JSON can be encoded
			return ""
		}
		return string(data)
	}
	return fmt.Sprint(v)
}

// body reads a template of a JSON value, whose texts are templates. A text that is one placeholder keeps the type of its
// value. Keys and items with missing values are left out.
func (r *reader) body(n *yaml.Node, what string) any {
	switch {
	case n.Kind == yaml.MappingNode:
		m, _ := r.Map(n, what)
		object := map[string]any{}
		for _, key := range m.Keys() {
			object[key] = r.body(m.Get(key), what+"."+key)
		}
		return object
	case n.Kind == yaml.SequenceNode:
		list := []any{}
		for _, item := range n.Content {
			list = append(list, r.body(item, what))
		}
		return list
	case n.Tag == "!!str":
		return r.template(n, what)
	}
	var fixed any
	if err := n.Decode(&fixed); err != nil {
		r.Problem(n, "%s is not a JSON value", what)
	}
	return fixed
}

// filled returns a body with its values; ok is false if it is a text without one.
func (v values) filled(body any) (value any, ok bool) {
	switch body := body.(type) {
	case template:
		if len(body.holes) != 1 || body.texts[0] != "" || body.texts[1] != "" {
			text, ok, _ := body.fill(v, plain) // it escapes nothing
			return text, ok
		}
		value, ok = v.get(body.holes[0])
		if secret, is := value.(interface{ Reveal() string }); is {
			value = secret.Reveal()
		}
		return value, ok
	case []any:
		list := []any{}
		for _, item := range body {
			if value, ok := v.filled(item); ok {
				list = append(list, value)
			}
		}
		return list, true
	case map[string]any:
		object := map[string]any{}
		for key, field := range body {
			if value, ok := v.filled(field); ok {
				object[key] = value
			}
		}
		return object, true
	}
	return body, true
}
