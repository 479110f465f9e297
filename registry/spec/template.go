package spec

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"voicegw/registry/document"
)

// template is the text of Spec.IdempotencyKey or Spec.Preview. {name} is replaced by an argument, {name.part} by a
// property of one, and {{ and }} by braces. In a preview, [text in brackets] is dropped if an argument in it is
// missing, empty or false, [[ and ]] are replaced by brackets, and {name|form} formats an argument.
type template struct {
	parts []templatePart
}

type templatePart struct {
	literal string
	path    []string      // nil for a literal
	form    *argumentForm // how a preview formats the argument; nil for plain text
	section int           // the number of its brackets from 1; 0 outside brackets
}

var (
	errBrace   = errors.New("a brace stands alone; an argument is written {name}, a brace itself {{ or }}")
	errBracket = errors.New("a bracket stands alone or within others; what may be left out is written [with {name}], a " +
		"bracket itself [[ or ]]")
	errSection = errors.New("brackets without an argument are never left out; write [with {name}], or [[ and ]] for the " +
		"brackets themselves")
)

func parseTemplate(s string, sections bool) (template, error) {
	signs := keySigns
	if sections {
		signs = previewSigns
	}
	p := templateParser{forms: sections}
	for s != "" {
		at := signs.FindStringIndex(s)
		if at == nil {
			break
		}
		sign := s[at[0]:at[1]]
		p.literal.WriteString(s[:at[0]])
		s = s[at[1]:]
		var err error
		switch {
		case len(sign) == 2 && sign != "{}":
			p.literal.WriteByte(sign[0])
		case sign == "[" || sign == "]":
			err = p.bracket(sign == "[")
		case len(sign) == 1:
			err = errBrace
		default:
			err = p.argument(sign[1 : len(sign)-1])
		}
		if err != nil {
			return p.template, err
		}
	}
	if p.open {
		return p.template, errBracket
	}
	p.literal.WriteString(s)
	p.flush()
	return p.template, nil
}

// The signs of templates: doubled ones, arguments, and single ones. The texts of a list's items have braces of their own.
var (
	keySigns     = regexp.MustCompile(`\{\{|\}\}|\{[^{}]*\}|[{}]`)
	previewSigns = regexp.MustCompile(`\{\{|\}\}|\[\[|\]\]|\{([^{}]|\{([^{}]|\{[^{}]*\})*\})*\}|[][{}]`)
)

type templateParser struct {
	template

	forms    bool            // arguments may have a form
	literal  strings.Builder // not yet in parts
	sections int             // opened so far
	open     bool            // the last section is open
	named    bool            // and contains an argument
}

func (p *templateParser) flush() {
	p.add(templatePart{literal: p.literal.String()})
	p.literal.Reset()
}

func (p *templateParser) add(part templatePart) {
	if p.open {
		part.section = p.sections
	}
	p.parts = append(p.parts, part)
}

func (p *templateParser) bracket(opens bool) error {
	switch {
	case p.open == opens:
		return errBracket
	case p.open && !p.named:
		return errSection
	}
	p.flush()
	if opens {
		p.sections, p.named = p.sections+1, false
	}
	p.open = opens
	return nil
}

func (p *templateParser) argument(name string) (err error) {
	var f *argumentForm
	if before, after, has := strings.Cut(name, "|"); has && p.forms {
		if name, f, err = parseForm(before, after); err != nil {
			return fmt.Errorf("{%s|%s}: %w", before, after, err)
		}
	}
	path := strings.Split(name, ".")
	for _, token := range path {
		if token == "" || strings.ContainsAny(token, "{ ") {
			return fmt.Errorf("{%s} names no argument; write {name} or {name.part}", name)
		}
	}
	p.flush()
	p.named = true
	p.add(templatePart{path: path, form: f})
	return nil
}

func (t template) check(root *document.Node) error {
	for _, part := range t.parts {
		n := root
		for i, token := range part.path {
			if n = n.Property(token); n == nil {
				return fmt.Errorf("{%s} is not an argument: the parameters have no %q", strings.Join(part.path, "."),
					strings.Join(part.path[:i+1], "."))
			}
		}
		if part.form != nil {
			if err := part.form.check(strings.Join(part.path, "."), n, root); err != nil {
				return err
			}
		}
	}
	return nil
}

// key fills in args as JSON, and missing ones as null. Strings are quoted, so different arguments give different
// texts.
func (t template) key(args any) string {
	var b strings.Builder
	for _, part := range t.parts {
		if part.path == nil {
			b.WriteString(part.literal)
			continue
		}
		v, _ := document.At(args, part.path)
		b.Write(document.AppendCanonical(nil, v))
	}
	return b.String()
}

// text fills in args for people: missing arguments are empty, and sections with a missing, empty or false argument
// are dropped.
func (t template) text(args any, zone *time.Location) string {
	left := map[int]bool{} // the sections to drop
	for _, part := range t.parts {
		if part.section > 0 && part.path != nil {
			v, _ := document.At(args, part.path)
			left[part.section] = left[part.section] || saysNothing(v)
		}
	}
	var b strings.Builder
	for _, part := range t.parts {
		if left[part.section] {
			continue
		}
		b.WriteString(part.literal)
		v, ok := document.At(args, part.path)
		switch {
		case !ok || part.path == nil:
		case part.form != nil:
			b.WriteString(part.form.text(v, args, zone))
		default:
			b.WriteString(plainText(v))
		}
	}
	return b.String()
}

func saysNothing(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case bool:
		return !v
	case string:
		return strings.TrimSpace(v) == ""
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	}
	return false
}

func plainText(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case bool:
		if v {
			return "yes"
		}
		return "no"
	case json.Number:
		return string(document.AppendNumber(nil, string(v)))
	case []any:
		items := make([]string, len(v))
		for i, item := range v {
			items[i] = plainText(item)
		}
		return strings.Join(items, ", ")
	}
	return string(document.AppendCanonical(nil, v))
}
