package httptool

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"voicegw/config/setting"
	"voicegw/registry"
	"voicegw/registry/spec"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const schemaText = `{
  "toolId": "order_find", "version": "1.0.0", "description": "Finds an order.", "category": "action", "sideEffects": "writes",
  "idempotent": %v, "requiresConfirmation": false, "allowedModes": ["text"], "latencyBudgetMs": 500, "timeoutMs": 2000,
  "settings": {
    "base_url": {"type": "string", "description": "The address."},
    "key": {"type": "string", "secret": true, "description": "The key."}
  },
  "parameters": {"type": "object", "properties": {
    "id": {"type": "string", "description": "The id."}, "n": {"type": "integer", "description": "A number."},
    "tags": {"type": "array", "items": {"type": "string"}, "description": "Tags."}
  }, "additionalProperties": false}
}`

func declared(t testing.TB, idempotent bool) *spec.Spec {
	t.Helper()
	s, problems := spec.Parse(fmt.Appendf(nil, schemaText, idempotent))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return &s
}

const secretText = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="

// call runs a tool with that handler.yaml against a server.
func call(t testing.TB, handler, base, args string, idempotent bool) (registry.Result, error) {
	t.Helper()
	tool, err := Parse(FileName, []byte(handler), declared(t, idempotent))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	return tool.execute(ctx, callOf(base, args))
}

func callOf(base, args string) registry.Call[json.RawMessage, needs] {
	return registry.Call[json.RawMessage, needs]{
		Args: json.RawMessage(args), Tool: "order_find", IdempotencyKey: "op-1",
		Needs:   needs{registry.AnySettings{Values: map[string]any{"base_url": base, "key": setting.NewSecret(secretText)}}},
		Session: registry.Session{ID: "voice-1", UserID: "ada\u2028", Mode: spec.ModeText, Turn: 3, Vouched: true},
	}
}

// TestRequests: the server gets the request of handler.yaml, with each value escaped for its place.
func TestRequests(t *testing.T) {
	for name, tc := range map[string]struct{ handler, args, want string }{
		"the arguments are the body": {"url: '{settings.base_url}/v1'\nprivate: true", `{"id":"a"}`, `POST /v1 {"id":"a"}`},
		"a path":                     {"method: GET\nurl: '{settings.base_url}/o/{args.id}'\nprivate: true", `{"id":"a/b?c#é"}`, "GET /o/a%2Fb%3Fc%23%C3%A9 "},
		"a query without a value": {"method: GET\nurl: '{settings.base_url}/'\nquery: {q: '{args.id}', n: '{args.n}'}\nprivate: true",
			`{"id":"a&b=c"}`, "GET /?q=a%26b%3Dc "},
		"a body": {"url: '{settings.base_url}/'\nbody: {a: {n: '{args.n}', t: '{args.tags}', s: 'no {args.n}', f: 1, none: '{args.id}'}, l: [x, '{session.turn}', '{args.id}']}\nprivate: true",
			`{"n":12345678901234567890,"tags":["x","<"]}`, `POST / {"a":{"f":1,"n":12345678901234567890,"s":"no 12345678901234567890","t":["x","<"]},"l":["x",3]}`},
		"no body":         {"url: '{settings.base_url}/'\nbody: null\nprivate: true", `{"n":1}`, "POST / "},
		"headers":         {"method: DELETE\nurl: '{settings.base_url}/'\nheaders: {X-A: 'v={args.id} {session.vouched}', X-B: '{args.n}'}\nprivate: true", `{"id":"é"}`, "DELETE /  x-a=v=é true"},
		"a dot segment":   {"method: GET\nurl: '{settings.base_url}/o/{args.id}/x'\nprivate: true", `{"id":".."}`, "VALIDATION"},
		"a missing value": {"method: GET\nurl: '{settings.base_url}/o/{args.id}'\nprivate: true", `{}`, "VALIDATION"},
		"a line break":    {"method: GET\nurl: '{settings.base_url}/'\nheaders: {X-A: '{args.id}'}\nprivate: true", `{"id":"a\r\nX-B: c"}`, "VALIDATION"},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				got = r.Method + " " + r.RequestURI + " " + string(body)
				for _, h := range []string{"x-a", "x-b"} {
					if v, has := r.Header[http.CanonicalHeaderKey(h)]; has {
						got += " " + h + "=" + v[0]
					}
				}
				if r.Header.Get("Idempotency-Key") != "op-1" {
					got += " without a key"
				}
			}))
			defer srv.Close()
			if _, err := call(t, tc.handler, srv.URL, tc.args, true); err != nil {
				got, _, _ = strings.Cut(err.Error(), ":")
			}
			if got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

const simple = "url: '{settings.base_url}/'\nsign: key\ndata: /d\nprivate: true"

// TestAnswers: each status has its error type; only idempotent requests are retried.
func TestAnswers(t *testing.T) {
	for status, want := range map[int]string{
		200: "ok 1", 201: "ok 1", 400: "VALIDATION 1", 422: "VALIDATION 1", 401: "AUTH 1", 403: "AUTH 1", 404: "NOT_FOUND 1", 410: "NOT_FOUND 1",
		409: "CONFLICT 1", 429: "RATE_LIMIT 3 retryable", 408: "TRANSIENT 3 retryable partial repeatable", 418: "PERMANENT 1", 302: "PERMANENT 1",
		500: "TRANSIENT 3 retryable partial repeatable", 501: "PERMANENT 1 partial repeatable", 503: "TRANSIENT 3 retryable partial repeatable",
	} {
		for _, idempotent := range []bool{true, false} {
			var asked atomic.Int32
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked.Add(1)
				w.Header().Set("Location", "http://127.0.0.1:1/")
				w.WriteHeader(status)
				io.WriteString(w, `{"d":{"x":1},"error":{"message":"it is\u202e so"}}`)
			}))
			result, err := call(t, simple, srv.URL, `{}`, idempotent)
			srv.Close()
			got := fmt.Sprint("ok ", asked.Load())
			var e *registry.ToolError
			if err != nil {
				e = err.(*registry.ToolError)
				got = fmt.Sprint(e.Type, " ", asked.Load())
				for text, on := range map[string]bool{" retryable": e.Retryable, " partial": e.PartialSideEffects, " repeatable": e.Repeatable} {
					if on != strings.Contains(want, text) && idempotent {
						t.Errorf("%d:%s is %v", status, text, on)
					}
				}
				if status != 302 && !strings.HasSuffix(e.Message, "it is so.") {
					t.Errorf("%d: the model reads %q", status, e.Message)
				}
				if !idempotent && (asked.Load() != 1 || e.Retryable && status != 429 || e.Repeatable) {
					t.Errorf("%d: %d requests, although it is not idempotent: %+v", status, asked.Load(), e)
				}
			} else if diff := cmp.Diff(map[string]any{"x": json.Number("1")}, result.Data); diff != "" {
				t.Error(diff)
			}
			if idempotent && got != strings.Join(strings.Fields(want)[:2], " ") {
				t.Errorf("%d: %s, want %s", status, got, want)
			}
		}
	}
}

// TestHostileServers: a call to a hostile server ends in time with an error of the right type, and reads little.
func TestHostileServers(t *testing.T) {
	flood := func(w io.Writer) {
		for block := strings.Repeat("x", 1<<16); ; {
			if _, err := io.WriteString(w, block); err != nil {
				return
			}
		}
	}
	for name, tc := range map[string]struct {
		serve http.HandlerFunc
		want  string
	}{
		"hangs":            {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "late"},
		"sends a gigabyte": {func(w http.ResponseWriter, _ *http.Request) { flood(w) }, "PERMANENT"},
		"an endless error": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500); flood(w) }, "TRANSIENT"},
		"a long refusal":   {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(409); flood(w) }, "CONFLICT"},
		"a refusal that is cut": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			w.WriteHeader(422)
		}, "VALIDATION"},
		"a compressed refusal": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			w.WriteHeader(404)
		}, "NOT_FOUND"},
		"more than a model gets": {func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, `{"d":"`+strings.Repeat("x", registry.MaxDataBytes)+`"}`)
		}, "PERMANENT"},
		"lies about the length": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			io.WriteString(w, `{"d":1}`)
		}, "TRANSIENT"},
		"compresses": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			io.WriteString(w, "x")
		}, "PERMANENT"},
		"redirects": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://127.0.0.1/", http.StatusTemporaryRedirect)
		}, "PERMANENT"},
		"a page":         {func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "<html>") }, "PERMANENT"},
		"no such part":   {func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, `{"e":1}`) }, "PERMANENT"},
		"nested":         {func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, strings.Repeat("[", 1e5)) }, "PERMANENT"},
		"hangs up":       {func(w http.ResponseWriter, _ *http.Request) { panic(http.ErrAbortHandler) }, "TRANSIENT"},
		"invisible text": {func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, `{"d":"a\u200bb\ud83d\ude00"}`) }, "ab😀"},
		"binary": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "image/png")
			w.Write([]byte{0xff})
		}, "PERMANENT"},
		"trickles": {func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				io.WriteString(w, " ")
				w.(http.Flusher).Flush()
				select {
				case <-time.After(50 * time.Millisecond):
				case <-r.Context().Done():
				}
			}
		}, "late"},
	} {
		t.Run(name, func(t *testing.T) {
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				io.Copy(io.Discard, r.Body) // otherwise the server does not notice that the client disconnects
				tc.serve(w, r)
			}))
			defer srv.Close()
			result, err := call(t, simple, srv.URL, `{}`, true)
			got := fmt.Sprint(result.Data)
			if e, ok := err.(*registry.ToolError); ok {
				got = string(e.Type)
			} else if err != nil {
				got = "late"
			}
			if got != tc.want {
				t.Errorf("%s (%v), want %s", got, err, tc.want)
			}
		})
	}
}

// TestAddresses: without private, a tool connects only to public addresses, under every name, and only over http and
// https. A failed connection has no side effects.
func TestAddresses(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := "http://" + ln.Addr().String()
	ln.Close()
	public := strings.TrimSuffix(simple, "\nprivate: true")
	for base, handler := range map[string]string{closed: public, "http://localhost:1": public, "http://169.254.169.254": simple, "file:///etc/passwd": simple} {
		_, err := call(t, handler, base, `{}`, false)
		var e *registry.ToolError
		if e, _ = err.(*registry.ToolError); err == nil || e != nil && (e.Type != registry.ErrorPermanent || e.PartialSideEffects) {
			t.Errorf("%s: %v", base, err)
		}
	}
	_, err = call(t, simple, closed, `{}`, false)
	if e := err.(*registry.ToolError); e.Type != registry.ErrorTransient || e.PartialSideEffects || !e.Retryable {
		t.Errorf("no connection: %+v", e)
	}
}

// TestNoReplay: a request that may have had a side effect is not sent again, even with a reused connection and an
// idempotency key.
func TestNoReplay(t *testing.T) {
	var asked atomic.Int32
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) > 1 {
			panic(http.ErrAbortHandler)
		}
		io.WriteString(w, `{"d":1}`)
	}))
	defer srv.Close()
	tool, err := Parse(FileName, []byte(simple), declared(t, false))
	if err != nil {
		t.Fatal(err)
	}
	c := callOf(srv.URL, `{}`)
	if _, err := tool.execute(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	_, err = tool.execute(t.Context(), c)
	if e, is := err.(*registry.ToolError); !is || !e.PartialSideEffects || asked.Load() != 2 {
		t.Errorf("%d requests, %v", asked.Load(), err)
	}
	if _, err := Parse(FileName, []byte("url: https://a.example/\nmethod: GET"), declared(t, false)); err == nil || !strings.Contains(err.Error(), "cannot use GET") {
		t.Errorf("a tool that writes with GET: %v", err)
	}
}

// TestMistakes: each mistake in handler.yaml is a problem with its line.
func TestMistakes(t *testing.T) {
	for text, want := range map[string]string{
		"method: GET":                                   "1: url is missing",
		"url: https://a.example/\nmethod: FETCH":        "2: method cannot be",
		"url: /orders":                                  "1: url must be absolute",
		"url: ftp://a.example/":                         "1: url must be absolute",
		"url: https://{args.id}.example/":               "1: the host of url may come from settings only",
		"url: 'https://a.example{args.id}/'":            "1: the host of url may come from settings only",
		"url: '{settings.base_url}{args.id}'":           "1: the host of url may come from settings only",
		"url: https://a.example/?q={args.id}":           "1: url has a query",
		"url: https://a.example/{args.ID}":              `1: {args.ID}: there is no "ID" (did you mean "id"?)`,
		"url: https://a.example/{id}":                   "1: {id} is not a placeholder",
		"url: https://a.example/{":                      "1: url has a brace",
		"url: https://a.example/\nmethod: GET\nbody: x": "3: a GET request has no body",
		"url: https://a.example/\nsign: base_url":       "2: sign must name a setting",
		"url: https://a.example/\ndata: order":          "2: data is a JSON Pointer",
		"url: https://a.example/\nheaders:\n  Host: x":  "3: headers cannot have",
		"url: https://a.example/\nheaders: {'a b': x}":  "2: headers cannot have",
		"url: https://a.example/\nprivat: true":         `2: handler.yaml has no key "privat"`,
		"url: &a https://a.example/":                    "1: anchors and aliases",
		"- x":                                           "1: handler.yaml must be a mapping",
		"":                                              "the file is empty",
	} {
		_, err := Parse(FileName, []byte(text), declared(t, true))
		if err == nil || !strings.HasPrefix(strings.TrimPrefix(strings.TrimPrefix(err.Error(), FileName+":"), " "), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// FuzzHandler: a handler.yaml is refused, or sends requests to its own host only.
func FuzzHandler(f *testing.F) {
	f.Add([]byte(simple), "a")
	f.Add([]byte("url: https://a.example/{args.id}\nmethod: GET\nquery: {a: '{args.id}'}\nheaders: {x: '{args.id}'}"), "..")
	f.Add([]byte("url: 'https://a.example{args.id}'"), "@b.example/")
	s := declared(f, true)
	f.Fuzz(func(t *testing.T, text []byte, id string) {
		tool, err := Parse(FileName, text, s)
		if err != nil {
			return
		}
		host := func(id string) string {
			args, _ := json.Marshal(map[string]string{"id": id})
			c := registry.Call[json.RawMessage, needs]{Args: args}
			c.Needs.Settings.Values = map[string]any{"base_url": "https://shop.example", "key": setting.NewSecret(secretText)}
			v, err := valuesOf(c)
			if err != nil {
				return ""
			}
			req, err := tool.request(t.Context(), c, v)
			if err != nil {
				return ""
			}
			return req.URL.Host
		}
		if a, b := host("x"), host(id); a != "" && b != "" && a != b {
			t.Errorf("the argument %q changes the host from %s to %s", id, a, b)
		}
	})
}
