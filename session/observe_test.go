package session

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"voicegw/transport"
)

// watched records the events of an observer, one line for each.
type watched struct {
	mu    sync.Mutex
	lines []string
}

func (o *watched) observe(provider, model string) func(Event) {
	return func(e Event) {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.lines = append(o.lines, strings.TrimSpace(provider+" "+strings.TrimPrefix(fmt.Sprintf("%T", e), "session.")+" "+about(e)))
	}
}

// about formats the compared part of an event.
func about(e Event) string {
	switch e := e.(type) {
	case Refused:
		return e.Reason
	case Started:
		return fmt.Sprint(e.Entry, " ", e.Waited+e.Identified+e.Connected == e.Total)
	case Ended:
		return e.Reason
	case TurnOver:
		return string(e.Status)
	case Failed:
		return string(e.Code)
	case Interrupted:
		return fmt.Sprint(e.By, " after ", e.After)
	case Rejected:
		return e.Code
	case Sound:
		return fmt.Sprint(e.Up, " up ", e.Down, " down ", e.Unheard, " unheard")
	case Dialed:
		return fmt.Sprint(e.How, " ", e.Kind != 0)
	case Broken:
		return e.Kind.String()
	case Relinked:
		return fmt.Sprint(e.Why, " ", e.How)
	case Returned:
		return e.Outcome
	}
	return ""
}

// take returns the lines since the last call.
func (o *watched) take() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	lines := o.lines
	o.lines = nil
	return lines
}

func (o *watched) expect(t *testing.T, what string, want ...string) {
	t.Helper()
	synctest.Wait()
	if got := o.take(); !slices.Equal(got, want) {
		t.Errorf("%s: the observer got\n  %s\nwant\n  %s", what, strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

// TestObserver follows a session through all counted events.
func TestObserver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &watched{}
		st := newStage(t, remembering, func(opts *Options) { opts.Observe, opts.Limits.Sessions = o.observe, 1 })
		c, model := st.started()
		o.expect(t, "a session begins", "fake Dialed fresh false", "fake Started open true")

		for range 10 {
			c.speak(make([]byte, 640))
		}
		c.say(`{"type":"input.text","text":"where is Ada"}`)
		synctest.Wait()
		answers(c, model, "r1", "a1", "In Vienna.")
		o.expect(t, "a turn", "fake TurnOver completed", "fake Sound 200ms up 100ms down 0s unheard")

		c.say(`{"type":"input.text","text":"and Bob"}`)
		synctest.Wait()
		model.Emit(transport.ResponseStarted{ID: "r2"})
		model.EmitAudio("a2", make([]byte, 48000))
		synctest.Wait()
		c.speak(make([]byte, 640))
		c.speak(make([]byte, 6400))
		synctest.Wait()
		pass(300 * time.Millisecond)
		model.Emit(transport.SpeechStarted{Item: "u1", AudioMS: 230})
		o.expect(t, "the user cuts an answer off", "fake Interrupted user_speech after 300ms")
		model.Emit(transport.SpeechStopped{Item: "u1", AudioMS: 420, EndMS: 420}, transport.ResponseDone{ID: "r2", Status: transport.ResponseInterrupted})
		synctest.Wait()
		if got := o.take(); !slices.Contains(got, "fake TurnOver interrupted") {
			t.Errorf("the interrupted turn is %q", got)
		}

		c.say(`{"type":"session.start","input_rate":16000,"output_rate":24000}`)
		o.expect(t, "a mistake of the client", "fake Rejected already_started")
		if _, err := st.m.Admit(someone, Coming{}); err == nil {
			t.Error("a second client was admitted")
		}
		o.expect(t, "one client too many", "Refused full")

		model.FailRecv(broken())
		st.fake.Accept(t)
		synctest.Wait()
		got := o.take()
		for _, want := range []string{"fake Broken retry", "fake Skipped", "fake Dialed replayed false", "fake Relinked lost replayed"} {
			if !slices.Contains(got, want) {
				t.Errorf("a broken connection: the observer got %q, want %q", got, want)
			}
		}
		c.say(`{"type":"session.end"}`)
		synctest.Wait()
		got = o.take()
		if n := len(got); n < 3 || got[n-1] != "fake Ended client_ended" || !slices.Contains(got, "fake Skipped") {
			t.Errorf("the end: the observer got %q", got)
		}
	})
}

// TestCensus counts sessions with and without a client.
func TestCensus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &watched{}
		st := newStage(t, remembering, func(opts *Options) { opts.Policy.ResumeGrace, opts.Observe = time.Minute, o.observe })
		st.started()
		away, _ := st.started()
		st.connect("") // sends nothing
		synctest.Wait()
		away.Abort()
		synctest.Wait()
		got := st.m.Census()
		if got.Sessions != 2 || got.Attached["fake"] != 1 || got.Detached["fake"] != 1 || got.Linked["fake"] != 2 || got.Waiting != 1 || got.Draining {
			t.Errorf("the census says %+v", got)
		}
	})
}

// TestReasonsAreNamed: every end or refusal of a session has a reason in Reasons.
func TestReasonsAreNamed(t *testing.T) {
	all := Reasons()
	for _, err := range []error{ErrDraining, ErrFull, ErrAddressLimit, ErrBehind, &UnreachableError{}} {
		if reason := cmp.Or(notAdmitted[err], causeUnavailable.Reason); !slices.Contains(all, reason) {
			t.Errorf("%v has the reason %q, which is not listed", err, reason)
		}
	}
	for _, c := range causes {
		if !slices.Contains(all, c.Reason) {
			t.Errorf("%q is not listed", c.Reason)
		}
	}
}

// BenchmarkFrameWhileCounted measures a frame of the model's speech, alone and with continuous counts of the sessions.
func BenchmarkFrameWhileCounted(b *testing.B) {
	for _, counted := range []bool{false, true} {
		b.Run(fmt.Sprintf("counted=%t", counted), func(b *testing.B) {
			s := quietSession(b, 16000, 24000)
			m := &Manager{roster: roster{sessions: map[string]*session{"s": s}}}
			stop, done := make(chan struct{}), make(chan struct{}) // closed by the benchmark, and by the goroutine
			go func() {
				defer close(done)
				for counted {
					select {
					case <-stop:
						return
					default:
						m.Census()
					}
				}
			}()
			ev := &transport.AudioOut{Item: "a1", PCM: make([]byte, 9600)}
			b.ReportAllocs()
			for b.Loop() {
				walkDown(s, ev)
			}
			close(stop)
			<-done
		})
	}
}
