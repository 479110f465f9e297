package scenario

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"time"
)

type finder struct {
	text    string
	words   map[string]bool // the text's content words
	quoted  []string
	names   []string // runs of capitalised words
	numbers []float64
	dates   []string
	times   []string
	tool    map[string]bool // the content words of the tool's name
	// madeUp counts the required values (a date, a number, an address) that the text lacks.
	madeUp int
}

var (
	quotes     = regexp.MustCompile(`"([^"]+)"|“([^”]+)”|(?:^|\s)'([^']+)'`)
	dateText   = regexp.MustCompile(`\b\d{4}-\d{2}-\d{2}\b`)
	timeText   = regexp.MustCompile(`\b([01]?\d|2[0-3]):[0-5]\d\b`)
	emailText  = regexp.MustCompile(`\b[\w.+-]+@[\w-]+\.[\w.-]+\w\b`)
	numberText = regexp.MustCompile(`-?\b\d+(?:\.\d+)?\b`)
	after      = regexp.MustCompile(`(?i)\b(?:in|at|for|of|about|to|from|with|on|near|called|named)\s+(?:the\s+)?([\p{L}\d][\p{L}\d' -]*)`)
)

func newFinder(text string, t *Tool) *finder {
	f := &finder{text: strings.TrimSpace(text), words: content(text), tool: content(t.Name)}
	rest := text
	for _, m := range quotes.FindAllStringSubmatch(text, -1) {
		f.quoted = append(f.quoted, m[1]+m[2]+m[3])
		rest = strings.Replace(rest, m[0], " ", 1)
	}
	take := func(re *regexp.Regexp) []string {
		found := re.FindAllString(rest, -1)
		rest = re.ReplaceAllString(rest, " ")
		return found
	}
	f.dates, f.times = take(dateText), take(timeText)
	for _, n := range take(numberText) {
		if v, ok := numberOf(n); ok {
			f.numbers = append(f.numbers, v)
		}
	}
	for _, w := range words(rest) {
		if v, ok := numberOf(w); ok && !strings.EqualFold(w, "one") {
			f.numbers = append(f.numbers, v)
		}
	}
	f.names = properNames(rest)
	return f
}

// properNames returns the runs of capitalised words, except a lone first word of a sentence.
func properNames(text string) []string {
	var out []string
	var run []string
	first, runFirst := true, false
	end := func() {
		if len(run) > 1 || len(run) == 1 && !runFirst {
			out = append(out, strings.Join(run, " "))
		}
		run = nil
	}
	for _, w := range strings.Fields(text) {
		bare := strings.Trim(w, `.,;:!?()"“”'’`)
		bare = strings.TrimSuffix(strings.TrimSuffix(bare, "'s"), "’s")
		upper := bare != "" && bare[:1] != strings.ToLower(bare[:1]) && !stopWords[strings.ToLower(bare)] && !strings.EqualFold(bare, "I")
		if upper {
			if len(run) == 0 {
				runFirst = first
			}
			run = append(run, bare)
		} else {
			end()
		}
		stops := strings.ContainsAny(w[len(w)-1:], ".,;:!?")
		if stops {
			end()
		}
		first = strings.ContainsAny(w[len(w)-1:], ".!?:")
	}
	end()
	return out
}

func next[T any](list *[]T) (v T, ok bool) {
	if len(*list) == 0 {
		return v, false
	}
	v = (*list)[0]
	*list = (*list)[1:]
	return v, true
}

// fillObject makes arguments for a schema: required ones always, others if the text has values. Required ones choose
// first.
func fillObject(s schema, f *finder) map[string]any {
	out := map[string]any{}
	for _, needed := range []bool{true, false} {
		for _, p := range s.props {
			if s.needs(p.name) != needed {
				continue
			}
			if v, ok := f.value(p.name, p.schema, needed); ok {
				out[p.name] = v
			}
		}
	}
	return out
}

func (f *finder) value(name string, s schema, needed bool) (any, bool) {
	if len(s.enum) > 0 {
		return f.choice(s, needed)
	}
	switch s.kind {
	case "integer", "number":
		return f.number(s, needed)
	case "boolean":
		return f.truth(name, s, needed)
	case "array":
		e, ok := f.value(name, s.element(), needed)
		if !ok {
			return nil, false
		}
		return []any{e}, true
	case "object":
		if !needed {
			return nil, false
		}
		return fillObject(s, f), true
	}
	return f.string(name, s, needed)
}

func (f *finder) choice(s schema, needed bool) (any, bool) {
	for _, e := range s.enum {
		if overlap(f.words, content(fmt.Sprint(e))) > 0 {
			return e, true
		}
	}
	if !needed {
		return nil, false
	}
	if s.def != nil {
		return s.def, true
	}
	return s.enum[0], true
}

func (f *finder) number(s schema, needed bool) (any, bool) {
	v, ok := next(&f.numbers)
	if !ok {
		if !needed {
			return nil, false
		}
		if d := s.fallback(); d != nil {
			return d, true
		}
		v = 1
		f.madeUp++
		if s.min != nil {
			v = *s.min
		}
	}
	if s.kind == "integer" {
		return int64(v), true
	}
	return v, true
}

func (f *finder) truth(name string, s schema, needed bool) (any, bool) {
	if overlap(f.words, content(name)) > 0 {
		return !strings.Contains(" "+strings.ToLower(f.text)+" ", " not "), true
	}
	if !needed {
		return nil, false
	}
	if b, ok := s.def.(bool); ok {
		return b, true
	}
	return true, true
}

func (s schema) fallback() any {
	if s.def != nil {
		return s.def
	}
	if len(s.examples) > 0 {
		return s.examples[0]
	}
	return nil
}

var today = time.Date(2026, 1, 15, 10, 0, 0, 0, time.UTC)

func (f *finder) formatted(format string, needed bool) (string, bool) {
	v, found := f.inForm(format)
	if !found && needed && v != "" {
		f.madeUp++
	}
	return v, v != "" && (found || needed)
}

// inForm returns a text of a declared format, empty for an unknown one; found means that it is from the input.
func (f *finder) inForm(format string) (v string, found bool) {
	switch format {
	case localDateTime:
		v, found = f.inForm("date-time")
		return strings.TrimSuffix(v, "Z"), found
	case "date":
		if d, ok := next(&f.dates); ok {
			return d, true
		}
		return today.Format(time.DateOnly), false
	case "time":
		if t, ok := next(&f.times); ok {
			return t + ":00Z", true
		}
		return today.Format("15:04:05Z"), false
	case "date-time":
		d, okDate := next(&f.dates)
		t, okTime := next(&f.times)
		if !okDate {
			d = today.Format(time.DateOnly)
		}
		if !okTime {
			t = today.Format("15:04")
		} else if len(t) == 4 {
			t = "0" + t
		}
		return d + "T" + t + ":00Z", okDate || okTime
	case "email":
		if e := emailText.FindString(f.text); e != "" {
			return e, true
		}
		return "someone@example.com", false
	case "uri":
		return "https://example.com/", false
	case "uuid":
		return "00000000-0000-4000-8000-000000000000", false
	}
	return "", false
}

var wholeText = content("query question search text message prompt request reason summary description body content input")

// string returns a text argument: quoted text, a name, the words after a preposition, or the whole input.
func (f *finder) string(name string, s schema, needed bool) (any, bool) {
	if s.format != "" {
		if v, ok := f.formatted(s.format, needed); ok {
			return v, true
		}
		if !needed {
			return nil, false
		}
	}
	if q, ok := next(&f.quoted); ok {
		return q, true
	}
	if !needed {
		return nil, false
	}
	if f.text != "" && overlap(content(name), wholeText) > 0 {
		return f.text, true
	}
	if n, ok := next(&f.names); ok {
		return n, true
	}
	if d := s.fallback(); d != nil {
		return d, true
	}
	if m := after.FindAllStringSubmatch(f.text, -1); len(m) > 0 {
		return strings.TrimSpace(m[len(m)-1][1]), true
	}
	if f.text != "" {
		return f.text, true
	}
	// Speech without a script: the words are unknown.
	switch {
	case overlap(content(name), content("city location place town destination")) > 0:
		return "London", true
	case overlap(content(name), wholeText) > 0:
		return "what the user said", true
	}
	return "something", true
}

// Fill makes a JSON object for a tool's schema from a text: required arguments always, others if the text has values.
func Fill(t Tool, text string) json.RawMessage {
	args, _ := fill(&t, text)
	return args
}

// fill is Fill. meant reports whether the text has every required date, number and address.
func fill(t *Tool, text string) (args json.RawMessage, meant bool) {
	f := newFinder(text, t)
	b, err := json.Marshal(fillObject(parseSchema(t.Parameters), f))
	if err != nil { // made of JSON values only
		return json.RawMessage("{}"), false
	}
	return b, f.madeUp == 0
}
