package jstool

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"voicegw/registry"
	"voicegw/registry/spec"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "tool-host" {
		if err := Serve(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/dlclark/regexp2/v2.runClock"))
}

// syncBuffer is a log that is safe for concurrent use.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(b)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func newHosts(t testing.TB) (*Hosts, *syncBuffer) {
	t.Helper()
	log := &syncBuffer{}
	p := New([]string{"tool-host"}, slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	t.Cleanup(p.Close)
	return p, log
}

func declared(network ...string) *spec.Spec {
	return &spec.Spec{ToolID: "probe", Version: "1.2.0", Category: spec.CategoryAction, SideEffects: spec.SideEffectsWrites, TimeoutMS: 2000,
		Network: network, Settings: map[string]spec.Setting{"base_url": {Type: spec.SettingString}}}
}

// write writes files, by their path, into a new tool directory.
func write(t testing.TB, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		at := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// hostedTool is a tool with its hosts.
type hostedTool struct {
	*Tool
	hosts *Hosts
}

func (t *hostedTool) execute(ctx context.Context, call registry.Call[json.RawMessage, needs]) (registry.Result, error) {
	return t.hosts.execute(ctx, t.Tool, call)
}

func newTool(t testing.TB, p *Hosts, s *spec.Spec, code string) *hostedTool {
	t.Helper()
	root := write(t, map[string]string{"probe/handler.js": code})
	tool, problems := Parse(root, "probe", s)
	if tool == nil {
		t.Fatal(problems)
	}
	return &hostedTool{tool, p}
}

type client struct{ said []string }

func (c *client) Timeout(_ time.Time, d time.Duration, message string) {
	c.said = append(c.said, fmt.Sprint(d, " ", message))
}
func (c *client) Send(string, any) error { return nil }

func callOf(args string) registry.Call[json.RawMessage, needs] {
	return registry.Call[json.RawMessage, needs]{Args: json.RawMessage(args), Tool: "probe", IdempotencyKey: "op-1",
		Needs:   needs{registry.AnySettings{Values: map[string]any{"base_url": "https://shop.example"}}, &client{}},
		Session: registry.Session{ID: "voice-1", UserID: "ada", Mode: spec.ModeVoice, Phase: "active", ToolsVersion: "v1"}}
}

func call(t testing.TB, tool *hostedTool, args string, timeout time.Duration) (registry.Result, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	return tool.execute(ctx, callOf(args))
}

// TestCalls checks the results, errors, logs and messages of a handler.
func TestCalls(t *testing.T) {
	p, log := newHosts(t)
	tool := newTool(t, p, declared(), `
import { ToolError, ErrorType } from '../_core/error-types.js';
const forms = {
  data: () => ({ ok: true, data: { n: 12345678901234, s: 'a\u202eb' } }),
  intents: () => ({ ok: true, intents: [{ type: 'END_VOICE_SESSION', after: 'now' }] }),
  unknown: () => ({ ok: true, intents: [{ type: 'SUPPRESS_AUDIO', value: true, why: 1 }] }),
  half: () => ({ ok: true, intents: [{ type: 'SUPPRESS_AUDIO' }] }),
  words: () => ({ ok: true, intents: ['END'] }),
  failure: () => ({ ok: false, error: { type: 'RATE_LIMIT', message: 'Later.', retryable: true, suggestion: 'Wait.' }, intents: [{ type: 'X' }] }),
  tool: () => { throw new ToolError(ErrorType.TRANSIENT, 'Gone.', { retryable: true, partialSideEffects: true }) },
  other: () => { console.warn('careful', { a: 1 }); throw new Error('a secret reason') },
  form: () => ({ status: 'fine' }), none: () => undefined, text: () => 'x',
  sent: (c) => { c.ws.send(JSON.stringify({ type: 'timeout', durationSeconds: 60, timeoutUntil: Date.now() + 60000, message: 'Bye' })); c.ws.send('{"type":"other"}'); return { ok: true } },
};
export const execute = (context) => forms[context.args.form](context);`)
	for form, want := range map[string]string{
		"data": `{"n":12345678901234,"s":"ab"} []`, "intents": `null [{"type":"END_VOICE_SESSION","after":"now"}]`, "sent": "null []",
		"unknown": `an intent of the result cannot be read: json: unknown field "why"`, "half": "the intent SUPPRESS_AUDIO must have a value",
		"words": "an intent of the result cannot be read", "failure": "RATE_LIMIT: Later. true false Wait.", "tool": "TRANSIENT: Gone. true true",
		"other": "handler.js threw Error: a secret reason\n\tat other (probe/handler.js:", "form": errForm.Error(), "none": errForm.Error(), "text": errForm.Error(),
	} {
		result, err := call(t, tool, `{"form":"`+form+`"}`, 5*time.Second)
		got := fmt.Sprint(err)
		if failed, ok := errors.AsType[*registry.ToolError](err); ok {
			got = fmt.Sprintf("%s: %s %t %t %s", failed.Type, failed.Message, failed.Retryable, failed.PartialSideEffects, failed.Suggestion)
		} else if err == nil {
			data, _ := json.Marshal(result.Data)
			intents, _ := json.Marshal(append([]registry.Intent{}, result.Intents...))
			got = string(data) + " " + string(intents)
		}
		if !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s, want %s", form, got, want)
		}
	}
	for _, want := range []string{`text="careful {\"a\":1}"`, "level=WARN", "ws.send: a message other than", "the intents of a failed call are dropped"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log has no %s:\n%s", want, log)
		}
	}
}

// TestTimeoutMessage: ws.send passes on valid timeouts only; the time follows from the duration.
func TestTimeoutMessage(t *testing.T) {
	p, _ := newHosts(t)
	tool := &hostedTool{&Tool{spec: declared()}, p}
	for text, want := range map[string]int{
		`{"type":"timeout","durationSeconds":60,"message":"Bye"}`: 1, `{"type":"timeout","timeoutUntil":99999999999999,"durationSeconds":60}`: 1,
		`{"type":"timeout"}`: 0, `{"type":"timeout","durationSeconds":1e300}`: 0, `{"type":"timeout","durationSeconds":-1}`: 0, `[]`: 0, `x`: 0,
	} {
		c, heard := callOf("{}"), &client{}
		c.Needs.Messenger = heard
		tool.hosts.sent(tool.Tool, text, c)
		if len(heard.said) != want || want > 0 && !strings.HasPrefix(heard.said[0], "1m0s") {
			t.Errorf("%s: the client gets %v", text, heard.said)
		}
	}
}

// hostile are bodies of execute, with the beginning of the error or result.
var hostile = map[string]struct{ body, want string }{
	"an endless loop":          {`for (;;) {}`, "context deadline exceeded"},
	"an endless constant":      {`return { ok: true, data: 2n ** 72n ** 70n }`, ""},
	"an endless async loop":    {`for (;;) await null`, "context deadline exceeded"},
	"a catastrophic pattern":   {`return { ok: true, data: /^(?=a)(a+)+$/.test('a'.repeat(32) + '!') }`, "ok false"},
	"catastrophic patterns":    {`for (;;) /^(?=a)(a+)+$/.test('a'.repeat(32) + '!')`, "context deadline exceeded"},
	"ten gigabytes":            {`const l = []; for (;;) l.push(new Array(1000).fill(l.length))`, "the tool host died"},
	"a long string":            {`return { ok: true, data: 'x'.repeat(2 ** 40).length }`, "the tool host died"},
	"a long array":             {`return { ok: true, data: new Uint8Array(2 ** 33).length }`, "the tool host died"},
	"a long native loop":       {`new Array(4e9).fill(1); Array.from({ length: 1e10 })`, "context deadline exceeded"},
	"endless output":           {`for (;;) console.log('x'.repeat(5000))`, "context deadline exceeded"},
	"endless messages":         {`for (;;) context.ws.send('x')`, "handler.js threw GoError: the message is too long, or the call has sent too many"},
	"endless timers":           {`for (;;) setTimeout(() => {}, 1e6)`, "handler.js threw GoError: too many timers"},
	"endless requests":         {`for (;;) fetch('https://a.example')`, "context deadline exceeded"},
	"no process":               {`globalThis['process'].exit(1)`, "handler.js threw TypeError"},
	"no files":                 {`return (0, eval)("require")('fs')`, "handler.js threw ReferenceError: require is not defined"},
	"no constructor":           {`return { ok: true, data: ({}).constructor.constructor('return typeof process + typeof require + typeof Deno')() }`, "ok undefinedundefinedundefined"},
	"infinite recursion":       {`const f = () => f() + 1; f()`, "functions call each other more than 5000 deep"},
	"recursion through Go":     {`const f = () => [1].map(f); f()`, "functions call each other more than 5000 deep"},
	"a deep object":            {`let o = {}; for (let i = 0; i < 1e6; i++) o = { o }; return { ok: true, data: o }`, "context deadline exceeded"},
	"a deep text":              {`return { ok: true, data: JSON.parse('['.repeat(1e6) + ']'.repeat(1e6)) }`, "the tool host died"},
	"a pending promise":        {`await new Promise(() => {})`, "the promise of execute is never settled"},
	"a thenable":               {`return { then() {} }`, "the promise of execute is never settled"},
	"a huge result":            {`return { ok: true, data: 'x'.repeat(2 << 20) }`, "the result is too large"},
	"a huge error":             {`throw new Error('x'.repeat(2 << 20))`, "handler.js threw an error that cannot be read"},
	"a number":                 {`throw 42`, "handler.js threw a value that is not an Error: 42"},
	"null":                     {`throw null`, "handler.js threw a value that is not an Error: null"},
	"a trap":                   {`throw { get message() { throw this } }`, "handler.js threw an error that cannot be read"},
	"a trap in the result":     {`return new Proxy({}, { get(t, k) { if (k === 'then') return; throw new Error('trap ' + String(k)) } })`, "handler.js threw Error: trap toJSON"},
	"a loop in the result":     {`return { ok: true, get data() { for (;;) {} } }`, "context deadline exceeded"},
	"an error in a timer":      {`setTimeout(() => { throw new Error('late') }, 1); await new Promise(r => setTimeout(r, 1000))`, "Error: late"},
	"poison":                   {`Object.prototype.ok = 'x'; Array.prototype.map = null; JSON.stringify = () => '{"ok":true,"data":"fake"}'; globalThis.leak = 1; return { ok: true, data: typeof leak }`, "ok number"},
	"a poisoned promise":       {`Promise.prototype.then = null; return { ok: true }`, errForm.Error()},
	"an intent by a prototype": {`Object.prototype.intents = [{ type: 'END_VOICE_SESSION', after: 'now' }]; return { ok: true, data: 1 }`, "ok 1"},
}

// TestHostile: each hostile handler gets its error, and the next call of another tool works.
func TestHostile(t *testing.T) {
	t.Parallel()
	p, log := newHosts(t)
	good := newTool(t, p, declared(), `export function execute({ args }) { return { ok: true, data: typeof leak + [1].map(x => x + args.n) + JSON.stringify({}.ok) } }`)
	for name, tc := range hostile {
		root := write(t, map[string]string{"probe/handler.js": "export async function execute(context) {" + tc.body + "\n}"})
		b, problems := bundleOf(root, "probe") // the lint refuses some of them
		if b.code == "" {
			t.Fatal(name, problems)
		}
		limit := 500 * time.Millisecond
		if !strings.HasPrefix(tc.want, "context") {
			limit = time.Minute // for a busy machine
		}
		result, err := call(t, &hostedTool{&Tool{spec: declared(), bundle: b}, p}, `{}`, limit)
		got := fmt.Sprint(err)
		if err == nil {
			got = fmt.Sprint("ok ", result.Data)
		}
		if !strings.HasPrefix(got, tc.want) {
			t.Errorf("%s: %.200s, want %s", name, got, tc.want)
		}
		if result, err := call(t, good, `{"n":1}`, time.Minute); err != nil || fmt.Sprint(result.Data) != "undefined2undefined" {
			t.Fatalf("after %s another tool: %v, %v\n%s", name, result, err, log)
		}
	}
	if text := log.String(); len(text) > 200_000 {
		t.Errorf("the log has %d bytes", len(text))
	}
}

// TestLint: code that cannot work in a tool is reported with its place.
func TestLint(t *testing.T) {
	const ok = "export async function execute() { return { ok: true } }\n"
	outside := write(t, map[string]string{"x.js": "export default 1"})
	for name, tc := range map[string]struct {
		code string
		want string // empty: no problem
	}{
		"fine":            {"import { ToolError } from '../_core/error-types.js';\n" + ok + "fetch; URL; console; structuredClone; ToolError; globalThis.x = [Date, Math, JSON, BigInt, Uint8Array, AbortController, TextEncoder, crypto, performance];", ""},
		"no export":       {"function execute() {}", "handler.js: There is no exported function execute"},
		"a default":       {"export default { execute() {} }", "handler.js: There is no exported function execute"},
		"common js":       {"exports.execute = async () => ({ ok: true })", ""},
		"syntax":          {ok + "\nconst = 1;", `handler.js:3: Expected identifier but found "=".`},
		"undeclared":      {ok + "const x = {\n startTime, y: process.env.KEY };\nlet Date2 = Date;", "handler.js:3: startTime is not declared."},
		"another scope":   {"function f() { const inner = 1; return inner }\nexport const execute = () => f() + inner;", "handler.js:1: inner is not declared."},
		"process":         {ok + "process.exit(1)", "handler.js:2: Tools have no process unless they declare it; declare \"settings\""},
		"buffer":          {ok + "Buffer.from('x')", "handler.js:2: Tools have no Buffer unless they declare it; use Uint8Array"},
		"checked first":   {ok + "if (typeof Buffer !== 'undefined') Buffer.from('x')", ""},
		"a property":      {ok + "const o = { process: 1 }; o.process; class A { Buffer() {} }; label: for (;;) break label;", ""},
		"not imported":    {"export const execute = () => { throw new ToolError('x') }", "handler.js:1: Tools have no ToolError unless they declare it; import it"},
		"assigned":        {ok + "total = 1", `handler.js:2: Cannot assign to "total"`},
		"node":            {"import fs from 'node:fs';\n" + ok + "fs;", `handler.js:1: The import "node:fs" is a module of Node, which tools do not have; keep data in a service`},
		"required":        {ok + "require('crypto')", `handler.js:2: The import "crypto" is a module of Node, which tools do not have; crypto.randomUUID is`},
		"node, unknown":   {"import 'node:sqlite';\n" + ok, `handler.js:1: The import "node:sqlite" is a module of Node`},
		"missing":         {"import x from './nothing.js';\n" + ok + "x;", `handler.js:1: The import "./nothing.js" is not found.`},
		"missing package": {"import x from 'lodash';\n" + ok + "x;", `handler.js:1: The import "lodash" is not found.`},
		"absolute":        {"import x from '" + outside + "/x.js';\n" + ok + "x;", "handler.js:1: The import \"" + outside + "/x.js\" is an absolute path"},
		"a url":           {"import x from 'https://a.example/x.js';\n" + ok + "x;", `handler.js:1: The import "https://a.example/x.js" is an absolute path or URL`},
		"outside":         {"import x from '../../" + filepath.Base(filepath.Dir(outside)) + "/" + filepath.Base(outside) + "/x.js';\n" + ok + "x;", "handler.js:1: The import"},
		"a link":          {"import x from './link.js';\n" + ok + "x;", `handler.js:1: The import "./link.js" leads out of`},
		"top-level await": {ok + "await null", "handler.js:2: Top-level await"},
		"a warning":       {ok + "export const f = (x) => x === -0", `handler.js:2: Comparison with -0 using the "===" operator will also match 0. (warning)`},
		"large constants": {ok + "export const huge = () => 2n ** 9_999_999_999n << 99999999999n", ""},
		"languages":       {"// Date.toLocaleString\n" + ok + "new Date().toLocaleString('de')", "handler.js:1: toLocaleString formats no languages here, as there is no Intl. (warning)"},
		"collation":       {ok + "'a'.localeCompare(String('b'), 'de')", "handler.js:2: localeCompare(String('b') ignores languages and options here. (warning)"},
		"a comment":       {ok + "// crypto.subtle, 'ß'.toLocaleUpperCase(), new TextDecoder('utf-8'), 'a'.localeCompare('b')", ""},
		"an encoding":     {ok + "new TextDecoder('utf-8'); new TextDecoder('utf-16le')", "handler.js:2: TextDecoder('utf-1 knows only utf-8 here. (warning)"},
		"unknown pattern": {ok + "/\\p{Uppercase}/u.test('A')", `handler.js: The interpreter does not know a part of the pattern "\\p{Uppercase}" with flags "u". (warning)`},
		"no code":         {"", "handler.js: There is no exported function execute"},
	} {
		root := write(t, map[string]string{"probe/handler.js": tc.code})
		if err := os.Symlink(filepath.Join(outside, "x.js"), filepath.Join(root, "probe/link.js")); err != nil {
			t.Fatal(err)
		}
		tool, problems := Parse(root, "probe", declared())
		got := ""
		for _, p := range problems {
			line := filepath.Base(p.File)
			if p.Line > 0 {
				line += fmt.Sprint(":", p.Line)
			}
			line += ": " + p.Text
			if p.Warning {
				line += " (warning)"
			}
			got += line + "\n"
		}
		if !strings.Contains(got, tc.want) || tc.want == "" && got != "" || (tool == nil) != (tc.want != "" && !strings.HasSuffix(tc.want, "(warning)")) {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}

// TestChangedFiles: a handler's hash depends on its file and its imports only.
func TestChangedFiles(t *testing.T) {
	root := write(t, map[string]string{"probe/handler.js": "import x from '../_lib/x.js'; export const execute = () => x;", "_lib/x.js": "export default 1", "other/y.js": "1"})
	hash := func() string {
		tool, problems := Parse(root, "probe", declared())
		if tool == nil {
			t.Fatal(problems)
		}
		return tool.Hash()
	}
	change := func(name, text string) {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	first := hash()
	change("other/y.js", "22")
	if hash() != first {
		t.Error("another tool's file changes the hash")
	}
	change("_lib/x.js", "export default 22")
	if hash() == first {
		t.Error("an imported file does not change the hash")
	}
	elsewhere := write(t, map[string]string{"probe/handler.js": "import x from '../_lib/x.js'; export const execute = () => x;", "_lib/x.js": "export default 22"})
	tool, _ := Parse(elsewhere, "probe", declared())
	if hash() != tool.Hash() {
		t.Error("the hash depends on the directory")
	}
}
