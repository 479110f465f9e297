package voice

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"voicegw/protocol"
)

const ms1 = time.Millisecond

// recordings returns the built-in recordings.
func recordings(t *testing.T) *Library {
	t.Helper()
	l, err := LoadLibrary(LibraryOptions{Rate: 16000, Any: true})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestSpeechBeginsWithAWholeFrame: speech begins with a whole frame that is not in the past.
func TestSpeechBeginsWithAWholeFrame(t *testing.T) {
	r := recordings(t).Any(0)
	for at, want := range map[time.Duration]time.Duration{0: 0, 47 * ms1: 60 * ms1, 60 * ms1: 60 * ms1} {
		now := time.Now()
		m := newMicrophone(16000, 20*ms1, make([]byte, 640), now)
		if got := m.say(now.Add(at), r).Sub(now); got != want {
			t.Errorf("decided at %v it begins at %v, want %v", at, got, want)
		}
		n := 0
		for !m.idle() {
			m.take()
			n++
		}
		if last := time.Duration(n) * 20 * ms1; last < want+r.Duration() || last >= want+r.Duration()+20*ms1 {
			t.Errorf("it ends at %v", last)
		}
	}
}

// TestFrameLateness: this program's delays count as late, time in which the network accepted no frame does not.
func TestFrameLateness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lags []time.Duration
		r := &runner{Link: Link{Conn: silentConn{}, Sent: func(lag, _ time.Duration) { lags = append(lags, lag) }}}
		start := time.Now()
		frame := make([]byte, 640)
		time.Sleep(100 * ms1) //nolint:forbidigo // virtual time: unattended waits
		r.free = start.Add(40 * ms1)
		for _, due := range []time.Duration{94 * ms1, 96 * ms1, 10 * ms1} { // the last one was delayed until 40 ms
			if err := r.write(frame, start.Add(due), true); err != nil {
				t.Fatal(err)
			}
			r.free = start.Add(40 * ms1)
		}
		if want := []time.Duration{6 * ms1, 4 * ms1, 60 * ms1}; !slices.Equal(lags, want) {
			t.Errorf("the frames were late by %v, want %v", lags, want)
		}
	})
}

// TestFramesAllocateNothing: neither direction allocates in the steady state.
func TestFramesAllocateNothing(t *testing.T) {
	library := recordings(t)
	now := time.Now()
	c := New(Options{
		Start: protocol.Start{InputRate: 16000, OutputRate: 24000}, Turns: []Turn{{Act: Say, WaitFor: ForAnswer}}, Microphone: true, Frame: 20 * ms1, Silence: make([]byte, 640),
		ConnectTime: time.Hour, Patience: time.Hour, Buffers: []time.Duration{60 * ms1, 100 * ms1, 200 * ms1}, Reporting: 1,
	}, deaf{}, now)
	c.hearStarted(now, &protocol.SessionStarted{InputRate: 16000, OutputRate: 24000})
	c.hearAudioStart(now, &protocol.AudioStart{ItemID: "i"})
	c.restTime = time.Hour
	r := &runner{Link: Link{Conn: silentConn{}}, c: c, watch: time.NewTimer(time.Hour)}
	answer := make([]byte, 960)
	allocs := testing.AllocsPerRun(2000, func() {
		if c.input.mic.idle() {
			c.input.mic.say(c.input.mic.began, library.Any(0))
		}
		c.input.mic.began = time.Now().Add(-time.Duration(c.input.mic.n+1) * c.input.mic.length)
		r.turn()
		c.conn.out = c.conn.out[:0]
		c.hearAudio(time.Now(), answer)
		c.player.reported = time.Now()
	})
	if allocs > 0.05 {
		t.Errorf("%v allocations for a frame in each direction", allocs)
	}
}

// silentConn accepts frames and stores nothing.
type silentConn struct{ Conn }

func (silentConn) WriteAudio([]byte) error { return nil }
func (silentConn) WriteText([]byte) error  { return nil }
