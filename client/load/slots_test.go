package load

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"voicegw/client/load/report"
	"voicegw/client/voice"
	"voicegw/client/wire"
	"voicegw/protocol"
)

// fakeGateway records the times of calls: a gateway that answers only session.start and session.end.
type fakeGateway struct {
	goodbye time.Duration // the time to answer session.end
	refuses int           // the number of calls refused first

	mu    sync.Mutex // guards the following fields
	began time.Time
	calls []string // start and end
}

// dial accepts a call.
func (d *fakeGateway) dial(context.Context, string) (voice.Conn, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	at := time.Since(d.began)
	if d.refuses > 0 {
		d.refuses--
		d.calls = append(d.calls, fmt.Sprint("refused ", at))
		return nil, errors.New("busy")
	}
	return &fakeConn{gateway: d, at: at, out: make(chan protocol.Frame, 10), gone: make(chan struct{})}, nil
}

type fakeConn struct {
	gateway *fakeGateway
	at      time.Duration
	out     chan protocol.Frame
	gone    chan struct{}
	once    sync.Once
	seq     int64
}

func (l *fakeConn) Read() (protocol.Frame, error) {
	select {
	case f := <-l.out:
		return f, nil
	case <-l.gone:
		return protocol.Frame{}, errors.New("closed")
	}
}

func (l *fakeConn) say(m protocol.ServerMessage) {
	l.seq++
	text, err := protocol.EncodeServer(l.seq, m)
	if err != nil {
		panic(err)
	}
	l.out <- protocol.Frame{Data: text}
}

func (l *fakeConn) WriteText(text []byte) error {
	m, err := protocol.ParseClient(text)
	if err != nil {
		return err
	}
	switch m.(type) {
	case *protocol.Start:
		l.say(&protocol.SessionStarted{SessionID: "voice-1", InputRate: 16000, OutputRate: 24000})
	case *protocol.End:
		until := time.Since(l.gateway.began)
		l.gateway.mu.Lock()
		l.gateway.calls = append(l.gateway.calls, fmt.Sprint(l.at, "-", until))
		l.gateway.mu.Unlock()
		time.AfterFunc(l.gateway.goodbye, func() {
			l.say(&protocol.SessionEnded{Reason: "client_ended"})
			time.AfterFunc(time.Millisecond, l.Abort)
		})
	}
	return nil
}

func (l *fakeConn) WriteAudio([]byte) error { return nil }
func (l *fakeConn) Abort()                  { l.once.Do(func() { close(l.gone) }) }

// visit runs a load against a fake gateway in virtual time.
func visit(t *testing.T, d *fakeGateway, o ScheduleOptions, check func(rep *report.Report, calls string)) {
	t.Helper()
	s, err := ParseScript("s", []byte("{microphone: false, turns: [{wait: 3s}, {wait: 3s}]}"), wire.Wire{})
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		d.began = time.Now()
		rep, err := Run(t.Context(), Options{URL: "ws://localhost/v1/voice", Script: s, Plan: o, Dial: d.dial})
		if err != nil {
			t.Fatal(err)
		}
		check(rep, strings.Join(d.calls, " "))
	})
}

func TestSoakRun(t *testing.T) {
	soak := ScheduleOptions{Mode: Soak, Sessions: 1, Duration: 25 * time.Second, Call: 8 * time.Second, Rest: 2 * time.Second}
	visit(t, &fakeGateway{}, soak, func(rep *report.Report, calls string) {
		if want := "0s-8s 10s-18s 20s-26.6s"; calls != want {
			t.Errorf("the calls are %s, want %s", calls, want)
		}
		if late := rep.Figures["call_late"]; late.Count != 3 || late.Max != 0 || rep.Counters["lost"] != 0 {
			t.Errorf("late %+v, %v", late, rep.Counters)
		}
	})
	// A session.end that takes 5 s delays the next call by 3 s, but not the later ones.
	visit(t, &fakeGateway{goodbye: 5 * time.Second}, soak, func(rep *report.Report, calls string) {
		if want := "0s-8s 13.001s-18s 23.001s-"; !strings.HasPrefix(calls, want) {
			t.Errorf("the calls are %s, want %s", calls, want)
		}
		if late := rep.Figures["call_late"]; late.Max < 3000 || late.Max > 3002 {
			t.Errorf("late %+v", late)
		}
	})
}

// TestSteadyRun: a caller repeats the script until the time is up.
func TestSteadyRun(t *testing.T) {
	visit(t, &fakeGateway{}, ScheduleOptions{Sessions: 2, Ramp: 4 * time.Second, Duration: 10 * time.Second}, func(rep *report.Report, calls string) {
		// A wait runs to its end.
		if want := "2s-11.6s 0s-12.9s"; calls != want {
			t.Errorf("the calls are %s, want %s", calls, want)
		}
		if rep.Counters["calls"] != 2 || rep.Counters["sessions"] != 2 {
			t.Errorf("%v", rep.Counters)
		}
	})
}

// TestRefusedCallerWaits: a caller doubles its wait after each refusal, and resets it after a call.
func TestRefusedCallerWaits(t *testing.T) {
	visit(t, &fakeGateway{refuses: 4}, ScheduleOptions{Sessions: 1, Duration: 30 * time.Second}, func(rep *report.Report, calls string) {
		if want := "refused 0s refused 1s refused 3s refused 7s 15s-"; !strings.HasPrefix(calls, want) {
			t.Errorf("the calls are %s, want %s", calls, want)
		}
		if rep.Counters["refused"] != 4 || rep.Counters["sessions"] != 1 {
			t.Errorf("%v", rep.Counters)
		}
	})
	// Without a duration there is one attempt.
	visit(t, &fakeGateway{refuses: 4}, ScheduleOptions{Sessions: 1}, func(_ *report.Report, calls string) {
		if calls != "refused 0s" {
			t.Errorf("the calls are %s", calls)
		}
	})
}

// TestStepsAreReported: the report has a segment for each step, with its sessions.
func TestStepsAreReported(t *testing.T) {
	visit(t, &fakeGateway{}, ScheduleOptions{Mode: Step, Steps: 3, Sessions: 6, Duration: 30 * time.Second, Ramp: time.Second}, func(rep *report.Report, _ string) {
		var got []int64
		for _, s := range rep.Segments {
			got = append(got, s.Sessions)
		}
		if fmt.Sprint(got) != "[2 4 6]" {
			t.Errorf("the steps had %v sessions", got)
		}
	})
}
