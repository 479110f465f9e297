package registry

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"voicegw/registry/adapter"
	"voicegw/registry/document"
	"voicegw/registry/spec"
)

type loader struct {
	opts      *Options
	problems  []document.Problem
	providers map[spec.Mode][]provider
	snapshot  *Snapshot
	settings  map[string]ToolSettings
	foreign   map[string]Handler
	live      map[string]*liveSettings
	values    map[string]reflect.Value // tools' own settings, not yet in live
	versions  []candidate              // the variants
}

func (r *Registry) load(data []byte, settings map[string]ToolSettings, foreign Foreign) (*loader, error) {
	if len(data) == 0 {
		return nil, ErrEmpty
	}
	data, err := foreign.join(data)
	if err != nil {
		return nil, err
	}
	for id, live := range liveOf(foreign.Handlers) {
		if r.live[id] == nil {
			r.live[id] = live
		}
	}
	l := &loader{
		foreign: foreign.Handlers,
		opts:    &r.opts, snapshot: &Snapshot{opts: &r.opts, stats: r.stats, switches: &r.switches, tools: map[string]*Tool{}},
		settings: settings, live: r.live, values: map[string]reflect.Value{},
	}
	l.snapshot.loaded, l.snapshot.fillings = l.snapshot, &kept[*Snapshot]{}
	l.providers = map[spec.Mode][]provider{}
	for _, mode := range []spec.Mode{spec.ModeText, spec.ModeVoice} {
		l.providers[mode] = r.opts.providers(mode)
	}
	l.problems = append(l.problems, r.opts.check()...)
	l.file(data)
	l.handlers()
	if len(l.problems) > 0 {
		return nil, &LoadError{Problems: l.problems}
	}
	l.snapshot.tools[spec.DescribeTool] = describer()
	l.snapshot.sorted = slices.SortedFunc(maps.Values(l.snapshot.tools),
		func(a, b *Tool) int { return strings.Compare(a.ToolID, b.ToolID) })
	slices.Sort(l.snapshot.off)
	slices.SortFunc(l.snapshot.unset, func(a, b Unset) int { return strings.Compare(a.Tool, b.Tool) })
	return l, nil
}

func (l *loader) problem(place document.Pointer, format string, args ...any) {
	l.problems = append(l.problems, document.Problem{Path: place.String(), Message: fmt.Sprintf(format, args...)})
}

var fileKeys = []string{"envelope", "generatedAt", "gitCommit", "tools", "version"}

func (l *loader) file(data []byte) {
	tree, problems, ok := document.Decode(data, MaxFileBytes, maxFileDepth)
	l.problems = append(l.problems, problems...)
	if !ok {
		return
	}
	object, _ := tree.(map[string]any)
	tools, isList := object["tools"].([]any)
	if !isList {
		l.problem(document.Pointer{"tools"}, "This is not a tool_registry.json: it has no list of tools. Run `voicegw tools build`.")
		return
	}
	for _, key := range slices.Sorted(maps.Keys(object)) {
		if !slices.Contains(fileKeys, key) {
			l.problem(document.Pointer{key}, "The key %q is not known; was the file built by another version of voicegw? Run "+
				"`voicegw tools build`.", document.Shorten(key, 60))
		}
	}
	if envelope, has := object["envelope"]; has && !sameJSON(envelope, EnvelopeSchema()) {
		l.problem(document.Pointer{"envelope"},
			"The schema of the envelope is not that of this program: the file was built by another version of voicegw. Run "+
				"`voicegw tools build`.")
	}
	l.snapshot.version, _ = object["version"].(string)
	if want := contentVersion(tools); l.snapshot.version != want {
		l.problem(document.Pointer{"version"},
			"The version is %s and the content's is %q: the file was changed after the build. Run `voicegw tools build`.",
			document.Show(object["version"]), want)
	}
	var raw struct {
		Tools []json.RawMessage `json:"tools"`
	}
	if err := json.Unmarshal(data, &raw); err != nil || len(raw.Tools) != len(tools) {
		l.problem(document.Pointer{"tools"}, "The list of tools changes when it is encoded again: %v.", err)
		return
	}
	for i, entry := range tools {
		l.tool(document.Pointer{"tools"}.Index(i), entry, raw.Tools[i])
	}
	l.addVersions()
	for id, twin := range spec.Lookalikes(slices.Collect(maps.Keys(l.snapshot.tools))) {
		l.problem(document.Pointer{"tools"}, "The tools %q and %q differ only in underscores, so a model could confuse "+
			"them; rename one.", id, twin)
	}
}

func (l *loader) tool(place document.Pointer, entry any, data json.RawMessage) {
	object, ok := entry.(map[string]any)
	if !ok {
		l.problem(place, "A tool must be an object, not %s.", document.Describe(entry))
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
	if utf8.RuneCountInString(e.Summary) > spec.MaxSummary {
		l.problem(place.With("summary"), "The summary has more than %d characters.", spec.MaxSummary)
	}
	if strings.TrimSpace(e.Summary) != "" && document.Wordless(e.Summary) {
		l.problem(place.With("summary"), "The summary has markup but no words.")
	}
	parameters, _ := object["parameters"].(map[string]any)
	properties, _ := parameters["properties"].(map[string]any)
	e.Forms = l.forms(place.With("forms"), object["forms"], raw["forms"], len(properties) == 0)
	declared := maps.Clone(object)
	if hash, has := object["handler"]; has {
		if e.Handler, ok = hash.(string); !ok {
			l.problem(place.With("handler"), "The hash of the handler must be a text, not %s. Run `voicegw tools build`.",
				document.Describe(hash))
		}
	}
	for _, key := range []string{"summary", "guide", "forms", "handler"} {
		delete(declared, key)
	}
	var compiled *spec.Compiled
	var problems []document.Problem
	e.Spec, compiled, problems = spec.Read(declared, raw)
	l.problems = append(l.problems, document.Under(place, problems)...)
	_, foreign := l.foreign[e.ToolID]
	switch _, twice := l.snapshot.tools[e.ToolID]; {
	case twice && foreign:
		l.problem(place.With("toolId"), "There are two tools %q, one of them in tool_dirs; rename that one.", e.ToolID)
	case twice:
		l.problem(place.With("toolId"), "There are two tools %q.", e.ToolID)
	case spec.Reserved(e.ToolID) != "": // spec.Read has reported it
	case l.off(&e.Spec):
	case e.VariantOf != "":
		l.version(place, &Tool{Entry: e, compiled: compiled})
	case e.ToolID != "":
		t := &Tool{Entry: e, compiled: compiled}
		l.snapshot.tools[t.ToolID] = t
		l.bind(place, t)
	}
}

func (l *loader) text(place document.Pointer, object map[string]any, key string) string {
	s, ok := object[key].(string)
	if !ok || strings.TrimSpace(s) == "" {
		l.problem(place.With(key), "The tool has no %s. Run `voicegw tools build`.", key)
	}
	l.problems = append(l.problems, document.Legible(s, place.With(key))...)
	return s
}

// forms loads the providers' forms; bare means a tool without parameters, which has no Gemini form.
func (l *loader) forms(place document.Pointer, tree any, data json.RawMessage, bare bool) Forms {
	var forms Forms
	byName, ok := tree.(map[string]any)
	if !ok {
		l.problem(place, "The tool has no providers' forms. Run `voicegw tools build`.")
		return forms
	}
	for _, name := range []string{"gemini", "openai", "openaiChat"} {
		if _, ok := byName[name].(map[string]any); !ok && !(name == "gemini" && bare) {
			l.problem(place.With(name), "The form %q is not a schema object. Run `voicegw tools build`.", name)
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

func (l *loader) bind(place document.Pointer, t *Tool) {
	h := l.opts.Handlers[t.ToolID]
	if h.run == nil {
		h = l.foreign[t.ToolID]
	}
	if h.run == nil {
		l.problem(place, "The tool %q has no handler in this program: write its handler.go, run `voicegw tools build` and "+
			"build the program again.", t.ToolID)
		return
	}
	t.handler = h
	if t.compiled != nil {
		l.problems = append(l.problems, document.Under(place, h.fits(t.compiled.Parameters.Root))...)
	}
	sources, problems := h.bindNeeds(t.AllowedModes, l.withSettings(place, t, h))
	t.sources = sources
	for _, message := range append(problems, t.checkWork()...) {
		l.problem(place, "%s: %s", t.ToolID, message)
	}
}

func (l *loader) handlers() {
	for _, id := range slices.Sorted(maps.Keys(l.opts.Handlers)) {
		if _, ok := l.snapshot.tools[id]; !ok && !slices.Contains(l.snapshot.off, id) && !l.isVersion(id) {
			l.problem(nil, "This program has a handler for %q, but the file has no such tool. Run `voicegw tools build`, and build and "+
				"start the program again.", id)
		}
	}
}

// Entry is a tool of a [File]. It must not change after it was built or loaded.
type Entry struct {
	spec.Spec
	Summary string `json:"summary"`
	Guide   string `json:"guide"`
	Forms   Forms  `json:"forms"`
	// Handler is a hash of the handler's source, so that the registry's version distinguishes handlers; empty in a
	// file that wasn't built.
	Handler string `json:"handler,omitempty"`
}

// Forms holds a tool's parameter schema in each provider's form. A form may accept more than Spec.Parameters, never
// less; the registry enforces Spec.Parameters.
type Forms struct {
	// OpenAI is the JSON Schema for Realtime's flat function tools.
	OpenAI json.RawMessage `json:"openai"`
	// OpenAIChat is the JSON Schema for Chat Completions' nested function tools.
	OpenAIChat json.RawMessage `json:"openaiChat"`
	// Gemini is Gemini's Schema object; empty for a tool without parameters, because Gemini rejects objects without
	// properties.
	Gemini json.RawMessage `json:"gemini"`
}

// FormsOf makes the forms of valid parameters. The error is [adapter.Problems].
func FormsOf(parameters json.RawMessage) (Forms, error) {
	openAI, gemini, err := adapter.All(parameters)
	return Forms{OpenAI: openAI, OpenAIChat: openAI, Gemini: gemini}, err
}

// File is tool_registry.json.
type File struct {
	// Version is "1.0." and the first 8 hex digits of a SHA-256 of the canonical JSON, with the tools sorted by id
	// and without Version, GeneratedAt, GitCommit and Envelope. See [File.ContentVersion].
	Version string `json:"version"`
	// GeneratedAt is the build time, or SOURCE_DATE_EPOCH, in RFC 3339 UTC with milliseconds.
	GeneratedAt string `json:"generatedAt"`
	// GitCommit is the last commit that changed the tools; may be empty.
	GitCommit string `json:"gitCommit"`
	// Envelope is [EnvelopeSchema], set by [File.Encode].
	Envelope json.RawMessage `json:"envelope,omitempty"`
	Tools    []Entry         `json:"tools"`
}

const (
	// MaxFileBytes limits tool_registry.json.
	MaxFileBytes = 64 << 20

	maxFileDepth = document.MaxSpecDepth + 4
)

const versionPrefix = "1.0."

func contentVersion(tools []any) string {
	tools = slices.Clone(tools)
	slices.SortStableFunc(tools, func(a, b any) int {
		return strings.Compare(toolID(a), toolID(b))
	})
	sum := sha256.Sum256(document.AppendCanonical(nil, map[string]any{"tools": tools}))
	return versionPrefix + hex.EncodeToString(sum[:4])
}

func toolID(entry any) string {
	object, _ := entry.(map[string]any)
	id, _ := object["toolId"].(string)
	return id
}

// ContentVersion computes the version from the content. It doesn't depend on the order of tools and keys or on white
// space. It fails if a raw part of an entry is invalid JSON.
func (f File) ContentVersion() (string, error) {
	data, err := document.Marshal(append([]Entry{}, f.Tools...))
	if err != nil {
		return "", fmt.Errorf("registry: the tools cannot be written: %w", err)
	}
	v, problems, _ := document.Decode(data, MaxFileBytes, maxFileDepth)
	if len(problems) > 0 {
		return "", fmt.Errorf("registry: the tools cannot be read again: %s", problems[0])
	}
	list, _ := v.([]any)
	return contentVersion(list), nil
}

// join returns a registry file with the foreign tools too.
func (f Foreign) join(data []byte) ([]byte, error) {
	if len(f.Entries) == 0 {
		return data, nil
	}
	var file File
	if err := json.Unmarshal(data, &file); err != nil {
		return nil, &LoadError{Problems: []document.Problem{{Message: fmt.Sprintf("The file cannot be read: %v.", err)}}}
	}
	if want, err := file.ContentVersion(); err != nil || want != file.Version {
		return data, err // loading it reports the problem
	}
	file.Tools = append(file.Tools, f.Entries...)
	return file.Encode()
}

// Encode encodes the file deterministically: tools sorted by id, indented by two spaces, with a final newline.
// Version is computed by [File.ContentVersion], whose errors it returns.
func (f File) Encode() ([]byte, error) {
	version, err := f.ContentVersion()
	if err != nil {
		return nil, err
	}
	f.Version, f.Envelope = version, EnvelopeSchema()
	f.Tools = append([]Entry{}, f.Tools...)
	slices.SortStableFunc(f.Tools, func(a, b Entry) int { return strings.Compare(a.ToolID, b.ToolID) })
	data, err := document.Marshal(f)
	if err != nil {
		return nil, fmt.Errorf("registry: the file cannot be written: %w", err)
	}
	var out bytes.Buffer
	if err := json.Indent(&out, data, "", "  "); err != nil {
		return nil, fmt.Errorf("registry: the file cannot be written: %w", err)
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}
