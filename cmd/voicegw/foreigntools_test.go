package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	esbuild "github.com/evanw/esbuild/pkg/api"

	"voicegw/internal/server"
	"voicegw/internal/testutil"
	"voicegw/internal/webhook"
	"voicegw/registry/registrytest"
)

const exampleSecret = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="

// foreignConfig writes a configuration with the tools of a folder and the settings of the example.
func foreignConfig(t *testing.T, tools, base, secret string) string {
	t.Helper()
	tools, err := filepath.Abs(tools)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "voicegw.yaml")
	text := fmt.Sprintf("data_dir: %q\ntool_dirs: [%q]\ntools:\n  order_cancel: {base_url: %q, signing_secret: %q}\n", t.TempDir(), tools, base, secret)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

const httpTools = "../../examples/http-tools/"

// TestExampleReceivers: the example tool works with each example receiver, and each refuses a wrong signature.
func TestExampleReceivers(t *testing.T) {
	t.Parallel()
	data := registrytest.Project(t)
	for name, command := range map[string][]string{
		"Go": {"go", "run", "../../examples/http-receiver"}, "Python": {"python3", httpTools + "receiver.py"}, "TypeScript": {"node", httpTools + "receiver.ts"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name == "TypeScript" { // Node 20 does not strip types
				made := esbuild.Build(esbuild.BuildOptions{EntryPoints: []string{command[1]}, Format: esbuild.FormatESModule})
				file := filepath.Join(t.TempDir(), "receiver.mjs")
				if len(made.Errors) > 0 || os.WriteFile(file, made.OutputFiles[0].Contents, 0o600) != nil {
					t.Fatal(made.Errors)
				}
				command = []string{command[0], file}
			}
			program, err := exec.LookPath(command[0])
			if err != nil {
				t.Skip(err)
			}
			addr, err := testutil.FreeAddr()
			if err != nil {
				t.Fatal(err)
			}
			if name == "Go" {
				program = filepath.Join(t.TempDir(), "receiver")
				if out, err := exec.Command("go", "build", "-o", program, command[2]).CombinedOutput(); err != nil {
					t.Fatalf("%v: %s", err, out)
				}
				command = command[2:]
			}
			cmd := exec.CommandContext(t.Context(), program, append(command[1:], addr)...)
			cmd.Env = append(os.Environ(), "SECRET="+exampleSecret)
			cmd.Stderr = os.Stderr
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() {
				_ = cmd.Process.Kill()
				_ = cmd.Wait() // killed
			}()
			testutil.WaitUntil(t, "the receiver listens", func() bool {
				conn, err := net.Dial("tcp", addr)
				if err == nil {
					conn.Close()
				}
				return err == nil
			})
			call := func(secret string) string {
				var out, errs console
				Run(t.Context(), Process{
					Args: []string{"tools", "call", "order_cancel", `{"order":"10042","reason":"twice"}`, "--yes", "--config", foreignConfig(t, httpTools+"tools", "http://"+addr, secret)},
					Host: server.Host{Stdout: &out, Stderr: &errs, Environ: []string{"HOME=" + t.TempDir()}, Registry: func() ([]byte, error) { return data, nil }},
				})
				return out.String() + errs.String()
			}
			if out := call(exampleSecret); !strings.Contains(out, `"ok": true`) || !strings.Contains(out, `"reason": "twice"`) || !strings.Contains(out, `"number": "10042"`) {
				t.Error(out)
			}
			if out := call(strings.Replace(exampleSecret, "MDEy", "XXXX", 1)); !strings.Contains(out, `"AUTH"`) {
				t.Errorf("another signature: %s", out)
			}
			secret, err := webhook.ParseSecret(exampleSecret)
			if err != nil {
				t.Fatal(err)
			}
			replay := func(order string) string { // only the id and the body are signed
				body := []byte(`{"reason":"replay"}`)
				req, _ := http.NewRequest(http.MethodPost, "http://"+addr+"/orders/"+order+"/cancel", bytes.NewReader(body))
				webhook.Sign(req.Header, "op-1", time.Now(), body, secret)
				req.Header.Set("Idempotency-Key", order)
				resp, err := http.DefaultClient.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				defer resp.Body.Close()
				answer, _ := io.ReadAll(resp.Body)
				return string(answer)
			}
			if first, again := replay("10043"), replay("10044"); first != again || !strings.Contains(first, "10043") {
				t.Errorf("a replay with another order: %s, %s", first, again)
			}
		})
	}
}

// TestChangedForeignTools: the running gateway loads changed files as another version; broken files and duplicate names
// change nothing.
func TestChangedForeignTools(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(httpTools+"tools")); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(dir, os.DirFS("../../examples/js-tools")); err != nil {
		t.Fatal(err)
	}
	r := start(t, "--config", foreignConfig(t, dir, "https://shop.example", exampleSecret))
	file := filepath.Join(dir, "order-cancel", "schema.json")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	change := func(from, to string) {
		t.Helper()
		if err := os.WriteFile(file, bytes.Replace(text, []byte(from), []byte(to), 1), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	change(`"1.0.0"`, `"1.0.1"`)
	const again = "tools loaded again; running sessions keep theirs"
	first := fmt.Sprint(r.logged(again)["tools_version"])
	change(`"writes"`, `"rites"`)
	if said := r.logged("the changed tools cannot be used; the tools stay as they are"); !strings.Contains(fmt.Sprint(said["error"]), "schema.json:8") {
		t.Errorf("the log does not name the error: %v", said)
	}
	change(`"order_cancel"`, `"kb_search"`)
	r.logged("the changed tools cannot be used; the tools stay as they are")
	change(`"1.0.0"`, `"1.0.2"`)
	testutil.WaitUntil(t, "another version", func() bool {
		for line := range strings.Lines(r.err.String()) {
			if strings.Contains(line, again) && !strings.Contains(line, first) {
				return true
			}
		}
		return false
	})
	before := strings.Count(r.err.String(), again)
	if err := os.WriteFile(filepath.Join(dir, "_lib/money.js"), []byte("export const round = Math.round"), 0o600); err != nil {
		t.Fatal(err)
	}
	testutil.WaitUntil(t, "another version by an imported file", func() bool { return strings.Count(r.err.String(), again) > before })
}

// foreignCommand runs a "tools" command in this process.
func foreignCommand(t *testing.T, args ...string) (int, string) {
	t.Helper()
	var out, errs console
	data := registrytest.Project(t)
	code := Run(t.Context(), Process{
		Args: append([]string{"tools"}, args...),
		Host: server.Host{Stdout: &out, Stderr: &errs, Environ: []string{"HOME=" + t.TempDir()}, Registry: func() ([]byte, error) { return data, nil }},
	})
	return code, out.String() + errs.String()
}

// TestNewForeignTools: newly created tools in JavaScript and over HTTP have no errors and can be called.
func TestNewForeignTools(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, flags := range map[string][]string{"note-keep": {"--js", "--action"}, "note-find": {"--js"}, "word-count": {"--js", "--utility"}, "order-find": {"--http"}} {
		if code, out := foreignCommand(t, append([]string{"new", name, "--dir", dir}, flags...)...); code != 0 || !strings.Contains(out, "tools lint --tool-dirs "+dir) {
			t.Fatalf("%s: %d: %s", name, code, out)
		}
	}
	if code, out := foreignCommand(t, "lint", "--tool-dirs", dir); code != 0 || !strings.Contains(out, "4 tools, no errors") {
		t.Fatalf("%d: %s", code, out)
	}
	for call, want := range map[string]string{
		`word_count {"text":"one two three"}`: `"words": 3`, `note_find {"query":"tea"}`: `"title": "tea"`, `note_keep {"text":"x"}`: `"id": "`,
		`word_count {"text":" "}`: `"type": "VALIDATION"`, `note_find {"query":"broken"}`: `"type": "TRANSIENT"`,
	} {
		name, args, _ := strings.Cut(call, " ")
		if _, out := foreignCommand(t, "call", name, args, "--yes", "--set", "tool_dirs="+dir); !strings.Contains(out, want) {
			t.Errorf("%s: %s", call, out)
		}
	}
	file := filepath.Join(dir, "order-find", "handler.yaml")
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `{"results":[{"title":%q}]}`, r.URL.RawQuery)
	}))
	defer srv.Close()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text = append(bytes.Replace(text, []byte("https://api.example.com"), []byte(srv.URL), 1), "private: true\n"...)
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, out := foreignCommand(t, "call", "order_find", `{"query":"tea"}`, "--set", "tool_dirs="+dir); !strings.Contains(out, `"title": "limit=3&q=tea"`) {
		t.Error(out)
	}
}

// TestExampleInJavaScript: the example tool converts money with a service, and reports the failures of the service.
func TestExampleInJavaScript(t *testing.T) {
	t.Parallel()
	dir, err := filepath.Abs("../../examples/js-tools")
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("to") != "JPY" {
			http.NotFound(w, r)
			return
		}
		fmt.Fprint(w, `{"rate":161.237,"date":"2026-11-27"}`)
	}))
	defer srv.Close()
	for args, want := range map[string]string{`{"amount":10,"from":"EUR","to":"JPY"}`: `"amount": 1612,`, `{"amount":10,"from":"EUR","to":"XXX"}`: `"type": "NOT_FOUND"`} {
		_, out := foreignCommand(t, "call", "exchange_rate", args, "--set", "tool_dirs="+dir, "--set", "tools.exchange_rate.base_url="+srv.URL)
		if !strings.Contains(out, want) {
			t.Errorf("%s: %s", args, out)
		}
	}
	srv.Close()
	if _, out := foreignCommand(t, "call", "exchange_rate", `{"amount":10,"from":"EUR","to":"JPY"}`, "--set", "tool_dirs="+dir, "--set", "tools.exchange_rate.base_url="+srv.URL); !strings.Contains(out, `"The rates cannot be reached."`) {
		t.Error(out)
	}
}

// TestForeignToolsMustBeRight: the gateway does not start with broken tools, and names the place of each problem.
func TestForeignToolsMustBeRight(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(httpTools+"tools")); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "order-cancel", "handler.yaml")
	if err := os.WriteFile(file, []byte("url: https://shop.example/{args.nr}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, flag := range [][]string{nil, {"--check-config"}} {
		code, out := runServe(t, t.TempDir(), nil, append([]string{"--config", foreignConfig(t, dir, "https://shop.example", exampleSecret)}, flag...)...)
		if code != 2 || !strings.Contains(out, "handler.yaml:1") || !strings.Contains(out, "args.nr") {
			t.Errorf("exit code %d: %s", code, out)
		}
	}
}
