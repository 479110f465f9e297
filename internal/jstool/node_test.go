package jstool

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// sameInNode are bodies of execute that behave in the tool host as in Node.
var sameInNode = map[string]string{
	"echo":          `return { ok: true, data: { args, settings: context.settings, meta: context.meta, capabilities, session } }`,
	"microtasks":    `const o = []; setTimeout(() => o.push('t1'), 1); queueMicrotask(() => o.push('m')); Promise.resolve().then(() => o.push('p')); o.push('s'); await new Promise(r => setTimeout(r, 30)); return { ok: true, data: o }`,
	"classes":       `class A { #x = 1; static n = 0; static { A.n = 5 } get x() { return this.#x } set x(v) { this.#x = v } #m() { return 7 } m() { return this.#m() + A.n } static is(o) { return #x in o } } class B extends A { constructor() { super(); this.y = super.m() } } const b = new B(); b.x = 9; return { ok: true, data: [b.x, b.y, A.is(b), A.is({}), b instanceof A] }`,
	"generators":    `async function* g() { for (let i = 0; i < 3; i++) { await null; yield i } } const l = []; for await (const x of g()) l.push(x); function* h() { const a = yield 1; yield a * 2 } const it = h(); it.next(); l.push(it.next(4).value); return { ok: true, data: l }`,
	"syntax":        `const { a = 1, ...rest } = { b: 2, c: 3 }; let n = null; n ??= 4; const o = { ...rest, [` + "`k${a}`" + `]: n?.x ?? 'none' }; outer: for (let i = 0; ; i++) { for (;;) { if (i > 2) break outer; continue outer } } return { ok: true, data: [a, o, n, 2 ** 10, 1_000, [1, [2, [3]]].flat(Infinity)] }`,
	"regexps":       `return { ok: true, data: ['2026-11-30'.replace(/(?<y>\d+)-(?<m>\d+)-(?<d>\d+)/, '$<d>.$<m>.$<y>'), [...'a1b22'.matchAll(/[a-z](\d+)/g)].map(m => m[1]), /(?<=\$)\d+/.exec('$42')[0], /^\p{L}+$/u.test('Größe'), 'a,b;c'.split(/[,;]/), 'aBc'.replace(/b/i, x => x + x), /a.c/s.test('a\nc'), /(a)|(b)/.exec('b')] }`,
	"collections":   `const m = new Map([['a', 1], ['b', 2]]), s = new Set([3, 3, 4]), w = new WeakMap(), k = {}; w.set(k, 'w'); return { ok: true, data: [[...m.entries()], [...s], w.get(k), Object.fromEntries(m), Symbol('x').toString(), Object.entries({ x: 1 })] }`,
	"dates":         `const d = new Date(Date.UTC(2026, 10, 30, 12, 5)); d.setMonth(14); return { ok: true, data: [d, d.toISOString(), d.getTime(), new Date('2026-01-02').getDay(), new Date('2026-03-01T10:00:00+02:00').toJSON(), isNaN(new Date('x'))] }`,
	"json":          `return { ok: true, data: { u: undefined, n: NaN, d: new Date(0), f() {}, a: [undefined, () => 1, -0, 1e21, 0.1 + 0.2], t: { toJSON: () => 'j' }, s: JSON.stringify({ b: 1, a: [1] }, null, 1), p: JSON.parse('{"x":[1,2]}', (k, v) => v === 1 ? 9 : v), u2: '\u2028\ud83d\ude00' } }`,
	"bigint":        `const b = 2n ** 70n; return { ok: true, data: [b.toString(), (b / 3n).toString(16), typeof b, BigInt('12') > 11, BigInt.asUintN(8, 257n).toString()] }`,
	"bigint data":   `return { ok: true, data: 1n }`,
	"sorting":       `const l = [{ k: 2, i: 0 }, { k: 1, i: 1 }, { k: 2, i: 2 }, { k: 1, i: 3 }]; l.sort((a, b) => a.k - b.k); return { ok: true, data: [l, [10, 9, 1].sort(), [3, 1, 2].toSorted(), [1, 2, 3].findLast(x => x < 3), [1, 2, 3].at(-1), [1, 2, 3].with(0, 7), [..."héllo"].reverse().join('')] }`,
	"strings":       `return { ok: true, data: ['x'.padStart(3, '-'), 'a-b-a'.replaceAll('a', 'c'), 'é'.normalize('NFD').length, ' x '.trim(), 'abc'.at(-1), 'abc'.slice(-2), 'ß'.toUpperCase(), encodeURIComponent('a b&ü'), '😀'.codePointAt(0), '😀'.length, String.raw` + "`\\n${1}`" + `, 'a'.localeCompare('b')] }`,
	"bytes":         `const v = new DataView(new ArrayBuffer(8)); v.setFloat64(0, Math.PI); const u = new Uint8Array(v.buffer); return { ok: true, data: [[...u], [...new Uint8Array([1, 2, 3]).subarray(1)], Array.from(new Int16Array([1, -1])), new Uint8ClampedArray([300])[0]] }`,
	"promises":      `const no = Promise.reject(new Error('no')); no.catch(() => {}); const slow = new Promise(r => setTimeout(r, 20, 'slow')), fast = new Promise(r => setTimeout(r, 1, 'fast')); return { ok: true, data: [await Promise.all([1, slow]), (await Promise.allSettled([no, 2])).map(x => x.status), await Promise.any([no, fast]), await Promise.race([slow, fast]), await no.catch(e => e.message).finally(() => 1)] }`,
	"numbers":       `return { ok: true, data: [(1.005).toFixed(2), (255).toString(16), parseInt('12px'), Number('0x1f'), (1234.5678).toPrecision(6), 1e21 + 1, Number.MAX_SAFE_INTEGER, Math.hypot(3, 4), Math.trunc(-1.5), 5 % -3, 7 >>> 1, ~5, Math.max(), (25).toString(2)] }`,
	"urls":          `const u = new URL('../x?a=1&b=%20c#f', 'https://user@shop.example:8443/p/q/'); u.searchParams.append('d', 'é ü'); return { ok: true, data: [u.href, u.host, u.pathname, u.hash, [...new URLSearchParams('x=1&x=2&y=a+b')], new URLSearchParams({ q: 'a&b' }).toString()] }`,
	"more urls":     `const u = new URL('HTTP://a:b@Exämple.com:80/a/./b/../c d?q=1 2#x y'); const l = [u.href, u.origin, u.username, u.port]; u.port = 81; u.pathname = '/é'; u.search = 'z=1'; u.hash = ''; u.searchParams.set('z', '2'); u.host = 'b.example:82'; l.push(u.href, new URL('//c.example/x', u).href, new URL('?y', u).href, new URL('#f', 'https://a.example/p?q').href, new URL('/root', u).pathname, new URL('mailto:a@b.example').href, new URL('https://[::1]:8080/').host, JSON.stringify({ u }), URL.canParse('x'), URL.canParse('x', 'https://a.example')); return { ok: true, data: l }`,
	"base64":        `return { ok: true, data: ['', 'a', 'ab', 'abc', '\0\xff\xfe'].map(btoa).concat(['', 'YQ', 'YWI=', ' Y W J j ', 'AP/+'].map(atob)) }`,
	"base64 error":  `atob('a')`,
	"latin1":        `btoa('€')`,
	"patterns":      `class R extends RegExp { exec(s) { return super.exec(s) } } return { ok: true, data: [/a/ instanceof RegExp, new R('a') instanceof R, RegExp('a|b', 'g').flags, new RegExp(/x/g).flags, /a/.constructor === RegExp, RegExp.prototype === Object.getPrototypeOf(/b/), 'Ünï c0de'.match(/\p{Lu}|\p{Ll}+/gu), /^\P{L}$/u.test('1'), /\p{Script=Greek}/u.test('α'), 'aXbX'.replace(/x/gi, '$&$&'), 'a1'.search(/\d/), RegExp.name] }`,
	"url error":     `new URL('nonsense')`,
	"encodings":     `const c = structuredClone({ d: new Date(5), m: new Map([[1, { a: [1] }]]), s: new Set(['x']), b: new Uint8Array([1]) }); return { ok: true, data: [[...new TextEncoder().encode('é😀')], new TextDecoder().decode(new Uint8Array([0xc3, 0xa9, 0xff])), btoa('aÿ'), atob('Yf8='), c.d.getTime(), c.m.get(1).a, [...c.s], c.b[0], crypto.randomUUID().length, crypto.getRandomValues(new Uint8Array(4)).length] }`,
	"clone error":   `structuredClone({ f() {} })`,
	"abort":         `const c = new AbortController(); const l = []; c.signal.addEventListener('abort', () => l.push('event')); c.abort(); try { c.signal.throwIfAborted() } catch (e) { l.push(e.name) } await new Promise(r => { AbortSignal.timeout(5).addEventListener('abort', r); setTimeout(() => {}, 50) }); return { ok: true, data: [l, c.signal.aborted] }`,
	"timers":        `const o = []; for (let i = 0; i < 20; i++) setTimeout(() => o.push(i), 3); setTimeout(() => o.push('later'), 40); setTimeout((x) => o.push(x), 20, 'sooner'); await new Promise(r => setTimeout(r, 80)); return { ok: true, data: o }`,
	"intervals":     `let n = 0; await new Promise(r => { const i = setInterval(() => { if (++n === 3) { clearInterval(i); r() } }, 2) }); const t = setTimeout(() => { n = 99 }, 1); clearTimeout(t); await new Promise(r => setTimeout(r, 10)); return { ok: true, data: n }`,
	"proxies":       `const p = new Proxy({}, { get: (t, k) => typeof k === 'string' ? k + '!' : undefined, has: () => true }); return { ok: true, data: [p.hello, 'x' in p, Reflect.ownKeys({ a: 1, [Symbol.iterator]: 2 }).length] }`,
	"causes":        `try { try { null.x } catch (e) { throw new RangeError('outer', { cause: e }) } } catch (e) { return { ok: true, data: [e.name, e.message, e.cause instanceof TypeError, e instanceof Error, String(e)] } }`,
	"frozen":        `session.state.mode = 'text'; return { ok: true, data: 1 }`,
	"thrown":        `throw new TypeError('wrong')`,
	"a string":      `throw 'a string'`,
	"nothing":       `throw undefined`,
	"undeclared":    `return { ok: true, data: missing }`,
	"tool error":    `throw new ToolError(ErrorType.CONFLICT, 'It is taken.', { retryable: true, partialSideEffects: true, details: { by: [1] } })`,
	"default error": `throw new ToolError(ErrorType.RATE_LIMIT, 'Too many.')`,
	"a failure":     `return { ok: false, error: { type: ErrorType.SESSION_INACTIVE, message: 'It has ended.', retryable: false }, intents: [], meta: { duration: 0 } }`,
	"intents":       `return { ok: true, data: null, intents: [{ type: IntentType.END_VOICE_SESSION, after: 'current_turn' }, { type: IntentType.SUPPRESS_AUDIO, value: true }, { type: 'SET_PENDING_MESSAGE', message: 'm' }] }`,
	"messages":      `ws.send(JSON.stringify({ type: 'timeout', durationSeconds: 3 })); ws.send('x'); return { ok: true, data: [ws.readyState, geminiSession, clientId] }`,
	"undefined":     `return`,
	"getter":        `return { ok: true, data: { get x() { throw new RangeError('trap') } } }`,
	"circular":      `const o = {}; o.o = o; return { ok: true, data: o }`,
	"lowered":       `class A { static f() { return 'A' } } class B extends A { static x = super.f(); #v = 1; set() { ({ v: this.#v } = { v: 42 }); return this.#v } s = super.toString } return { ok: true, data: [B.x, new B().set(), B.name, new B().s === {}.toString] }`,
	"hosts":         `const l = []; for (const u of ['http://2130706433/', 'http://0x7f.1', 'http://1.2.3', 'http://127.0.0.1.:80/', 'http://[0:0::1]/', 'http://[::ffff:127.0.0.1]/', 'http://[::1%25lo]', 'http://256.1.1.1/', 'http://1.2.3.4.5', 'http://ex%41mple.com', 'http://a%00b', 'http:a', 'http:\\\\a\\b?\\', 'https:///x', 'file:///etc', 'http://09.1/', 'http://0.0x.0x1']) try { const x = new URL(u); l.push([x.href, x.origin]) } catch (e) { l.push([u, e.name]) } const u = new URL('https://a.example/?x=%E4'), s = u.searchParams; u.search = '?n=1'; return { ok: true, data: [l, s.get('n'), s === u.searchParams, new URLSearchParams('x=%E4%zz').get('x'), String(Object.prototype.toString.call(u))] }`,
	"decoding":      `const d = new TextDecoder(), o = []; for (const part of [[0xef, 0xbb], [0xbf, 0xe2, 0x82], [0xac, 0x41, 0xf0], [0x9f]]) o.push(d.decode(new Uint8Array(part), { stream: true })); o.push(d.decode(), d.decode(new Uint8Array([0xf0, 0x9f, 0x98, 0x41, 0xff, 0xc0, 0x80]))); try { new TextDecoder('utf-8', { fatal: true }).decode(new Uint8Array([255])) } catch (e) { o.push(e.name, e.message) } const to = new Uint8Array(4); return { ok: true, data: [o, new TextEncoder().encodeInto('aé😀', to), [...to], new TextDecoder('utf-8', { ignoreBOM: true }).decode(new Uint8Array([0xef, 0xbb, 0xbf])).length] }`,
	"Node APIs":     `const t = setTimeout(() => {}, 1000).unref(); clearTimeout(t); clearTimeout(+setTimeout(() => {}, 1000)); class E extends Error { constructor(m) { super(m); Error.captureStackTrace(this, E) } } const r = new Response('x', { headers: [['Set-Cookie', 'a=1'], ['set-cookie', 'b=2, c']] }); return { ok: true, data: [['table', 'dir', 'group', 'groupEnd', 'time', 'timeEnd', 'count'].map((k) => typeof console[k]), typeof t, t.hasRef(), new E('m').message, r.headers.getSetCookie(), await r.clone().text(), await r.text(), await Response.json({ a: 1 }).json(), String(new Date(0)), new Date(0) + 1, new Date(0).getYear()] }`,
	"signals":       `const a = new AbortController(), h = { n: 0, handleEvent() { this.n++ } }; const s = AbortSignal.any([new AbortController().signal, a.signal]); s.addEventListener('abort', h); a.abort('x'); let m; try { await Promise.any([Promise.reject(1)]) } catch (e) { m = [e.message, e.errors] } const kinds = [Promise.resolve(), new WeakMap(), new Boolean(true), Object(1n)].map((v) => { try { return Object.prototype.toString.call(structuredClone(v)) } catch (e) { return [e.name, e.code] } }); return { ok: true, data: [s.aborted, s.reason, h.n, m, kinds, AbortSignal.abort().reason.code] }`,
	"header error":  `new Headers({ 'bad name': '1' })`,
	"a GET body":    `await fetch('http://127.0.0.1:1/', { body: '' })`,
	"imports":       `return { ok: true, data: [twice(4), table.a, left('x', 3), (await import('./late.js')).late] }`,
}

const nodeRunner = `
import { readFileSync } from 'node:fs';
const out = {};
for (const [name, given] of Object.entries(JSON.parse(readFileSync('given.json')))) {
  const context = JSON.parse(given), sent = [];
  const freeze = (v) => { if (typeof v === 'object' && v) Object.values(Object.freeze(v)).forEach(freeze) };
  freeze(context.session.state);
  Object.assign(context, { geminiSession: null, ws: { readyState: 1, OPEN: 1, send: (m) => sent.push(m) } });
  try {
    const { execute } = await import('./' + name + '/handler.js');
    const result = await execute(context);
    out[name] = { result: JSON.parse(JSON.stringify(result) ?? 'null') };
  } catch (e) {
    out[name] = e?.name === 'ToolError' ? { thrown: 'ToolError', error: JSON.parse(JSON.stringify({ type: e.type, message: e.message, retryable: e.retryable, partialSideEffects: e.partialSideEffects, details: e.details })) } : { thrown: e instanceof Error ? e.name : 'a value' };
  }
}
console.log(JSON.stringify(out));
`

type behavior struct {
	Result any            `json:"result,omitempty"`
	Thrown string         `json:"thrown,omitempty"`
	Error  map[string]any `json:"error,omitempty"`
}

func behaviorOf(done *doneMessage) behavior {
	switch e := done.Thrown; {
	case e == nil:
		var v any
		if done.Failed != "" || json.Unmarshal(done.Result, &v) != nil {
			v = done.Failed
		}
		return behavior{Result: v}
	case e.Tool:
		all := map[string]any{"type": e.Type, "message": e.Message, "retryable": e.Retryable, "partialSideEffects": e.PartialSideEffects}
		var details any
		if json.Unmarshal(e.Details, &details) == nil {
			all["details"] = details
		}
		return behavior{Thrown: "ToolError", Error: all}
	default:
		name, _, ok := strings.Cut(e.Stack, ":")
		if !ok || strings.HasPrefix(name, "a value") {
			name = "a value"
		}
		return behavior{Thrown: name}
	}
}

// guideHandlers returns the complete handlers of the authoring guide; none if there is no guide.
func guideHandlers(t *testing.T) []string {
	t.Helper()
	for _, dir := range []string{"../../..", "../../../.."} {
		text, err := os.ReadFile(filepath.Join(dir, "shared/user/tool-authoring-guide.md"))
		if err != nil {
			continue
		}
		var all []string
		for _, block := range regexp.MustCompile("(?s)```javascript\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
			if code := block[1]; strings.HasPrefix(code, "import ") && strings.Contains(code, "export async function execute") {
				all = append(all, code)
			}
		}
		if len(all) == 0 {
			t.Error("the guide has no complete handler")
		}
		return all
	}
	t.Log("there is no authoring guide")
	return nil
}

// TestSameAsInNode: the results, errors and intents of handlers are the same as in Node.
func TestSameAsInNode(t *testing.T) {
	files := map[string]string{
		"_core/error-types.js": errorTypesModule(), "package.json": `{"type":"module"}`, "run.mjs": nodeRunner,
		"imports/lib.js": "export const twice = (x) => 2 * x;", "imports/late.js": "export const late = 'late';", "_lib/table.js": "export default { a: 5 };",
		"node_modules/pad/package.json": `{"name":"pad","version":"1.0.0","main":"index.cjs"}`,
		"node_modules/pad/index.cjs":    `module.exports.left = function (s, n) { return s.padStart(n, process.env.NODE_ENV === 'x' ? '?' : '.') }`,
	}
	const head = `import { ToolError, ErrorType, IntentType } from '../_core/error-types.js';
`
	p, _ := newHosts(t)
	given, want := map[string]string{}, map[string]behavior{}
	contexts := map[string]json.RawMessage{}
	add := func(name, code string, active bool) {
		name = strings.ReplaceAll(name, " ", "-")
		files[name+"/handler.js"] = code
		c := callOf(`{"duration_seconds":60,"farewell_message":"Bye","list":[1,"a",null,true,1.5]}`)
		if !active {
			c.Session.Phase = "ended"
		}
		text, err := (&Tool{spec: declared()}).context(c)
		if err != nil {
			t.Fatal(err)
		}
		given[name], contexts[name] = string(text), text
	}
	for name, body := range sameInNode {
		imports := ""
		if name == "imports" {
			imports = "import { twice } from './lib.js'; import table from '../_lib/table.js'; import { left } from 'pad';\n"
		}
		add(name, head+imports+"export async function execute(context) { const { args, clientId, ws, geminiSession, session, capabilities } = context;\n"+body+"\n}", true)
	}
	for _, code := range guideHandlers(t) {
		add("guide active", code, true)
		add("guide ended", code, false)
	}
	text, _ := json.Marshal(given)
	files["given.json"] = string(text)
	root := write(t, files)
	got := map[string]behavior{}
	for name := range given {
		b, problems := bundleOf(root, name)
		if b.code == "" {
			t.Fatal(problems)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		done, err := p.run(ctx, &Tool{spec: declared(), bundle: b}, contexts[name], callOf("{}"))
		cancel()
		if err != nil {
			t.Fatal(name, err)
		}
		got[name] = behaviorOf(done)
	}
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node is missing:", err)
	}
	cmd := exec.Command(node, "run.mjs")
	cmd.Dir, cmd.Env, cmd.Stderr = root, []string{"TZ=UTC"}, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(out, &want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Node (-) and the tool host (+):\n%s", diff)
	}
	if len(guideHandlers(t)) > 0 && got["guide-active"].Thrown != "ReferenceError" {
		t.Errorf("the guide's example gives %v", got["guide-active"])
	}
}
