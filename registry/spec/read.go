package spec

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // a container may have no zones of its own
	"unicode/utf8"

	"voicegw/internal/textutil"
	"voicegw/registry/document"
)

// rule defines the valid values of a key of schema.json.
type rule struct {
	need      string   // the key is required; what to add
	is        string   // the end of the sentence: "key" is …, got …
	otherwise string   // advice at the end of that sentence
	of        []string // the allowed words
	form      *form    // of the text, or of the texts in a list
	least     int      // the minimum of a number; 1 rejects an empty object
	most      int      // the maximum of a number, the characters of a text, or the entries of a list or map
}

// reader reads decoded JSON into Go values and collects problems. name is the key of rules for a place.
type reader struct{ problems []document.Problem }

func (r *reader) problem(at document.Pointer, format string, args ...any) {
	r.problems = append(r.problems, document.Problem{Path: at.String(), Message: fmt.Sprintf(format, args...)})
}

func (r *reader) inside(at document.Pointer, problems []document.Problem) {
	r.problems = append(r.problems, document.Under(at, problems)...)
}

func (r *reader) fine(at ...string) bool {
	place := document.Pointer(at).String()
	return !slices.ContainsFunc(r.problems, func(p document.Problem) bool {
		return p.Path == place || strings.HasPrefix(p.Path, place+"/")
	})
}

func (r *reader) read(at document.Pointer, v any, into reflect.Value, name string) {
	switch into.Interface().(type) {
	case json.RawMessage:
		into.SetBytes(document.AppendCanonical(nil, v))
		return
	case json.Number:
		if number, ok := v.(json.Number); ok {
			into.SetString(string(number))
		} else {
			r.wrong(at, v, name, "a number")
		}
		return
	}
	switch into.Kind() {
	case reflect.Pointer:
		value := reflect.New(into.Type().Elem())
		_, isObject := v.(map[string]any)
		if r.read(at, v, value.Elem(), name); isObject || r.fine(at...) {
			into.Set(value)
		}
	case reflect.String:
		if r.text(at, v, name) {
			into.SetString(v.(string))
		}
	case reflect.Bool:
		if b, ok := v.(bool); ok {
			into.SetBool(b)
		} else {
			r.wrong(at, v, name, "true or false")
		}
	case reflect.Int:
		r.number(at, v, into, name)
	case reflect.Slice:
		r.list(at, v, into, name)
	case reflect.Map:
		r.byName(at, v, into, name)
	case reflect.Struct:
		r.object(at, v, into, name)
	}
}

func (r *reader) wrong(at document.Pointer, v any, name string, is string) {
	rule := rules[name]
	what := strconv.Quote(last(at))
	if isIndex(last(at)) {
		what, rule.is, rule.otherwise = "An entry", "", ""
	}
	advice := ""
	if rule.otherwise != "" {
		advice = "; " + rule.otherwise
	}
	got := document.Describe(v)
	if rule.form != nil {
		got = document.Show(v)
	}
	r.problem(at, "%s is %s, got %s%s.", what, cmp.Or(rule.is, is), got, advice)
}

func last(at document.Pointer) string {
	if len(at) == 0 {
		return ""
	}
	return at[len(at)-1]
}

func isIndex(key string) bool {
	_, err := strconv.Atoi(key)
	return err == nil
}

func (r *reader) text(at document.Pointer, v any, name string) bool {
	s, isText := v.(string)
	key, rule := last(at), rules[name]
	switch form := rule.form; {
	case rule.of != nil:
		if !slices.Contains(rule.of, s) {
			r.problem(at, "%q is one of %s, got %s%s.", key, strings.Join(rule.of, ", "), document.Show(v), document.DidYouMean(s, rule.of))
			return false
		}
	case isIndex(key) || form != nil && form.known != nil:
		if !form.fits(s) {
			r.problem(at, "%s, got %s%s.", form.text, document.Show(v), document.DidYouMean(s, form.known))
			return false
		}
	case rule.is != "":
		if !form.fits(s) {
			r.wrong(at, v, name, "")
			return false
		}
	case !isText:
		r.problem(at, "%q is a string, got %s.", key, document.Describe(v))
		return false
	case strings.TrimSpace(s) == "":
		r.problem(at, "%q is empty; write it or, if it is optional, leave it out.", key)
	case utf8.RuneCountInString(s) > rule.most:
		r.problem(at, "%q has %d characters, at most %d are allowed; shorten it.", key, utf8.RuneCountInString(s), rule.most)
	case form != nil && !form.fits(s):
		r.problem(at, "%s, got %s.", form.text, document.Show(v))
	}
	return true
}

func (r *reader) number(at document.Pointer, v any, into reflect.Value, name string) {
	n, ok := wholeNumber(v)
	rule := rules[name]
	switch {
	case rule.most > 0 && (!ok || n < rule.least || n > rule.most):
		r.wrong(at, v, name, fmt.Sprintf("a whole number from %d to %d", rule.least, rule.most))
	case !ok:
		r.wrong(at, v, "", "a whole number")
	default:
		into.SetInt(int64(n))
	}
}

func wholeNumber(v any) (int, bool) {
	number, ok := v.(json.Number)
	if !ok {
		return 0, false
	}
	n, err := strconv.Atoi(string(document.AppendNumber(nil, string(number))))
	return n, err == nil
}

// list reads a list that isn't empty. Texts must be distinct.
func (r *reader) list(at document.Pointer, v any, into reflect.Value, name string) {
	list, _ := v.([]any)
	if len(list) == 0 {
		r.wrong(at, v, name, "a list")
		return
	}
	if most := rules[name].most; len(list) > most {
		r.problem(at, "%q has %d entries, at most %d are allowed.", last(at), len(list), most)
		return
	}
	into.Set(reflect.MakeSlice(into.Type(), len(list), len(list)))
	for i, v := range list {
		if text, is := v.(string); is && slices.Index(list, v) < i {
			one := ""
			if form := rules[name].form; form != nil {
				one = form.one
			}
			r.problem(at.Index(i), "%s%q appears twice; remove one.", one, text)
			continue
		}
		r.read(at.Index(i), v, into.Index(i), name)
	}
}

func (r *reader) byName(at document.Pointer, v any, into reflect.Value, name string) {
	object, ok := v.(map[string]any)
	if most := rules[name].most; !ok || most > 0 && (len(object) == 0 || len(object) > most) {
		r.wrong(at, v, name, "an object")
		return
	}
	into.Set(reflect.MakeMap(into.Type()))
	for _, key := range slices.Sorted(maps.Keys(object)) {
		value := reflect.New(into.Type().Elem()).Elem()
		r.read(at.With(key), object[key], value, name+".*")
		into.SetMapIndex(reflect.ValueOf(key).Convert(into.Type().Key()), value)
	}
}

func (r *reader) object(at document.Pointer, v any, into reflect.Value, name string) {
	keys := keysOf(into.Type())
	object, ok := v.(map[string]any)
	if !ok || len(object) == 0 && (isIndex(last(at)) || rules[name].least > 0) {
		r.wrong(at, v, name, "an object with at least one of "+strings.Join(keys, ", "))
		return
	}
	what := strconv.Quote(last(at))
	switch {
	case len(at) == 0:
		what = "a schema.json"
	case isIndex(last(at)):
		what = "an entry"
	}
	for _, key := range slices.Sorted(maps.Keys(object)) {
		if !slices.Contains(keys, key) {
			hint := what + " has " + strings.Join(keys, ", ") + "."
			if best := textutil.Nearest(key, keys); best != "" {
				hint = fmt.Sprintf("did you mean %q?", best)
			}
			r.problem(at.With(key), "The key %q is not known: %s", document.Shorten(key, 60), hint)
		}
	}
	for field, value := range into.Fields() {
		key, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if v, has := object[key]; has {
			r.read(at.With(key), v, value, name+"."+key)
		} else if help := rules[name+"."+key].need; help != "" {
			r.problem(at.With(key), "The key %q is missing; add it: %s.", key, help)
		}
	}
}

// Keys returns the sorted keys of a schema.json.
func Keys() []string { return keysOf(reflect.TypeFor[Spec]()) }

func keysOf(t reflect.Type) (keys []string) {
	for field := range t.Fields() {
		key, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

type form struct {
	text  string // a sentence about the form, for a problem
	one   string // starts the problem with a text that stands twice in a list
	fits  func(string) bool
	known []string // suggestions
}

var weekdays = []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"} // in the order of time.Weekday

const clock = `([01][0-9]|2[0-3]):[0-5][0-9]`

var (
	toolIDForm = &form{text: "A toolId has lower-case letters a to z, digits and single underscores, and begins with a letter",
		fits: matching(`[a-z][a-z0-9]*(_[a-z0-9]+)*(__[a-z0-9]+(_[a-z0-9]+)*)?`, MaxToolID)}
	semverForm = &form{text: `The version must be semver, such as "1.0.0"`, fits: matching(`(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)`+
		`(-[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?(\+[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?`, 100)}
	tagForm = &form{text: "A tag has words of lower-case letters and digits joined by single dashes, at most 40", one: "The tag ",
		fits: matching(`[a-z0-9]+(-[a-z0-9]+)*`, 40)}
	modeForm  = &form{text: `A mode must be "text" or "voice"`, one: "The mode ", fits: matching(`text|voice`, 5)}
	scopeForm = &form{text: fmt.Sprintf("A scope has 1 to %d letters, digits and . _ : / -", MaxScopeBytes),
		one: "The scope ", fits: ValidScope}
	agentForm = &form{text: `An entry is the id of an agent, such as "desk"`,
		fits: func(s string) bool { return strings.TrimSpace(s) == s && s != "" && len(s) <= MaxAgent }}
	featureForm = &form{text: "An entry is the name of a feature, in lower-case letters, digits, - and _, such as \"spring-sale\"",
		fits: ValidFeature}
	weekdayForm = &form{text: "A weekday is one of mon, tue, wed, thu, fri, sat, sun", known: weekdays,
		fits: func(s string) bool { return slices.Contains(weekdays, s) }}
	dateForm = &form{fits: func(s string) bool {
		_, err := time.Parse(time.DateOnly, s)
		return err == nil
	}}
	zoneForm = &form{fits: func(s string) bool {
		_, err := time.LoadLocation(s)
		return err == nil && s != "" && s != "Local"
	}}
	jobNameForm = &form{fits: func(s string) bool {
		return strings.TrimSpace(s) != "" && !strings.ContainsAny(s, "\n\t") && utf8.RuneCountInString(s) <= 80
	}}
	networkForm = &form{text: `An entry is a host, such as "api.example.com" or "http://localhost:8080", or a setting, such as ` +
		`"{settings.base_url}"`, one: "The host ",
		fits: matching(`(https?://)?([A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\])`+
			`(:[0-9]{1,5})?|\{settings\.[a-z][a-z0-9_]*\}`, 300)}
	sourceForm = &form{known: LiveSources(), fits: func(s string) bool { return slices.Contains(LiveSources(), s) },
		text: "The source of live values is one of " + strings.Join(LiveSources(), ", ")}
)

func matching(pattern string, most int) func(string) bool {
	form := regexp.MustCompile(`^(` + pattern + `)$`)
	return func(s string) bool { return len(s) <= most && form.MatchString(s) }
}

const (
	someTime  = `a time of day from 00:00 to 23:59, such as "09:30" ("to" may be "24:00")`
	someDate  = `a date such as "2026-12-24"`
	emptyList = "name one, or leave it out; an empty list gives the tool to no one"
)

// rules are by key, with dots. A star matches any name; the entries of a list have its rule.
var rules = map[string]rule{
	".toolId":    {need: `the directory's name with underscores, such as "kb_search"`, most: MaxToolID, form: toolIDForm},
	".variantOf": {most: MaxToolID},
	".version":   {need: `the tool's version, such as "1.0.0"`, most: 100, form: semverForm},
	".title":     {most: 80},
	".tags": {is: `a list of 1 to 10 words, such as ["calendar"]`, otherwise: "without any, leave it out", most: 10,
		form: tagForm},
	".description":          {need: "a sentence that tells a model when to call it", most: MaxDescription},
	".category":             {need: `"retrieval", "action" or "utility"`, of: []string{"retrieval", "action", "utility"}},
	".sideEffects":          {need: `"none", "read_only" or "writes"`, of: []string{"none", "read_only", "writes"}},
	".idempotent":           {need: "true if calling it twice does no more than calling it once"},
	".requiresConfirmation": {need: "true if a person has to approve each call"},
	".confirmWhen": {is: `a list of conditions, such as [{"argument": "amount", "above": 100}]`, most: 32,
		otherwise: "to ask for every call, leave it out"},
	".confirmWhen.argument": {need: `the name of an argument, such as "amount" or "slot.start"`, most: 500},
	".confirmWhen.above":    {is: "a number to compare with"},
	".confirmWhen.below":    {is: "a number to compare with"},
	".allowedModes": {need: `a list of "text" and "voice"`, is: `a list of "text" and "voice", with at least one of them`, most: 32,
		form: modeForm},
	".requires": {is: `a list of scopes, such as ["calendar.write"]`, otherwise: "for a tool that everybody has, leave it out",
		most: MaxScopes, form: scopeForm},
	".rateLimit":       {is: `an object such as {"calls": 5, "window": "1h"}`, otherwise: "without a limit, leave it out"},
	".rateLimit.calls": {need: "how often the tool may run for one user within the window", least: 1, most: 1000},
	".rateLimit.window": {need: `a time such as "1h"`, is: `a time from 1s to 24h, such as "30s", "10m" or "1h30m"`,
		form: &form{fits: func(s string) bool { return RateLimit{Window: s}.Within() > 0 }}},
	".availability": {is: `an object with conditions, such as {"features": ["beta"]}`, least: 1,
		otherwise: "for a tool that is always there, leave it out"},
	".availability.agents":   {is: `a list of ids of agents, such as ["desk"]`, otherwise: emptyList, most: 32, form: agentForm},
	".availability.scopes":   {is: `a list of scopes, such as ["calendar.write"]`, otherwise: emptyList, most: 32, form: scopeForm},
	".availability.features": {is: `a list of features, such as ["beta"]`, otherwise: emptyList, most: 32, form: featureForm},
	".availability.zone":     {is: `the IANA name of a zone, such as "Europe/Oslo" or "UTC"`, form: zoneForm},
	".availability.times": {is: `a list of windows, such as [{"weekdays": ["mon"], "from": "09:00", "to": "17:00"}]`,
		otherwise: emptyList, most: 32},
	".availability.times.weekdays": {is: `a list such as ["mon", "fri"]`, otherwise: "for every day, leave it out", most: 32,
		form: weekdayForm},
	".availability.times.from":  {is: someTime, form: &form{fits: matching(clock, 5)}},
	".availability.times.to":    {is: someTime, form: &form{fits: matching(clock+`|24:00`, 5)}},
	".availability.times.since": {is: someDate, form: dateForm},
	".availability.times.until": {is: someDate, form: dateForm},
	".job": {is: `an object such as {"name": "Yearly report", "longest": "30m", "atOnce": 2}`,
		otherwise: "a tool without long work leaves it out"},
	".job.name": {need: `what the work is called, such as "Yearly report"`, is: "one line of 1 to 80 characters", form: jobNameForm},
	".job.longest": {need: `the longest time of the work, such as "30m"`, is: `a time from 1s to 6h, such as "90s", "30m" or "2h"`,
		form: &form{fits: func(s string) bool { return Job{Longest: s}.Within() > 0 }}},
	".job.atOnce": {need: "how many jobs of the tool one user may have under way", least: 1, most: 20},
	".latencyBudgetMs": {need: "how long a call should take, in ms", is: "a whole number of ms from 1 to 300000", least: 1,
		most: 300_000},
	".timeoutMs":      {is: "a whole number of ms from 1 to 300000", least: 1, most: 300_000},
	".behavior":       {of: []string{BehaviorBlocking, BehaviorNonBlocking}},
	".scheduling":     {of: []string{SchedulingInterrupt, SchedulingWhenIdle, SchedulingSilent}},
	".idempotencyKey": {most: 500},
	".preview":        {most: 1000},
	".network": {is: `a list of hosts, such as ["api.example.com"]`, otherwise: "for a tool without fetch, leave it out", most: 32,
		form: networkForm},
	".clamp":   {is: `an object such as {"voice": {"top_k": 3}}`},
	".clamp.*": {is: `an object such as {"top_k": 3}`},
	".settings": {is: `an object of 1 to 32 settings by name, such as {"base_url": {"type": "string", "description": "Where the ` +
		`service is."}}`, otherwise: "without any, leave it out", most: 32},
	".settings.*":             {is: "an object with default, description, secret, type"},
	".settings.*.type":        {need: strings.Join(settingTypes, ", "), of: settingTypes},
	".settings.*.description": {need: "a sentence that tells an operator what it is for", most: MaxDescription},
	".dynamic": {is: `an object such as {"/properties/agent/enum": "agents.switchable"}`, most: 1000,
		otherwise: "without live values, leave it out"},
	".dynamic.*": {form: sourceForm},
}
