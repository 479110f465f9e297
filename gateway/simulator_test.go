package gateway

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"voicegw/session"
	"voicegw/sim/scenario"
	"voicegw/sim/wire"
)

// fakeSimulator replaces the simulator and records the requests.
type fakeSimulator struct {
	err   error
	asked []scenario.Fault
}

func (f *fakeSimulator) Inject(_ string, a scenario.Fault) error {
	f.asked = append(f.asked, a)
	return f.err
}

// simulatorServer returns a server with one session, and the session's id.
func simulatorServer(t testing.TB, f *fakeSimulator) (s *Server, id string) {
	t.Helper()
	m, err := session.NewManager(sessionOptions())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	s = New(Options{Sessions: m, Simulator: f, Auth: operators(testKey)})
	srv := httptest.NewServer(s)
	t.Cleanup(srv.Close)
	c := dialStarted(t, srv.URL)
	t.Cleanup(c.Abort)
	return s, m.Sessions()[0].ID
}

// press requests a fault like the gateway's own page.
func press(s *Server, body string, change func(*http.Request)) *httptest.ResponseRecorder {
	r := httptest.NewRequest("POST", "/v1/simulator/faults", strings.NewReader(body))
	r.Host, r.RemoteAddr = "localhost:8080", "127.0.0.1:40000"
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Origin", "http://localhost:8080")
	r.Header.Set("Authorization", "Bearer "+testKey)
	if change != nil {
		change(r)
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

// TestFaultsByHand: the faults are listed, and a requested fault reaches the simulator.
func TestFaultsByHand(t *testing.T) {
	f := &fakeSimulator{}
	s, id := simulatorServer(t, f)
	w := ask(s, "GET", "/v1/simulator", nil)
	for _, want := range []string{
		`{"faults":[{"do":"drop","label":"Drop the provider's connection","for":false,"when":"now"},{`,
		`{"do":"late_call","label":"Send the next tool call after its turn","for":true,"for_ms":2000,"when":"next_call"}`,
	} {
		if got := w.Body.String(); w.Code != http.StatusOK || !strings.Contains(got, want) {
			t.Errorf("%d %s lacks %s", w.Code, got, want)
		}
	}
	for body, want := range map[string]scenario.Fault{
		`"do":"drop"`:                             {Kind: scenario.Drop},
		`"do":"close","code":4000`:                {Kind: scenario.Close, Code: 4000},
		`"do":"silence","for_ms":0`:               {Kind: scenario.Silence},
		`"do":"late_call","for_ms":1500,"code":0`: {Kind: scenario.LateCall, For: 1500 * time.Millisecond},
		`"do":"late_call","for_ms":86400000`:      {Kind: scenario.LateCall, For: 24 * time.Hour},
	} {
		f.asked = nil
		w := press(s, fmt.Sprintf(`{"session_id":%q,%s}`, id, body), nil)
		answer := fmt.Sprintf(`{"accepted":true,"when":%q}`, faultTime(want.Kind))
		if got := strings.TrimSpace(w.Body.String()); w.Code != http.StatusAccepted || got != answer {
			t.Errorf("%s: %d %s", body, w.Code, got)
		}
		if diff := cmp.Diff([]scenario.Fault{want}, f.asked); diff != "" {
			t.Errorf("%s: %s", body, diff)
		}
	}
}

// TestFaultsThatAreRefused: each refusal has its status and code and, for a bad body, names the field; it does not reach
// the simulator.
func TestFaultsThatAreRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		body   string // "ID" is replaced by the session's id
		change func(*http.Request)
		err    error
		status int
		code   string
		word   string
	}{
		"no session named":       {body: `{"do":"drop"}`, status: 400, code: "invalid_message", word: "session_id"},
		"an unknown session":     {body: `{"session_id":"voice-x","do":"drop"}`, status: 404, code: "session_unknown"},
		"a text as duration":     {body: `{"session_id":"ID","do":"delay","for_ms":"2s"}`, status: 400, code: "invalid_message", word: "for_ms"},
		"a part of a ms":         {body: `{"session_id":"ID","do":"delay","for_ms":1.5}`, status: 400, code: "invalid_message", word: "for_ms"},
		"a negative one":         {body: `{"session_id":"ID","do":"delay","for_ms":-1}`, status: 400, code: "invalid_message", word: "for_ms"},
		"more than a day":        {body: `{"session_id":"ID","do":"delay","for_ms":86400001}`, status: 400, code: "invalid_message", word: "for_ms"},
		"beyond numbers":         {body: `{"session_id":"ID","do":"delay","for_ms":9223372036854775808}`, status: 400, code: "invalid_message", word: "for_ms"},
		"an unknown field":       {body: `{"session_id":"ID","do":"delay","for":2000}`, status: 400, code: "invalid_message", word: "for"},
		"no JSON":                {body: `drop`, status: 400, code: "invalid_message"},
		"two of them":            {body: `{"session_id":"ID","do":"drop"} {}`, status: 400, code: "invalid_message"},
		"a form":                 {body: `{"session_id":"ID","do":"drop"}`, change: func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }, status: 415, code: "invalid_message"},
		"a foreign page":         {body: `{"session_id":"ID","do":"drop"}`, change: func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") }, status: 403, code: "origin"},
		"without the key":        {body: `{"session_id":"ID","do":"drop"}`, change: noKey, status: 401, code: "key_missing"},
		"an unknown fault":       {body: `{"session_id":"ID","do":"dorp"}`, status: 400, code: "invalid_message", word: "do must be one of drop"},
		"not connected any more": {body: `{"session_id":"ID","do":"drop"}`, err: fmt.Errorf("x: %w", wire.ErrNoConnection), status: 409, code: "not_connected"},
		"too many":               {body: `{"session_id":"ID","do":"drop"}`, err: fmt.Errorf("x: %w", wire.ErrTooMany), status: 429, code: "limit"},
		"something else":         {body: `{"session_id":"ID","do":"drop"}`, err: errors.New("s3cret"), status: 500, code: "internal"},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fakeSimulator{err: tc.err}
			s, id := simulatorServer(t, f)
			w := press(s, strings.ReplaceAll(tc.body, "ID", id), tc.change)
			var e struct {
				Error struct{ Code, Message string }
			}
			if err := json.Unmarshal(w.Body.Bytes(), &e); err != nil || w.Code != tc.status || e.Error.Code != tc.code || !strings.Contains(e.Error.Message, tc.word) {
				t.Errorf("%d %s, want %d %s with %q", w.Code, w.Body, tc.status, tc.code, tc.word)
			}
			if tc.err == nil && len(f.asked) > 0 || strings.Contains(w.Body.String(), "s3cret") {
				t.Errorf("asked %v, answered %s", f.asked, w.Body)
			}
		})
	}
	s, _ := simulatorServer(t, &fakeSimulator{})
	if w := ask(s, "GET", "/v1/simulator", noKey); w.Code != http.StatusUnauthorized {
		t.Errorf("the list, without the key: %d %s", w.Code, w.Body)
	}
}

// TestNoSimulator: a gateway of real providers has no such endpoints.
func TestNoSimulator(t *testing.T) {
	m, err := session.NewManager(sessionOptions())
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	s := New(Options{Sessions: m})
	if w := ask(s, "GET", "/v1/simulator", nil); w.Code != http.StatusNotFound {
		t.Errorf("the list: %d %s", w.Code, w.Body)
	}
	if w := press(s, `{"session_id":"voice-x","do":"drop"}`, nil); w.Code != http.StatusNotFound {
		t.Errorf("a fault: %d %s", w.Code, w.Body)
	}
}

// FuzzFaultBody: no body panics, and requests that reach the simulator are within limits.
func FuzzFaultBody(f *testing.F) {
	for _, body := range []string{
		`{"session_id":"ID","do":"drop"}`, `{"session_id":"ID","do":"delay","for_ms":2000}`, `{"session_id":"ID","do":"close","code":1011}`,
		`{"session_id":"ID","do":"delay","for_ms":-1}`, `{"session_id":"ID","do":7}`, `[]`, `{"for_ms":1e3}`,
	} {
		f.Add(body)
	}
	sim := &fakeSimulator{}
	s, id := simulatorServer(f, sim)
	f.Fuzz(func(t *testing.T, body string) {
		sim.asked = nil
		w := press(s, strings.ReplaceAll(body, "ID", id), nil)
		if !json.Valid(w.Body.Bytes()) {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		if (w.Code == http.StatusAccepted) != (len(sim.asked) == 1) || w.Code >= http.StatusInternalServerError {
			t.Fatalf("%d after %v", w.Code, sim.asked)
		}
		for _, o := range sim.asked {
			if o.For < 0 || o.For > 24*time.Hour {
				t.Fatalf("for %s", o.For)
			}
		}
	})
}
