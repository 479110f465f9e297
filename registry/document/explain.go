package document

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

const (
	// MaxProblems limits a value's errors for a model.
	MaxProblems = 20
	// maxArgMessage limits such an error, in characters.
	maxArgMessage = 300
)

// Validate returns a problem for each error in a decoded value with defaults, for the model, sorted by path; nil if
// it is valid.
func (p *Schema) Validate(v any) []Problem {
	if err := p.schema.Validate(v); err != nil {
		return p.explain(err, v)
	}
	return nil
}

// explain converts a validation error to problems at the offending properties, sorted by path; the list is never
// empty. v is the value. The library's texts are for the schema's author; these are for the model.
func (p *Schema) explain(err error, v any) []Problem {
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) {
		return []Problem{{Message: "cannot be validated"}} // only for values that no decoder makes
	}
	e := explainer{doc: p.Doc, value: v}
	problems := SortProblems(e.facts(invalid))
	for i := range problems {
		problems[i].Message = Shorten(problems[i].Message, maxArgMessage)
	}
	return problems
}

type explainer struct {
	doc   any // the schema
	value any // the instance
}

type fact struct {
	keyword string         // "" of a false schema
	place   Pointer        // of the instance
	schema  map[string]any // of the schema that holds the keyword
	limit   any            // the keyword's value
	got     any            // the instance at that place
	message string         // the library's own
}

func (e *explainer) facts(ve *jsonschema.ValidationError) []Problem {
	whole := ve.Message == "" || strings.HasPrefix(ve.Message, "doesn't validate with") // this error only groups its causes
	f := e.fact(ve)
	switch {
	case len(ve.Causes) == 0:
		return f.problems()
	case !whole && (f.keyword == "anyOf" || f.keyword == "oneOf"):
		return e.choices(ve, f)
	}
	var all []Problem
	for _, cause := range ve.Causes {
		all = append(all, e.facts(cause)...)
	}
	return all
}

func (e *explainer) fact(ve *jsonschema.ValidationError) fact {
	f := fact{message: ve.Message}
	f.place, _ = ParseFragment(ve.InstanceLocation)
	f.got, _ = At(e.value, f.place)
	_, where, _ := strings.Cut(ve.AbsoluteKeywordLocation, "#")
	place, _ := ParseFragment(where)
	if ve.Message == "not allowed" { // the schema false
		return f
	}
	last := len(place) - 1
	if n := last - 2; n >= 0 && place[n] == "dependentRequired" && len(ve.Causes) == 0 {
		last = n // the keyword, the property, the index of the one it wants
	}
	if last >= 0 && isAssertion(place[last]) {
		in, _ := At(e.doc, place[:last])
		if schema, ok := in.(map[string]any); ok {
			f.keyword, f.schema, f.limit = place[last], schema, schema[place[last]]
		}
	}
	return f
}

func isAssertion(keyword string) bool {
	switch keyword {
	case "additionalProperties", "anyOf", "dependentRequired", "required":
		return true
	}
	return assertions[keyword] != ""
}

// choices reports the errors of the nearest branch or, without one, that no branch matches.
func (e *explainer) choices(ve *jsonschema.ValidationError, f fact) []Problem {
	branches := make([][]Problem, 0, len(ve.Causes))
	best, alone := 0, true
	for i, cause := range ve.Causes {
		branches = append(branches, SortProblems(e.facts(cause)))
		if i == 0 {
			continue
		}
		switch c := far(branches[i], f.place) - far(branches[best], f.place); {
		case c < 0:
			best, alone = i, true
		case c == 0:
			alone = false
		}
	}
	if alone {
		return branches[best]
	}
	var forms []string
	for _, branch := range branches {
		form := branch[0].Message
		if p := strings.TrimPrefix(branch[0].Path, f.place.String()); p != "" {
			form = p + " " + form
		}
		if form = Shorten(form, 80); !slices.Contains(forms, form) {
			forms = append(forms, form)
		}
	}
	message := forms[0]
	if len(forms) > 1 {
		message = "fits none of the allowed forms: " + strings.Join(forms, "; or ")
	}
	return []Problem{{Path: f.place.String(), Message: message}}
}

// far measures the distance of a value from a branch: a wrong value is farther than one with wrong parts.
func far(branch []Problem, place Pointer) int {
	distance := len(branch)
	for _, p := range branch {
		if p.Path == place.String() {
			distance += 1000
		}
	}
	return distance
}

// problems describes a fact. Messages continue a path such as "/top_k".
func (f *fact) problems() []Problem {
	switch f.keyword {
	case "required":
		return f.missing()
	case "dependentRequired":
		return f.dependent()
	case "additionalProperties":
		return f.unknown()
	case "":
		return []Problem{{Path: f.place.String(), Message: "is not allowed here; leave it out"}}
	}
	return []Problem{{Path: f.place.String(), Message: f.word()}}
}

// assertions say what a keyword wants, and the value.
var assertions = map[string]string{
	"type":             "must be %s, got %s",
	"enum":             "must be %s, got %s",
	"format":           "must be %s, got %s",
	"const":            "must be %s, got %s",
	"minimum":          "must be at least %s, got %s",
	"maximum":          "must be at most %s, got %s",
	"exclusiveMinimum": "must be more than %s, got %s",
	"exclusiveMaximum": "must be less than %s, got %s",
	"multipleOf":       "must be a multiple of %s, got %s",
	"pattern":          "must match the regular expression %s, got %s",
	"minLength":        "must have at least %s characters, has %s",
	"maxLength":        "must have at most %s characters, has %s",
	"minItems":         "must have at least %s items, has %s",
	"maxItems":         "must have at most %s items, has %s",
	"minProperties":    "must have at least %s properties, has %s",
	"maxProperties":    "must have at most %s properties, has %s",
	"oneOf":            "fits several of the allowed forms and must fit one alone: %[2]s",
	"uniqueItems":      "must not have the same item twice: %[2]s",
}

func (f *fact) word() string {
	wanted, got := Show(f.limit), Show(f.got)
	switch f.keyword {
	case "type":
		wanted, got = f.typeNames(), Describe(f.got)
	case "enum":
		wanted = oneOf(f.limit)
	case "format":
		wanted = cmp.Or(formatNames[fmt.Sprint(f.limit)], "of the format "+wanted)
	case "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties":
		if got = sizeOf(f.got); got == "0" && f.keyword == "minLength" {
			return fmt.Sprintf("must not be empty, at least %s characters", wanted)
		}
	case "oneOf", "uniqueItems":
		got = f.message
	}
	if words := assertions[f.keyword]; words != "" {
		return fmt.Sprintf(words, wanted, got)
	}
	return "is not valid: " + f.message
}

func sizeOf(v any) string {
	switch v := v.(type) {
	case string:
		return strconv.Itoa(utf8.RuneCountInString(v))
	case []any:
		return strconv.Itoa(len(v))
	}
	object, _ := v.(map[string]any)
	return strconv.Itoa(len(object))
}

func (f *fact) missing() []Problem {
	required, _ := f.limit.([]any)
	object, _ := f.got.(map[string]any)
	props, _ := f.schema["properties"].(map[string]any)
	var problems []Problem
	for _, name := range required {
		name, ok := name.(string)
		if _, there := object[name]; !ok || there {
			continue
		}
		message := "is required and missing"
		prop, _ := props[name].(map[string]any)
		if about, _ := prop["description"].(string); about != "" {
			message += ": " + Shorten(about, 120)
		}
		problems = append(problems, Problem{Path: f.place.With(name).String(), Message: message})
	}
	return problems
}

func (f *fact) dependent() []Problem {
	byName, _ := f.limit.(map[string]any)
	object, _ := f.got.(map[string]any)
	var problems []Problem
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		wanted, _ := byName[name].([]any)
		if _, there := object[name]; !there {
			continue
		}
		for _, w := range wanted {
			w, _ := w.(string)
			if _, there := object[w]; !there {
				problems = append(problems, Problem{Path: f.place.With(w).String(),
					Message: fmt.Sprintf("is required and missing, because %q is there", name)})
			}
		}
	}
	return problems
}

func (f *fact) unknown() []Problem {
	object, _ := f.got.(map[string]any)
	props, _ := f.schema["properties"].(map[string]any)
	known := slices.Sorted(maps.Keys(props))
	var problems []Problem
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if _, ok := props[name]; ok {
			continue
		}
		message := "is not a known parameter: this object takes no parameters, leave it out"
		if len(problems) < MaxProblems && len(known) > 0 { // the others are only counted
			message = fmt.Sprintf("is not a known parameter%s; known here: %s", DidYouMean(name, known),
				Shorten(strings.Join(known, ", "), 150))
		}
		problems = append(problems, Problem{Path: f.place.With(Shorten(name, 80)).String(), Message: message})
	}
	return problems
}

func (f *fact) typeNames() string {
	names := (&Node{Doc: f.schema}).Types()
	for i, t := range names {
		switch t {
		case "null":
		case "integer", "array", "object":
			names[i] = "an " + t
		default:
			names[i] = "a " + t
		}
	}
	return strings.Join(names, " or ")
}

func oneOf(limit any) string {
	list, _ := limit.([]any)
	var shown []string
	for i, v := range list {
		if i == 20 {
			shown = append(shown, fmt.Sprintf("… (%d more)", len(list)-i))
			break
		}
		shown = append(shown, Show(v))
	}
	if len(shown) == 1 {
		return shown[0]
	}
	return "one of " + strings.Join(shown, ", ")
}

var formatNames = map[string]string{
	"date":      "a date such as 2006-01-02",
	"time":      "a time with its zone such as 15:04:05Z",
	"date-time": "a date and time with its zone such as 2006-01-02T15:04:05Z",
	"email":     "an e-mail address",
	"uri":       "an absolute URI such as https://example.org/page",
	"uuid":      "a UUID",
	"ipv4":      "an IPv4 address",
	"ipv6":      "an IPv6 address",
}
