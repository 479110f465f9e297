package registry

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"voicegw/internal/testutil"
	"voicegw/registry/spec"
)

const weatherSettings = `settings: {
	"api_key": {"type": "string", "secret": true, "description": "Key of the service."},
	"base_url": {"type": "string", "description": "Where it is.", "default": "https://weather.example"},
	"places": {"type": "list", "description": "Where.", "default": ["Oslo"]},
	"retries": {"type": "integer", "description": "How often.", "default": 3},
	"share": {"type": "number", "description": "How much.", "default": 0.5},
	"strict": {"type": "boolean", "description": "Whether.", "default": true},
	"timeout": {"type": "duration", "description": "How long.", "default": "1m30s"}}`

// weather is the type that the build generates for them.
type weather struct {
	APIKey  Secret        `setting:"api_key"`
	BaseURL string        `setting:"base_url"`
	Places  []string      `setting:"places"`
	Retries int           `setting:"retries"`
	Share   float64       `setting:"share"`
	Strict  bool          `setting:"strict"`
	Timeout time.Duration `setting:"timeout"`
}

func (weather) OwnSettings() {}

type weatherNeeds struct{ Own weather }

// probeWith is a tool that answers with its settings.
func probeWith(t testing.TB) (Entry, Options, *[]weather) {
	t.Helper()
	e, opts, _ := simple(t, nil, weatherSettings)
	var seen []weather
	opts.Handlers = map[string]Handler{"probe": Bind(func(_ context.Context, call Call[none, weatherNeeds]) (Result, error) {
		seen = append(seen, call.Needs.Own)
		return Result{}, nil
	})}
	return e, opts, &seen
}

func keyOf(text string) map[string]ToolSettings {
	return map[string]ToolSettings{"probe": {Values: map[string]any{"api_key": NewSecret(text), "retries": 5}}}
}

// TestSettingsReachTheHandler: a handler gets its settings as of the call, whatever snapshot the session has.
func TestSettingsReachTheHandler(t *testing.T) {
	e, opts, seen := probeWith(t)
	opts.Settings = keyOf("first")
	r := mustLoad(t, opts, e)
	s := r.Snapshot()
	call := func(s *Snapshot) weather {
		t.Helper()
		if env := s.Execute(t.Context(), "probe", spec.ModeText, nil, Session{}); !env.OK {
			t.Fatal(env.Error)
		}
		return (*seen)[len(*seen)-1]
	}
	got := call(s)
	if got.APIKey.Reveal() != "first" || got.BaseURL != "https://weather.example" || !slices.Equal(got.Places, []string{"Oslo"}) || got.Retries != 5 ||
		got.Share != 0.5 || !got.Strict || got.Timeout != 90*time.Second {
		t.Errorf("the handler got %+v", got)
	}
	take, err := r.Configure(keyOf("second"), Foreign{})
	if err != nil {
		t.Fatal(err)
	}
	if got := call(s).APIKey.Reveal(); got != "first" {
		t.Errorf("before they apply: %s", got)
	}
	take()
	if got := call(s).APIKey.Reveal(); got != "second" {
		t.Errorf("an earlier session: %s", got)
	}
	if got := call(r.Snapshot().Only([]string{"probe"})).APIKey.Reveal(); got != "second" {
		t.Errorf("an agent's tools: %s", got)
	}
	if err := r.Reload(encodeFile(t, e)); err != nil {
		t.Fatal(err)
	}
	if got := call(r.Snapshot()).APIKey.Reveal(); got != "second" {
		t.Errorf("after a reload of the file: %s", got)
	}
}

// TestToolIsSwitchedOff: a disabled tool is in no list, needs nothing, and returns in later snapshots.
func TestToolIsSwitchedOff(t *testing.T) {
	e, opts, _ := probeWith(t)
	opts.Handlers["kb_search"] = Bind(kbHandler)
	opts.Settings = map[string]ToolSettings{"probe": {Off: true}}
	r := mustLoad(t, opts, e, entry(t, testutil.KBSearchSchema))
	s := r.Snapshot()
	if _, has := s.Tool("probe"); has || !slices.Equal(s.Off(), []string{"probe"}) || len(s.Tools(spec.ModeText)) != 2 {
		t.Errorf("off: %v", s.Off())
	}
	if env := s.Execute(t.Context(), "probe", spec.ModeText, nil, Session{}); env.OK || env.Error.Type != ErrorNotFound {
		t.Errorf("it was called: %s", env.Encode())
	}
	if off := s.Only([]string{"probe", "kb_search"}).Off(); !slices.Equal(off, []string{"probe"}) {
		t.Errorf("an agent's tools: %v are off", off)
	}
	take, err := r.Configure(keyOf("x"), Foreign{})
	if err != nil {
		t.Fatal(err)
	}
	take()
	if _, has := r.Snapshot().Tool("probe"); !has || len(r.Snapshot().Off()) > 0 {
		t.Error("it is still off")
	}
	if _, has := s.Tool("probe"); has {
		t.Error("a snapshot has changed")
	}
	if r.Snapshot().Version() != s.Version() {
		t.Error("the version has changed; it is that of the file")
	}
}

// TestMissingSettingBlocksOneTool: a tool that lacks a setting is off and names the setting, at the start and after a
// reload. The other tools work, and the tool returns with the setting.
func TestMissingSettingBlocksOneTool(t *testing.T) {
	e, opts, _ := probeWith(t)
	opts.Handlers["kb_search"] = Bind(kbHandler)
	r := mustLoad(t, opts, e, entry(t, testutil.KBSearchSchema))
	blocked := func(s *Snapshot) {
		t.Helper()
		unset := s.Unset()
		if len(unset) != 1 || unset[0].Tool != "probe" || !slices.Equal(unset[0].Settings, []string{"api_key"}) || !slices.Equal(s.Off(), []string{"probe"}) {
			t.Fatalf("unset %v, off %v", unset, s.Off())
		}
		if text := unset[0].String(); text != "probe needs tools.probe.api_key; give it, or switch the tool off with tools.probe.enabled: false" {
			t.Errorf("the operator reads %q", text)
		}
		if env := s.Execute(t.Context(), "probe", spec.ModeText, nil, Session{}); env.OK || env.Error.Type != ErrorNotFound {
			t.Errorf("it was called: %s", env.Encode())
		}
		if _, has := s.Tool("kb_search"); !has {
			t.Error("another tool is off, too")
		}
	}
	blocked(r.Snapshot())
	configure := func(settings map[string]ToolSettings) {
		t.Helper()
		take, err := r.Configure(settings, Foreign{})
		if err != nil {
			t.Fatal(err)
		}
		take()
	}
	configure(keyOf("here"))
	before := r.Snapshot()
	if env := before.Execute(t.Context(), "probe", spec.ModeText, nil, Session{}); !env.OK || len(before.Off()) != 0 {
		t.Errorf("with the key: off %v, answer %s", before.Off(), env.Encode())
	}
	configure(nil)
	blocked(r.Snapshot())
	if env := before.Execute(t.Context(), "probe", spec.ModeText, nil, Session{}); !env.OK {
		t.Errorf("a session that began before: %s", env.Encode())
	}
	configure(map[string]ToolSettings{"probe": {Off: true}})
	if s := r.Snapshot(); len(s.Unset()) != 0 || !slices.Equal(s.Off(), []string{"probe"}) {
		t.Errorf("switched off: unset %v, off %v", s.Unset(), s.Off())
	}
}

type olderSettings struct {
	APIKey string `setting:"api_key"`
}

func (olderSettings) OwnSettings() {}

// TestSettingsOfAnotherBuild: a handler whose settings were generated from another schema.json is refused.
func TestSettingsOfAnotherBuild(t *testing.T) {
	e, opts, _ := probeWith(t)
	opts.Settings = keyOf("x")
	opts.Handlers = map[string]Handler{"probe": Bind(func(context.Context, Call[none, struct{ Own olderSettings }]) (Result, error) { return Result{}, nil })}
	_, err := Load(encodeFile(t, e), opts)
	if _, ok := errors.AsType[*LoadError](err); !ok || !strings.Contains(err.Error(), "another schema.json") {
		t.Errorf("loaded: %v", err)
	}
}
