package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"voicegw/internal/user"
	"voicegw/orchestrator/calls"
	"voicegw/orchestrator/execute"
	"voicegw/registry"
	"voicegw/registry/registrytest"
	"voicegw/registry/spec"
	"voicegw/store/storetest"
)

func entry(id string, change func(*spec.Spec)) registry.Entry {
	object := json.RawMessage(`{"type":"object","properties":{},"additionalProperties":false}`)
	declared := spec.Spec{
		ToolID: id, Version: "1.0.0", Description: "Looks.", Category: spec.CategoryUtility, SideEffects: spec.SideEffectsNone, Idempotent: true,
		AllowedModes: []spec.Mode{spec.ModeText}, LatencyBudgetMS: 1000, TimeoutMS: 60_000, Parameters: object,
	}
	change(&declared)
	return registry.Entry{Spec: declared, Summary: "Looks around.", Guide: "# " + id + "\n", Forms: registry.Forms{
		OpenAI: object, OpenAIChat: object, Gemini: json.RawMessage(`{"type":"OBJECT"}`),
	}}
}

// newServer returns a server of tools, and the number of their calls.
func newServer(t testing.TB, settings Settings) (*Server, *atomic.Int64) {
	t.Helper()
	ran := new(atomic.Int64)
	look := registry.Bind(func(context.Context, registry.Call[struct{}, struct{}]) (registry.Result, error) {
		ran.Add(1)
		return registry.Result{}, nil
	})
	invite := registry.Bind(func(context.Context, registry.Call[struct{}, struct{ Inviter registry.Inviter }]) (registry.Result, error) {
		return registry.Result{}, nil
	})
	same := func(*spec.Spec) {}
	entries := []registry.Entry{
		entry("asks", func(s *spec.Spec) { s.RequiresConfirmation, s.Preview = true, "Look" }),
		entry("both", func(s *spec.Spec) { s.AllowedModes = []spec.Mode{spec.ModeText, spec.ModeVoice} }),
		entry("invite", same),
		entry("listed", same),
		entry("look", func(s *spec.Spec) { s.Title = "Look around" }),
		entry("spoken", func(s *spec.Spec) { s.AllowedModes = []spec.Mode{spec.ModeVoice} }),
		entry("writes", func(s *spec.Spec) {
			s.SideEffects, s.Category, s.Idempotent = spec.SideEffectsWrites, spec.CategoryAction, false
		}),
	}
	handlers := map[string]registry.Handler{}
	for _, e := range entries {
		handlers[e.ToolID] = look
	}
	handlers["invite"] = invite
	tools, err := registry.Load(registrytest.File(t, entries...), registry.Options{Handlers: handlers, ModeCapabilities: map[spec.Mode][]reflect.Type{spec.ModeText: {reflect.TypeFor[registry.Inviter]()}}})
	if err != nil {
		t.Fatal(err)
	}
	executor := execute.New(execute.Options{Ledger: new(storetest.Ledger), Confirmations: new(storetest.Confirmations)})
	t.Cleanup(executor.Close)
	return New(Options{Tools: tools.Snapshot, Executor: executor, Rules: calls.Policy{Mode: spec.ModeText, Confirm: []string{"listed"}}, Agent: "desk",
		Version: "1", Settings: settings}), ran
}

// names returns the names of the offered tools.
func names(t *testing.T, s *Server) (all []string) {
	t.Helper()
	status, body := serve(s, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, "2025-06-18")
	var answer struct{ Result sdk.ListToolsResult }
	if err := json.Unmarshal([]byte(body), &answer); err != nil || status != http.StatusOK {
		t.Fatalf("%d %s: %v", status, body, err)
	}
	for _, tool := range answer.Result.Tools {
		all = append(all, tool.Name)
	}
	return all
}

func serve(s *Server, body, version string) (int, string) {
	r := httptest.NewRequest(http.MethodPost, "/mcp", strings.NewReader(body))
	r.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}, "Mcp-Protocol-Version": {version}}
	w := httptest.NewRecorder()
	s.Serve(w, r, Caller{User: user.Must("ada"), Key: "key:1"}, false)
	return w.Code, w.Body.String()
}

// TestOffered: the server offers the configured tools that fit; by default, those that only read and need no approval.
func TestOffered(t *testing.T) {
	s, _ := newServer(t, Settings{})
	if got := names(t, s); !slices.Equal(got, []string{"both", "look"}) {
		t.Errorf("offered by default: %v", got)
	}
	first := s.current()
	if s.current() != first {
		t.Error("an unchanged list is made again")
	}
	s.Reconfigure(Settings{Expose: []string{"writes", "asks", "invite", "spoken", "describe_tool", "gone"}})
	if got := names(t, s); !slices.Equal(got, []string{"asks", "writes"}) {
		t.Errorf("offered as configured: %v", got)
	}
	for id, reason := range map[string]string{"look": "", "spoken": "voice", "invite": "client", "describe_tool": "conversations"} {
		tool, ok := s.opts.Tools().Tool(id)
		if why := Unfit(tool); !ok || (why == "") != (reason == "") || !strings.Contains(why, reason) {
			t.Errorf("%s: %q", id, why)
		}
	}
	if why := Unfit(&registry.Tool{Entry: entry("job", func(s *spec.Spec) { s.Job = &spec.Job{} })}); !strings.Contains(why, "jobs") {
		t.Errorf("a job: %q", why)
	}
	look, _ := s.opts.Tools().Tool("look")
	offered := toolOf(look)
	if offered.Title != "Look around" || offered.Description != "Looks around. Looks." || !offered.Annotations.ReadOnlyHint || *offered.Annotations.OpenWorldHint || *offered.Annotations.DestructiveHint {
		t.Errorf("%+v %+v", offered, offered.Annotations)
	}
	both, _ := s.opts.Tools().Tool("both")
	if got := toolOf(both).Title; got != "Both" {
		t.Errorf("the title is %q", got)
	}
}

// TestBadLines: a line that is not a message gets an error, and the connection continues. Only old versions have batches.
func TestBadLines(t *testing.T) {
	const ping, pinged = `{"jsonrpc":"2.0","id":1,"method":"ping"}`, `{"jsonrpc":"2.0","id":1,"result":{}}`
	const parse, invalid, batched = `"code":-32700`, `"code":-32600`, `[` + pinged + `]`
	for version, lines := range map[string]map[string]string{
		"2025-03-26": {"[" + ping + "]": batched, "[]": invalid, "[" + ping + "," + ping + "]": invalid, "[1]": parse},
		"2025-06-18": {
			"[" + ping + "]": invalid, "[]": invalid, "garbage": parse, "{": parse, `{"jsonrpc":"1.0"}`: parse, ping + " x": parse,
			`{"jsonrpc":"2.0","id":1,"method":"` + strings.Repeat("x", 2<<20) + `"}`: parse,
		},
	} {
		s, _ := newServer(t, Settings{})
		in, input := io.Pipe()
		output, out := io.Pipe()
		ended := make(chan error, 1)
		go func() { ended <- s.Run(t.Context(), in, out, Caller{User: user.Must("ada")}) }()
		answers := bufio.NewReader(output)
		ask := func(line, want string) {
			t.Helper()
			if _, err := io.WriteString(input, line+"\n"); err != nil {
				t.Fatal(err)
			}
			if want == "" {
				return
			}
			if got, err := answers.ReadString('\n'); err != nil || !strings.Contains(got, want) {
				t.Errorf("%s: %.60s: %s, %v; want %s", version, line, got, err, want)
			}
		}
		ask(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"`+version+`","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`, version)
		ask(`{"jsonrpc":"2.0","method":"notifications/initialized"}`, "")
		for line, want := range lines {
			ask(line, want)
			ask(ping, pinged)
		}
		input.Close()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// FuzzMessage: a line is passed on as one JSON text, or answered with an error.
func FuzzMessage(f *testing.F) {
	for _, line := range []string{`{"jsonrpc":"2.0","id":1,"method":"ping"}`, `[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, `[1]`, `{} {}`, `x`} {
		f.Add(line)
	}
	s, _ := newServer(f, Settings{})
	f.Fuzz(func(t *testing.T, line string) {
		var answer bytes.Buffer
		passed := s.message(&answer, []byte(line), nil)
		if (passed == nil) != json.Valid(answer.Bytes()) || passed != nil && (!json.Valid(passed) || answer.Len() > 0) {
			t.Errorf("%q: passed %q, answered %q", line, passed, answer.String())
		}
	})
}

// FuzzServe: an answer is JSON or empty, and only offered tools run.
func FuzzServe(f *testing.F) {
	for _, version := range append(sdk.SupportedProtocolVersions(), "", "2099-01-01") {
		for _, body := range []string{
			`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"look","arguments":{}}}`,
			`{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"writes","arguments":{}}}`,
			`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"look","requestState":"x","inputResponses":{"approval":{"action":"accept","content":{"approve":true}}}}}`,
			`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"look","_meta":{"voicegw/idempotencyKey":"k","progressToken":1}}}`,
			`{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"voicegw://tools/look/guide.md"}}`,
			`{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"},"notifications":{}}}`,
			`{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"x"}}`,
			`{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"debug"}}`,
			`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"x","capabilities":{},"clientInfo":{}}}`,
			`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`,
			`{"jsonrpc":"2.0","id":1,"result":{}}`, `[]`, `[1]`, `null`, `{}`, ``, `{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}`,
		} {
			f.Add(body, version)
		}
	}
	s, ran := newServer(f, Settings{Expose: []string{"look"}, PerMinute: 1 << 30})
	f.Fuzz(func(t *testing.T, body, version string) {
		before := ran.Load()
		status, answer := serve(s, body, version)
		if status < 200 || status > 499 {
			t.Errorf("%d: %s", status, answer)
		}
		if status == http.StatusOK && !strings.HasPrefix(answer, "event: ") && !json.Valid([]byte(answer)) {
			t.Errorf("no JSON: %s", answer)
		}
		if ran.Load() != before && !bytes.Contains([]byte(body), []byte("look")) && !bytes.Contains([]byte(body), []byte(`\u`)) {
			t.Errorf("%s has run a tool", body)
		}
	})
}
