package session

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"voicegw/protocol"
	"voicegw/transport"
)

// TestWrongStartIsRefused: the client gets a matching error for each invalid first frame.
func TestWrongStartIsRefused(t *testing.T) {
	for _, tc := range []struct {
		name  string
		first protocol.Frame
		code  string
		close websocket.StatusCode
		word  string // in the message
	}{
		{"not JSON", protocol.Frame{Data: []byte("hello")}, "invalid_message", 4500, "not JSON"},
		{"no type", protocol.Frame{Data: []byte(`{}`)}, "invalid_message", 4500, "no type"},
		{"another message", protocol.Frame{Data: []byte(`{"type":"interrupt"}`)}, "not_started", 4500, "session.start"},
		{"an unknown type", protocol.Frame{Data: []byte(`{"type":"nope"}`)}, "unknown_type", 4500, "nope"},
		{"audio", protocol.Frame{Audio: true, Data: make([]byte, 640)}, "not_started", 4500, "session.start"},
		{"an unknown rate", protocol.Frame{Data: []byte(`{"type":"session.start","input_rate":22050,"output_rate":24000}`)}, "invalid_message", 4500, "22050"},
		{"no rate", protocol.Frame{Data: []byte(`{"type":"session.start","input_rate":16000}`)}, "invalid_message", 4500, "output_rate"},
		{"a rate as text", protocol.Frame{Data: []byte(`{"type":"session.start","input_rate":"16k"}`)}, "invalid_message", 4500, "input_rate"},
		{"another provider", protocol.Frame{Data: []byte(`{"type":"session.start","input_rate":16000,"output_rate":24000,"provider":"acme"}`)}, "unknown_provider", 4505, "acme"},
		{"another agent", protocol.Frame{Data: []byte(`{"type":"session.start","input_rate":16000,"output_rate":24000,"agent":"bob"}`)}, "unknown_agent", 4505, "bob"},
		{"a ticket", protocol.Frame{Data: []byte(`{"type":"session.start","input_rate":16000,"output_rate":24000,"ticket":"t"}`)}, "not_available", 4500, "ticket"},
		{"a resume", protocol.Frame{Data: []byte(`{"type":"session.start","input_rate":16000,"output_rate":24000,"resume":{"session_id":"s","token":"t"}}`)}, "not_available", 4500, "resume"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st := newStage(t, hearing, nil)
				c := st.connect("")
				c.in <- tc.first.Input()
				synctest.Wait()
				c.ended(t, tc.close)
				m := c.last(t, "error")
				if m["code"] != tc.code || !strings.Contains(fmt.Sprint(m["message"]), tc.word) {
					t.Errorf("the client got %v", m)
				}
				if st.fake.Attempts() != 0 {
					t.Error("the model was contacted anyway")
				}
			})
		})
	}
}

// TestNoStartInTime: a client that sends nothing is closed after 10 s.
func TestNoStartInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, hearing, nil)
		c := st.connect("")
		pass(11 * time.Second)
		synctest.Wait()
		c.expect(t, "error start_timeout")
		c.ended(t, protocol.CloseStartTimeout)
	})
}

// TestConnectingIsTriedAgain: a temporary failure is retried for 10 s with growing pauses, a permanent one is not.
func TestConnectingIsTriedAgain(t *testing.T) {
	for _, tc := range []struct {
		kind     transport.Kind
		refusals int
		attempts int
		close    websocket.StatusCode // 0: the session starts
	}{
		{transport.KindRetry, 2, 3, 0},
		{transport.KindRetry, 1000, 6, protocol.CloseProviderUnavailable},
		{transport.KindAuth, 1, 1, protocol.CloseProviderUnavailable},
		{transport.KindInvalid, 1, 1, protocol.CloseProviderUnavailable},
	} {
		t.Run(fmt.Sprint(tc.kind, tc.refusals), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st := newStage(t, hearing, nil)
				st.fake.Refuse(tc.refusals, scriptedError("dial", tc.kind))
				c := st.connect(startText)
				pass(10 * time.Second)
				synctest.Wait()
				if got := st.fake.Attempts(); got != tc.attempts && (tc.attempts != 6 || got != 7) { // the pauses vary
					t.Errorf("%d attempts, want %d", got, tc.attempts)
				}
				if tc.close == 0 {
					c.expect(t, "session.started")
				} else {
					c.expect(t, "error provider_unavailable")
					c.ended(t, tc.close)
				}
			})
		})
	}
}

// TestConnectingTimesOut: the gateway stops waiting for a provider after 10 s.
func TestConnectingTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, hearing, nil)
		defer st.fake.StallConnect()()
		c := st.connect(startText)
		pass(11 * time.Second)
		synctest.Wait()
		c.expect(t, "error provider_unavailable")
		c.ended(t, protocol.CloseProviderUnavailable)
	})
}

// TestWrongMessagesAreAnswered: after the start no invalid message ends the session; the client gets an error, and
// later messages work.
func TestWrongMessagesAreAnswered(t *testing.T) {
	for _, tc := range []struct {
		name  string
		frame protocol.Frame
		code  string
		word  string
	}{
		{"a second start", protocol.Frame{Data: []byte(startText)}, "already_started", "already"},
		{"not JSON", protocol.Frame{Data: []byte("{")}, "invalid_message", "not JSON"},
		{"an array", protocol.Frame{Data: []byte("[1]")}, "invalid_message", "object"},
		{"an unknown type", protocol.Frame{Data: []byte(`{"type":"nope"}`)}, "unknown_type", "nope"},
		{"a wrong shape", protocol.Frame{Data: []byte(`{"type":"playback","item_id":7}`)}, "invalid_message", "item_id"},
		{"no text", protocol.Frame{Data: []byte(`{"type":"input.text","text":" "}`)}, "invalid_message", "text"},
		{"odd bytes", protocol.Frame{Audio: true, Data: make([]byte, 641)}, "invalid_audio", "641"},
		{"an empty frame", protocol.Frame{Audio: true}, "invalid_audio", "empty"},
		{"a long frame", protocol.Frame{Audio: true, Data: make([]byte, 16002)}, "invalid_audio", "500 ms"},
		{"activity with server detection", protocol.Frame{Data: []byte(`{"type":"input.activity","active":true}`)}, "invalid_message", "turn_detection"},
		{"a confirmation", protocol.Frame{Data: []byte(`{"type":"confirmation.resolve","token":"t","approved":true}`)}, "confirmation_unknown", "confirmation"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st := newStage(t, hearing, nil)
				c, _ := st.started()
				c.in <- tc.frame.Input()
				c.say(`{"type":"ping","t":1}`)
				synctest.Wait()
				c.expect(t, "error "+tc.code, "pong")
				if m := c.last(t, "error"); !strings.Contains(fmt.Sprint(m["message"]), tc.word) {
					t.Errorf("the client got %v", m["message"])
				}
			})
		})
	}
}

// TestFloodEnds: more than 20 errors in 10 s end the session.
func TestFloodEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, hearing, nil)
		c, _ := st.started()
		for range 19 {
			c.say("nonsense")
		}
		pass(11 * time.Second)
		for range 19 {
			c.say("nonsense")
		}
		synctest.Wait()
		if c.isOver() {
			t.Fatal("38 errors in 11 s are a flood")
		}
		for range 5 {
			c.say("nonsense")
		}
		synctest.Wait()
		c.expect(t, "error flooding", "session.ended flooding")
		c.ended(t, protocol.CloseLimit)
	})
}

// TestAudioFasterThanRealTime: five seconds may arrive at once, as from a page that was suspended; more is dropped with
// one error for the whole excess; later audio in real time is accepted.
func TestAudioFasterThanRealTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, hearing, nil)
		c, model := st.started()
		for range 1000 { // 20 s at once
			c.speak(make([]byte, 640))
		}
		synctest.Wait()
		if got, want := len(model.Audio()), 250*640; got != want {
			t.Errorf("%d bytes were accepted, want %d", got, want)
		}
		c.expect(t, "error audio_too_fast")
		pass(time.Second)
		c.speak(make([]byte, 640))
		synctest.Wait()
		if got, want := len(model.Audio()), 251*640; got != want {
			t.Errorf("after a pause %d bytes were accepted, want %d", got, want)
		}
		if n := strings.Count(strings.Join(c.log(), "\n"), "error "); n != 1 {
			t.Errorf("%d errors, want one for the whole burst", n)
		}
	})
}

// TestAudioThatNeverSlowsDown: after some errors that count the dropped audio, it is a flood.
func TestAudioThatNeverSlowsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, hearing, nil)
		c, _ := st.started()
		for range 120 { // ten times real time, for 12 s
			for range 50 {
				c.speak(make([]byte, 640))
			}
			pass(100 * time.Millisecond)
			if c.isOver() {
				break
			}
		}
		c.expect(t, "error audio_too_fast", "error flooding", "session.ended flooding")
		c.ended(t, protocol.CloseLimit)
	})
}

// TestDrain: a drain admits no new sessions; running ones continue until the deadline and then get an error. The drain
// ends early if they do.
func TestDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, hearing, nil)
		stays, _ := st.started()
		leaves, _ := st.started()
		ctx, cancel := contextWithTimeout(30 * time.Second)
		defer cancel()
		drained := make(chan time.Duration)
		begin := time.Now()
		go func() {
			st.m.Drain(ctx)
			drained <- time.Since(begin)
		}()
		pass(10 * time.Second)
		leaves.say(`{"type":"session.end"}`)
		synctest.Wait()
		leaves.ended(t, protocol.CloseDone)
		if stays.isOver() {
			t.Fatal("a running session was ended before the deadline")
		}
		if took := <-drained; took < 30*time.Second || took > 33*time.Second {
			t.Errorf("draining took %v, want 30 s", took)
		}
		stays.expect(t, "session.ended server_shutdown")
		stays.ended(t, protocol.CloseServerLeaving)
	})
}
