package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"voicegw/internal/httptool"
	"voicegw/internal/jstool"
	"voicegw/internal/mcp"
	"voicegw/internal/testutil"
	"voicegw/protocol"
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

func kindsServer() *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "kinds", Version: "1"}, nil)
	sdk.AddTool(s, &sdk.Tool{Name: "echo", Description: "Says it again."}, func(_ context.Context, _ *sdk.CallToolRequest, in kindsArgs) (*sdk.CallToolResult, any, error) {
		return nil, in, nil
	})
	return s
}

// kindEntry declares a tool that repeats a text.
func kindEntry(b testing.TB, id string) registry.Entry {
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
func mcpTool(b *testing.B, name string, of mcp.Remote) *mcp.Tool {
	b.Helper()
	says, err := mcp.Ask(b.Context(), name, of, slog.New(slog.DiscardHandler))
	if err != nil {
		b.Fatal(err)
	}
	pin, err := says["echo"].Pin()
	if err != nil {
		b.Fatal(err)
	}
	p := &mcp.Pinned{Pin: pin, Said: says["echo"]}
	if err := json.Unmarshal([]byte(`{"category": "action", "sideEffects": "writes", "idempotent": false, "requiresConfirmation": false,
		"allowedModes": ["voice"], "latencyBudgetMs": 3000, "timeoutMs": 5000}`), &p.Tool); err != nil {
		b.Fatal(err)
	}
	t, problems := mcp.NewTool(name, "echo", p)
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
	served := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return kindsServer() },
		&sdk.StreamableHTTPOptions{Stateless: true, JSONResponse: true}))
	b.Cleanup(served.Close)
	client := mcp.NewClient(slog.New(slog.DiscardHandler))
	b.Cleanup(client.Close)
	servers := map[string]mcp.Remote{"web": {URL: served.URL}, "program": {Command: []string{os.Args[0], serveTools}}}

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
	var pinned []*mcp.Tool
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

// hostileScripts are JavaScript tools that use all available time, memory and log.
var hostileScripts = map[string]string{
	"hostile_loop": `for (;;) {}`, "hostile_pattern": `for (;;) /^(?=a)(a+)+$/.test('a'.repeat(32) + '!')`,
	"hostile_memory": `const l = []; for (;;) l.push(new Array(1000).fill(l.length))`, "hostile_output": `for (;;) console.log('x'.repeat(5000))`,
}

// scripts returns tools in JavaScript with these bodies, and the log of their hosts.
func scripts(b testing.TB, bodies map[string]string) (*registry.Snapshot, *lockedBuffer) {
	b.Helper()
	log := &lockedBuffer{}
	hosts := jstool.New([]string{serveScripts}, slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	b.Cleanup(hosts.Close)
	foreign, dir := registry.Foreign{Handlers: map[string]registry.Handler{}}, b.TempDir()
	for id, body := range bodies {
		entry, name := kindEntry(b, id), strings.ReplaceAll(id, "_", "-")
		err := errors.Join(os.Mkdir(filepath.Join(dir, name), 0o700),
			os.WriteFile(filepath.Join(dir, name, jstool.FileName), []byte("export async function execute(context) { "+body+" }\n"), 0o600))
		tool, problems := jstool.Parse(dir, name, &entry.Spec)
		if err != nil || tool == nil {
			b.Fatal(err, problems)
		}
		foreign.Entries, foreign.Handlers[id] = append(foreign.Entries, entry), hosts.Handler(tool)
	}
	tools, err := registry.Load(registrytest.File(b), registry.Options{Foreign: foreign})
	if err != nil {
		b.Fatal(err)
	}
	return tools.Snapshot(), log
}

func callScript(ctx context.Context, b testing.TB, tools *registry.Snapshot, id string) registry.Envelope {
	p, refused := tools.Prepare(id, spec.ModeVoice, json.RawMessage(`{"text":"hello"}`))
	if refused != nil {
		b.Error(refused.Error)
		return registry.Envelope{}
	}
	return p.Run(ctx, registry.Session{ID: "voice-1"})
}

// attackByTools runs the hostile tools repeatedly until ctx ends. wait waits for their end and returns the number of
// calls.
func attackByTools(ctx context.Context, b testing.TB) (wait func() int64) {
	tools, _ := scripts(b, hostileScripts)
	var all sync.WaitGroup
	var calls atomic.Int64
	for id := range hostileScripts {
		all.Go(func() {
			for ctx.Err() == nil {
				callScript(ctx, b, tools, id)
				calls.Add(1)
			}
		})
	}
	return func() int64 { all.Wait(); return calls.Load() }
}

// TestHostileToolsStopNoAudio: while tools loop, fill the memory and flood the log, audio passes through the gateway in
// both directions. Its delay depends on the other tests; BenchmarkFloods measures it.
func TestHostileToolsStopNoAudio(t *testing.T) {
	t.Parallel()
	st := newStack(t, "gemini", setting{speed: 1, playback: 1, chunkMS: int(frameTime.Milliseconds()), scenario: `
rules:
  - when: {utterance: any}
    do:
      - say: >-
          I am not waiting for anything, and so I go on talking for a while, and a while longer, until you have heard
          enough of it, and then I go on talking for a while, and a while longer.
`})
	c := st.start(t, 16000)
	ctx, stop := context.WithCancel(t.Context())
	wait := attackByTools(ctx, t)
	defer wait()
	defer stop()
	c.speak(16000, phrase(16000))
	waitFor[*protocol.AudioStart](c)
	sent, heard := c.talkFor(3 * time.Second)
	st.tap.mu.Lock()
	up := since(st.tap.up, sent[0])
	st.tap.mu.Unlock()
	if len(up) < 10 || len(heard) < 10 {
		t.Errorf("of %d frames %d reached the model and %d the client", len(sent), len(up), len(heard))
	}
}

// BenchmarkToolMemory measures the memory of a connection to an MCP server, of an idle tool host, and of a call in a
// waiting host.
func BenchmarkToolMemory(b *testing.B) {
	const many = 50
	b.Run("MCP connection", func(b *testing.B) {
		served := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return kindsServer() }, nil))
		b.Cleanup(served.Close)
		for b.Loop() {
			servers, pinned := map[string]mcp.Remote{}, []*mcp.Tool{}
			for i := range many {
				name := fmt.Sprint("s", i)
				servers[name] = mcp.Remote{URL: served.URL}
				pinned = append(pinned, mcpTool(b, name, servers[name]))
			}
			client := mcp.NewClient(slog.New(slog.DiscardHandler))
			before := heldNow()
			client.Use(servers, pinned)
			testutil.WaitUntil(b, "the servers are connected", func() bool {
				return !slices.ContainsFunc(client.Status(), func(s mcp.Status) bool { return !s.Up })
			})
			b.ReportMetric(float64(heldNow()-before)/many/1024, "KiB/connection") // with the server's part
			client.Close()
		}
	})
	b.Run("JavaScript host", func(b *testing.B) {
		for b.Loop() {
			tools, log := scripts(b, map[string]string{"js_wait": "await new Promise((done) => setTimeout(done, 2000)); return { ok: true }", "js_echo": "return { ok: true }"})
			if e := callScript(b.Context(), b, tools, "js_echo"); !e.OK {
				b.Fatal(e.Error)
			}
			rest := hostMemory(b, log)
			var all sync.WaitGroup
			for range many {
				all.Go(func() { callScript(b.Context(), b, tools, "js_wait") })
			}
			most := rest
			for end := time.Now().Add(1500 * time.Millisecond); time.Now().Before(end); <-time.After(50 * time.Millisecond) {
				most = max(most, hostMemory(b, log))
			}
			all.Wait()
			b.ReportMetric(float64(rest)/(1<<20), "MiB/host")
			b.ReportMetric(float64(most-4*rest)/many/1024, "KiB/call") // in four hosts
		}
	})
}

// heldNow returns the bytes of the heap and the stacks after a collection.
func heldNow() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

// hostMemory returns the memory of the tool hosts in a log without the program itself, in bytes.
func hostMemory(b testing.TB, log *lockedBuffer) (sum int64) {
	for line := range strings.Lines(log.String()) {
		var started struct {
			Msg string
			PID int
		}
		if json.Unmarshal([]byte(line), &started) == nil && started.Msg == "tool host started" {
			status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", started.PID)) // it may have ended
			if _, after, found := strings.Cut(string(status), "RssAnon:"); found {
				var kib int64
				_, _ = fmt.Sscan(after, &kib)
				sum += kib << 10
			}
		}
	}
	return sum
}
