package jstool

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"voicegw/internal/testutil"
	"voicegw/registry"
)

// TestFetch: handlers reach only the listed servers.
func TestFetch(t *testing.T) {
	p, _ := newHosts(t)
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { t.Error("the other server was reached") }))
	defer other.Close()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		switch r.URL.Path {
		case "/redirect":
			http.Redirect(w, r, other.URL, http.StatusFound)
		case "/huge":
			_, _ = w.Write(make([]byte, 2<<20))
		case "/hang":
			<-r.Context().Done()
		case "/bytes":
			_, _ = w.Write([]byte{0, 255, 1})
		default:
			w.Header().Set("X-Seen", r.Header.Get("X-Mine"))
			w.WriteHeader(http.StatusTeapot)
			fmt.Fprintf(w, `{"q":%q,"m":%q,"b":%q,"t":%q,"h":%q}`, r.URL.RawQuery, r.Method, body, r.Header.Get("Content-Type"), r.Host)
		}
	}))
	defer srv.Close()
	host := strings.TrimPrefix(srv.URL, "http://")
	for name, tc := range map[string]struct{ body, want string }{
		"a request":     {`const r = await fetch(B + '/a?x=ü', { method: 'post', headers: { 'X-Mine': 'v', Host: 'evil' }, body: JSON.stringify({ a: 1 }) }); const j = await r.json(); return { ok: true, data: [r.status, r.ok, r.headers.get('x-seen'), j.m, j.b, j.q, j.t, j.h] }`, `[418,false,"v","POST","{\"a\":1}","x=ü","text/plain;charset=UTF-8","` + host + `"]`},
		"a form":        {`const r = await fetch(new URL(B + '/'), { method: 'PUT', body: new URLSearchParams({ a: 'b c' }) }); const j = JSON.parse(await r.text()); return { ok: true, data: [j.b, j.t] }`, `["a=b+c","application/x-www-form-urlencoded;charset=UTF-8"]`},
		"bytes":         {`return { ok: true, data: [...new Uint8Array(await (await fetch(B + '/bytes')).arrayBuffer())] }`, `[0,255,1]`},
		"many":          {`const all = await Promise.all([1, 2, 3, 4].map(async (n) => (await (await fetch(B + '/?n=' + n)).json()).q)); return { ok: true, data: all }`, `["n=1","n=2","n=3","n=4"]`},
		"a redirect":    {`await fetch(B + '/redirect')`, "fetch failed: the server answers 302 with another address; redirects are not followed"},
		"read by hand":  {`const r = await fetch(B + '/redirect', { redirect: 'manual' }); return { ok: true, data: [r.status, r.headers.get('location')] }`, `[302,"` + other.URL + `"]`},
		"too much":      {`await fetch(B + '/huge')`, "fetch failed: fetch: the answer has more than 1048576 bytes"},
		"another port":  {`await fetch('` + other.URL + `')`, "fetch failed: network of schema.json does not list " + other.URL},
		"another host":  {`await fetch('https://evil.example/')`, "fetch failed: network of schema.json does not list https://evil.example"},
		"a file":        {`await fetch('file:///etc/passwd')`, "fetch failed: the URL is not absolute"},
		"a user":        {`await fetch('http://` + host + `@evil.example/')`, "fetch failed: the URL is not absolute, or has a user"},
		"by name":       {`await fetch('https://private.test/')`, "fetch failed: "},
		"aborted":       {`await fetch(B + '/hang', { signal: AbortSignal.timeout(20) })`, "The operation was aborted due to timeout"},
		"a hung server": {`await fetch(B + '/hang')`, "context deadline exceeded"},
		"a bad method":  {`await fetch(B, { method: 'a b' })`, "fetch failed: net/http: invalid method"},
		"read twice":    {`const r = await fetch(B); await r.text(); await r.text()`, "Body is unusable"},
	} {
		t.Run(name, func(t *testing.T) {
			s := declared("{settings.base_url}", "private.test")
			tool := newTool(t, p, s, "export async function execute({ settings }) { const B = settings.base_url;\n"+tc.body+"\n}")
			c := callOf("{}")
			c.Needs.Settings.Values = map[string]any{"base_url": srv.URL}
			limit := 10 * time.Second
			if tc.want == "context deadline exceeded" {
				limit = 200 * time.Millisecond
			}
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			result, err := tool.execute(ctx, c)
			data, _ := json.Marshal(result.Data)
			if got := fmt.Sprint(err) + string(data); !strings.Contains(got, tc.want) {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
}

// TestNetwork checks the URLs that an entry of network allows.
func TestNetwork(t *testing.T) {
	c := callOf("{}")
	c.Needs.Settings.Values = map[string]any{"base_url": "http://10.0.0.5:8080/v1", "empty": ""}
	for text, want := range map[string]string{
		"api.example.com https://api.example.com/x":             "public",
		"api.example.com https://API.example.com:443/":          "public",
		"api.example.com http://api.example.com/":               "",
		"api.example.com https://api.example.com:8443/":         "",
		"api.example.com https://api.example.com.evil.example/": "",
		"api.example.com https://evil.example/?api.example.com": "",
		"api.example.com:8443 https://api.example.com:8443/":    "public",
		"http://localhost:3000 http://localhost:3000/":          "private",
		"http://127.0.0.1:3000 http://127.0.0.1:3000/":          "private",
		"https://localhost https://localhost.evil.example/":     "",
		"{settings.base_url} http://10.0.0.5:8080/other":        "private",
		"{settings.base_url} http://10.0.0.5:8081/":             "",
		"{settings.empty} https://evil.example/":                "",
		"{settings.none} https://evil.example/":                 "",
	} {
		entry, address, _ := strings.Cut(text, " ")
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if private, ok := (&Tool{spec: declared(entry)}).allowed(u, c); ok && private {
			got = "private"
		} else if ok {
			got = "public"
		}
		if got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// TestConcurrentCalls: concurrent calls share a few hosts, but no state.
func TestConcurrentCalls(t *testing.T) {
	p, _ := newHosts(t)
	tool := newTool(t, p, declared(), `let calls = 0;
export async function execute({ args }) { calls++; await new Promise(r => setTimeout(r, args.n % 7)); globalThis.x = (globalThis.x ?? 0) + 1; return { ok: true, data: [args.n, calls, globalThis.x] } }`)
	var all sync.WaitGroup
	for n := range 200 {
		all.Go(func() {
			if result, err := call(t, tool, fmt.Sprintf(`{"n":%d}`, n), 30*time.Second); err != nil || fmt.Sprint(result.Data) != fmt.Sprintf("[%d 1 1]", n) {
				t.Errorf("%d: %v, %v", n, result.Data, err)
			}
		})
	}
	all.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.hosts); n == 0 || n > maxHosts {
		t.Errorf("there are %d hosts", n)
	}
}

// startCalls starts n calls, waits until all run, and returns their errors.
func startCalls(t *testing.T, p *Hosts, tool *hostedTool, n int) <-chan error {
	errs := make(chan error, n)
	for range n {
		go func() {
			_, err := call(t, tool, `{}`, 10*time.Second)
			errs <- err
		}()
	}
	testutil.WaitUntil(t, "the calls run", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		running := 0
		for _, h := range p.hosts {
			running += len(h.calls)
		}
		return running == n
	})
	return errs
}

// TestKilledHost: if a host dies, only its calls fail. If the gateway kills it because of another call, they fail as
// TRANSIENT, with possible side effects.
func TestKilledHost(t *testing.T) {
	for name, kill := range map[string]func(h *host){
		"died": func(h *host) { h.child.Kill() }, "TRANSIENT true false": func(h *host) { h.kill(errors.New("another call")) },
	} {
		p, _ := newHosts(t)
		tool := newTool(t, p, declared(), `export const execute = () => new Promise(r => setTimeout(r, 60000))`)
		errs := startCalls(t, p, tool, 2*maxHosts)
		p.mu.Lock()
		first := p.hosts[0]
		kill(first)
		p.mu.Unlock()
		for range 2 {
			err := <-errs
			got := fmt.Sprint(err)
			if failed, ok := errors.AsType[*registry.ToolError](err); ok {
				got = strings.TrimSpace(fmt.Sprintln(failed.Type, failed.PartialSideEffects, failed.Retryable))
			}
			if !strings.Contains(got, name) {
				t.Errorf("%s: %s", name, got)
			}
		}
		select {
		case err := <-errs:
			t.Errorf("a call of another host failed: %v", err)
		default:
		}
		p.Close()
	}
}

// TestIdleHost: a host without calls ends, and this does not count as a death.
func TestIdleHost(t *testing.T) {
	p, log := newHosts(t)
	p.idle = 10 * time.Millisecond
	tool := newTool(t, p, declared(), `export async function execute() { return { ok: true } }`)
	for range freeDeaths + 2 {
		if _, err := call(t, tool, `{}`, 10*time.Second); err != nil {
			t.Fatal(err)
		}
		testutil.WaitUntil(t, "the host ends", func() bool {
			p.mu.Lock()
			defer p.mu.Unlock()
			return len(p.hosts) == 0
		})
	}
	if strings.Contains(log.String(), "a tool host has ended") {
		t.Errorf("the log has a warning: %s", log)
	}
}

// TestDyingHosts: after several deaths of hosts, calls fail at once for some time.
func TestDyingHosts(t *testing.T) {
	p, _ := newHosts(t)
	p.command = []string{"-test.run=^$"} // the test program ends at once
	tool := &hostedTool{&Tool{spec: declared(), bundle: bundle{code: "1", hash: "h"}}, p}
	for range freeDeaths + 1 {
		if _, err := call(t, tool, `{}`, 10*time.Second); err == nil {
			t.Fatal("a call without a host works")
		}
	}
	_, err := call(t, tool, `{}`, 10*time.Second)
	if failed, ok := errors.AsType[*registry.ToolError](err); !ok || failed.Type != registry.ErrorTransient || failed.PartialSideEffects || !errors.Is(err, errPause) {
		t.Errorf("the next call: %v", err)
	}
}

// TestCancelledCall: a cancelled call stops, and its host continues.
func TestCancelledCall(t *testing.T) {
	p, _ := newHosts(t)
	tool := newTool(t, p, declared(), `export const execute = ({ args }) => { while (args.loop) {} return { ok: true, data: 1 } }`)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	ended := make(chan error)
	go func() {
		_, err := tool.execute(ctx, callOf(`{"loop":true}`))
		ended <- err
	}()
	testutil.WaitUntil(t, "the call runs", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return len(p.hosts) == 1 && len(p.hosts[0].calls) == 1
	})
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, err := call(t, tool, `{}`, 10*time.Second); err != nil {
		t.Error(err)
	}
	if p.mu.Lock(); len(p.hosts) != 1 || p.calls != 2 {
		t.Errorf("there are %d hosts after %d calls", len(p.hosts), p.calls)
	}
	p.mu.Unlock()
}

// TestHostIsConfined: a host gets none of the gateway's environment, cannot write files, and has a low priority.
func TestHostIsConfined(t *testing.T) {
	t.Setenv("SECRET_OF_THE_GATEWAY", "x")
	p, _ := newHosts(t)
	tool := newTool(t, p, declared(), `export const execute = () => ({ ok: true })`)
	if _, err := call(t, tool, `{}`, 10*time.Second); err != nil {
		t.Fatal(err)
	}
	p.mu.Lock()
	pid := p.hosts[0].child.PID()
	p.mu.Unlock()
	for file, want := range map[string]string{"environ": "GOTRACEBACK=none\x00TZ=UTC\x00", "limits": "Max file size             0 ", "stat": fmt.Sprintf(" %d %d ", 20+niceness, niceness)} {
		text, err := os.ReadFile(filepath.Join("/proc", fmt.Sprint(pid), file))
		if err != nil {
			t.Skip(err)
		}
		if !strings.Contains(string(text), want) || strings.Contains(string(text), "SECRET_OF") {
			t.Errorf("%s: %q", file, text)
		}
	}
}

// FuzzFromHost: no output of a host crashes the gateway.
func FuzzFromHost(f *testing.F) {
	for _, m := range []fromHost{{Call: 1, Done: &doneMessage{Result: json.RawMessage(`{"ok":true}`)}}, {Call: 1, Log: &logMessage{"info", "x"}}, {Call: 1, Send: "{}"},
		{Call: 1, Done: &doneMessage{Thrown: &thrown{Tool: true, Type: "X", Details: json.RawMessage("1")}}}, {Call: 2, Fetch: &fetchMessage{URL: "https://a.example"}}} {
		line, _ := encode(m)
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, out []byte) {
		p, _ := newHosts(t)
		h := &host{pool: p, out: make(chan []byte, 1), calls: map[uint64]*pending{}, idle: time.NewTimer(idleTime)}
		tool := &Tool{spec: declared()}
		h.calls[1] = &pending{id: 1, tool: tool, call: callOf("{}"), done: make(chan *doneMessage, 1), ctx: t.Context()}
		done := h.calls[1].done
		_ = receive(bytes.NewReader(out), h.take)
		select {
		case m := <-done:
			if m.Thrown != nil {
				_ = m.Thrown.err()
			} else {
				_, _ = p.result(tool, m.Result, callOf("{}"))
			}
		default:
		}
	})
}

// FuzzToHost: no input crashes a host, and each call ends.
func FuzzToHost(f *testing.F) {
	line, _ := encode(toHost{Call: &callMessage{ID: 1, Program: "h", Code: "var " + globalName + " = { execute: () => ({ ok: true }) }", Context: json.RawMessage(`{"session":{},"capabilities":{}}`), Millis: 50}})
	f.Add(line)
	f.Add([]byte(`{"fetched":{"call":1,"request":1}}` + "\n" + `{"cancel":1}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		h := newWorker(&syncBuffer{})
		_ = h.serve(bytes.NewReader(in))
		testutil.WaitUntil(t, "the calls end", func() bool {
			h.mu.Lock()
			defer h.mu.Unlock()
			for _, c := range h.calls {
				c.cancel()
			}
			return len(h.calls) == 0
		})
	})
}

// FuzzLoader: a handler is bundled or refused.
func FuzzLoader(f *testing.F) {
	for _, body := range sameInNode {
		f.Add("export async function execute(context) {" + body + "}")
	}
	f.Add("import x from './y.js'; export { x as execute }")
	f.Fuzz(func(t *testing.T, code string) {
		root := write(t, map[string]string{"probe/handler.js": code})
		tool, problems := Parse(root, "probe", declared())
		refused := false
		for _, p := range problems {
			refused = refused || !p.Warning
			if p.Text == "" || !strings.HasPrefix(p.File, root) {
				t.Errorf("a problem without text or place: %+v", p)
			}
		}
		if refused != (tool == nil) {
			t.Errorf("%v: %v", tool, problems)
		}
	})
}

// BenchmarkCall measures a call of a small handler. A Go handler takes microseconds.
func BenchmarkCall(b *testing.B) {
	p, _ := newHosts(b)
	tool := newTool(b, p, declared(), `import { ErrorType } from '../_core/error-types.js'; export async function execute({ args }) { return { ok: true, data: { n: args.n, ErrorType } } }`)
	if _, err := call(b, tool, `{}`, 10*time.Second); err != nil {
		b.Fatal(err)
	}
	var all []time.Duration
	for b.Loop() {
		start := time.Now()
		if _, err := call(b, tool, `{"n":1}`, 10*time.Second); err != nil {
			b.Fatal(err)
		}
		all = append(all, time.Since(start))
	}
	slices.Sort(all)
	b.ReportMetric(float64(all[len(all)/2].Microseconds()), "µs-p50")
	b.ReportMetric(float64(all[len(all)*99/100].Microseconds()), "µs-p99")
}

// BenchmarkParse measures bundling and checking a handler.
func BenchmarkParse(b *testing.B) {
	root := write(b, map[string]string{"probe/handler.js": "import { ToolError } from '../_core/error-types.js'; export const execute = () => { throw new ToolError('TRANSIENT', 'x') }"})
	n := 0
	for b.Loop() {
		n++
		if tool, problems := Parse(root, "probe", declared()); tool == nil {
			b.Fatal(problems)
		}
	}
}
