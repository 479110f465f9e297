package wire

import (
	"context"
	"errors"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	"go.uber.org/goleak"

	"voicegw/internal/testutil"
	"voicegw/sim/scenario"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestKeys(t *testing.T) {
	for key, want := range map[string]Key{
		"": KeyMissing, "  ": KeyMissing, "sk-abc": KeyOK, "anything": KeyOK, "invalid": KeyInvalid, "sk-INVALID-1": KeyInvalid,
		"sk-expired": KeyExpired, "quota1": KeyQuota, "quota": KeyQuota, "sk-my-invalid": KeyOK,
	} {
		if got := ClassifyKey(key); got != want {
			t.Errorf("%q: %d, want %d", key, got, want)
		}
	}
}

func TestIDs(t *testing.T) {
	a, b, other := NewIDs(7), NewIDs(7), NewIDs(8)
	if x := a.Base62(21); x != b.Base62(21) || x == other.Base62(21) || len(x) != 21 {
		t.Errorf("base62 %q", x)
	}
	for range 200 {
		if d := a.Digits(19); len(d) != 19 || d[0] == '0' {
			t.Fatalf("digits %q", d)
		}
		if u := a.UUID(); !regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`).MatchString(u) {
			t.Fatalf("uuid %q", u)
		}
	}
}

func TestTextTokens(t *testing.T) {
	for text, want := range map[string]int{"": 0, " ": 0, "one": 2, "one two three": 4, "a b c d e f": 8} {
		if got := TextTokens(text); got != want {
			t.Errorf("%q: %d tokens, want %d", text, got, want)
		}
	}
}

func TestConnectionsDiffer(t *testing.T) {
	o := Options{Seed: 1}.WithDefaults()
	a, b := o.Begin(scenario.APIRealtime), o.Begin(scenario.APIRealtime)
	again := Options{Seed: 1}.WithDefaults()
	if a.N != 1 || b.N != 2 || a.Seed == b.Seed || again.Begin(scenario.APIRealtime).Seed != a.Seed {
		t.Errorf("%+v %+v", a, b)
	}
}

func TestGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g Group
		ended := make(chan struct{})
		leave, ok := g.Enter(func() { close(ended) })
		if !ok || g.Len() != 1 {
			t.Fatal("cannot enter")
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := g.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("close with one inside: %v", err)
		}
		<-ended
		if _, ok := g.Enter(func() {}); ok {
			t.Error("entered a closed group")
		}
		leave()
		leave()
		if err := g.Close(t.Context()); err != nil || g.Len() != 0 {
			t.Errorf("close when empty: %v", err)
		}
	})
}

// serve runs handle on one connection, with the client controlled by the test.
func serve(t *testing.T, o ConnOptions, handle func(*Conn), client func(*websocket.Conn)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		l := testutil.ListenPipe()
		var work sync.WaitGroup
		over := make(chan struct{})
		srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			defer close(over)
			c, err := Accept(w, r, o)
			if err != nil {
				t.Error(err)
				return
			}
			handle(c)
			select {
			case <-c.stop: // handle released it
			default:
				c.Release()
			}
		})}
		work.Go(func() { _ = srv.Serve(l) })
		tr := &http.Transport{DialContext: l.Dial, DisableKeepAlives: true}
		ws, _, err := websocket.Dial(t.Context(), "http://sim/", &websocket.DialOptions{HTTPClient: &http.Client{Transport: tr}})
		if err != nil {
			t.Fatal(err)
		}
		client(ws)
		_ = ws.CloseNow()
		<-over
		_ = srv.Close()
		work.Wait()
	})
}

// loop is an owner that only reads.
func loop(c *Conn) {
	for !c.Closed() {
		select {
		case f := <-c.frames:
			if f.err != nil {
				return
			}
		case <-c.timer.C:
			c.Flush()
		case <-c.done:
			c.Close(1001, "ending")
			return
		}
	}
}

func TestACloseFrameWithALongReason(t *testing.T) {
	serve(t, ConnOptions{}, func(c *Conn) {
		c.Close(4321, strings.Repeat("ä", 100))
		c.Close(1000, "again")
		if !c.Closed() {
			t.Error("not closed")
		}
	}, func(ws *websocket.Conn) {
		_, _, err := ws.Read(context.Background())
		var ce websocket.CloseError
		if !errors.As(err, &ce) || ce.Code != 4321 || ce.Reason != strings.Repeat("ä", 61) {
			t.Errorf("got %v", err)
		}
	})
}

func TestAClientThatAnswersNoCloseFrame(t *testing.T) {
	serve(t, ConnOptions{}, func(c *Conn) {
		c.Close(1000, "bye")
		begun := time.Now()
		c.Release()
		if took := time.Since(begun); took < closeWait || took > closeWait+time.Second {
			t.Errorf("released after %v", took)
		}
	}, func(*websocket.Conn) {
		<-time.After(time.Minute) // it neither reads nor closes
	})
}

func TestAClientThatDoesNotRead(t *testing.T) {
	serve(t, ConnOptions{}, func(c *Conn) {
		begun := time.Now()
		c.Send("", 0, make([]byte, 1<<20))
		if took := time.Since(begun); took != writeTimeout || !c.Closed() {
			t.Errorf("the write ended after %v, closed %v", took, c.Closed())
		}
		c.Send("", 0, []byte("x")) // swallowed
	}, func(*websocket.Conn) { <-time.After(time.Minute) })
}

func TestTheServerEndsAConnection(t *testing.T) {
	serve(t, ConnOptions{}, func(c *Conn) {
		go c.End() // any goroutine may
		c.End()
		loop(c)
	}, func(ws *websocket.Conn) {
		if _, _, err := ws.Read(context.Background()); websocket.CloseStatus(err) != 1001 {
			t.Errorf("got %v", err)
		}
	})
}

func TestPendingFramesAreBounded(t *testing.T) {
	s, err := scenario.ParseFaults("f", []byte(`{faults: [{at: setup, do: delay, for: 1h}]}`))
	if err != nil {
		t.Fatal(err)
	}
	serve(t, ConnOptions{Faults: s.NewInjector(1, scenario.Connection{N: 1})}, func(c *Conn) {
		c.At(scenario.Point{At: scenario.AtSetup})
		big := make([]byte, 1<<20)
		for range 70 {
			c.Send("", 0, big)
		}
		if !c.Closed() {
			t.Error("70 MiB wait in line")
		}
	}, func(*websocket.Conn) { <-time.After(time.Second) })
}

func TestFaultsThatNeedTheProtocolAreReturned(t *testing.T) {
	s, err := scenario.ParseFaults("f", []byte(`{faults: [{at: time, after: 5s, do: goaway, for: 1s}, {at: time, after: 2s, do: unknown_event, unknown: x}, {at: event, event: a, do: quota}]}`))
	if err != nil {
		t.Fatal(err)
	}
	stats := &Stats{}
	serve(t, ConnOptions{Faults: s.NewInjector(1, scenario.Connection{N: 1}), Stats: stats}, func(c *Conn) {
		if rest := c.Send("a", 1, []byte("{}")); len(rest) != 1 || rest[0].Kind != scenario.Quota {
			t.Errorf("at the event: %v", rest)
		}
		begun := time.Now()
		for range 2 {
			<-c.timer.C
			rest := c.Flush()
			if len(rest) == 1 && rest[0].Kind == scenario.GoAway {
				if took := time.Since(begun); took != 5*time.Second {
					t.Errorf("after %v", took)
				}
				return
			}
		}
		t.Error("goaway is missing")
	}, func(ws *websocket.Conn) {
		for _, want := range []string{"{}", `{"type":"x"}`} {
			if _, data, err := ws.Read(context.Background()); err != nil || string(data) != want {
				t.Errorf("got %q %v, want %q", data, err, want)
			}
		}
		_, _, _ = ws.Read(context.Background())
	})
	if stats.Faults.Load() != 3 || stats.FramesOut.Load() != 2 {
		t.Errorf("%d faults, %d frames", stats.Faults.Load(), stats.FramesOut.Load())
	}
	total := int64(0)
	for _, n := range stats.FaultsBy.All() {
		total += n
	}
	if n := stats.FaultsBy.All()[scenario.GoAway]; n != 1 || total != 3 {
		t.Errorf("%d times goaway of %d by kind, want 1 of 3", n, total)
	}
}

// TestInject: a fault of another goroutine is applied at once, also if nothing else is due, and one of a tool call only
// at the next call.
func TestInject(t *testing.T) {
	stats := &Stats{}
	serve(t, ConnOptions{Stats: stats}, func(c *Conn) {
		var g Group
		detach := g.Attach("198.51.100.7:1", c)
		for _, kind := range []scenario.FaultKind{scenario.UnknownEvent, scenario.CancelCall, scenario.GoAway} {
			if err := g.Inject("198.51.100.7:1", scenario.Fault{Kind: kind, Event: "x"}); err != nil {
				t.Error(err)
			}
		}
		if err := g.Inject("198.51.100.7:2", scenario.Fault{Kind: scenario.Drop}); !errors.Is(err, ErrNoConnection) {
			t.Errorf("of another address: %v", err)
		}
		begun := time.Now()
		<-c.timer.C
		if rest := c.Flush(); len(rest) != 1 || rest[0].Kind != scenario.GoAway || time.Since(begun) != 0 {
			t.Errorf("after %v: %v", time.Since(begun), rest)
		}
		if rest := c.At(scenario.Point{At: scenario.AtTurn, N: 1}); len(rest) != 0 {
			t.Errorf("at a turn: %v", rest)
		}
		for n, want := range []int{1, 0} {
			if rest := c.At(scenario.Point{At: scenario.AtCall, N: n + 1}); len(rest) != want || want == 1 && rest[0].Kind != scenario.CancelCall {
				t.Errorf("at call %d: %v", n+1, rest)
			}
		}
		detach()
		if err := g.Inject("198.51.100.7:1", scenario.Fault{Kind: scenario.Drop}); !errors.Is(err, ErrNoConnection) {
			t.Errorf("after its end: %v", err)
		}
	}, func(ws *websocket.Conn) {
		if _, data, err := ws.Read(context.Background()); err != nil || string(data) != `{"type":"x"}` {
			t.Errorf("got %q, %v", data, err)
		}
		_, _, _ = ws.Read(context.Background())
	})
	if n := stats.FaultsBy.All(); n[scenario.UnknownEvent] != 1 || n[scenario.GoAway] != 1 || n[scenario.CancelCall] != 1 {
		t.Errorf("counted %v", n)
	}
}

// TestInjectWhileTheOwnerIsBusy: an injected fault is due at once, however the owner uses its timer at the time.
func TestInjectWhileTheOwnerIsBusy(t *testing.T) {
	serve(t, ConnOptions{}, func(c *Conn) {
		if err := c.Inject(scenario.Fault{Kind: scenario.GoAway}); err != nil {
			t.Error(err)
		}
		c.Do([]scenario.Fault{{Kind: scenario.Delay, For: time.Second}}) // sets the timer to later
		select {
		case <-c.timer.C:
			if rest := c.Flush(); len(rest) != 1 {
				t.Errorf("%v is due", rest)
			}
		case <-time.After(time.Millisecond):
			t.Error("nothing is due")
		}
	}, func(ws *websocket.Conn) { _, _, _ = ws.Read(context.Background()) })
}

// TestInjectedFaultsAreBounded: those of a connection that applies none, and of one that is over.
func TestInjectedFaultsAreBounded(t *testing.T) {
	serve(t, ConnOptions{}, func(c *Conn) {
		for n := range maxInjected + 1 {
			kind := []scenario.FaultKind{scenario.LateCall, scenario.UnknownEvent}[n%2]
			if err := c.Inject(scenario.Fault{Kind: kind}); (err != nil) != (n == maxInjected) || err != nil && !errors.Is(err, ErrTooMany) {
				t.Errorf("number %d: %v", n, err)
			}
		}
		c.Close(1000, "")
		c.Release()
		if err := c.Inject(scenario.Fault{Kind: scenario.Drop}); !errors.Is(err, ErrNoConnection) {
			t.Errorf("after its end: %v", err)
		}
	}, func(ws *websocket.Conn) { _, _, _ = ws.Read(context.Background()) })
}

func TestWords(t *testing.T) {
	for text, want := range map[string][]string{
		" Hello, my name": {" Hello,", " my", " name"}, "one": {"one"}, "": {""}, "a  b ": {"a", "  b", " "},
	} {
		if got := Words(text); !slices.Equal(got, want) || strings.Join(got, "") != text {
			t.Errorf("%q: %q", text, got)
		}
	}
}
