package spec

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"voicegw/registry/document"
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
		return Spec{}, append(problems, document.Problem{Message: "schema.json must have one JSON object."})
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

// Compiled holds the compiled parts of a spec. It is immutable and safe for concurrent use.
type Compiled struct {
	Parameters *document.Schema
	// Output is nil if the tool has no output schema.
	Output *document.Schema

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

// Read parses the object of a schema.json; raw holds the same values as bytes. compiled is nil if the parameters have
// problems.
func Read(object map[string]any, raw map[string]json.RawMessage) (Spec, *Compiled, []document.Problem) {
	r := &reader{}
	var s Spec
	r.object(nil, object, reflect.ValueOf(&s).Elem(), "")
	s.Parameters, s.Output = raw["parameters"], raw["output"]
	if v, has := object["parameters"]; !has || v != nil && reflect.DeepEqual(v, map[string]any{}) {
		s.Parameters = json.RawMessage(NoParameters)
	}
	s.TimeoutMS = cmp.Or(s.TimeoutMS, DefaultTimeoutMS)
	r.problems = append(r.problems, document.Legible(object, nil)...)
	r.rules(&s)
	r.settings(&s, raw["settings"])
	compiled := r.parameters(&s)
	if open := r.hours(s.Availability); compiled != nil {
		compiled.hours = open
	}
	if s.Output != nil {
		output, problems := document.CompileOutput(s.Output)
		if r.inside(document.Pointer{"output"}, problems); compiled != nil {
			compiled.Output = output
		}
	}
	if compiled != nil {
		root := compiled.Parameters.Root
		for place := range s.Dynamic {
			if why := fillable(compiled.Parameters, place); why != "" && r.fine("dynamic", place) {
				r.problem(document.Pointer{"dynamic", place}, "%s.", why)
			}
		}
		r.clamp(&s, root)
		r.confirmWhen(&s, root)
	}
	return s, compiled, document.SortProblems(r.problems)
}

// rules checks what one key cannot tell alone.
func (r *reader) rules(s *Spec) {
	r.words(s)
	if why := Reserved(s.ToolID); why != "" {
		r.problem(document.Pointer{"toolId"}, "The name %s %s; choose another.", document.Show(s.ToolID), why)
	}
	switch of := s.VariantOf; {
	case of == "":
	case !toolIDForm.fits(of):
		r.problem(document.Pointer{"variantOf"}, "\"variantOf\" is the toolId of another tool, got %s.", document.Show(of))
	case of == s.ToolID:
		r.problem(document.Pointer{"variantOf"}, "A tool cannot be a version of itself; name another tool.")
	}
	if s.Category == CategoryRetrieval && s.Writes() {
		r.problem(document.Pointer{"sideEffects"}, "A retrieval tool only reads; write \"read_only\" or make the category \"action\".")
	}
	if s.Category == CategoryRetrieval && !s.Idempotent && r.fine("idempotent") {
		r.problem(document.Pointer{"idempotent"}, "A retrieval tool is idempotent; write true or make the category \"action\".")
	}
	if s.LatencyBudgetMS > s.TimeoutMS {
		r.problem(document.Pointer{"latencyBudgetMs"},
			"The latency budget of %d ms is longer than the hard limit timeoutMs of %d ms; lower it or raise timeoutMs.",
			s.LatencyBudgetMS, s.TimeoutMS)
	}
	if s.Scheduling != "" && s.Behavior == BehaviorBlocking {
		r.problem(document.Pointer{"scheduling"},
			"Scheduling is only for the behavior \"non_blocking\"; remove it, or change behavior.")
	}
	for mode := range s.Clamp {
		if len(s.AllowedModes) > 0 && !s.Allows(mode) && r.fine("clamp", string(mode)) {
			r.problem(document.Pointer{"clamp", string(mode)},
				"The mode %q is not one of allowedModes; remove it here or add it there.", document.Shorten(string(mode), 40))
		}
	}
	if s.ConfirmWhen != nil && !s.RequiresConfirmation {
		r.problem(document.Pointer{"confirmWhen"}, "The conditions select calls that need approval, but "+
			"requiresConfirmation is not true, so none does; make it true, or remove the conditions.")
	}
}

func (r *reader) words(s *Spec) {
	if strings.ContainsAny(s.Title, "\n\t") {
		r.problem(document.Pointer{"title"}, "The title must be one line; remove the line break or tab.")
	}
	if strings.TrimSpace(s.Title) != "" && document.Wordless(s.Title) {
		r.problem(document.Pointer{"title"}, "The title has markup but no words; write the tool's name for people.")
	}
	if strings.TrimSpace(s.Description) != "" && document.Wordless(s.Description) {
		r.problem(document.Pointer{"description"},
			"The description has markup but no words; write a sentence that tells a model when to call the tool.")
	}
}

// parameters compiles the schema and the fields that refer to it; nil if it has problems.
func (r *reader) parameters(s *Spec) *Compiled {
	params, problems := document.CompileParameters(s.Parameters)
	if r.inside(document.Pointer{"parameters"}, problems); len(problems) > 0 {
		return nil
	}
	c := &Compiled{Parameters: params}
	c.businessKey, c.hasKey = r.template("idempotencyKey", s.IdempotencyKey, false, params.Root)
	c.preview, c.hasView = r.template("preview", s.Preview, true, params.Root)
	if c.hasKey && len(c.businessKey.parts) < 2 {
		r.problem(document.Pointer{"idempotencyKey"},
			"This template names no argument, so all calls would count as one; write {name} for an argument.")
	}
	return c
}

func (r *reader) template(key, text string, sections bool, root *document.Node) (template, bool) {
	if text == "" {
		return template{}, false
	}
	t, err := parseTemplate(text, sections)
	if err == nil {
		err = t.check(root)
	}
	if err != nil {
		r.problem(document.Pointer{key}, "The template %s is invalid: %v.", document.Show(text), err)
	}
	return t, err == nil
}

func (r *reader) clamp(s *Spec, root *document.Node) {
	for mode, limits := range s.Clamp {
		for name, limit := range limits {
			if why := clampable(root, name, limit); why != "" && r.fine("clamp", string(mode), name) {
				r.problem(document.Pointer{"clamp", string(mode), name}, "%s.", why)
			}
		}
	}
}

func clampable(root *document.Node, name string, limit int) string {
	n := root.Property(name)
	if n == nil {
		return fmt.Sprintf("The parameters have no %q to clamp; name one of their properties", document.Shorten(name, 60))
	}
	numeric, lowest := false, math.Inf(-1)
	n.EachInPlace(func(n *document.Node) {
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
	most, has := n.Doc["maximum"].(json.Number)
	useless := has && !document.Above(most, limit) // it never lowers anything
	switch {
	case !numeric:
		return fmt.Sprintf("%q is not a number, so it cannot be clamped", name)
	case float64(limit) < lowest:
		return fmt.Sprintf("The clamp %d is below the minimum of %q; raise it", limit, name)
	case !useless && n.Refuses(json.Number(strconv.Itoa(limit))):
		return fmt.Sprintf("The clamp %d is not a valid value of %q: a call lowered to it would be invalid; "+
			"choose a valid one", limit, name)
	}
	return ""
}

// NoParameters is the schema of a tool without arguments, for specs that omit "parameters".
const NoParameters = `{"type":"object","properties":{},"additionalProperties":false}`

// Sources of live values, which fill an enum when a session starts.
const (
	// LiveTools are the ids of the session's tools, without built-in ones.
	LiveTools = "tools"
	// LiveAgents are the agents that the session's agent may hand the user over to.
	LiveAgents = "agents.switchable"
	// LiveCalendars are the configured calendars.
	LiveCalendars = "calendars"
	// LiveNamespaces are the knowledge base namespaces that the session may read.
	LiveNamespaces = "namespaces"
)

// LiveSources lists all sources, sorted.
func LiveSources() []string { return []string{LiveAgents, LiveCalendars, LiveNamespaces, LiveTools} }

// liveKeywords are the keywords allowed with a filled enum: others might exclude all values, which only sessions
// would detect.
var liveKeywords = []string{"$comment", "description", "title", "type"}

func fillable(parameters *document.Schema, place string) string {
	holder, ok := strings.CutSuffix(place, "/enum")
	if !ok {
		return "Live values must be at an enum in the parameters, such as /properties/agent/enum"
	}
	n := parameters.At(holder)
	if n == nil || n.Doc == nil {
		return "The parameters have no schema at " + document.Shorten(holder, 100) +
			"; write the pointer from the parameters on, such as /properties/agent/enum"
	}
	if typ, _ := n.Doc["type"].(string); typ != "string" {
		return "Live values must be texts: write \"type\": \"string\" at " + document.Shorten(holder, 100)
	}
	for _, keyword := range slices.Sorted(maps.Keys(n.Doc)) {
		if !slices.Contains(liveKeywords, keyword) && !strings.HasPrefix(keyword, "x-") {
			return "Next to an enum with live values, only " + strings.Join(liveKeywords[1:], ", ") + " are allowed; remove \"" +
				document.Shorten(keyword, 40) + "\" at " + document.Shorten(holder, 100)
		}
	}
	return ""
}
