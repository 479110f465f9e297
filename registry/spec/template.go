package spec

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
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
	errBrace   = errors.New("it has a single brace; write {name} for an argument, and {{ or }} for a brace")
	errBracket = errors.New("it has a single or nested bracket; write [with {name}] for an optional part, and [[ or ]] for a bracket")
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

// argumentForm is how a preview formats an argument: {start|time}, {start..end|time in Europe/Oslo}, {guests|list},
// {items|list: {count} x {name}}.
type argumentForm struct {
	times bool           // otherwise a list
	until []string       // the end of a time span, or nil
	zone  *time.Location // nil for the user's zone
	item  *template      // the format of an item; nil for the item itself
}

var errForm = errors.New("after | write time, \"time in\" with a zone such as Europe/Oslo, list, or \"list:\" with a template of each item")

func parseForm(name, text string) (string, *argumentForm, error) {
	kind, rest := strings.TrimSpace(text), ""
	if before, after, has := strings.Cut(kind, ":"); has && before == "list" {
		kind, rest = "list", strings.TrimSpace(after)
	} else if zone, has := strings.CutPrefix(kind, "time in "); has {
		kind, rest = "time", strings.TrimSpace(zone)
	}
	f := &argumentForm{times: kind == "time"}
	switch {
	case kind == "list" && rest != "":
		item, err := parseTemplate(rest, false)
		if err != nil {
			return name, nil, err
		}
		f.item = &item
	case kind == "time":
		if rest != "" {
			zone, err := time.LoadLocation(rest)
			if err != nil || rest == "Local" {
				return name, nil, fmt.Errorf("%q is not the IANA name of a zone, such as Europe/Oslo", rest)
			}
			f.zone = zone
		}
		if start, end, span := strings.Cut(name, ".."); span {
			name, f.until = start, strings.Split(end, ".")
		}
	case kind != "list":
		return name, nil, errForm
	}
	return name, f, nil
}

func (f *argumentForm) check(name string, n, root *document.Node) error {
	if !f.times {
		items := n.ItemsOf()
		switch {
		case items == nil:
			return fmt.Errorf("{%s} is not a list", name)
		case f.item != nil:
			return f.item.check(items)
		case slices.Contains(n.ItemTypes(), "object"):
			return fmt.Errorf("{%s} is a list of objects; write a template of each, as in {%s|list: {name}}", name, name)
		}
		return nil
	}
	const wrong = "{%s} is not a time: it needs \"type\": \"string\" and \"format\": \"date-time\", or a pattern for local times"
	if !n.IsTime() {
		return fmt.Errorf(wrong, name)
	}
	if f.until == nil {
		return nil
	}
	end := root
	for _, token := range f.until {
		if end = end.Property(token); end == nil {
			return fmt.Errorf("{%s} is not an argument: the parameters have no such end of the time", strings.Join(f.until, "."))
		}
	}
	if !end.IsTime() {
		return fmt.Errorf(wrong, strings.Join(f.until, "."))
	}
	return nil
}

func (f *argumentForm) text(v, args any, zone *time.Location) string {
	if f.times {
		return timeText(v, args, f.until, cmp.Or(f.zone, zone))
	}
	list, ok := v.([]any)
	if !ok {
		return plainText(v)
	}
	items := make([]string, len(list))
	for i, item := range list {
		if f.item != nil {
			items[i] = f.item.text(item, zone)
		} else {
			items[i] = plainText(item)
		}
	}
	if last := len(items) - 1; last > 0 {
		return strings.Join(items[:last], ", ") + " and " + items[last]
	}
	return strings.Join(items, "")
}

const dayAndTime = "Mon 2 Jan 2006, "

// timeText formats a span as "Tue 24 Nov 2026, 10:00 to 11:00 (Europe/Oslo, UTC+1)", or a moment if until is nil.
// Without a zone it shows the start's offset, or none for a local time.
func timeText(v, args any, until []string, zone *time.Location) string {
	start, local, ok := moment(v, zone)
	if !ok {
		return plainText(v)
	}
	text := start.Format(dayAndTime + clockOfDay(start))
	if until != nil {
		told, _ := document.At(args, until)
		if end, _, ok := moment(told, zone); ok {
			end = end.In(start.Location())
			text += " to "
			if !civil(end).Equal(civil(start)) {
				text += end.Format(dayAndTime)
			}
			text += end.Format(clockOfDay(end))
		} else if told != nil {
			text += " to " + plainText(told)
		}
	}
	switch {
	case zone != nil && !strings.HasSuffix(zone.String(), "UTC"): // nor Etc/UTC
		return text + " (" + zone.String() + ", " + offset(start) + ")"
	case local && zone == nil:
		return text
	}
	return text + " (" + offset(start) + ")"
}

// moment parses a time and converts it to zone unless nil. A time without an offset is in that zone.
func moment(v any, zone *time.Location) (t time.Time, local, ok bool) {
	text, _ := v.(string)
	text = strings.ToUpper(text)
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		if zone != nil {
			t = t.In(zone)
		}
		return t, false, true
	}
	for _, layout := range []string{"2006-01-02T15:04:05", "2006-01-02T15:04"} {
		if t, err := time.ParseInLocation(layout, text, cmp.Or(zone, time.UTC)); err == nil {
			return t, true, true
		}
	}
	return time.Time{}, false, false
}

func clockOfDay(t time.Time) string {
	if t.Second() != 0 {
		return "15:04:05"
	}
	return "15:04"
}

func offset(t time.Time) string {
	_, seconds := t.Zone()
	if seconds == 0 {
		return "UTC"
	}
	sign, minutes := "+", seconds/60
	if minutes < 0 {
		sign, minutes = "-", -minutes
	}
	if minutes%60 == 0 {
		return fmt.Sprintf("UTC%s%d", sign, minutes/60)
	}
	return fmt.Sprintf("UTC%s%d:%02d", sign, minutes/60, minutes%60)
}
