package rest

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"voicegw/internal/openaiwire"
	"voicegw/sim/fault"
	"voicegw/sim/wire"
)

func TestErrorsOfBothProviders(t *testing.T) {
	e := openaiwire.Invalid("too_long", "prompt", "The prompt has %d words.", 9)
	if got, want := string(OpenAI(e)), `{"error":{"message":"The prompt has 9 words.","type":"invalid_request_error","param":"prompt","code":"too_long"}}`; got != want {
		t.Errorf("%s", got)
	}
	if got, want := string(Google(e)), `{"error":{"code":400,"message":"The prompt has 9 words.","status":"INVALID_ARGUMENT"}}`; got != want {
		t.Errorf("%s", got)
	}
	if got := string(OpenAI(OpenAIKey(""))); !strings.Contains(got, `"param":null,"code":null`) {
		t.Errorf("%s", got)
	}
	for key, want := range map[string][2]int{"": {401, 403}, "sk-invalid": {401, 400}, "expired": {401, 400}, "quota": {429, 429}, "good": {0, 0}} {
		status := func(e *Error) int {
			if e == nil {
				return 0
			}
			return e.Status
		}
		if got := [2]int{status(OpenAIKey(key)), status(GoogleKey(key))}; got != want {
			t.Errorf("%q: %v, want %v", key, got, want)
		}
	}
}

func TestKeysOfRequests(t *testing.T) {
	for header, want := range map[string]string{"Authorization: Bearer a": "a", "authorization: bearer  b ": "b", "Api-Key: c": "c", "Authorization: Basic d": "", "X-Goog-Api-Key: e": ""} {
		r := httptest.NewRequest(http.MethodPost, "/?key=q", nil)
		name, value, _ := strings.Cut(header, ": ")
		r.Header.Set(name, value)
		if got := OpenAIKeyOf(r); got != want {
			t.Errorf("%s: %q", header, got)
		}
		if got := GoogleKeyOf(r); got != "q" {
			t.Errorf("%s, with a key in the query: %q", header, got)
		}
	}
}

// endless is an endless body.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

// broken is a body that fails.
type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func TestBodies(t *testing.T) {
	serve := func(body io.Reader) (*httptest.ResponseRecorder, wire.Options) {
		o := wire.Options{}.WithDefaults()
		w := httptest.NewRecorder()
		serveOne(w, httptest.NewRequest(http.MethodPost, "/", body), &o, fault.APIChat, OpenAI, nil, func(x *exchange, b []byte) *Error {
			x.JSON(len(b))
			return nil
		})
		return w, o
	}
	if w, o := serve(strings.NewReader("four")); w.Code != 200 || w.Body.String() != "4" || !strings.HasPrefix(w.Header().Get("X-Request-Id"), "req_") || o.Stats.Requests.Load() != 1 || o.Stats.Open.Load() != 0 {
		t.Errorf("%d %s %v", w.Code, w.Body, w.Header())
	}
	if w, o := serve(endless{}); w.Code != http.StatusRequestEntityTooLarge || o.Stats.Errors.Load() != 1 {
		t.Errorf("an endless body: %d %s", w.Code, w.Body)
	}
	if w, _ := serve(broken{}); w.Body.Len() != 0 {
		t.Errorf("a broken body: %d %s", w.Code, w.Body)
	}
}

// TestDropCutsTheConnection: a cut is an aborted handler for net/http; the exchange still leaves the group.
func TestDropCutsTheConnection(t *testing.T) {
	for _, kind := range []string{"drop", "close", "expire"} {
		s, err := fault.Parse("f", []byte("faults: [{at: setup, do: "+kind+"}]"))
		if err != nil {
			t.Fatal(err)
		}
		o := wire.Options{Faults: s}.WithDefaults()
		func() {
			defer func() {
				if err, _ := recover().(error); !errors.Is(err, http.ErrAbortHandler) {
					t.Errorf("%s: %v", kind, err)
				}
			}()
			serveOne(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/", nil), &o, fault.APIChat, OpenAI, nil, func(*exchange, []byte) *Error {
				t.Errorf("%s: the request is handled", kind)
				return nil
			})
		}()
		if o.Group.Len() != 0 || o.Stats.Open.Load() != 0 || o.Stats.FaultsBy.All()[fault.Kind(kind)] != 1 {
			t.Errorf("%s: %d requests are left, faults %v", kind, o.Group.Len(), o.Stats.FaultsBy.All())
		}
	}
}
