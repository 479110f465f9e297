package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"voicegw/internal/httptool"
	"voicegw/internal/jstool"
	"voicegw/internal/mcptool"
	"voicegw/registry"
	"voicegw/registry/registrytest"
	"voicegw/registry/spec"
)

// The arguments that make the test's program an MCP server, and a host of tools in JavaScript.
const (
	serveTools   = "serve-kinds"
	serveScripts = "tool-host"
)

type kindsArgs struct {
	Text string `json:"text"`
}

func kindsServer() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "kinds", Version: "1"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "echo", Description: "Says it again."}, func(_ context.Context, _ *mcp.CallToolRequest, in kindsArgs) (*mcp.CallToolResult, any, error) {
		return nil, in, nil
	})
	return s
}

// kindEntry declares a tool that repeats a text.
func kindEntry(b *testing.B, id string) registry.Entry {
	b.Helper()
	s, problems := spec.Parse([]byte(`{"toolId":"` + id + `","version":"1.0.0","description":"Says it again.","category":"utility","sideEffects":"none",
		"idempotent":true,"requiresConfirmation":false,"allowedModes":["voice"],"latencyBudgetMs":500,"timeoutMs":5000,
		"parameters":{"type":"object","properties":{"text":{"type":"string","description":"The text."}},"required":["text"],"additionalProperties":false}}`))
	if len(problems) > 0 {
		b.Fatal(problems)
	}
	forms, err := registry.FormsOf(s.Parameters)
	if err != nil {
		b.Fatal(err)
	}
	return registry.Entry{Spec: s, Summary: s.Description, Guide: "# Echo\n", Forms: forms}
}

// mcpTool approves the server's tool.
func mcpTool(b *testing.B, name string, of mcptool.Server) *mcptool.Tool {
	b.Helper()
	says, err := mcptool.Ask(b.Context(), name, of, slog.New(slog.DiscardHandler))
	if err != nil {
		b.Fatal(err)
	}
	pin, err := says[0].Pin()
	if err != nil {
		b.Fatal(err)
	}
	p := &mcptool.Pinned{Pin: pin, Said: says[0], Tool: mcptool.Decisions()}
	p.Tool["allowedModes"], p.Tool["requiresConfirmation"] = json.RawMessage(`["voice"]`), json.RawMessage("false")
	t, problems := mcptool.NewTool(name, "echo", p)
	if len(problems) > 0 {
		b.Fatal(problems)
	}
	return t
}

// BenchmarkToolKinds measures a call of each kind of tool, from prepared arguments to the envelope.
func BenchmarkToolKinds(b *testing.B) {
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.Copy(w, r.Body)
	}))
	b.Cleanup(web.Close)
	served := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return kindsServer() },
		&mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true}))
	b.Cleanup(served.Close)
	client := mcptool.NewClient(slog.New(slog.DiscardHandler))
	b.Cleanup(client.Close)
	servers := map[string]mcptool.Server{"web": {URL: served.URL}, "program": {Command: []string{os.Args[0], serveTools}}}

	foreign := registry.Foreign{Handlers: map[string]registry.Handler{}}
	echo := kindEntry(b, "http_echo")
	asked, err := httptool.Parse(httptool.FileName, []byte("url: "+web.URL+"/echo\nprivate: true\n"), &echo.Spec)
	if err != nil {
		b.Fatal(err)
	}
	foreign.Entries, foreign.Handlers["http_echo"] = append(foreign.Entries, echo), asked.Handler()
	dir := b.TempDir()
	err = errors.Join(os.Mkdir(filepath.Join(dir, "js-echo"), 0o700),
		os.WriteFile(filepath.Join(dir, "js-echo", jstool.FileName), []byte("export async function execute({ args }) { return { ok: true, data: args }; }\n"), 0o600))
	if err != nil {
		b.Fatal(err)
	}
	hosts := jstool.New([]string{serveScripts}, slog.New(slog.DiscardHandler))
	b.Cleanup(hosts.Close)
	script := kindEntry(b, "js_echo")
	run, wrong := jstool.Parse(dir, "js-echo", &script.Spec)
	if run == nil {
		b.Fatal(wrong)
	}
	foreign.Entries, foreign.Handlers["js_echo"] = append(foreign.Entries, script), hosts.Handler(run)
	var pinned []*mcptool.Tool
	for name, of := range servers {
		t := mcpTool(b, name, of)
		pinned, foreign.Entries = append(pinned, t), append(foreign.Entries, t.Entry)
		foreign.Handlers[t.Entry.ToolID] = client.Handler(t)
	}
	client.Use(servers, pinned)
	tools, err := registry.Load(registrytest.File(b, kindEntry(b, "go_echo")), registry.Options{Foreign: foreign, Handlers: map[string]registry.Handler{
		"go_echo": registry.Bind(func(_ context.Context, call registry.Call[kindsArgs, struct{}]) (registry.Result, error) {
			return registry.Result{Data: call.Args}, nil
		}),
	}, SessionCapabilities: nil})
	if err != nil {
		b.Fatal(err)
	}
	for _, id := range []string{"go_echo", "http_echo", "web__echo", "program__echo", "js_echo"} {
		b.Run(id, func(b *testing.B) {
			p, refused := tools.Snapshot().Prepare(id, spec.ModeVoice, json.RawMessage(`{"text":"hello"}`))
			if refused != nil {
				b.Fatal(refused.Error)
			}
			var took []time.Duration
			for b.Loop() {
				began := time.Now()
				if e := p.Run(b.Context(), registry.Session{ID: "voice-1"}); !e.OK {
					b.Fatal(e.Error)
				}
				took = append(took, time.Since(began))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
		})
	}
}
