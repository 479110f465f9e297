package adapter

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v5"

	"voicegw/registry/document"
	"voicegw/registry/format"
	"voicegw/registry/jsontype"
)

// The limits of a search.
const (
	// maxWork bounds all work for one schema: characters of values that are tried, and steps
	// of automata.
	maxWork = 20_000_000
	// spare is how many more values are tried than are wanted, since the full schema may refuse
	// some.
	spare = 8
	// maxArgs is how long the arguments of a call are at most, in bytes (document.MaxArgsBytes).
	maxArgs = 64 << 10
	// maxWanted is how many different values a search wants at most.
	maxWanted = 2000
	// huge is a size that nothing reaches.
	huge = 1 << 40
)

// answer describes the values that a schema accepts.
type answer struct {
	values   []any  // valid ones, as decoded JSON, without repeats
	complete bool   // there are no others
	why      string // why no value fits, if complete and there are no values
}

// none reports that there is no value.
func (a answer) none() bool { return a.complete && len(a.values) == 0 }

// solver searches for values of inlined schemas. Each value that it finds is checked by the
// library that checks calls.
type solver struct {
	known    map[question]answer
	split    map[*object][]branch
	compiled map[*object]*jsonschema.Schema // nil for one that does not compile
	work     int                            // for all searches
	// wide says that a handler does not get integers as int64.
	wide bool
}

type question struct {
	schema *object
	want   int
}

func newSolver() solver {
	return solver{known: map[question]answer{}, split: map[*object][]branch{}, compiled: map[*object]*jsonschema.Schema{}}
}

// alternatives returns the branches of anyOf or oneOf, each merged with what stands beside them.
func (s *solver) alternatives(o *object) []branch {
	if _, has := s.split[o]; !has {
		s.split[o] = append(branches(o, "anyOf"), branches(o, "oneOf")...)
	}
	return s.split[o]
}

// accepts reports whether v is valid for o, and the library's error if it is not; the error is
// empty if that is not known.
func (s *solver) accepts(o *object, v any) (valid bool, why string) {
	schema, tried := s.compiled[o]
	if !tried {
		compiler := jsonschema.NewCompiler()
		compiler.Draft = jsonschema.Draft2020
		compiler.AssertFormat, compiler.Formats = true, format.Checks()
		compiler.LoadURL = func(string) (io.ReadCloser, error) { return nil, errors.ErrUnsupported } // nothing is opened
		const url = "tool:///schema.json"
		if err := compiler.AddResource(url, strings.NewReader(string(o.encode()))); err == nil {
			schema, _ = compiler.Compile(url) // nil with its error
		}
		s.compiled[o] = schema
	}
	if schema == nil {
		return false, ""
	}
	err := schema.Validate(v)
	if err == nil {
		return true, ""
	}
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) {
		return false, ""
	}
	for len(invalid.Causes) > 0 {
		invalid = invalid.Causes[0]
	}
	keyword := invalid.KeywordLocation[strings.LastIndexByte(invalid.KeywordLocation, '/')+1:]
	return false, keyword + ": " + clip(invalid.Message)
}

// any is solve for a schema that may also be a boolean.
func (s *solver) any(schema any, want int) answer {
	if o, ok := schema.(*object); ok {
		return s.solve(o, want)
	}
	return answer{complete: schema == false, why: "the schema false accepts nothing"}
}

// solve searches for up to want values that o accepts.
func (s *solver) solve(o *object, want int) answer {
	q := question{o, min(want, maxWanted)}
	if a, has := s.known[q]; has {
		return a
	}
	if s.work += 100; o.unknown || o.has("allOf") || s.work > maxWork {
		return answer{}
	}
	f := &finding{s: s, o: o, want: q.want, seen: map[string]bool{}}
	complete := f.find()
	if len(f.values) > q.want {
		f.values, complete = f.values[:q.want], false
	} else if f.enough() {
		complete = false // perhaps not everything was searched
	}
	a := answer{f.values, complete && !f.missed, strings.Join(f.why, "; ")}
	s.known[q] = a
	return a
}

// finding collects the values of one search.
type finding struct {
	s      *solver
	o      *object
	want   int
	values []any
	seen   map[string]bool
	why    []string
	// missed records that a value could not be checked against the schema.
	missed bool
}

// try keeps v if it is valid.
func (f *finding) try(v any) {
	text := show(v)
	if f.s.work += 100 + len(text); f.s.work > maxWork {
		f.missed = true
		return
	}
	if f.seen[text] || len(text) > maxArgs {
		return
	}
	f.seen[text] = true
	switch valid, why := f.s.accepts(f.o, v); {
	case valid:
		f.values = append(f.values, v)
	case why == "":
		f.missed = true
	default:
		f.because("%s is refused by %s", clip(text), why)
	}
}

// show writes a decoded JSON value.
func show(v any) string {
	text, _ := document.Marshal(v) // decoded JSON can be encoded
	return string(text)
}

func (f *finding) because(format string, args ...any) {
	if why := fmt.Sprintf(format, args...); len(f.why) < 3 && !slices.Contains(f.why, why) {
		f.why = append(f.why, why)
	}
}

func (f *finding) enough() bool { return len(f.values) >= f.want }

// find searches for values of each alternative and of each type. It returns true if there are no
// others than it has tried.
func (f *finding) find() (complete bool) {
	if v, has := f.o.get("default"); has {
		f.try(plain(v))
	}
	for _, v := range f.o.list("examples") {
		f.try(plain(v))
	}
	if all := f.s.alternatives(f.o); len(all) > 0 {
		return f.choose(all)
	}
	if f.o.has("enum") {
		for _, v := range f.o.list("enum") {
			f.try(plain(v))
		}
		return true
	}
	complete = true
	for _, t := range typesIn(f.o) {
		if f.enough() {
			return false
		}
		complete = f.ofType(t) && complete
	}
	return complete
}

// choose searches the alternatives.
func (f *finding) choose(all []branch) (complete bool) {
	complete = true
	for _, b := range all {
		if b.err != nil {
			f.because("%v", b.err)
			continue
		}
		a := f.s.any(b.schema, f.want+spare)
		for _, v := range a.values {
			f.try(v)
		}
		complete = complete && a.complete
		if a.none() {
			f.because("%s", a.why)
		}
	}
	return complete
}

// ofType searches for values of one type.
func (f *finding) ofType(t jsontype.Set) (complete bool) {
	switch t {
	case jsontype.String:
		return f.texts()
	case jsontype.Boolean:
		f.try(true)
		f.try(false)
		return true
	case jsontype.Object:
		return f.objects()
	case jsontype.Array:
		return f.lists()
	case jsontype.Null:
		f.try(nil)
		return true
	default:
		return f.numbers(t)
	}
}

// where names a keyword and its value: by its pointer if it stands in another schema than o.
func where(o *object, key string) string {
	v, _ := o.get(key)
	if key == "pattern" {
		v = strconv.Quote(clip(o.text(key)))
	}
	if o.at(key) == o.path {
		return fmt.Sprintf("%s %v", key, v)
	}
	return fmt.Sprintf("%s (%s) %v", key, pointer(o.at(key), key), v)
}

// size is a bound of a length or a count, and the place of its keyword.
type size struct {
	n     int
	where string
}

// sizes returns the bounds that two keywords set.
func (f *finding) sizes(lowest, highest string) (least, most size) {
	most.n = huge
	for key, into := range map[string]*size{lowest: &least, highest: &most} {
		v, has := f.o.get(key)
		if !has {
			continue
		}
		number, _ := v.(json.Number)
		n, ok := count(number)
		if !ok || n > huge {
			n = huge
		}
		*into = size{int(n), where(f.o, key)}
	}
	return least, most
}

// crossed says why no size is between the bounds, or none that fits into a call, if each
// element takes a number of bytes.
func (f *finding) crossed(least, most size, bytes int) bool {
	switch {
	case least.n > most.n:
		f.because("%s is more than %s", least.where, most.where)
	case least.n > maxArgs/bytes:
		f.because("%s is more than a call can hold (%d bytes)", least.where, maxArgs)
	default:
		return false
	}
	return true
}

// texts searches for texts, with automata made of the pattern and the format.
func (f *finding) texts() (complete bool) {
	before := len(f.why)
	least, most := f.sizes("minLength", "maxLength")
	var tight, loose, said []string
	if pattern := f.o.text("pattern"); pattern != "" {
		tight, loose = append(tight, pattern), append(loose, pattern)
		said = append(said, where(f.o, "pattern"))
	}
	form, has := textForms[f.o.text("format")]
	if has {
		tight, loose = append(tight, cmp.Or(form.tight, form.loose)), append(loose, form.loose)
		said = append(said, where(f.o, "format"))
		if form.most > 0 && form.most < most.n {
			most = size{form.most, where(f.o, "format")}
		}
	}
	if f.crossed(least, most, 1) {
		return true
	}
	for _, sample := range form.samples {
		f.try(sample)
	}
	for _, patterns := range [][]string{tight, loose} {
		if f.enough() || f.s.work > maxWork {
			return false
		}
		a := newAutomaton(patterns)
		if a == nil {
			f.s.work += automatics / 4
			continue
		}
		found, whole, steps := a.texts(least.n, min(most.n, maxArgs), f.want+spare)
		f.s.work += a.work + steps
		for _, text := range found {
			f.try(text)
		}
		if !slices.Equal(patterns, loose) {
			continue // a tight form leaves texts out
		}
		if len(found) == 0 && whole {
			f.why = f.why[:before] // samples that did not fit prove nothing
			for _, b := range []size{least, most} {
				if b.where != "" && !slices.Contains(said, b.where) {
					said = append(said, b.where)
				}
			}
			f.because("no text satisfies %s", strings.Join(said, " and "))
		}
		return whole
	}
	return false
}

// lists searches for lists.
func (f *finding) lists() (complete bool) {
	least, most := f.sizes("minItems", "maxItems")
	if f.crossed(least, most, 2) {
		return true
	}
	items, _ := f.o.get("items")
	v, _ := f.o.get("uniqueItems")
	unique := v == true
	wanted := 1
	if unique {
		wanted = max(least.n, 1)
	}
	a := f.s.any(items, wanted)
	switch {
	case least.n > 0 && a.none():
		f.because("%s, and no item is possible: %s", least.where, a.why)
		return true
	case unique && a.complete && len(a.values) < least.n:
		f.because("uniqueItems and %s, and only %d different items are possible", least.where, len(a.values))
		return true
	}
	for _, n := range []int{least.n, 1, least.n + 1} {
		if n >= least.n && n <= most.n && !f.enough() {
			f.try(listOf(a.values, n, unique))
		}
	}
	if least.n <= 1 && most.n >= 1 && f.want > 1 { // more values for a list of lists
		for _, v := range f.s.any(items, f.want).values {
			f.try([]any{v})
		}
	}
	return most.n == 0 || a.none()
}

// listOf makes a list of n of the values, or a shorter one if they do not suffice.
func listOf(values []any, n int, unique bool) []any {
	list := append([]any{}, values[:min(n, len(values))]...)
	for !unique && len(values) > 0 && len(list) < n {
		list = append(list, values[0])
	}
	return list
}
