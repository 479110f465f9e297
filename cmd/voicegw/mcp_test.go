package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"voicegw/internal/audit"
	"voicegw/internal/auth"
	"voicegw/internal/server"
	"voicegw/internal/testutil"
	"voicegw/registry"
	"voicegw/registry/registrytest"
	"voicegw/registry/spec"
)

// mcpProgram is a program that offers tools to MCP clients.
type mcpProgram struct {
	t     *testing.T
	file  string // the configuration
	dir   string
	paid  atomic.Int64 // the number of runs of the tools that write
	began chan struct{}
}

// waitNeeds are the needs of the tool wait.
type waitNeeds struct{ Progress registry.Progress }

// newMCPProgram returns a program whose configuration has more settings.
func newMCPProgram(t *testing.T, more string) *mcpProgram {
	s := &mcpProgram{t: t, dir: t.TempDir(), began: make(chan struct{}, 10)}
	s.file = filepath.Join(s.dir, "voicegw.yaml")
	s.configure(more)
	return s
}

func (s *mcpProgram) configure(more string) {
	s.t.Helper()
	if err := os.WriteFile(s.file, []byte("store: {sync: interval}\nlimits: {new_turns_per_second: 10000}\n"+more), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

const offered = "mcp: {serve: true, expose: [gift, hidden, look, pay, wait]}\n"

// process returns the program's process, without arguments.
func (s *mcpProgram) process() Process {
	look := registry.Bind(func(_ context.Context, call registry.Call[worldArgs, struct{}]) (registry.Result, error) {
		return registry.Result{Data: map[string]any{"ref": call.Args.Ref, "user": call.Session.UserID}}, nil
	})
	pay := registry.Bind(func(_ context.Context, call registry.Call[worldArgs, struct{}]) (registry.Result, error) {
		return registry.Result{Data: map[string]any{"ref": call.Args.Ref, "receipt": s.paid.Add(1)}}, nil
	})
	wait := registry.Bind(func(ctx context.Context, call registry.Call[worldArgs, waitNeeds]) (registry.Result, error) {
		call.Needs.Progress.Tell("Waiting", 0.5)
		s.began <- struct{}{}
		<-ctx.Done()
		return registry.Result{}, ctx.Err()
	})
	reads := func(more func(*spec.Spec)) func(*spec.Spec) {
		return func(t *spec.Spec) {
			t.SideEffects, t.Idempotent, t.Category = spec.SideEffectsReadOnly, true, spec.CategoryRetrieval
			if more != nil {
				more(t)
			}
		}
	}
	shop := &shop{t: s.t}
	data := registrytest.File(s.t,
		shop.entry("gift", func(*spec.Spec) {}),
		shop.entry("hidden", reads(func(t *spec.Spec) { t.Requires = []string{"shop.hidden"} })),
		shop.entry("look", reads(nil)),
		shop.entry("pay", func(t *spec.Spec) { t.RequiresConfirmation, t.Preview = true, "Pay {ref}" }),
		shop.entry("spoken", reads(func(t *spec.Spec) { t.AllowedModes = []spec.Mode{spec.ModeVoice} })),
		shop.entry("wait", reads(func(t *spec.Spec) { t.Cancellable = true })),
	)
	return Process{
		Host: server.Host{Registry: func() ([]byte, error) { return data, nil }, Environ: []string{"HOME=" + s.dir}, Handlers: map[string]registry.Handler{"gift": pay, "hidden": look, "look": look, "pay": pay, "spoken": look, "wait": wait}},
	}
}

func (s *mcpProgram) serve() *running { return startAs(s.t, s.process(), "--config", s.file) }

// withHeaders adds headers to requests.
type withHeaders struct{ header http.Header }

func (h withHeaders) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	for name, values := range h.header {
		r.Header[name] = values
	}
	return http.DefaultTransport.RoundTrip(r)
}

// mcpVersions lists the versions of the protocol, newest first.
var mcpVersions = mcp.SupportedProtocolVersions()

// dials connects the SDK's client.
func dials(t *testing.T, over mcp.Transport, version string, o *mcp.ClientOptions) *mcp.ClientSession {
	t.Helper()
	c, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, o).Connect(t.Context(), over, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() }) // the test may have closed it
	return c
}

func toMCP(r *running, header ...string) mcp.Transport {
	h := http.Header{}
	for i := 0; i < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	return &mcp.StreamableClientTransport{Endpoint: "http://" + r.addr + "/mcp", HTTPClient: &http.Client{Transport: withHeaders{h}}}
}

// envelopeOf returns the envelope of a result, which has two equal copies.
func envelopeOf(t *testing.T, res *mcp.CallToolResult, err error) (env registry.Envelope) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	structured, err := json.Marshal(res.StructuredContent)
	if err == nil {
		err = json.Unmarshal(structured, &env)
	}
	var one, two any
	text := res.Content[0].(*mcp.TextContent).Text
	if err = errors.Join(err, json.Unmarshal([]byte(text), &one), json.Unmarshal(structured, &two)); err != nil || res.IsError == env.OK || !reflect.DeepEqual(one, two) {
		t.Errorf("the copies differ: %v: %s and %s, isError %t", err, structured, text, res.IsError)
	}
	if res.Meta["voicegw/registryVersion"] != env.Meta.RegistryVersion {
		t.Errorf("_meta is %v, the envelope has %s", res.Meta, env.Meta.RegistryVersion)
	}
	return env
}

func calling(t *testing.T, c *mcp.ClientSession, tool string, args any, meta ...string) registry.Envelope {
	t.Helper()
	p := &mcp.CallToolParams{Name: tool, Arguments: args}
	for i := 0; i < len(meta); i += 2 {
		p.SetMeta(map[string]any{meta[i]: meta[i+1]})
	}
	res, err := c.CallTool(t.Context(), p)
	return envelopeOf(t, res, err)
}

var r1 = map[string]any{"ref": "r1"}

// auditedAt returns the audit's records once there are n.
func auditedAt(t *testing.T, dataDir string, n int) (all []audit.Record) {
	t.Helper()
	testutil.WaitUntil(t, fmt.Sprintf("%d records", n), func() bool {
		all = nil
		_, err := audit.ReadFiles(t.Context(), filepath.Join(dataDir, "audit", "audit.jsonl"), func(r audit.Record, _ []byte) error {
			all = append(all, r)
			return nil
		})
		return err == nil && len(all) >= n
	})
	return all
}

// offers checks the tools, calls and resources of a client, which are the same for each transport and version.
func (s *mcpProgram) offers(t *testing.T, c *mcp.ClientSession, version string) {
	t.Helper()
	if got := c.InitializeResult(); got == nil || got.ProtocolVersion != version || got.Capabilities.Tools == nil || got.Capabilities.Prompts != nil {
		t.Errorf("%s: negotiated %+v", version, got)
	}
	list, err := c.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
		a := tool.Annotations
		writes := tool.Name == "gift" || tool.Name == "pay"
		if a.ReadOnlyHint == writes || a.IdempotentHint == writes || *a.DestructiveHint != (tool.Name == "pay") || !*a.OpenWorldHint || tool.Title == "" || tool.Description != "A tool of a shop." || tool.OutputSchema == nil {
			t.Errorf("%s: %+v %+v", version, tool, a)
		}
	}
	if !slices.Equal(names, []string{"gift", "look", "pay", "wait"}) || list.Meta["voicegw/registryVersion"] == nil || list.CacheScope != "private" {
		t.Errorf("%s: the tools are %v, _meta %v", version, names, list.Meta)
	}
	if env := calling(t, c, "look", r1); !env.OK || !strings.Contains(string(env.Data), `"ref":"r1"`) {
		t.Errorf("%s: look answers %s", version, env.Encode())
	}
	if env := calling(t, c, "look", map[string]any{}); env.OK || env.Error.Type != registry.ErrorValidation {
		t.Errorf("%s: wrong arguments: %s", version, env.Encode())
	}
	for _, name := range []string{"hidden", "spoken", "describe_tool", "kb_search"} {
		_, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: r1})
		if failure, ok := errors.AsType[*jsonrpc.Error](err); !ok || failure.Code != jsonrpc.CodeInvalidParams || failure.Message != "unknown tool "+name {
			t.Errorf("%s: %s: %v", version, name, err)
		}
	}
	resources, err := c.ListResources(t.Context(), nil)
	if err != nil || len(resources.Resources) != 4 || resources.Resources[1].URI != "voicegw://tools/look/guide.md" {
		t.Fatalf("%s: resources %+v, %v", version, resources, err)
	}
	guide, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "voicegw://tools/look/guide.md"})
	if err != nil || guide.Contents[0].Text != "# look\n" || guide.Contents[0].MIMEType != "text/markdown" {
		t.Errorf("%s: the guide is %+v, %v", version, guide, err)
	}
	for _, uri := range []string{"voicegw://tools/hidden/guide.md", "voicegw://tools/spoken/guide.md", "voicegw://tools/look", "file:///etc/passwd"} {
		if got, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri}); err == nil {
			t.Errorf("%s: %s is %+v", version, uri, got)
		}
	}
}

// TestMCPOverHTTP: a client of each version of the protocol gets the same tools and results.
func TestMCPOverHTTP(t *testing.T) {
	t.Parallel()
	s := newMCPProgram(t, offered)
	r := s.serve()
	for _, version := range mcpVersions {
		s.offers(t, dials(t, toMCP(r), version, nil), version)
	}
	all := auditedAt(t, r.dataDir, 2*len(mcpVersions))
	sessions := map[string]bool{}
	for _, r := range all {
		sessions[r.SessionID] = true
		if r.Channel != "mcp" || !strings.HasPrefix(r.SessionID, "mcp-") || r.Mode != spec.ModeText || r.UserID == "" || !r.Delivered || r.ToolID != "look" {
			t.Errorf("audited as %+v", r)
		}
	}
	if len(sessions) != len(all) {
		t.Errorf("%d calls had %d sessions", len(all), len(sessions))
	}
}

// TestMCPOverStreams: so does a client over standard input and output, which can also cancel calls and receive progress.
func TestMCPOverStreams(t *testing.T) {
	t.Parallel()
	for _, version := range mcpVersions {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			s := newMCPProgram(t, offered)
			over, end := s.streams(t, "--store")
			progress := make(chan *mcp.ProgressNotificationParams, 10)
			c := dials(t, over, version, &mcp.ClientOptions{ProgressNotificationHandler: func(_ context.Context, req *mcp.ProgressNotificationClientRequest) {
				progress <- req.Params
			}})
			s.offers(t, c, version)
			ctx, cancel := context.WithCancel(t.Context())
			p := &mcp.CallToolParams{Name: "wait", Arguments: r1}
			p.SetProgressToken("p1")
			done := make(chan error, 1)
			go func() {
				_, err := c.CallTool(ctx, p)
				done <- err
			}()
			<-s.began
			if got := <-progress; got.ProgressToken != "p1" || got.Message != "Waiting" || got.Progress != 0.5 || got.Total != 1 {
				t.Errorf("progress %+v", got)
			}
			cancel()
			if err := <-done; !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			all := auditedAt(t, filepath.Join(s.dir, "data"), 3)
			if last := all[2]; last.ToolID != "wait" || last.OK || last.Delivered || last.NotDelivered != "client_gone" || last.UserID != "local" {
				t.Errorf("audited as %+v", last)
			}
			if code, text := end(); code != exitOK || text != "" {
				t.Errorf("exit code %d: %s", code, text)
			}
		})
	}
}

// TestMCPServeFollows: mcp serve loads changed tools and informs its client.
func TestMCPServeFollows(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(httpTools+"tools")); err != nil {
		t.Fatal(err)
	}
	s := newMCPProgram(t, fmt.Sprintf("tool_dirs: [%q]\nmcp: {expose: [look, order_cancel]}\ntools: {order_cancel: {base_url: \"https://shop.example\", signing_secret: %s}}\n", dir, exampleSecret))
	over, _ := s.streams(t)
	changed := make(chan struct{}, 100)
	c := dials(t, over, mcpVersions[1], &mcp.ClientOptions{ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { changed <- struct{}{} }})
	offers := func() (all []string) {
		list, err := c.ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, tool := range list.Tools {
			all = append(all, tool.Name+": "+tool.Title)
		}
		return all
	}
	before := offers()
	file := filepath.Join(dir, "order-cancel", "schema.json")
	text, err := os.ReadFile(file)
	if err == nil {
		err = os.WriteFile(file, bytes.Replace(text, []byte("Cancel an order"), []byte("Another name"), 1), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	now := before
	for slices.Equal(now, before) {
		<-changed
		now = offers()
	}
	if len(before) != 2 || len(now) != 2 || now[1] != "order_cancel: Another name" {
		t.Errorf("the tools are %v after %v", now, before)
	}
}

// streams runs mcp serve. end closes its input and returns its exit code and standard error.
func (s *mcpProgram) streams(t *testing.T, flags ...string) (over mcp.Transport, end func() (int, string)) {
	t.Helper()
	in, input := io.Pipe()
	output, out := io.Pipe()
	var problems console
	exit := make(chan int, 1)
	p := s.process()
	p.Args = append([]string{"mcp", "serve", "--config", s.file, "--set", "data_dir=" + filepath.Join(s.dir, "data")}, flags...)
	p.Stdin, p.Stdout, p.Stderr = in, out, &problems
	go func() {
		exit <- Run(context.WithoutCancel(t.Context()), p)
		_ = out.Close()
	}()
	ended := false
	end = func() (int, string) {
		if ended {
			return 0, ""
		}
		ended = true
		_ = input.Close()
		return <-exit, problems.String()
	}
	t.Cleanup(func() { end() })
	return &mcp.IOTransport{Reader: output, Writer: input}, end
}

// postMCP sends a raw message.
func (r *running) postMCP(body string, header ...string) (int, http.Header, string) {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), http.MethodPost, "http://"+r.addr+"/mcp", strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
	for i := 0; i < len(header); i += 2 {
		switch {
		case header[i] == "Host":
			req.Host = header[i+1]
		case header[i+1] == "":
			req.Header.Del(header[i])
		default:
			req.Header.Set(header[i], header[i+1])
		}
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, string(answer)
}

const lookCall = `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"look","arguments":{"ref":"r1"}}}`

// TestMCPRefuses: an invalid, too large or forbidden request gets a JSON-RPC error.
func TestMCPRefuses(t *testing.T) {
	t.Parallel()
	key, blind := auth.NewAPIKey(), auth.NewAPIKey()
	s := newMCPProgram(t, offered+fmt.Sprintf("hosts: [voice.example.com]\nauth: {keys: {a: {id: %q, sha256: %q, scopes: [chat]}, b: {id: %q, sha256: %q, scopes: [metrics]}}}\n",
		key.ID(), key.Hash(), blind.ID(), blind.Hash()))
	r := s.serve()
	own := "Bearer " + key.Reveal()
	newest := `{"jsonrpc":"2.0","id":7,"method":%q,"params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}%s}}`
	for name, tc := range map[string]struct {
		body   string
		header []string
		status int
		want   string
	}{
		"a call":             {lookCall, nil, 200, `"ref":"r1"`},
		"the host's name":    {lookCall, []string{"Host", "voice.example.com"}, 200, `"ref":"r1"`},
		"another host":       {lookCall, []string{"Host", "evil.example"}, 421, `"host"`},
		"no key":             {lookCall, []string{"Authorization", ""}, 401, `"key_missing"`},
		"a wrong key":        {lookCall, []string{"Authorization", "Bearer vgw_wrong"}, 401, `"wrong_key"`},
		"a key without chat": {lookCall, []string{"Authorization", "Bearer " + blind.Reveal()}, 403, `"scope_missing"`},
		"another origin":     {lookCall, []string{"Origin", "https://evil.example"}, 403, `"origin"`},
		"another user":       {lookCall, []string{"X-Voicegw-User", "bob"}, 403, `"user_not_allowed"`},
		"its own scopes":     {lookCall, []string{"X-Voicegw-Scopes", "shop.hidden"}, 403, `"scopes_not_allowed"`},
		"a form":             {lookCall, []string{"Content-Type", "text/plain"}, 415, `"invalid_message"`},
		"no JSON":            {`{"jsonrpc":`, nil, 400, `-32600`},
		"an empty body":      {``, nil, 400, `-32600`},
		"a field twice":      {`{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}`, nil, 400, `repeated`},
		"too deep":           {strings.Repeat("[", 100), nil, 400, `nested deeper`},
		"too large":          {`{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"` + strings.Repeat("x", 1<<20) + `"}}`, nil, 413, `1 MiB`},
		"no message":         {`{"x":1}`, nil, 400, `"code":-32600`},
		"unknown method":     {`{"jsonrpc":"2.0","id":7,"method":"tools/steal"}`, nil, 200, `-32601,"message":"method not found"},"id":7`},
		"unknown, newest":    {fmt.Sprintf(newest, "tools/steal", ""), []string{"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/steal"}, 404, `-32601`},
		"a false header":     {fmt.Sprintf(newest, "tools/call", `,"name":"pay"`), []string{"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "look"}, 400, `-32020`},
		"no prompt":          {`{"jsonrpc":"2.0","id":7,"method":"prompts/get","params":{"name":"x"}}`, nil, 200, `unknown prompt`},
		"an old version":     {lookCall, []string{"Mcp-Protocol-Version", "2023-01-01"}, 400, `Unsupported protocol version`},
		"an empty key":       {strings.Replace(lookCall, `"name"`, `"_meta":{"voicegw/idempotencyKey":""},"name"`, 1), nil, 200, `-32602`},
		"an invalid key":     {strings.Replace(lookCall, `"name"`, `"_meta":{"voicegw/idempotencyKey":7},"name"`, 1), nil, 200, `-32602`},
		"a forged state":     {strings.Replace(lookCall, `"name"`, `"requestState":"x","name"`, 1), nil, 200, `-32602`},
		"a notification":     {`{"jsonrpc":"2.0","method":"notifications/initialized"}`, nil, 202, ``},
		"a batch": {`[` + lookCall + `,{"jsonrpc":"2.0","id":8,"method":"ping"}]`, []string{"Mcp-Protocol-Version", "2025-03-26"}, 200,
			`"id":8`},
	} {
		status, header, body := r.postMCP(tc.body, append([]string{"Authorization", own}, tc.header...)...)
		if status != tc.status || !strings.Contains(body, tc.want) {
			t.Errorf("%s: %d %s", name, status, body)
		}
		if status != 202 && (header.Get("Content-Type") != "application/json" || !strings.Contains(body, `"jsonrpc":"2.0"`)) {
			t.Errorf("%s: not JSON-RPC: %v %s", name, header, body)
		}
	}
	for _, method := range []string{http.MethodGet, http.MethodDelete} {
		req, err := http.NewRequestWithContext(t.Context(), method, "http://"+r.addr+"/mcp", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", own)
		resp, err := http.DefaultClient.Do(req)
		if err != nil || resp.StatusCode != http.StatusMethodNotAllowed || resp.Header.Get("Allow") != "POST, OPTIONS" {
			t.Errorf("%s: %+v, %v", method, resp, err)
		}
		resp.Body.Close()
	}
}

// TestMCPIsOff: a gateway has no route for MCP clients unless it is configured.
func TestMCPIsOff(t *testing.T) {
	t.Parallel()
	r := newMCPProgram(t, "").serve()
	if status, _, body := r.postMCP(lookCall); status != http.StatusNotFound && status != http.StatusMethodNotAllowed {
		t.Errorf("%d %s", status, body)
	}
}

// TestMCPSettings: a tool that cannot be offered is an error; the default is the tools that only read.
func TestMCPSettings(t *testing.T) {
	t.Parallel()
	for expose, want := range map[string]string{"[lok]": "Did you mean look?", "[spoken]": "only for voice", "[describe_tool]": "belongs to conversations"} {
		s := newMCPProgram(t, "mcp: {expose: "+expose+"}\n")
		for _, args := range [][]string{{"serve", "--listen", "127.0.0.1:0", "--data-dir", s.dir}, {"serve", "--check-config", "--data-dir", s.dir}, {"mcp", "serve"}} {
			var errs console
			p := s.process()
			p.Args, p.Stdin, p.Stdout, p.Stderr = append(args, "--config", s.file), strings.NewReader(""), io.Discard, &errs
			if code := Run(t.Context(), p); code != exitUsage || !strings.Contains(errs.String(), want) || !strings.Contains(errs.String(), "mcp.expose") {
				t.Errorf("%s: %v: exit code %d: %s", expose, args, code, errs.String())
			}
		}
	}
	r := newMCPProgram(t, "mcp: {serve: true}\n").serve()
	list, err := dials(t, toMCP(r), "", nil).ListTools(t.Context(), nil)
	if err != nil || len(list.Tools) != 2 || list.Tools[0].Name != "look" || list.Tools[1].Name != "wait" {
		t.Errorf("%+v, %v", list, err)
	}
}

// TestMCPRateLimit: each key has its own limit of calls per minute.
func TestMCPRateLimit(t *testing.T) {
	t.Parallel()
	a, b := auth.NewAPIKey(), auth.NewAPIKey()
	s := newMCPProgram(t, strings.Replace(offered, "serve", "per_minute: 2, serve", 1)+fmt.Sprintf(
		"auth: {keys: {a: {id: %q, sha256: %q, scopes: [chat]}, b: {id: %q, sha256: %q, scopes: [chat]}}}\n", a.ID(), a.Hash(), b.ID(), b.Hash()))
	r := s.serve()
	first, second := dials(t, toMCP(r, "Authorization", "Bearer "+a.Reveal()), "", nil), dials(t, toMCP(r, "Authorization", "Bearer "+b.Reveal()), "", nil)
	for range 2 {
		if env := calling(t, first, "look", r1); !env.OK {
			t.Errorf("%s", env.Encode())
		}
	}
	if env := calling(t, first, "look", r1); env.OK || env.Error.Type != registry.ErrorRateLimit || !env.Error.Retryable || !strings.Contains(env.Error.Message, "2 calls in a minute") {
		t.Errorf("%s", env.Encode())
	}
	if env := calling(t, second, "look", r1); !env.OK {
		t.Errorf("%s", env.Encode())
	}
}

// TestMCPUsers: a trusted server names the user and grants scopes; the ledger keeps users and keys apart.
func TestMCPUsers(t *testing.T) {
	t.Parallel()
	server, plain := auth.NewAPIKey(), auth.NewAPIKey()
	s := newMCPProgram(t, offered+fmt.Sprintf("auth: {keys: {a: {id: %q, sha256: %q, scopes: [chat, tickets]}, b: {id: %q, sha256: %q, scopes: [chat]}}}\n",
		server.ID(), server.Hash(), plain.ID(), plain.Hash()))
	r := s.serve()
	as := func(key auth.APIKey, user, scopes string) *mcp.ClientSession {
		header := []string{"Authorization", "Bearer " + key.Reveal()}
		if user != "" {
			header = append(header, "X-Voicegw-User", user, "X-Voicegw-Scopes", scopes)
		}
		return dials(t, toMCP(r, header...), "", nil)
	}
	ada, bob, own := as(server, "ada", "shop.hidden, other"), as(server, "bob", ""), as(plain, "", "")
	if env := calling(t, ada, "hidden", r1); !env.OK || !strings.Contains(string(env.Data), `"user":"ada"`) {
		t.Errorf("%s", env.Encode())
	}
	if got, err := ada.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "voicegw://tools/hidden/guide.md"}); err != nil || got.Contents[0].Text != "# hidden\n" {
		t.Errorf("%+v, %v", got, err)
	}
	if list, err := bob.ListTools(t.Context(), nil); err != nil || len(list.Tools) != 4 {
		t.Errorf("%+v, %v", list, err)
	}
	const key = "voicegw/idempotencyKey"
	for i, step := range []struct {
		by   *mcp.ClientSession
		key  string
		hit  bool
		paid int64
	}{
		{ada, "k1", false, 1}, {ada, "k1", true, 1}, {ada, "k2", false, 2}, {bob, "k1", false, 3}, {own, "k1", false, 4}, {own, "k1", true, 4}, {own, "", false, 5}, {own, "", false, 6},
	} {
		var meta []string
		if step.key != "" {
			meta = []string{key, step.key}
		}
		if env := calling(t, step.by, "gift", r1, meta...); !env.OK || env.Meta.CacheHit != step.hit || s.paid.Load() != step.paid {
			t.Errorf("step %d: paid %d times: %s", i, s.paid.Load(), env.Encode())
		}
	}
}

// approve answers a question over the API.
func (r *running) approve(token string, approved bool) (int, map[string]any) {
	r.t.Helper()
	body := fmt.Sprintf(`{"token":%q,"approved":%t}`, token, approved)
	req, err := http.NewRequestWithContext(r.t.Context(), http.MethodPost, "http://"+r.addr+"/v1/confirmations", strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+r.key())
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	var answer map[string]any
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		r.t.Fatal(err)
	}
	return resp.StatusCode, answer
}

// TestMCPConfirmation: a call that needs approval runs once when the API approves it, and the API returns its result. This is
// also the case for old versions over HTTP with confirm: elicitation.
func TestMCPConfirmation(t *testing.T) {
	t.Parallel()
	asks := &mcp.ClientOptions{ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		t.Error("the client was asked")
		return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"approve": true}}, nil
	}}
	for confirm, versions := range map[string][]string{"api": mcpVersions[:2], "elicitation": mcpVersions[1:2]} {
		s := newMCPProgram(t, strings.Replace(offered, "serve", "confirm: "+confirm+", serve", 1))
		r := s.serve()
		for i, version := range versions {
			c := dials(t, toMCP(r), version, asks)
			env := calling(t, c, "pay", r1)
			if env.OK || env.Error.Type != registry.ErrorConfirmationRequired || env.Error.ConfirmationRequest.Preview != "Pay r1" || strings.Contains(env.Error.Suggestion, "button") || s.paid.Load() != int64(i) {
				t.Fatalf("%s: %s", version, env.Encode())
			}
			token := env.Error.ConfirmationRequest.Token
			if again := calling(t, c, "pay", r1); again.Error == nil || again.Error.ConfirmationRequest.Token != token {
				t.Errorf("%s: the same call again: %s", version, again.Encode())
			}
			status, answer := r.approve(token, true)
			result, _ := answer["envelope"].(map[string]any)
			if status != http.StatusOK || answer["told"] != false || result["ok"] != true || s.paid.Load() != int64(i)+1 {
				t.Errorf("%s: %d %v", version, status, answer)
			}
			if status, answer := r.approve(token, true); status != http.StatusConflict || s.paid.Load() != int64(i)+1 {
				t.Errorf("%s: twice: %d %v", version, status, answer)
			}
		}
		denied := calling(t, dials(t, toMCP(r), versions[0], nil), "pay", r1)
		if status, answer := r.approve(denied.Error.ConfirmationRequest.Token, false); status != http.StatusOK || answer["outcome"] != "denied" {
			t.Errorf("%d %v", status, answer)
		}
		all := auditedAt(t, r.dataDir, 2*len(versions)+2)
		for _, r := range all {
			if r.Channel != "mcp" || !strings.HasPrefix(r.SessionID, "mcp-") {
				t.Errorf("audited as %+v", r)
			}
		}
		if ran := all[1]; !ran.OK || ran.Confirmation != "approved" || ran.ConfirmedBy != "api" || ran.SessionID != all[0].SessionID {
			t.Errorf("audited as %+v", ran)
		}
		c, tokens := dials(t, toMCP(r), versions[0], nil), map[string]bool{}
		for _, args := range []map[string]any{r1, {"ref": "r2"}, r1} {
			tokens[calling(t, c, "pay", args).Error.ConfirmationRequest.Token] = true
		}
		if len(tokens) != 2 {
			t.Errorf("two calls, one of them repeated, have the tokens %v", tokens)
		}
	}
}

// TestMCPElicitation: if configured, clients ask their user for approval: over HTTP in the newest version, over streams in
// each version with elicitation.
func TestMCPElicitation(t *testing.T) {
	t.Parallel()
	answers := make(chan *mcp.ElicitResult, 1)
	asks := &mcp.ClientOptions{ElicitationHandler: func(_ context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		if req.Params.Message != "pay: Pay r1" {
			t.Errorf("asked %q", req.Params.Message)
		}
		return <-answers, nil
	}}
	yes, no := map[string]any{"approve": true}, map[string]any{"approve": false}
	s := newMCPProgram(t, strings.Replace(offered, "serve", "confirm: elicitation, serve", 1))
	r := s.serve()
	dir := filepath.Join(s.dir, "data")
	inData, _ := s.streams(t, "--store")
	for name, c := range map[string]*mcp.ClientSession{"HTTP": dials(t, toMCP(r), "", asks), "streams": dials(t, inData, "2025-06-18", asks)} {
		before := s.paid.Load()
		for i, tc := range []struct {
			answer *mcp.ElicitResult
			paid   int64
		}{
			{&mcp.ElicitResult{Action: "accept", Content: yes}, 1}, {&mcp.ElicitResult{Action: "decline", Content: yes}, 1}, {&mcp.ElicitResult{Action: "cancel"}, 1}, {&mcp.ElicitResult{Action: "accept", Content: no}, 1}, {&mcp.ElicitResult{Action: "accept", Content: yes}, 2},
		} {
			answers <- tc.answer
			env := calling(t, c, "pay", r1)
			approved := tc.answer.Action == "accept" && tc.answer.Content["approve"] == true
			if env.OK != approved || s.paid.Load()-before != tc.paid || !env.OK && !strings.Contains(env.Error.Message, "declined pay") {
				t.Errorf("%s, answer %d: paid %d times: %s", name, i, s.paid.Load()-before, env.Encode())
			}
			if strings.Contains(string(env.Encode()), "cf_") {
				t.Errorf("%s: the token left the gateway: %s", name, env.Encode())
			}
		}
	}
	for _, dir := range []string{r.dataDir, dir} {
		all := auditedAt(t, dir, 10)
		if ran := all[1]; ran.Channel != "mcp" || !ran.OK || ran.Confirmation != "approved" || ran.ConfirmedBy != "client" || !ran.Delivered || ran.SessionID != all[0].SessionID {
			t.Errorf("audited as %+v", ran)
		}
		if declined := all[3]; declined.Event != audit.EventConfirmation || declined.Confirmation != "denied" || declined.Channel != "mcp" {
			t.Errorf("audited as %+v", declined)
		}
	}
}

// TestMCPStateIsChecked: the state of a question is valid for its user and tool only. A repeated answer gets the same result,
// and a contrary answer has no effect.
func TestMCPStateIsChecked(t *testing.T) {
	t.Parallel()
	key := auth.NewAPIKey()
	s := newMCPProgram(t, strings.Replace(offered, "serve", "confirm: elicitation, serve", 1)+
		fmt.Sprintf("auth: {keys: {a: {id: %q, sha256: %q, scopes: [chat, tickets]}}}\n", key.ID(), key.Hash()))
	r := s.serve()
	call := func(user, tool, more string) string {
		t.Helper()
		_, _, body := r.postMCP(fmt.Sprintf(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":%q,"arguments":{"ref":"r1"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",`+
			`"io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{}}}}%s}}`, tool, more),
			"Authorization", "Bearer "+key.Reveal(), "X-Voicegw-User", user, "Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", tool)
		return body
	}
	var asked struct {
		Result struct{ RequestState, ResultType string }
	}
	if body := call("ada", "pay", ""); json.Unmarshal([]byte(body), &asked) != nil || asked.Result.RequestState == "" || strings.Contains(body, "cf_") || asked.Result.ResultType != "input_required" {
		t.Fatal(body)
	}
	answer := func(approve string) string {
		return fmt.Sprintf(`,"requestState":%q,"inputResponses":{"approval":{"action":"accept","content":{"approve":%s}}}`, asked.Result.RequestState, approve)
	}
	for i, step := range []struct {
		user, tool, more, want string
		paid                   int64
	}{
		{"bob", "pay", answer("true"), "-32602", 0},
		{"ada", "gift", answer("true"), "-32602", 0},
		{"ada", "pay", fmt.Sprintf(`,"requestState":%q`, asked.Result.RequestState), "-32602", 0},
		{"ada", "pay", answer("true"), `"receipt":1`, 1},
		{"ada", "pay", answer("true"), `"receipt":1`, 1},
		{"ada", "pay", answer("false"), "PERMANENT", 1},
	} {
		if body := call(step.user, step.tool, step.more); !strings.Contains(body, step.want) || s.paid.Load() != step.paid {
			t.Errorf("step %d: paid %d times: %s", i, s.paid.Load(), body)
		}
	}
}

// TestMCPClientDisconnects: in each version, a call streams progress, and ends with its client's connection.
func TestMCPClientDisconnects(t *testing.T) {
	t.Parallel()
	s := newMCPProgram(t, offered)
	r := s.serve()
	for i, version := range mcpVersions[:2] {
		progress := make(chan string, 10)
		c := dials(t, toMCP(r), version, &mcp.ClientOptions{ProgressNotificationHandler: func(_ context.Context, req *mcp.ProgressNotificationClientRequest) {
			progress <- req.Params.Message
		}})
		ctx, cancel := context.WithCancel(t.Context())
		p := &mcp.CallToolParams{Name: "wait", Arguments: r1}
		p.SetProgressToken(7)
		done := make(chan error, 1)
		go func() {
			_, err := c.CallTool(ctx, p)
			done <- err
		}()
		<-s.began
		if got := <-progress; got != "Waiting" {
			t.Errorf("%s: progress %q", version, got)
		}
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", version, err)
		}
		_ = c.Close() // older versions leave the request open until then
		if last := auditedAt(t, r.dataDir, i+1)[i]; last.ToolID != "wait" || last.OK || last.NotDelivered != "client_gone" {
			t.Errorf("%s: audited as %+v", version, last)
		}
	}
}

// TestMCPReload: changed settings and tools apply to the next request.
func TestMCPReload(t *testing.T) {
	t.Parallel()
	tools := t.TempDir()
	if err := os.CopyFS(tools, os.DirFS(httpTools+"tools")); err != nil {
		t.Fatal(err)
	}
	more := fmt.Sprintf("tool_dirs: [%q]\ntools: {order_cancel: {base_url: 'https://shop.example', signing_secret: %q}}\n", tools, exampleSecret)
	s := newMCPProgram(t, offered+more)
	r := s.serve()
	c := dials(t, toMCP(r), "2025-06-18", nil)
	list := func() (version string, names []string) {
		t.Helper()
		got, err := c.ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, tool := range got.Tools {
			names = append(names, tool.Name)
		}
		return fmt.Sprint(got.Meta["voicegw/registryVersion"]), names
	}
	first, _ := list()
	s.configure("mcp: {serve: true, expose: [lok]}\n" + more)
	if status, answer := r.reload(); status != http.StatusBadRequest && status != http.StatusUnprocessableEntity {
		t.Errorf("%d %v", status, answer)
	}
	s.configure("mcp: {serve: true, expose: [look, order_cancel]}\n" + more)
	if status, answer := r.reload(); status != http.StatusOK || fmt.Sprint(answer["changed"]) != "[mcp.expose]" {
		t.Errorf("%d %v", status, answer)
	}
	if version, names := list(); version != first || !slices.Equal(names, []string{"look", "order_cancel"}) {
		t.Errorf("%s %v", version, names)
	}
	file := filepath.Join(tools, "order-cancel", "schema.json")
	text, err := os.ReadFile(file)
	if err == nil {
		err = os.WriteFile(file, bytes.Replace(text, []byte(`"1.0.0"`), []byte(`"1.0.1"`), 1), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	r.logged("tools loaded again; running sessions keep theirs")
	if version, names := list(); version == first || len(names) != 2 {
		t.Errorf("%s %v", version, names)
	}
	if env := calling(t, c, "look", r1); !env.OK || env.Meta.RegistryVersion == first {
		t.Errorf("%s", env.Encode())
	}
}

// TestMCPFlood: each of many concurrent calls is answered or refused.
func TestMCPFlood(t *testing.T) {
	t.Parallel()
	s := newMCPProgram(t, strings.Replace(offered, "serve", "per_minute: 50, serve", 1))
	r := s.serve()
	batch := "[" + strings.TrimSuffix(strings.Repeat(lookCall+",", 1), ",")
	for i := range 200 {
		batch += "," + strings.Replace(lookCall, `"id":7`, fmt.Sprintf(`"id":%d`, i+100), 1)
	}
	began := time.Now()
	status, _, body := r.postMCP(batch+"]", "Mcp-Protocol-Version", "2025-03-26")
	ok, refused := strings.Count(body, `"isError":true`), strings.Count(body, `\"type\":\"RATE_LIMIT\"`)
	if status != http.StatusOK || ok != refused || refused != 151 || strings.Count(body, `"id":`) != 201 {
		t.Errorf("%d: %d errors, %d refused after %s", status, ok, refused, time.Since(began))
	}
}
