package sim

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"voicegw/sim/scenario"
	"voicegw/sim/wire"
)

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
		serveOne(w, httptest.NewRequest(http.MethodPost, "/", body), &o, scenario.APIChat, wire.OpenAIError, nil, func(x *exchange, b []byte) *Error {
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
		s, err := scenario.ParseFaults("f", []byte("faults: [{at: setup, do: "+kind+"}]"))
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
			serveOne(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/", nil), &o, scenario.APIChat, wire.OpenAIError, nil, func(*exchange, []byte) *Error {
				t.Errorf("%s: the request is handled", kind)
				return nil
			})
		}()
		if o.Group.Len() != 0 || o.Stats.Open.Load() != 0 || o.Stats.FaultsBy.All()[scenario.FaultKind(kind)] != 1 {
			t.Errorf("%s: %d requests are left, faults %v", kind, o.Group.Len(), o.Stats.FaultsBy.All())
		}
	}
}
