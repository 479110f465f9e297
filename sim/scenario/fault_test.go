package scenario

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"voicegw/internal/strict"
)

func parse(t *testing.T, text string) *FaultScript {
	t.Helper()
	s, err := ParseFaults("f.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestMatchingPoints(t *testing.T) {
	in := parse(t, `
faults:
  - {at: turn, n: 2, do: close, code: 4000, reason: two}
  - {at: chunk, turn: 3, n: 2, do: drop}
  - {at: event, event: a.b, do: malformed, limit: 2}
  - {at: call, do: duplicate_call, repeat: 3}
  - {at: setup, connection: 2, do: drop}
`).NewInjector(1, Connection{N: 1})
	for _, c := range []struct {
		p    Point
		want string
	}{
		{Point{At: AtSetup}, "[]"},
		{Point{At: AtTurn, N: 1, Turn: 1}, "[]"},
		{Point{At: AtTurn, N: 2, Turn: 2}, "[{close 0s 4000 two 0 }]"},
		{Point{At: AtTurn, N: 2, Turn: 2}, "[]"}, // once
		{Point{At: AtChunk, N: 2, Turn: 2}, "[]"},
		{Point{At: AtChunk, N: 2, Turn: 3}, "[{drop 0s 0  0 }]"},
		{Point{At: AtEvent, Event: "a.c"}, "[]"},
		{Point{At: AtEvent, Event: "a.b"}, "[{malformed 0s 0  0 }]"},
		{Point{At: AtEvent, Event: "a.b"}, "[{malformed 0s 0  0 }]"},
		{Point{At: AtEvent, Event: "a.b"}, "[]"},
		{Point{At: AtCall, N: 1}, "[{duplicate_call 0s 0  3 }]"},
	} {
		if got := fmt.Sprint(in.At(c.p)); got != c.want {
			t.Errorf("%+v: got %s, want %s", c.p, got, c.want)
		}
	}
	if got := parse(t, `{faults: [{at: setup, connection: 2, do: drop}]}`).NewInjector(1, Connection{N: 2}).At(Point{At: AtSetup}); len(got) != 1 {
		t.Errorf("the second connection: %v", got)
	}
}

func TestChanceIsSeeded(t *testing.T) {
	s := parse(t, `{faults: [{at: frame, probability: 0.25, do: delay, for: 10ms, jitter: 20ms}, {at: frame, probability: 0.5, limit: 3, do: malformed}]}`)
	run := func(seed uint64) (all string, delays, broken int) {
		in := s.NewInjector(seed, Connection{N: 1})
		for range 1000 {
			for _, a := range in.At(Point{At: AtFrame}) {
				all += fmt.Sprint(a)
				if a.Kind == Malformed {
					broken++
					continue
				}
				delays++
				if a.For < 10*time.Millisecond || a.For > 30*time.Millisecond {
					t.Fatalf("delay of %v", a.For)
				}
			}
		}
		return all, delays, broken
	}
	one, delays, broken := run(1)
	again, _, _ := run(1)
	other, _, _ := run(2)
	if one != again || one == other {
		t.Error("the seed does not decide")
	}
	if delays < 200 || delays > 300 || broken != 3 {
		t.Errorf("%d delays of about 250, %d broken of at most 3", delays, broken)
	}
}

func TestTimedFaultsAreSorted(t *testing.T) {
	in := parse(t, `{faults: [{at: time, after: 30s, do: goaway, for: 5s}, {at: time, after: 1s, do: delay, for: 1s}]}`).NewInjector(1, Connection{N: 1})
	got := in.Timed()
	if len(got) != 2 || got[0].After != time.Second || got[1].Fault.Kind != GoAway || got[1].Fault.For != 5*time.Second {
		t.Errorf("got %v", got)
	}
}

func TestNilDoesNothing(t *testing.T) {
	var s *FaultScript
	in := s.NewInjector(1, Connection{N: 1})
	if in.At(Point{At: AtFrame}) != nil || in.Timed() != nil {
		t.Error("a nil script commits faults")
	}
}

func TestDefaults(t *testing.T) {
	in := parse(t, `{faults: [{at: setup, do: close}, {at: setup, do: unknown_event}, {at: setup, do: duplicate_call}, {at: setup, do: silence}]}`).NewInjector(1, Connection{N: 1})
	want := "[{close 0s 1011  0 } {unknown_event 0s 0  0 sim.unknown} {duplicate_call 0s 0  1 } {silence 0s 0  0 }]"
	if got := fmt.Sprint(in.At(Point{At: AtSetup})); got != want {
		t.Errorf("got %s", got)
	}
}

func TestProblems(t *testing.T) {
	_, err := ParseFaults("f.yaml", []byte(`faults:
  - {do: drop}
  - {at: sometimes, do: drop}
  - {at: turn}
  - {at: turn, do: dropp}
  - {at: setup, n: 1, do: drop}
  - {at: event, do: drop}
  - {at: time, do: drop}
  - {at: turn, do: delay}
  - {at: turn, do: drop, for: 1s}
  - {at: turn, do: close, code: 1005}
  - {at: turn, do: close, code: 2000}
  - {at: frame, probability: 2, do: delay, for: -1s}
  - {at: frame, probability: 0, do: drop}
  - {at: turn, n: 1, turn: 1, do: drop}
  - {at: turn, do: drop, times: 3}
  - nonsense
`))
	var e *strict.Error
	if !errors.As(err, &e) {
		t.Fatalf("%T %v", err, err)
	}
	for _, want := range []string{
		"f.yaml:2: the fault has no time or place",
		`f.yaml:3: at cannot be "sometimes"; it is one of connect,`,
		"f.yaml:4: the fault has no action",
		`f.yaml:5: do cannot be "dropp" (did you mean "drop"?)`,
		"f.yaml:6: n has no meaning at setup; use it with at: turn, chunk and call",
		"f.yaml:7: at: event needs event",
		"f.yaml:8: at: time needs after",
		"f.yaml:9: delay needs for",
		"f.yaml:10: for has no meaning for drop",
		"f.yaml:11: code 1005 cannot be sent",
		"f.yaml:12: code 2000 cannot be sent",
		"f.yaml:13: probability must be a number from 0 to 1",
		"f.yaml:13: for must be a time",
		"f.yaml:14: probability 0 never happens",
		"f.yaml:15: give n alone",
		`f.yaml:16: a fault has no key "times"`,
		"f.yaml:17: a fault must be a mapping",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("missing: %s", want)
		}
	}
	if t.Failed() {
		t.Log(err)
	}
	if _, err := ParseFaults("f", []byte(`{}`)); err == nil || !strings.Contains(err.Error(), "the key faults is missing") {
		t.Errorf("an empty mapping: %v", err)
	}
}

func FuzzParseFaults(f *testing.F) {
	f.Add("faults:\n  - {at: turn, n: 2, do: close, code: 4000, reason: x}\n")
	f.Add("faults: [{at: frame, probability: 0.5, do: delay, for: 1s, jitter: 24h}, {at: time, after: 1ms, do: goaway}]")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseFaults("f", []byte(text))
		if err != nil {
			var e *strict.Error
			if !errors.As(err, &e) || len(e.Problems) == 0 {
				t.Fatalf("%T %v", err, err)
			}
			return
		}
		in := s.NewInjector(1, Connection{N: 1})
		for _, at := range []Where{AtConnect, AtSetup, AtTurn, AtChunk, AtCall, AtEvent, AtFrame} {
			for _, a := range in.At(Point{At: at, N: 1, Turn: 1, Event: "x"}) {
				if a.Kind == "" || a.For < 0 {
					t.Fatalf("%+v", a)
				}
			}
		}
		in.Timed()
	})
}

func TestFaultsOfOneAPI(t *testing.T) {
	s := parse(t, `{faults: [{at: connect, api: chat, connection: 2, do: http_error, code: 429, for: 2s, reason: slow down}, {at: connect, connection: 5, do: drop}]}`)
	for _, c := range []struct {
		conn Connection
		want string
	}{
		{Connection{N: 2, OfAPI: 2, API: APIImages}, "[]"},
		{Connection{N: 2, OfAPI: 1, API: APIChat}, "[]"},
		{Connection{N: 7, OfAPI: 2, API: APIChat}, "[{http_error 2s 429 slow down 0 }]"},
		{Connection{N: 5, OfAPI: 1, API: APILive}, "[{drop 0s 0  0 }]"},
	} {
		if got := fmt.Sprint(s.NewInjector(1, c.conn).At(Point{At: AtConnect})); got != c.want {
			t.Errorf("%+v: %s, want %s", c.conn, got, c.want)
		}
	}
	if got := parse(t, `{faults: [{at: turn, do: http_error}]}`).NewInjector(1, Connection{N: 1}).At(Point{At: AtTurn}); len(got) != 1 || got[0].Code != 500 {
		t.Errorf("%+v", got)
	}
	for bad, want := range map[string]string{
		`{at: turn, do: http_error, code: 200}`: "code (an HTTP status) must be a whole number from 400 to 599",
		`{at: turn, api: telepathy, do: drop}`:  `api cannot be "telepathy"`,
	} {
		if _, err := ParseFaults("f", []byte("faults: ["+bad+"]")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// TestFaultsOfResumption: their defaults, and the places in which they could never happen.
func TestFaultsOfResumption(t *testing.T) {
	in := parse(t, `{faults: [{at: setup, do: refuse_resume}, {at: setup, do: refuse_resume, code: 1007, reason: no}, {at: setup, api: live, do: late_handle, for: 3s}, {at: setup, api: realtime, do: deaf}]}`).
		NewInjector(1, Connection{N: 1, OfAPI: 1, API: APILive})
	if got, want := fmt.Sprint(in.At(Point{At: AtSetup})), "[{refuse_resume 0s 1008  0 } {refuse_resume 0s 1007 no 0 } {late_handle 3s 0  0 }]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for bad, want := range map[string]string{
		`{at: connect, do: amnesia}`:               "f:1: amnesia has no meaning at connect",
		`{at: connect, do: deaf}`:                  "deaf has no meaning at connect",
		`{at: setup, api: realtime, do: amnesia}`:  "amnesia needs resumption handles, which only the API live has",
		`{at: setup, api: chat, do: deaf}`:         "deaf is a fault of voice sessions",
		`{at: setup, do: late_handle}`:             "late_handle needs for",
		`{at: setup, do: no_handle, for: 1s}`:      "for has no meaning for no_handle",
		`{at: setup, do: amnesia, code: 1007}`:     "code has no meaning for amnesia",
		`{at: setup, do: refuse_resume, for: 2s}`:  "for has no meaning for refuse_resume",
		`{at: setup, do: refuse_resume, code: 77}`: "code must be",
		`{at: connect, do: no_audio}`:              "no_audio has no meaning at connect",
		`{at: setup, api: live, do: unplaced}`:     "unplaced is a fault of the API openai_live",
		`{at: setup, do: undelegated, for: 1s}`:    "for has no meaning for undelegated",
	} {
		if _, err := ParseFaults("f", []byte("faults: ["+bad+"]")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", bad, err, want)
		}
	}
}

// TestAdd: faults of a command line.
func TestAdd(t *testing.T) {
	var all *FaultScript
	for _, text := range []string{"deaf", " at: turn, n: 2, do: close, code: 4000 ", "{at: setup, do: refuse_resume, code: 1011}"} {
		more, err := all.Add("--fault", text)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := all.Add("--fault", "amnesia"); err != nil { // changes neither of the others
			t.Fatal(err)
		}
		all = more
	}
	in := all.NewInjector(1, Connection{N: 1})
	if got, want := fmt.Sprint(in.At(Point{At: AtSetup}), in.At(Point{At: AtTurn, N: 2, Turn: 2})),
		"[{deaf 0s 0  0 } {refuse_resume 0s 1011  0 }] [{close 0s 4000  0 }]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for bad, want := range map[string]string{
		"":                      "the fault has no time or place",
		"explode":               `do cannot be "explode"`,
		"late_handle":           "late_handle needs for",
		"at: setup, do: deef":   `do cannot be "deef" (did you mean "deaf"?)`,
		"at: setup}, {at: turn": "--fault",
	} {
		if _, err := all.Add("--fault", bad); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", bad, err, want)
		}
	}
}

func FuzzAdd(f *testing.F) {
	f.Add("deaf")
	f.Add("at: turn, n: 2, do: close, code: 4000")
	f.Add("{at: time, after: 1s, do: goaway}")
	f.Fuzz(func(t *testing.T, text string) {
		var none *FaultScript
		s, err := none.Add("--fault", text)
		var e *strict.Error
		if err != nil && (!errors.As(err, &e) || len(e.Problems) == 0) || err == nil && len(s.rules) != 1 {
			t.Fatalf("%v, %v", s, err)
		}
	})
}
