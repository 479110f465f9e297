package spec

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
	"voicegw/registry/document"
	"voicegw/registry/schema"
)

// Parse parses a schema.json strictly and reports all problems, sorted by path: JSON syntax, duplicate, unknown and
// missing keys, types, enums, rules between fields, templates, clamps, and those of [schema.CompileParameters]. With
// problems, the Spec is incomplete.
func Parse(data []byte) (Spec, []document.Problem) {
	tree, problems, ok := document.Decode(data, maxSpecBytes, document.MaxSpecDepth)
	if !ok {
		return Spec{}, problems
	}
	object, isObject := tree.(map[string]any)
	if !isObject {
		return Spec{}, append(problems, document.Problem{Message: "schema.json holds one JSON object."})
	}
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(data, &raw); err != nil { // accepts everything that document.Decode accepts
		return Spec{}, append(problems, document.Problem{Message: err.Error()})
	}
	if i := document.LoneSurrogate(data); i >= 0 {
		problems = append(problems, document.Problem{Message: fmt.Sprintf("The escape %s at %s is half of a character (a lone "+
			"surrogate); write the whole pair, or the character itself.", data[i:min(i+6, len(data))],
			document.Position(data, int64(i)+1))})
	}
	spec, _, found := Read(object, raw)
	return spec, document.SortProblems(append(problems, found...))
}

var (
	toolIDForm = regexp.MustCompile(`^[a-z][a-z0-9]*(_[a-z0-9]+)*$`)
	semverForm = regexp.MustCompile(`^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?(\+[0-9A-Za-` +
		`z-]+(\.[0-9A-Za-z-]+)*)?$`)

	specKeys = []string{
		"allowedModes", "availability", "behavior", "cancellable", "category", "clamp", "confirmWhen",
		"description", "dynamic", "idempotencyKey", "idempotent", "job", "latencyBudgetMs",
		"output", "parameters", "preview", "rateLimit", "requires", "requiresConfirmation",
		"scheduling", "settings", "sideEffects", "tags", "timeoutMs", "title", "toolId", "variantOf", "version",
	}
)

// Compiled holds the compiled parts of a spec. It is immutable and safe for concurrent use.
type Compiled struct {
	// Parameters is the schema of the arguments.
	Parameters *schema.Schema
	// Output is nil if the tool has no output schema.
	Output *schema.Schema

	businessKey     template
	preview         template
	hours           *hours // nil without times
	hasKey, hasView bool
}

// Open reports whether now is in the availability's times, if any.
func (c *Compiled) Open(now time.Time) bool { return c.hours == nil || c.hours.open(now) }

// Opens returns when the tool is available next, in the zone of its times; zero if it is now, or never again.
func (c *Compiled) Opens(now time.Time) time.Time {
	if c.Open(now) {
		return time.Time{}
	}
	return c.hours.opens(now)
}

// BusinessKey fills the template of the business key; empty without a template.
func (c *Compiled) BusinessKey(args any) string {
	if !c.hasKey {
		return ""
	}
	return c.businessKey.key(args)
}

// Preview fills the template of the preview; has is false without a template. Times are in zone, or in their own
// offset if zone is nil.
func (c *Compiled) Preview(args any, zone *time.Location) (text string, has bool) {
	if !c.hasView {
		return "", false
	}
	return c.preview.text(args, zone), true
}

// specReader parses the fields of a schema.json and collects problems.
type specReader struct {
	object   map[string]any
	problems []document.Problem
}

// Read parses the object of a schema.json; raw holds the same values as bytes. compiled is nil if the parameters have
// problems.
func Read(object map[string]any, raw map[string]json.RawMessage) (Spec, *Compiled, []document.Problem) {
	r := &specReader{object: object}
	for _, key := range slices.Sorted(maps.Keys(object)) {
		if !slices.Contains(specKeys, key) {
			r.problem(document.Pointer{key}, "The key %q is not known%s. A schema.json has: %s.", document.Shorten(key, 60),
				document.DidYouMean(key, specKeys), strings.Join(specKeys, ", "))
		}
	}
	s := Spec{
		ToolID:      r.text("toolId", true, MaxToolID),
		Version:     r.text("version", true, 100),
		Title:       r.title(),
		Tags:        r.tags(),
		Description: r.text("description", true, MaxDescription),
		Category: Category(r.word("category", true, string(CategoryRetrieval), string(CategoryAction),
			string(CategoryUtility))),
		SideEffects: SideEffects(r.word("sideEffects", true, string(SideEffectsNone), string(SideEffectsReadOnly),
			string(SideEffectsWrites))),
		Idempotent:           r.flag("idempotent", true),
		RequiresConfirmation: r.flag("requiresConfirmation", true),
		AllowedModes:         r.modes(),
		Requires:             r.requires(),
		RateLimit:            r.rateLimit(),
		Job:                  r.job(),
		LatencyBudgetMS:      r.number("latencyBudgetMs", true, MaxTimeoutMS),
		TimeoutMS:            r.number("timeoutMs", false, MaxTimeoutMS),
		Behavior:             r.word("behavior", false, BehaviorBlocking, BehaviorNonBlocking),
		Scheduling:           r.word("scheduling", false, SchedulingInterrupt, SchedulingWhenIdle, SchedulingSilent),
		Cancellable:          r.flag("cancellable", false),
		IdempotencyKey:       r.text("idempotencyKey", false, 500),
		Preview:              r.text("preview", false, 1000),
		Settings:             r.settings(raw["settings"]),
		Parameters:           parametersOf(object, raw["parameters"]),
	}
	s.VariantOf = r.variantOf(s.ToolID)
	r.noShare(&s)
	s.TimeoutMS = cmp.Or(s.TimeoutMS, DefaultTimeoutMS)
	r.rules(&s)
	r.problems = append(r.problems, document.Legible(object, nil)...)
	if strings.TrimSpace(s.Description) != "" && document.Wordless(s.Description) {
		r.problem(document.Pointer{"description"},
			"The description holds no word but markup; write a sentence that tells a model when to call the tool.")
	}
	available, open := r.availability()
	s.Availability = available
	compiled := r.parameters(&s)
	if compiled != nil {
		compiled.hours = open
	}
	var output *schema.Schema
	if s.Output, output = r.output(raw["output"]); compiled != nil {
		compiled.Output = output
	}
	s.Dynamic = r.dynamic(compiled)
	s.Clamp = r.clamp(&s, compiled)
	s.ConfirmWhen = r.confirmWhen(&s, compiled)
	return s, compiled, r.problems
}

func (r *specReader) problem(place document.Pointer, format string, args ...any) {
	r.problems = append(r.problems, document.Problem{Path: place.String(), Message: fmt.Sprintf(format, args...)})
}

var fieldHelp = map[string]string{
	"toolId":               "the directory's name with underscores, such as \"kb_search\"",
	"version":              "the tool's version, such as \"1.0.0\"",
	"description":          "a sentence that tells a model when to call it",
	"category":             "\"retrieval\", \"action\" or \"utility\"",
	"sideEffects":          "\"none\", \"read_only\" or \"writes\"",
	"idempotent":           "true if calling it twice does no more than calling it once",
	"requiresConfirmation": "true if a person has to approve each call",
	"allowedModes":         "a list of \"text\" and \"voice\"",
	"latencyBudgetMs":      "how long a call should take, in ms",
}

// value returns the value of a key, and reports a missing required key.
func (r *specReader) value(key string, required bool) (v any, has bool) {
	if v, has = r.object[key]; !has && required {
		r.problem(document.Pointer{key}, "The key %q is missing; add it: %s.", key, fieldHelp[key])
	}
	return v, has
}

// words parses a list of distinct words that fit. form describes the required form in errors, known are suggestions,
// and one starts the error about a duplicate.
func (r *specReader) words(at document.Pointer, list []any, one, form string, fits func(string) bool, known ...string) (words []string) {
	for i, v := range list {
		word, _ := v.(string)
		switch {
		case !fits(word):
			r.problem(at.Index(i), "%s, got %s%s.", form, document.Show(v), document.DidYouMean(word, known))
		case slices.Contains(words, word):
			r.problem(at.Index(i), "%s%q stands twice; leave one.", one, word)
		default:
			words = append(words, word)
		}
	}
	return words
}

func (r *specReader) text(key string, required bool, most int) string {
	v, has := r.value(key, required)
	if !has {
		return ""
	}
	s, ok := v.(string)
	switch {
	case !ok:
		r.problem(document.Pointer{key}, "%q is a string, got %s.", key, document.Describe(v))
	case strings.TrimSpace(s) == "":
		r.problem(document.Pointer{key}, "%q is empty; write it or, if it is optional, leave it out.", key)
	case utf8.RuneCountInString(s) > most:
		r.problem(document.Pointer{key}, "%q has %d characters, at most %d are allowed; shorten it.", key, utf8.RuneCountInString(s), most)
	}
	return s
}

func (r *specReader) word(key string, required bool, words ...string) string {
	v, has := r.value(key, required)
	if !has {
		return ""
	}
	if s, ok := v.(string); ok && slices.Contains(words, s) {
		return s
	}
	hint := ""
	if s, ok := v.(string); ok {
		hint = document.DidYouMean(s, words)
	}
	r.problem(document.Pointer{key}, "%q is one of %s, got %s%s.", key, strings.Join(words, ", "), document.Show(v), hint)
	return ""
}

func (r *specReader) flag(key string, required bool) bool {
	v, has := r.value(key, required)
	if !has {
		return false
	}
	b, ok := v.(bool)
	if !ok {
		r.problem(document.Pointer{key}, "%q is true or false, got %s.", key, document.Describe(v))
	}
	return b
}

func (r *specReader) number(key string, required bool, most int) int {
	v, has := r.value(key, required)
	if !has {
		return 0
	}
	n, ok := wholeNumber(v)
	if !ok || n < 1 || n > most {
		r.problem(document.Pointer{key}, "%q is a whole number of ms from 1 to %d, got %s.", key, most, document.Describe(v))
		return 0
	}
	return n
}

// wholeNumber returns v as an int, if it is an integer in range.
func wholeNumber(v any) (int, bool) {
	number, ok := v.(json.Number)
	if !ok {
		return 0, false
	}
	n, err := strconv.Atoi(string(document.AppendNumber(nil, string(number))))
	return n, err == nil
}

func (r *specReader) modes() []Mode {
	v, has := r.value("allowedModes", true)
	if !has {
		return nil
	}
	list, ok := v.([]any)
	if !ok || len(list) == 0 {
		r.problem(document.Pointer{"allowedModes"}, "\"allowedModes\" is %s, with at least one of them.", fieldHelp["allowedModes"])
		return nil
	}
	var modes []Mode
	for _, mode := range r.words(document.Pointer{"allowedModes"}, list, "The mode ", "A mode is \"text\" or \"voice\"",
		func(s string) bool {
			return Mode(s) == ModeText || Mode(s) == ModeVoice
		}) {
		modes = append(modes, Mode(mode))
	}
	return modes
}

// rules checks the rules between fields, and the form of some fields.
func (r *specReader) rules(s *Spec) {
	if s.ToolID != "" && !toolIDForm.MatchString(s.ToolID) {
		r.problem(document.Pointer{"toolId"},
			"A toolId has small letters a to z, digits and single underscores, a letter first, got %s.", document.Show(s.ToolID))
	}
	if why := Reserved(s.ToolID); why != "" {
		r.problem(document.Pointer{"toolId"}, "The name %s %s; take another.", document.Show(s.ToolID), why)
	}
	if s.Version != "" && !semverForm.MatchString(s.Version) {
		r.problem(document.Pointer{"version"}, "The version is semver, such as \"1.0.0\", got %s.", document.Show(s.Version))
	}
	if s.Category == CategoryRetrieval && s.SideEffects == SideEffectsWrites {
		r.problem(document.Pointer{"sideEffects"}, "A retrieval tool only reads; write \"read_only\" or make the category \"action\".")
	}
	if _, said := r.object["idempotent"].(bool); said && s.Category == CategoryRetrieval && !s.Idempotent {
		r.problem(document.Pointer{"idempotent"}, "A retrieval tool is idempotent; write true or make the category \"action\".")
	}
	if s.LatencyBudgetMS > s.TimeoutMS {
		r.problem(document.Pointer{"latencyBudgetMs"},
			"The latency budget of %d ms is longer than the hard limit timeoutMs of %d ms; lower it or raise timeoutMs.",
			s.LatencyBudgetMS, s.TimeoutMS)
	}
	if s.Scheduling != "" && s.Behavior == BehaviorBlocking {
		r.problem(document.Pointer{"scheduling"},
			"Scheduling says when the answer of a call that does not block is spoken; remove it or make behavior \"non_blocking\".")
	}
}

// parameters compiles the schema and the fields that refer to it; nil if it has problems.
func (r *specReader) parameters(s *Spec) *Compiled {
	params, problems := schema.CompileParameters(s.Parameters)
	for _, p := range problems {
		r.problems = append(r.problems, document.Problem{Path: "/parameters" + p.Path, Message: p.Message})
	}
	if len(problems) > 0 {
		return nil
	}
	c := &Compiled{Parameters: params}
	c.businessKey, c.hasKey = r.template("idempotencyKey", s.IdempotencyKey, false, params.Root)
	c.preview, c.hasView = r.template("preview", s.Preview, true, params.Root)
	if c.hasKey && len(c.businessKey.parts) < 2 {
		r.problem(document.Pointer{"idempotencyKey"},
			"This template names no argument, so that all calls would be one; write {name} for an argument.")
	}
	return c
}

func (r *specReader) template(key, text string, sections bool, root *schema.Node) (template, bool) {
	if text == "" {
		return template{}, false
	}
	t, err := parseTemplate(text, sections)
	if err == nil {
		err = t.check(root)
	}
	if err != nil {
		r.problem(document.Pointer{key}, "The template %s is not right: %v.", document.Show(text), err)
	}
	return t, err == nil
}

// clamp parses {"voice": {"top_k": 3}}.
func (r *specReader) clamp(s *Spec, c *Compiled) map[Mode]map[string]int {
	v, has := r.object["clamp"]
	if !has {
		return nil
	}
	byMode, ok := v.(map[string]any)
	if !ok {
		r.problem(document.Pointer{"clamp"}, "\"clamp\" is an object such as {\"voice\": {\"top_k\": 3}}, got %s.", document.Describe(v))
		return nil
	}
	clamp := map[Mode]map[string]int{}
	for _, mode := range slices.Sorted(maps.Keys(byMode)) {
		place := document.Pointer{"clamp", mode}
		if len(s.AllowedModes) > 0 && !s.Allows(Mode(mode)) {
			r.problem(place, "The mode %q is not one of allowedModes; remove it here or add it there.", document.Shorten(mode, 40))
		}
		limits, ok := byMode[mode].(map[string]any)
		if !ok {
			r.problem(place, "The clamps of a mode are an object such as {\"top_k\": 3}, got %s.", document.Describe(byMode[mode]))
			continue
		}
		clamp[Mode(mode)] = map[string]int{}
		for _, name := range slices.Sorted(maps.Keys(limits)) {
			limit, ok := wholeNumber(limits[name])
			if !ok {
				r.problem(place.With(name), "A clamp is a whole number, got %s.", document.Describe(limits[name]))
			} else if c != nil {
				if why := clampable(c.Parameters.Root, name, limit); why != "" {
					r.problem(place.With(name), "%s.", why)
				}
			}
			clamp[Mode(mode)][name] = limit
		}
	}
	return clamp
}

// clampable returns the reason why an argument cannot be lowered to limit, or an empty string.
func clampable(root *schema.Node, name string, limit int) string {
	n := root.Property(name)
	if n == nil {
		return fmt.Sprintf("The parameters have no %q to clamp; name a property of theirs", document.Shorten(name, 60))
	}
	numeric, lowest := false, math.Inf(-1)
	n.EachInPlace(func(n *schema.Node) {
		types := n.Types()
		numeric = numeric || slices.Contains(types, "integer") || slices.Contains(types, "number")
		for _, keyword := range []string{"minimum", "exclusiveMinimum"} {
			if number, ok := n.Doc[keyword].(json.Number); ok {
				if f, err := number.Float64(); err == nil {
					lowest = max(lowest, f)
				}
			}
		}
	})
	switch {
	case !numeric:
		return fmt.Sprintf("%q is not a number, so it cannot be clamped", name)
	case float64(limit) < lowest:
		return fmt.Sprintf("The clamp %d is below the minimum of %q; raise it", limit, name)
	case !neverAbove(n, limit) && n.Refuses(json.Number(strconv.Itoa(limit))):
		return fmt.Sprintf("The clamp %d is not a valid value of %q: a call lowered to it would be invalid; "+
			"choose a valid one", limit, name)
	}
	return ""
}

// neverAbove reports whether n accepts no number above limit, which makes a clamp useless.
func neverAbove(n *schema.Node, limit int) bool {
	number, ok := n.Doc["maximum"].(json.Number)
	return ok && !document.Above(number, limit)
}

func (r *specReader) output(raw json.RawMessage) (json.RawMessage, *schema.Schema) {
	if _, has := r.object["output"]; !has {
		return nil, nil
	}
	compiled, problems := schema.CompileOutput(raw)
	for _, p := range problems {
		r.problems = append(r.problems, document.Problem{Path: "/output" + p.Path, Message: p.Message})
	}
	return raw, compiled
}

// NoParameters is the schema of a tool without arguments, for specs that omit "parameters".
const NoParameters = `{"type":"object","properties":{},"additionalProperties":false}`

// parametersOf returns the parameters of a schema.json.
func parametersOf(object map[string]any, raw json.RawMessage) json.RawMessage {
	v, has := object["parameters"]
	if empty, is := v.(map[string]any); !has || is && len(empty) == 0 {
		return json.RawMessage(NoParameters)
	}
	return raw
}
