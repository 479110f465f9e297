package registry

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"
)

// loader reads one tool_registry.json and collects its problems.
type loader struct {
	opts      *Options
	problems  []Problem
	providers map[Mode][]provider
	snapshot  *Snapshot
	settings  map[string]ToolSettings
	live      map[string]*liveSettings
	values    map[string]reflect.Value // of the tools' own settings, not yet in live
}

func (r *Registry) load(data []byte, settings map[string]ToolSettings) (*loader, error) {
	if len(data) == 0 {
		return nil, ErrEmpty
	}
	l := &loader{
		opts: &r.opts, snapshot: &Snapshot{opts: &r.opts, stats: r.stats, tools: map[string]*Tool{}},
		settings: settings, live: r.live, values: map[string]reflect.Value{},
	}
	l.snapshot.loaded, l.snapshot.fillings = l.snapshot, &fillings{}
	l.providers = map[Mode][]provider{}
	for _, mode := range []Mode{ModeText, ModeVoice} {
		l.providers[mode] = r.opts.providers(mode, l.snapshot)
	}
	l.problems = append(l.problems, r.opts.check()...)
	l.file(data)
	l.handlers()
	if len(l.problems) > 0 {
		return nil, &LoadError{Problems: l.problems}
	}
	for _, b := range builtins() {
		l.builtin(b)
	}
	if len(l.problems) > 0 {
		return nil, &LoadError{Problems: l.problems}
	}
	l.snapshot.sorted = slices.SortedFunc(maps.Values(l.snapshot.tools), func(a, b *Tool) int { return strings.Compare(a.ToolID, b.ToolID) })
	slices.Sort(l.snapshot.off)
	return l, nil
}

func (l *loader) problem(place pointer, format string, args ...any) {
	l.problems = append(l.problems, Problem{Path: place.String(), Message: fmt.Sprintf(format, args...)})
}

var fileKeys = []string{"envelope", "generatedAt", "gitCommit", "tools", "version"}

func (l *loader) file(data []byte) {
	tree, problems, ok := decodeStrict(data, MaxFileBytes, maxFileDepth)
	l.problems = append(l.problems, problems...)
	if !ok {
		return
	}
	object, _ := tree.(map[string]any)
	tools, isList := object["tools"].([]any)
	if !isList {
		l.problem(pointer{"tools"}, "This is not a tool_registry.json: it has no list of tools. Run `voicegw tools build`.")
		return
	}
	for _, key := range slices.Sorted(maps.Keys(object)) {
		if !slices.Contains(fileKeys, key) {
			l.problem(pointer{key}, "The key %q is not known; was the file built by another version of voicegw? Run `voicegw tools build`.", shorten(key, 60))
		}
	}
	if envelope, has := object["envelope"]; has && !sameJSON(envelope, EnvelopeSchema()) {
		l.problem(pointer{"envelope"}, "The schema of the envelope is not that of this program: the file was built by another version of voicegw. Run `voicegw tools build`.")
	}
	l.snapshot.version, _ = object["version"].(string)
	if want := contentVersion(tools); l.snapshot.version != want {
		l.problem(pointer{"version"}, "The version is %s and the content's is %q: the file was changed after the build. Run `voicegw tools build`.", show(object["version"]), want)
	}
	var raw struct {
		Tools []json.RawMessage `json:"tools"`
	}
	if err := json.Unmarshal(data, &raw); err != nil || len(raw.Tools) != len(tools) {
		l.problem(pointer{"tools"}, "The list of tools cannot be read twice the same: %v.", err)
		return
	}
	for i, entry := range tools {
		l.tool(pointer{"tools"}.index(i), entry, raw.Tools[i])
	}
	for id, twin := range Lookalikes(slices.Collect(maps.Keys(l.snapshot.tools))) {
		l.problem(pointer{"tools"}, "The tools %q and %q differ in underscores alone, so a model would take one for the other; rename one.", id, twin)
	}
}

// tool reads one entry, with its spec as strictly as its schema.json was read.
func (l *loader) tool(place pointer, entry any, data json.RawMessage) {
	object, ok := entry.(map[string]any)
	if !ok {
		l.problem(place, "A tool is an object, got %s.", describe(entry))
		return
	}
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(data, &raw); err != nil {
		l.problem(place, "%v", err)
		return
	}
	e := Entry{}
	e.Summary = l.text(place, object, "summary")
	e.Guide = l.text(place, object, "guide")
	if utf8.RuneCountInString(e.Summary) > MaxSummary {
		l.problem(place.with("summary"), "The summary has more than %d characters.", MaxSummary)
	}
	if strings.TrimSpace(e.Summary) != "" && Wordless(e.Summary) {
		l.problem(place.with("summary"), "The summary holds no word but markup.")
	}
	parameters, _ := object["parameters"].(map[string]any)
	properties, _ := parameters["properties"].(map[string]any)
	e.Forms = l.forms(place.with("forms"), object["forms"], raw["forms"], len(properties) == 0)
	spec := maps.Clone(object)
	if hash, has := object["handler"]; has {
		if e.Handler, ok = hash.(string); !ok {
			l.problem(place.with("handler"), "The hash of the handler is a text, got %s. Run `voicegw tools build`.", describe(hash))
		}
	}
	for _, key := range []string{"summary", "guide", "forms", "handler"} {
		delete(spec, key)
	}
	var compiled *compiledSpec
	var problems []Problem
	e.Spec, compiled, problems = readSpec(spec, raw)
	for _, p := range problems {
		l.problems = append(l.problems, Problem{Path: place.String() + p.Path, Message: p.Message})
	}
	switch _, twice := l.snapshot.tools[e.ToolID]; {
	case twice:
		l.problem(place.with("toolId"), "There are two tools %q.", e.ToolID)
	case Reserved(e.ToolID) != "": // readSpec has reported it
	case l.off(e.ToolID):
	case e.ToolID != "":
		l.add(place, &Tool{Entry: e, compiled: compiled}, l.opts.Handlers[e.ToolID])
	}
}

func (l *loader) text(place pointer, object map[string]any, key string) string {
	s, ok := object[key].(string)
	if !ok || strings.TrimSpace(s) == "" {
		l.problem(place.with(key), "The tool has no %s. Run `voicegw tools build`.", key)
	}
	l.problems = append(l.problems, legible(s, place.with(key))...)
	return s
}

// forms reads the providers' forms; bare means a tool without parameters, which has no Gemini form.
func (l *loader) forms(place pointer, tree any, data json.RawMessage, bare bool) Forms {
	var forms Forms
	byName, ok := tree.(map[string]any)
	if !ok {
		l.problem(place, "The tool has no providers' forms. Run `voicegw tools build`.")
		return forms
	}
	for _, name := range []string{"gemini", "openai", "openaiChat"} {
		if _, ok := byName[name].(map[string]any); !ok && !(name == "gemini" && bare) {
			l.problem(place.with(name), "The form %q is not a schema object. Run `voicegw tools build`.", name)
		}
	}
	if err := json.Unmarshal(data, &forms); err != nil {
		l.problem(place, "%v", err)
	}
	if string(forms.Gemini) == "null" {
		forms.Gemini = nil
	}
	return forms
}

// add adds a tool and binds its handler.
func (l *loader) add(place pointer, t *Tool, h Handler) {
	l.snapshot.tools[t.ToolID] = t
	if h.run == nil {
		l.problem(place, "The tool %q has no handler in this program: write its handler.go, run `voicegw tools build` and build the program again.", t.ToolID)
		return
	}
	t.handler = h
	if t.compiled != nil {
		for _, p := range h.fits(t.compiled.params.root) {
			l.problems = append(l.problems, Problem{Path: place.String() + p.Path, Message: p.Message})
		}
	}
	sources, problems := h.bindNeeds(t.AllowedModes, l.withSettings(place, t, h))
	t.sources = sources
	for _, p := range problems {
		l.problems = append(l.problems, Problem{Path: place.String(), Message: t.ToolID + ": " + p.Message})
	}
	for _, message := range t.checkWork() {
		l.problems = append(l.problems, Problem{Path: place.String(), Message: t.ToolID + ": " + message})
	}
}

// handlers reports handlers without a tool.
func (l *loader) handlers() {
	for _, id := range slices.Sorted(maps.Keys(l.opts.Handlers)) {
		if _, ok := l.snapshot.tools[id]; !ok && !slices.Contains(l.snapshot.off, id) {
			l.problem(nil, "This program has a handler for %q and the file has no such tool: it is older or newer than the program. Run `voicegw tools build`.", id)
		}
	}
}

func (l *loader) builtin(b builtin) {
	params, problems := compileParameters(b.entry.Parameters)
	l.problems = append(l.problems, problems...)
	l.add(nil, &Tool{Entry: b.entry, compiled: &compiledSpec{params: params}}, b.handler)
}
