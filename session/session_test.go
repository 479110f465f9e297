package session

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/coder/websocket"

	"voicegw/audio"
	"voicegw/internal/audit"
	"voicegw/internal/logging"
	"voicegw/internal/testutil"
	"voicegw/internal/user"
	"voicegw/orchestrator"
	"voicegw/protocol"
	"voicegw/transport"
)

func TestMain(m *testing.M) {
	// genai depends on opencensus, which starts a goroutine when it is imported.
	goleak.VerifyTestMain(testutil.Main(m, testutil.Need{
		Kinds: []logging.Kind{logging.Confirmation},
		Sinks: []testutil.Sink{testutil.Log, testutil.Audit},
	}), goleak.IgnoreTopFunction("go.opencensus.io/stats/view.(*worker).start"))
}

var hearing = transport.Capabilities{SpeechEvents: true, Truncate: true, Cancel: true, RespondNeeded: true}

const startText = `{"type":"session.start","input_rate":16000,"output_rate":24000}`

// stage is a Manager with a fake model.
type stage struct {
	t    *testing.T
	fake *fakeModel
	m    *Manager
	// behind marks the gateway's store as behind, so that only resuming clients may connect.
	behind bool
}

func newStage(t *testing.T, caps transport.Capabilities, change func(*Options)) *stage {
	t.Helper()
	fake := newFakeModel(caps)
	opts := Options{Transports: map[string]transport.Transport{"fake": fake}, Provider: "fake"}
	if change != nil {
		change(&opts)
		if f, ok := opts.Transports["fake"].(*fakeModel); ok {
			fake = f
		}
	}
	opts.Logger = testutil.Logger(opts.Logger)
	if write := opts.Audit; write != nil {
		opts.Audit = func(r audit.Record) {
			testutil.CheckJSON(t, testutil.Audit, r)
			write(r)
		}
	}
	m, err := NewManager(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return &stage{t: t, fake: fake, m: m}
}

// pass waits for d in a synctest bubble.
func pass(d time.Duration) { <-time.After(d) }

var someone = netip.MustParseAddr("203.0.113.7")

// admit admits a connection that may resume a session, as the gateway does.
func (st *stage) admit(addr netip.Addr) *Admission {
	st.t.Helper()
	a, err := st.m.Admit(addr, Coming{Back: true, Behind: st.behind})
	if err != nil {
		st.t.Fatal(err)
	}
	return a
}

// connect begins a session whose client sends text.
func (st *stage) connect(text string) *testClient {
	st.t.Helper()
	a := st.admit(someone)
	a.Anonymous = user.Anonymous(someone, true)
	c := newTestClient()
	if text != "" {
		c.say(text)
	}
	st.m.Start(a, c)
	return c
}

// started begins a session and returns both ends.
func (st *stage) started() (*testClient, *fakeConn) {
	st.t.Helper()
	c := st.connect(startText)
	return c, st.fake.Accept(st.t)
}

// TestTurnIsCarried: the user's audio reaches the model unchanged, the answer reaches the client in order: audio.start,
// its frames, audio.end, and the turn's end after playback.
func TestTurnIsCarried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, hearing, nil)
		c, model := st.started()
		speech := testutil.Tone(16000, 440, -12, 200*time.Millisecond)
		for pcm := range slices.Chunk(speech, 640) {
			c.speak(pcm)
		}
		synctest.Wait()
		if got := model.Audio(); string(got) != string(speech) {
			t.Fatalf("the model heard %d bytes, which differ from the %d sent", len(got), len(speech))
		}
		model.Emit(transport.SpeechStarted{Item: "u1", AudioMS: 10}, transport.SpeechStopped{Item: "u1", AudioMS: 200, EndMS: 150},
			transport.InputCommitted{Item: "u1"}, transport.ResponseStarted{ID: "r1"})
		model.EmitAudio("a1", make([]byte, 12000))
		model.Emit(transport.AudioDone{Item: "a1"}, transport.ResponseDone{ID: "r1", Status: transport.ResponseCompleted})
		synctest.Wait()
		c.say(`{"type":"playback","item_id":"a1","played_ms":250,"done":true}`)
		synctest.Wait()
		c.say(`{"type":"session.end"}`)
		synctest.Wait()
		c.expect(t, "session.started", "speech.started", "speech.stopped", "turn.started", "audio.start a1",
			"audio", "audio", "audio", "audio.end a1", "turn.ended completed", "session.ended client_ended")
		c.ended(t, protocol.CloseDone)
		if c.bytes != 12000 {
			t.Errorf("the client got %d bytes of 12000", c.bytes)
		}
		if ms := c.last(t, "audio.end")["audio_ms"]; ms != 250.0 {
			t.Errorf("audio.end says %v ms, want 250", ms)
		}
		model.WaitClosed(t)
	})
}

// TestSeqRisesByOne: every message carries the next number.
func TestSeqRisesByOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, hearing, nil)
		c, _ := st.started()
		for range 5 {
			c.say(`{"type":"ping","t":1}`)
		}
		c.say(`{"type":"session.end"}`)
		synctest.Wait()
		for i, m := range c.texts {
			if m["seq"] != float64(i+1) {
				t.Fatalf("message %d has seq %v", i+1, m["seq"])
			}
		}
	})
}

// TestNothingFollowsAFlush (invariant 4): the model continues to send an item that the user interrupted, before and
// after the flush; the client gets none of it.
func TestNothingFollowsAFlush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, hearing, nil)
		c, model := st.started()
		model.Emit(transport.InputCommitted{Item: "u1"}, transport.ResponseStarted{ID: "r1"})
		model.EmitAudio("a1", make([]byte, 4800))
		synctest.Wait()
		c.stallWrites() // the rest remains in the gateway's queue
		for range 20 {
			model.EmitAudio("a1", make([]byte, 4800))
		}
		synctest.Wait()
		model.Emit(transport.SpeechStarted{Item: "u2", AudioMS: 900})
		for range 20 {
			model.EmitAudio("a1", make([]byte, 4800))
		}
		model.Emit(transport.AudioDone{Item: "a1"})
		synctest.Wait()
		close(c.stall)
		synctest.Wait()
		log := c.log()
		i := slices.Index(log, "audio.flush a1 user_speech")
		if i < 0 {
			t.Fatalf("there was no flush:\n%s", strings.Join(log, "\n"))
		}
		for _, line := range log[i:] {
			if strings.HasPrefix(line, "audio ") || strings.HasPrefix(line, "audio.end") {
				t.Fatalf("%q followed the flush:\n%s", line, strings.Join(log, "\n"))
			}
		}
		if c.bytes > 2*4800 {
			t.Errorf("%d bytes reached the client; the queue was not cleared", c.bytes)
		}
	})
}

// TestTruncationFollowsTheReport: the model learns how much the client reports as heard.
func TestTruncationFollowsTheReport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, hearing, nil)
		c, model := st.started()
		model.Emit(transport.InputCommitted{Item: "u1"}, transport.ResponseStarted{ID: "r1"})
		model.EmitAudio("a1", make([]byte, 96000))
		model.Emit(transport.AudioDone{Item: "a1"}, transport.ResponseDone{ID: "r1", Status: transport.ResponseCompleted})
		synctest.Wait()
		pass(700 * time.Millisecond)
		model.Emit(transport.SpeechStarted{Item: "u2", AudioMS: 900})
		synctest.Wait()
		c.say(`{"type":"playback","item_id":"a1","played_ms":640,"done":true}`)
		if got := model.NextControl(t); got != (transport.Truncate{Item: "a1", AudioMS: 640}) {
			t.Errorf("the model got %+v", got)
		}
	})
}

// TestDetectorSuppliesSpeech: for a model that does not report speech the gateway's detector does, and the end of the
// speech opens the turn.
func TestDetectorSuppliesSpeech(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, transport.Capabilities{InterruptNotice: true}, nil)
		c, _ := st.started()
		pcm := testutil.Mix(testutil.Silence(16000, 3*time.Second))
		copy(pcm[16000:], testutil.SpeechLike(16000, time.Second, 7))
		for frame := range slices.Chunk(pcm, 640) {
			c.speak(frame)
			pass(20 * time.Millisecond)
		}
		synctest.Wait()
		c.expect(t, "speech.started", "speech.stopped", "turn.started")
		if at := c.last(t, "speech.started")["audio_ms"].(float64); at < 0 || at > 600 {
			t.Errorf("speech from 500 ms was reported at %v ms", at)
		}
	})
}

// TestModelReplacesDetector: if a model reports speech after all, its reports are used, and nothing is reported twice.
func TestModelReplacesDetector(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, transport.Capabilities{InterruptNotice: true}, nil)
		c, model := st.started()
		model.Emit(transport.SpeechStarted{AudioMS: 1})
		synctest.Wait()
		for frame := range slices.Chunk(testutil.SpeechLike(16000, time.Second, 7), 640) {
			c.speak(frame)
		}
		synctest.Wait()
		var reports int
		for _, line := range c.log() {
			if line == "speech.started" {
				reports++
			}
		}
		if reports != 1 {
			t.Errorf("the beginning of speech was reported %d times", reports)
		}
	})
}

// TestRatesAreConverted: audio is converted between the rates of the client and of the model.
func TestRatesAreConverted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, hearing, nil)
		c := st.connect(`{"type":"session.start","input_rate":48000,"output_rate":8000}`)
		model := st.fake.Accept(t)
		for frame := range slices.Chunk(testutil.Tone(48000, 1000, -6, time.Second), 1920) {
			c.speak(frame)
		}
		synctest.Wait()
		if ms := audio.MS(16000, len(model.Audio())); ms < 980 || ms > 1000 {
			t.Errorf("a second at 48 kHz reached the model as %d ms at 16 kHz", ms)
		}
		model.Emit(transport.InputCommitted{}, transport.ResponseStarted{ID: "r1"})
		model.EmitAudio("a1", testutil.Tone(24000, 1000, -6, time.Second))
		model.Emit(transport.AudioDone{Item: "a1"})
		synctest.Wait()
		if ms := c.last(t, "audio.end")["audio_ms"].(float64); ms < 995 || ms > 1010 {
			t.Errorf("a second at 24 kHz reached the client as %v ms at 8 kHz", ms)
		}
	})
}

// TestFramesAreShort: a frame to the client has at most 200 ms, and at least 20 ms unless it is the last.
func TestFramesAreShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, hearing, nil)
		c, model := st.started()
		model.Emit(transport.InputCommitted{}, transport.ResponseStarted{ID: "r1"})
		for _, n := range []int{12000, 48000, 4802, 9602, 1920} {
			model.EmitAudio("a1", make([]byte, n))
		}
		synctest.Wait()
		for _, line := range c.log() {
			var n int
			if _, err := fmt.Sscanf(line, "audio %d", &n); err != nil {
				continue
			}
			if ms := audio.MS(24000, n); ms < 20 || ms > 200 || n%2 != 0 {
				t.Errorf("a frame has %d bytes, %d ms", n, ms)
			}
		}
	})
}

// TestSlowClientIsDisconnected (invariant 6): a client that stops reading is disconnected, its model too, and another
// session is not affected.
func TestSlowClientIsDisconnected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, hearing, nil)
		slow, slowModel := st.started()
		other, otherModel := st.started()
		slow.stallWrites()
		slowModel.Emit(transport.InputCommitted{}, transport.ResponseStarted{ID: "r1"})
		slowModel.EmitAudio("a1", make([]byte, 4800))
		synctest.Wait()
		otherModel.Emit(transport.InputCommitted{}, transport.ResponseStarted{ID: "r1"})
		otherModel.EmitAudio("b1", make([]byte, 4800))
		synctest.Wait()
		other.expect(t, "audio.start b1", "audio 4800")
		pass(9 * time.Second)
		synctest.Wait()
		slowModel.WaitClosed(t)
		if !slow.isOver() {
			t.Error("the slow client is still connected")
		}
		if st.m.Running() != 1 {
			t.Errorf("%d sessions run, want only the other one", st.m.Running())
		}
	})
}

// TestBacklogIsBounded: a client that reads too slowly for the model's output is disconnected; the buffer is bounded.
func TestBacklogIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, hearing, func(o *Options) { o.Limits.Backlog = 2 * time.Second })
		c, model := st.started()
		synctest.Wait()
		c.stallWrites()
		model.Emit(transport.InputCommitted{}, transport.ResponseStarted{ID: "r1"})
		for range 3 {
			model.EmitAudio("a1", make([]byte, 48000))
		}
		synctest.Wait()
		pass(500 * time.Millisecond)
		close(c.stall) // the client reads again, so it can get the error
		synctest.Wait()
		c.expect(t, "session.ended slow_client")
		c.ended(t, protocol.CloseSlowClient)
	})
}

// TestStalledModelDropsOldAudio: while the model reads nothing, the newest audio is held, the oldest dropped and
// counted; finally the session ends.
func TestStalledModelDropsOldAudio(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, hearing, nil)
		c, model := st.started()
		synctest.Wait()
		release := model.StallSend()
		for i := range 400 { // 8 s
			frame := make([]byte, 640)
			frame[0] = byte(i)
			frame[1] = byte(i >> 8)
			c.speak(frame)
			pass(20 * time.Millisecond)
		}
		release()
		synctest.Wait()
		heard := model.Audio()
		if ms := audio.MS(16000, len(heard)); ms > 5200 {
			t.Errorf("%d ms were held, more than the limit of 5 s", ms)
		}
		if last := heard[len(heard)-640:]; last[0] != byte(399&0xff) || last[1] != 1 {
			t.Error("the newest frame was dropped")
		}
		model.StallSend()
		c.speak(make([]byte, 640))
		pass(20 * time.Second)
		synctest.Wait()
		c.expect(t, "error provider_lost", "session.ended provider_stalled")
		c.ended(t, protocol.CloseProviderLost)
	})
}

// TestModelEndsByKind: the client gets an error that matches the end of the model's connection.
func TestModelEndsByKind(t *testing.T) {
	for _, tc := range []struct {
		kind         transport.Kind
		code, reason string
		close        websocket.StatusCode
	}{
		{transport.KindRetry, "provider_lost", "provider_lost", protocol.CloseProviderLost}, {transport.KindExpired, "provider_lost", "provider_expired", protocol.CloseProviderLost},
		{transport.KindServer, "provider_lost", "provider_lost", protocol.CloseProviderLost},
		{transport.KindQuota, "provider_unavailable", "provider_refused", protocol.CloseProviderUnavailable}, {transport.KindInvalid, "provider_unavailable", "provider_refused", protocol.CloseProviderUnavailable},
	} {
		t.Run(tc.kind.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st := newStage(t, hearing, nil)
				c, model := st.started()
				model.FailRecv(scriptedError("recv", tc.kind))
				synctest.Wait()
				c.expect(t, "error "+tc.code, "session.ended "+tc.reason)
				c.ended(t, tc.close)
			})
		})
	}
}

// TestClientVanishes: a broken connection ends the session completely.
func TestClientVanishes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, hearing, nil)
		c, model := st.started()
		c.Abort()
		model.WaitClosed(t)
		synctest.Wait()
		if st.m.Running() != 0 {
			t.Error("the session continues without its client")
		}
	})
}

// TestLimits: a session that is too long or idle ends, with a notice before and the right close code.
func TestLimits(t *testing.T) {
	for _, tc := range []struct {
		name   string
		policy orchestrator.Policy
		after  time.Duration
		code   int
		reason string
	}{
		{"idle", orchestrator.Policy{MaxIdle: time.Minute}, time.Minute, 4004, "idle"},
		{"length", orchestrator.Policy{MaxLength: 10 * time.Minute}, 10 * time.Minute, 4005, "length_limit"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st := newStage(t, hearing, func(o *Options) { o.Policy = tc.policy })
				c, _ := st.started()
				pass(tc.after - time.Second)
				synctest.Wait()
				if c.isOver() {
					t.Fatal("the session ended too early")
				}
				pass(2 * time.Second)
				synctest.Wait()
				c.expect(t, "session.ended "+tc.reason)
				if int(c.code) != tc.code {
					t.Errorf("closed with %d, want %d", c.code, tc.code)
				}
			})
		})
	}
}

// TestNothingIsLeft (invariant 10): many sessions with different ends leave no goroutine. synctest fails if one
// remains.
func TestNothingIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, hearing, func(o *Options) { o.Limits.NewPerSecond = 40 })
		for i := range 40 {
			c, model := st.started()
			model.Emit(transport.InputCommitted{}, transport.ResponseStarted{ID: "r"})
			model.EmitAudio("a", make([]byte, 48000))
			switch i % 5 {
			case 0:
				c.say(`{"type":"session.end"}`)
			case 1:
				c.Abort()
			case 2:
				model.FailRecv(scriptedError("recv", transport.KindRetry))
			case 3:
				model.StallSend()
				c.speak(make([]byte, 640))
			case 4:
				c.stallWrites()
			}
		}
		st.m.Close()
		if st.m.Running() != 0 || st.fake.Open() != 0 {
			t.Errorf("%d sessions and %d connections remain", st.m.Running(), st.fake.Open())
		}
	})
}
