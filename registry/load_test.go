package registry

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"voicegw/internal/testutil"
	"voicegw/registry/spec"
)

func TestFileIsDeterministic(t *testing.T) {
	a, b := entry(t, testutil.KBSearchSchema), entry(t, testutil.KBSearchSchema, `toolId: "a_tool"`)
	one := File{GeneratedAt: "now", GitCommit: "abc", Tools: []Entry{a, b}}
	first, err := one.Encode()
	if err != nil {
		t.Fatal(err)
	}
	two := File{Version: "wrong", GeneratedAt: "now", GitCommit: "abc", Tools: []Entry{b, a}}
	second, err := two.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first, second) {
		t.Error("the order of the tools changes the bytes")
	}
	if two.Tools[0].ToolID != "a_tool" || two.Version != "wrong" {
		t.Error("Encode changed its receiver")
	}
	if !bytes.HasSuffix(first, []byte("}\n")) || bytes.Contains(first, []byte(`\u003c`)) {
		t.Errorf("wrong form: %s", first)
	}
	var read File
	if err := json.Unmarshal(first, &read); err != nil {
		t.Fatal(err)
	}
	if again, err := read.Encode(); err != nil || !bytes.Equal(again, first) {
		t.Errorf("it differs after a round trip: %v\n%s", err, cmp.Diff(string(first), string(again)))
	}
}

func TestContentVersion(t *testing.T) {
	e := entry(t, testutil.KBSearchSchema)
	version := func(f File) string {
		t.Helper()
		v, err := f.ContentVersion()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	base := version(File{Tools: []Entry{e}})
	if !regexp.MustCompile(`^1\.0\.[0-9a-f]{8}$`).MatchString(base) {
		t.Errorf("the version is %q", base)
	}
	if v := version(File{Version: "x", GeneratedAt: "later", GitCommit: "def", Tools: []Entry{e}}); v != base {
		t.Error("time, commit or version are in the hash")
	}
	var spaced bytes.Buffer
	if err := json.Indent(&spaced, e.Parameters, "", "\t"); err != nil {
		t.Fatal(err)
	}
	other := e
	other.Parameters = spaced.Bytes()
	if v := version(File{Tools: []Entry{other}}); v != base {
		t.Error("white space is in the hash")
	}
	for name, changed := range map[string]func(*Entry){
		"guide":      func(e *Entry) { e.Guide += "x" },
		"summary":    func(e *Entry) { e.Summary += "x" },
		"form":       func(e *Entry) { e.Forms.Gemini = json.RawMessage(`{"type":"OBJECT"}`) },
		"parameters": func(e *Entry) { e.Parameters = bytes.Replace(e.Parameters, []byte("200"), []byte("201"), 1) },
		"budget":     func(e *Entry) { e.LatencyBudgetMS++ },
	} {
		other := e
		changed(&other)
		if version(File{Tools: []Entry{other}}) == base {
			t.Errorf("the %s is not in the hash", name)
		}
	}
	e.Parameters = json.RawMessage("{")
	if _, err := (File{Tools: []Entry{e}}).ContentVersion(); err == nil {
		t.Error("invalid JSON has a version")
	}
	if v := version(File{}); v != version(File{Tools: []Entry{}}) {
		t.Error("no tools and an empty list differ")
	}
}

type (
	store     struct{ name string }
	messenger interface{ Send(string) }
	phone     struct{ sent []string }
)

func (p *phone) Send(s string) { p.sent = append(p.sent, s) }

func TestLoad(t *testing.T) {
	r := kbRegistry(t)
	s := r.Snapshot()
	tool, ok := s.Tool("kb_search")
	if !ok || tool.Version != "1.2.0" || tool.Summary != "A tool." || len(tool.Forms.Gemini) == 0 {
		t.Errorf("got %+v", tool)
	}
	var ids []string
	for _, tool := range s.Tools(spec.ModeVoice) {
		ids = append(ids, tool.ToolID)
	}
	if diff := cmp.Diff([]string{spec.DescribeTool, "kb_search"}, ids); diff != "" {
		t.Error(diff)
	}
	if len(s.All()) != 2 || len(s.Tools("phone")) != 0 {
		t.Error("All or Tools are wrong")
	}
}

func TestLoadRefuses(t *testing.T) {
	good := string(encodeFile(t, entry(t, testutil.KBSearchSchema)))
	handler := map[string]Handler{"kb_search": Bind(kbHandler)}
	type wrongArgs struct {
		Query   string `json:"query"`
		Filters struct {
			Type string `json:"type"`
		} `json:"filters"`
	}
	tests := []struct {
		name, data    string
		opts          Options
		path, message string
	}{
		{"not JSON", "{", Options{Handlers: handler}, "", "ends in the middle"},
		{"another file", `{"tool": []}`, Options{}, "/tools", "voicegw tools build"},
		{"changed by hand", strings.Replace(good, "Finds records.", "Finds all records.", 1), Options{Handlers: handler}, "/version", "changed after the build"},
		{"unknown key", strings.Replace(good, `"gitCommit"`, `"commit"`, 1), Options{Handlers: handler}, "/commit", "not known"},
		{"unknown key of a tool", strings.Replace(good, `"summary"`, `"abstract"`, 1), Options{Handlers: handler}, "/tools/0/abstract", "not known"},
		{"duplicate key", strings.Replace(good, `"gitCommit": "abc"`, `"gitCommit": "abc", "gitCommit": "abc"`, 1), Options{Handlers: handler}, "/gitCommit", "twice"},
		{"a spec that the build would refuse", strings.Replace(good, `"read_only"`, `"writes"`, 1), Options{Handlers: handler}, "/tools/0/sideEffects", "only reads"},
		{"a schema that the build would refuse", strings.Replace(good, `"format": "date"`, `"format": "day"`, 1), Options{Handlers: handler}, "/tools/0/parameters/properties/filters/properties/date_range/properties/start/format", "not supported"},
		{"no summary", strings.Replace(good, `"summary": "A tool."`, `"summary": ""`, 1), Options{Handlers: handler}, "/tools/0/summary", "no summary"},
		{"summary too long", strings.Replace(good, `"A tool."`, `"`+strings.Repeat("ä", 251)+`"`, 1), Options{Handlers: handler}, "/tools/0/summary", "250"},
		{"no form", strings.Replace(good, `"gemini"`, `"gemino"`, 1), Options{Handlers: handler}, "/tools/0/forms/gemini", "not a schema object"},
		{"a foreign one of its name", string(encodeFile(t, entry(t, testutil.KBSearchSchema))), Options{Handlers: handler,
			Foreign: Foreign{Entries: []Entry{entry(t, testutil.KBSearchSchema)}, Handlers: handler}}, "/tools/1/toolId", "one of them in tool_dirs; rename that one"},
		{"two of a name", string(encodeFile(t, entry(t, testutil.KBSearchSchema), entry(t, testutil.KBSearchSchema))), Options{Handlers: handler}, "/tools/1/toolId", "two tools"},
		{"no handler", good, Options{}, "/tools/0", "no handler"},
		{"the zero handler", good, Options{Handlers: map[string]Handler{"kb_search": {}}}, "/tools/0", "no handler"},
		{"a handler of nil", good, Options{Handlers: map[string]Handler{"kb_search": Bind[kbArgs, none](nil)}}, "/tools/0", "no handler"},
		{"a handler without a tool", good, Options{Handlers: map[string]Handler{"kb_search": Bind(kbHandler), "kb_got": Bind(kbHandler)}}, "", `"kb_got"`},
		{"arguments of another schema", good, Options{Handlers: map[string]Handler{"kb_search": Bind(func(context.Context, Call[wrongArgs, none]) (Result, error) { return Result{}, nil })}},
			"/tools/0/parameters/properties/filters/properties/tags", "generated from another schema.json"},
		{"a need without a provider", good, Options{Handlers: map[string]Handler{"kb_search": Bind(func(context.Context, Call[kbArgs, struct{ Store *store }]) (Result, error) { return Result{}, nil })}},
			"/tools/0", "in text mode nothing provides it"},
		{"a need of one mode only", good, Options{
			Handlers:         map[string]Handler{"kb_search": Bind(func(context.Context, Call[kbArgs, struct{ M messenger }]) (Result, error) { return Result{}, nil })},
			ModeCapabilities: map[spec.Mode][]reflect.Type{spec.ModeVoice: {reflect.TypeFor[messenger]()}},
		}, "/tools/0", "in text mode nothing provides it"},
		{"a need with two providers", good, Options{
			Handlers: map[string]Handler{"kb_search": Bind(func(context.Context, Call[kbArgs, struct{ M interface{ Send(string) } }]) (Result, error) {
				return Result{}, nil
			})},
			SessionCapabilities: []reflect.Type{reflect.TypeFor[messenger]()}, Capabilities: []any{&phone{}},
		}, "/tools/0", "several provide it"},
		{"needs that are not a struct", good, Options{Handlers: map[string]Handler{"kb_search": Bind(func(context.Context, Call[kbArgs, int]) (Result, error) { return Result{}, nil })}}, "/tools/0", "must be a struct"},
		{"a capability that is nil", good, Options{Handlers: handler, Capabilities: []any{(*store)(nil)}}, "", "is nil"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.data == good && tt.name == "changed by hand" {
				t.Fatal("the test changes nothing")
			}
			_, err := Load([]byte(tt.data), tt.opts)
			var refused *LoadError
			if !errors.As(err, &refused) {
				t.Fatalf("got %v", err)
			}
			for _, p := range refused.Problems {
				if p.Path == tt.path && strings.Contains(p.Message, tt.message) {
					if !strings.Contains(err.Error(), p.Message) {
						t.Errorf("the error does not have the message: %v", err)
					}
					return
				}
			}
			t.Errorf("got %v, want %q at %q", err, tt.message, tt.path)
		})
	}
	if _, err := Load(nil, Options{}); !errors.Is(err, ErrEmpty) {
		t.Errorf("of nil: %v", err)
	}
	changed := strings.Replace(good, "Finds records.", "Finds all records.", 1)
	if _, err := Load([]byte(changed), Options{Handlers: handler}); err == nil || !strings.Contains(err.Error(), "the file was changed after the build") {
		t.Errorf("a file that was changed after the build: %v", err)
	}
}

func TestLockAndReload(t *testing.T) {
	opts := Options{Handlers: map[string]Handler{"kb_search": Bind(kbHandler)}}
	old, changed := entry(t, testutil.KBSearchSchema), entry(t, testutil.KBSearchSchema, `version: "2.0.0"`)
	for _, dev := range []bool{false, true} {
		opts.Dev = dev
		r := mustLoad(t, opts, old)
		session := r.Snapshot()
		if err := r.Reload(encodeFile(t, changed)); err != nil {
			t.Fatalf("before Lock: %v", err)
		}
		if tool, _ := session.Tool("kb_search"); tool.Version != "1.2.0" || session.Version() == r.Snapshot().Version() {
			t.Error("a snapshot changed")
		}
		r.Lock()
		err := r.Reload(encodeFile(t, old))
		if errors.Is(err, ErrLocked) == dev || (err == nil) != dev {
			t.Errorf("after Lock, dev %t: %v", dev, err)
		}
		if dev {
			before := r.Snapshot()
			if err := r.Reload([]byte("{")); err == nil || r.Snapshot() != before {
				t.Errorf("a reload that failed changed something: %v", err)
			}
		}
		p, _ := session.Prepare("kb_search", spec.ModeText, json.RawMessage(`{"query":"x"}`))
		env := p.Run(t.Context(), Session{}) // by mistake on the new one
		if !env.OK || env.Meta.ToolVersion != "1.2.0" || env.Meta.RegistryVersion != session.Version() {
			t.Errorf("the old snapshot answers %s", env.Encode())
		}
	}
}

func TestNeeds(t *testing.T) {
	type needs struct {
		Store     *store
		Messenger messenger
		Snapshot  *Snapshot
	}
	e := entry(t, testutil.KBSearchSchema)
	var got needs
	handler := Bind(func(_ context.Context, call Call[kbArgs, needs]) (Result, error) {
		got = call.Needs
		call.Needs.Messenger.Send(call.Session.ID)
		return Result{}, nil
	})
	kept := &store{name: "kept"}
	r := mustLoad(t, Options{
		Handlers: map[string]Handler{"kb_search": handler}, Capabilities: []any{kept, "other", &phone{}},
		SessionCapabilities: []reflect.Type{reflect.TypeFor[messenger]()},
	}, e)
	s := r.Snapshot()
	p := &phone{}
	env := s.Execute(t.Context(), "kb_search", spec.ModeText, json.RawMessage(`{"query":"x"}`), Session{ID: "s1"}, 5, p)
	if !env.OK || got.Store != kept || got.Snapshot != s || len(p.sent) != 1 || p.sent[0] != "s1" {
		t.Errorf("got %s, %+v, %+v", env.Encode(), got, p)
	}
	env = s.Execute(t.Context(), "kb_search", spec.ModeText, json.RawMessage(`{"query":"x"}`), Session{ID: "s1"})
	if env.OK || env.Error.Type != ErrorInternal {
		t.Errorf("without the messenger: %s", env.Encode())
	}
	checkEnvelope(t, env)
}

// TestNeedsThatCannotBeFilled: a field that nothing provides would be nil at the first call, so the registry is not
// loaded.
func TestNeedsThatCannotBeFilled(t *testing.T) {
	type hidden struct {
		kept *store //nolint:unused // that is the error
	}
	type blank struct{ _ *store }
	for name, handler := range map[string]Handler{
		"kept": Bind(func(context.Context, Call[kbArgs, hidden]) (Result, error) { return Result{}, nil }),
		"_":    Bind(func(context.Context, Call[kbArgs, blank]) (Result, error) { return Result{}, nil }),
	} {
		_, err := Load(encodeFile(t, entry(t, testutil.KBSearchSchema)), Options{Handlers: map[string]Handler{"kb_search": handler}, Capabilities: []any{&store{}}})
		if err == nil || !strings.Contains(err.Error(), "The field "+name+" of the handler's needs") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzLoad(f *testing.F) {
	good := encodeFile(f, entry(f, testutil.KBSearchSchema))
	f.Add(good)
	f.Add(bytes.Replace(good, []byte(`"forms"`), []byte(`"form"`), 1))
	f.Add([]byte(`{"version":"1.0.0","tools":[null,{},{"toolId":"kb_search","parameters":{}}]}`))
	f.Add([]byte(`{"tools":[]}`))
	opts := Options{Handlers: map[string]Handler{"kb_search": Bind(kbHandler)}}
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := Load(data, opts)
		if err != nil {
			if r != nil || err.Error() == "" {
				t.Fatalf("an error and a registry, or one without words: %v", err)
			}
			return
		}
		if len(r.Snapshot().Tools(spec.ModeText)) == 0 {
			t.Fatal("a registry without its built-in tool")
		}
	})
}
