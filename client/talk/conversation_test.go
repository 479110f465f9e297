package talk

import (
	"bytes"
	"errors"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"voicegw/audio"
	"voicegw/client/voice"
	"voicegw/protocol"
)

// tone is a clip of alternating silence and tone, by lengths in ms.
func tone(rate int, parts ...int) audio.Clip {
	clip := audio.Clip{Rate: rate}
	for n, ms := range parts {
		for i := range rate * ms / 1000 {
			v := int16(0)
			if n%2 == 1 {
				v = int16(8000 * math.Sin(float64(i)*2*math.Pi*440/float64(rate)))
			}
			clip.PCM = append(clip.PCM, byte(v), byte(uint16(v)>>8))
		}
	}
	return clip
}

func question() Turn { return Turn{Name: "q.wav", Audio: tone(16000, 100, 1000, 200)} }

// hold runs a conversation with g in a synctest bubble and returns its report and events.
func hold(t *testing.T, o Options, g *gateway) (Report, []Event, error) {
	t.Helper()
	return holdTyping(t, o, g, nil)
}

// complete is hold for a conversation without an error.
func complete(t *testing.T, o Options, g *gateway) (Report, []Event) {
	t.Helper()
	r, events, err := hold(t, o, g)
	if err != nil {
		t.Fatal(err)
	}
	return r, events
}

// holdTyping is hold with lines typed at times in ms; "\\x04" is the end of input.
func holdTyping(t *testing.T, o Options, g *gateway, lines map[int64]string) (r Report, events []Event, err error) {
	t.Helper()
	o.Events = func(e Event) { events = append(events, e) }
	o, err = o.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	words, err := o.words()
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		conn := newFakeConn(g)
		if o.Answers != nil {
			answers := make(chan string)
			o.Answers = answers
			go typeLines(answers, lines, conn.gone)
		}
		r, err = converse(t.Context(), o, words, voice.Link{Conn: conn}, began)
		if time.Since(began) > 5*time.Minute {
			t.Fatal("the conversation does not end")
		}
	})
	return r, events, err
}

func typeLines(answers chan<- string, lines map[int64]string, gone <-chan struct{}) {
	began := time.Now()
	for _, ms := range slices.Sorted(maps.Keys(lines)) {
		<-time.After(time.Until(began.Add(time.Duration(ms) * time.Millisecond)))
		if lines[ms] == "\x04" {
			close(answers)
			return
		}
		select {
		case answers <- lines[ms]:
		case <-gone:
			return
		}
	}
}

// fakeConn is a connection to a gateway in the same bubble. Time passes in steps of 20 ms.
type fakeConn struct {
	frames chan protocol.Frame // from the gateway; large enough for every test
	gone   chan struct{}       // closed when the connection is over
	once   sync.Once

	mu  sync.Mutex // guards the following fields
	g   *gateway
	seq int64
}

func newFakeConn(g *gateway) *fakeConn {
	c := &fakeConn{g: g, frames: make(chan protocol.Frame, 100_000), gone: make(chan struct{})}
	g.send = func(m protocol.ServerMessage) {
		c.seq++
		data, err := protocol.EncodeServer(c.seq, m)
		if err != nil {
			panic(err)
		}
		c.frames <- protocol.Frame{Data: data}
	}
	g.sendAudio = func(pcm []byte) { c.frames <- protocol.Frame{Audio: true, Data: bytes.Clone(pcm)} }
	go func() {
		tick := time.NewTicker(frameLength)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				c.with(func() { g.tick(frameLength.Milliseconds()) })
			case <-c.gone:
				return
			}
		}
	}()
	return c
}

// with runs do on the gateway unless it is gone, and notices when it ends.
func (c *fakeConn) with(do func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.g.gone {
		do()
	}
	if c.g.gone {
		c.Abort()
	}
}

func (c *fakeConn) Read() (protocol.Frame, error) {
	select {
	case f := <-c.frames:
		return f, nil
	default:
	}
	select {
	case f := <-c.frames:
		return f, nil
	case <-c.gone:
		select {
		case f := <-c.frames: // sent before the end
			return f, nil
		default:
			return protocol.Frame{}, errors.New("closed")
		}
	}
}

func (c *fakeConn) WriteAudio(pcm []byte) error {
	c.with(func() { c.g.hearAudio(pcm) })
	return nil
}

func (c *fakeConn) WriteText(text []byte) error {
	m, err := protocol.ParseClient(text)
	if err != nil {
		return err
	}
	c.with(func() { c.g.hear(m) })
	return nil
}

func (c *fakeConn) Abort() { c.once.Do(func() { close(c.gone) }) }

// TestAnswerDuringEcho: a room's echo after the last word counts as speech by level, but not for the model. The answer
// that began during it is the turn's answer.
func TestAnswerDuringEcho(t *testing.T) {
	g := newGateway()
	g.deaf, g.answerMS, g.keepsTurn = 2, 4000, true
	r, _, err := hold(t, Options{Turns: []Turn{{Name: "hall.wav", Audio: tone(16000, 100, 1000, 1200, 300)}}, Patience: 6 * time.Second}, g)
	if got := r.Turns[0].AnswerMS; got != 4000 {
		t.Errorf("the answer has %d ms, want 4000 (%v)", got, err)
	}
	if first := r.Turns[0].FirstAudioMS; first == nil || *first != 0 {
		t.Errorf("the first audio came after %v", first)
	}
}

func find(t *testing.T, events []Event, name string, turn int) int64 {
	t.Helper()
	for _, e := range events {
		if e.Event == name && e.Turn == turn {
			return e.AtMS
		}
	}
	t.Fatalf("no event %s of turn %d in %+v", name, turn, events)
	return 0
}

func TestOneTurn(t *testing.T) {
	g := newGateway()
	r, events := complete(t, Options{Turns: []Turn{question()}, KeepAudio: true}, g)
	turn := r.Turns[0]
	// 500 ms of silence, 200 ms of latency, and a frame for each hop.
	if turn.FirstAudioMS == nil || *turn.FirstAudioMS < 700 || *turn.FirstAudioMS > 800 {
		t.Errorf("first audio after %v ms", turn.FirstAudioMS)
	}
	if turn.AnswerMS != 2000 || turn.HeardMS != 2000 || len(r.Audio) != 2*2*24000 {
		t.Errorf("answer %d ms, heard %d ms, %d bytes", turn.AnswerMS, turn.HeardMS, len(r.Audio))
	}
	if turn.Said != "a question" || turn.Answer != "an answer" || turn.Usage.OutputTokens != 20 || r.Usage.InputTokens != 10 {
		t.Errorf("got %+v", turn)
	}
	if r.Underruns != 0 || r.StaleBytes != 0 || turn.Interruption != nil || !turn.Answered {
		t.Errorf("got %+v", r)
	}
	// Lead-in, then 100 ms of silence in the recording.
	if at := find(t, events, EventSpeaking, 1); at < 400 || at > 480 {
		t.Errorf("the first voiced sample was sent after %d ms", at)
	}
	if spoken := find(t, events, EventSpoken, 1) - find(t, events, EventSpeaking, 1); spoken < 960 || spoken > 1020 {
		t.Errorf("1000 ms of speech took %d ms", spoken)
	}
	if at := find(t, events, EventAnswered, 1) - find(t, events, EventFirstAudio, 1); at < 2000 || at > 2100 {
		t.Errorf("an answer of 2 s was heard after %d ms", at)
	}
}

func TestPlaybackIsReported(t *testing.T) {
	g := newGateway()
	complete(t, Options{Turns: []Turn{question()}}, g)
	if n := len(g.playback); n < 9 || n > 11 {
		t.Errorf("%d reports for 2 s; one is due every 200 ms", n)
	}
	for i, p := range g.playback {
		last := i == len(g.playback)-1
		if p.Done != last || p.ItemID != "item-1" {
			t.Errorf("report %d: %+v", i, p)
		}
		if i > 0 && !last {
			if step := p.PlayedMS - g.playback[i-1].PlayedMS; step < 180 || step > 220 {
				t.Errorf("report %d is %d ms after the previous one", i, step)
			}
		}
	}
	if got := g.playback[len(g.playback)-1].PlayedMS; got != 2000 {
		t.Errorf("the last report says %d ms", got)
	}
}

func TestTurnsFollowEachOther(t *testing.T) {
	g := newGateway()
	r, events := complete(t, Options{Turns: []Turn{question(), {Text: "and this?"}, question()}}, g)
	if len(r.Turns) != 3 || r.Turns[1].FirstAudioMS == nil || !r.Turns[1].Typed {
		t.Fatalf("got %+v", r.Turns)
	}
	if diff := cmp.Diff([]string{"and this?"}, g.texts); diff != "" {
		t.Error(diff)
	}
	for n := 1; n <= 3; n++ {
		if !r.Turns[n-1].Answered || r.Turns[n-1].AnswerMS != 2000 || r.Turns[n-1].Usage.InputTokens != 10 {
			t.Errorf("turn %d: %+v", n, r.Turns[n-1])
		}
	}
	if find(t, events, EventTyped, 2) < find(t, events, EventAnswered, 1)+voice.DefaultPause.Milliseconds() {
		t.Error("the second turn began before the first answer was heard")
	}
}

// TestListen: the first turn begins after the time to listen, the second one as always.
func TestListen(t *testing.T) {
	const connects = 100 // ms, which the fake gateway needs
	for _, listen := range []time.Duration{0, time.Second} {
		_, events := complete(t, Options{Turns: []Turn{{Text: "hello"}, {Text: "and this?"}}, Listen: listen}, newGateway())
		pause := voice.DefaultPause.Milliseconds()
		want := max(listen.Milliseconds(), pause)
		if at := find(t, events, EventTyped, 1); at < want || at > want+connects+100 {
			t.Errorf("with %s the first turn began after %d ms", listen, at)
		}
		if gap := find(t, events, EventTyped, 2) - find(t, events, EventAnswered, 1); gap < pause || gap > pause+100 {
			t.Errorf("with %s the second turn began after %d ms", listen, gap)
		}
	}
}

func TestInterruption(t *testing.T) {
	for name, turns := range map[string][]Turn{"the same again": {question()}, "the next turn": {question(), question()}} {
		t.Run(name, func(t *testing.T) {
			g := newGateway()
			g.answerMS = 8000
			r, events := complete(t, Options{Turns: turns, InterruptAfter: 1500 * time.Millisecond, KeepAudio: true}, g)
			if len(r.Turns) != 2 {
				t.Fatalf("%d turns", len(r.Turns))
			}
			first, second := r.Turns[0], r.Turns[1]
			if gap := find(t, events, EventInterrupting, 2) - find(t, events, EventFirstAudio, 1); gap < 1500 || gap > 1540 {
				t.Errorf("the interruption began after %d ms", gap)
			}
			if first.Interruption == nil || first.Interruption.FlushMS == nil || *first.Interruption.FlushMS > 60 {
				t.Errorf("interruption %+v", first.Interruption)
			}
			// The recording has 100 ms of silence before its speech.
			if first.HeardMS < 1550 || first.HeardMS > 1700 || first.AnswerMS <= first.HeardMS {
				t.Errorf("heard %d of %d ms", first.HeardMS, first.AnswerMS)
			}
			if !first.Answered || !second.Answered || second.Interruption != nil || second.HeardMS != 8000 {
				t.Errorf("got %+v", r.Turns)
			}
			at := slices.IndexFunc(g.playback, func(p protocol.Playback) bool { return p.Done })
			if g.playback[at].PlayedMS != first.HeardMS || g.playback[at].ItemID != "item-1" {
				t.Errorf("the flush was answered with %+v; %d ms were heard", g.playback[at], first.HeardMS)
			}
			for _, p := range g.playback[at+1:] {
				if p.ItemID == "item-1" {
					t.Errorf("a flushed item was reported again: %+v", p)
				}
			}
			if want := audio.Bytes(24000, time.Duration(first.HeardMS+8000)*time.Millisecond); len(r.Audio)/48 != want/48 {
				t.Errorf("%d bytes were heard, want %d", len(r.Audio), want)
			}
		})
	}
}

func TestAnswerEndsBeforeInterruption(t *testing.T) {
	g := newGateway()
	r, _ := complete(t, Options{Turns: []Turn{question()}, InterruptAfter: 10 * time.Second}, g)
	if len(r.Turns) != 2 || r.Turns[0].Interruption != nil || !r.Turns[1].Answered {
		t.Errorf("got %+v", r.Turns)
	}
}

func TestHeardAnswerIsNotInterrupted(t *testing.T) {
	g := newGateway()
	g.answerMS, g.keepsTurn = 400, true
	_, events, err := hold(t, Options{Turns: []Turn{question()}, InterruptAfter: time.Second, Patience: 3 * time.Second}, g)
	if !errors.Is(err, ErrUnanswered) {
		t.Errorf("error %v", err)
	}
	if slices.ContainsFunc(events, func(e Event) bool { return e.Event == EventInterrupting }) {
		t.Error("a completely heard answer was interrupted")
	}
}

func TestAudioAfterAFlushIsAnError(t *testing.T) {
	g := newGateway()
	g.answerMS, g.staleMS = 8000, 20
	r, _, err := hold(t, Options{Turns: []Turn{question()}, InterruptAfter: time.Second}, g)
	if !errors.Is(err, ErrProtocol) || r.StaleBytes != 20*48 {
		t.Errorf("%d stale bytes, error %v", r.StaleBytes, err)
	}
}

func TestPauseInARecording(t *testing.T) {
	g := newGateway()
	turn := Turn{Audio: tone(16000, 100, 1000, 1200, 1000, 100)}
	r, _ := complete(t, Options{Turns: []Turn{turn}}, g)
	got := r.Turns[0]
	if g.turn != 2 {
		t.Fatalf("the gateway heard %d turns; the test wants two", g.turn)
	}
	// Both of the gateway's turns belong to this turn; the second is the answer.
	if got.Usage.InputTokens != 20 || got.HeardMS != 2000 || got.AnswerMS != 2000 {
		t.Errorf("got %+v", got)
	}
	if got.FirstAudioMS == nil || *got.FirstAudioMS < 700 || *got.FirstAudioMS > 800 {
		t.Errorf("first audio after %v ms", got.FirstAudioMS)
	}
}

func TestUnheardEndOfRecording(t *testing.T) {
	g := newGateway()
	g.answerMS = 400
	g.deaf = 2 // it hears one stretch of speech and treats the rest as noise
	r, _ := complete(t, Options{Turns: []Turn{{Audio: tone(16000, 100, 1000, 2500, 300, 100)}}}, g)
	if !r.Turns[0].Answered || r.Turns[0].FirstAudioMS != nil {
		t.Errorf("got %+v", r.Turns[0])
	}
}

func TestGreetingIsHeardFirst(t *testing.T) {
	g := newGateway()
	g.greets = true
	r, events := complete(t, Options{Turns: []Turn{question()}, KeepAudio: true}, g)
	if at := find(t, events, EventSpeaking, 1); at < 200+2000+300 {
		t.Errorf("the first turn began after %d ms, over the greeting", at)
	}
	if r.Turns[0].AnswerMS != 2000 || len(r.Audio) != 2*2*2*24000 {
		t.Errorf("answer %d ms, heard %d bytes in total", r.Turns[0].AnswerMS, len(r.Audio))
	}
}

func TestUnanswered(t *testing.T) {
	tests := []struct {
		name   string
		change func(*gateway)
		want   string
	}{
		{"silence", func(g *gateway) { g.mute = true }, "turn 1: nothing was heard for 3s"},
		{"a turn without audio", func(g *gateway) { g.noAudio = true }, "turn 1: the turn ended without audio"},
		{"a failed turn", func(g *gateway) { g.fails = true }, "turn 1: the turn failed: The model is ill."},
		{"a turn that never ends", func(g *gateway) { g.keepsTurn = true }, "turn 1: nothing was heard for 3s"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := newGateway()
			tt.change(g)
			r, events, err := hold(t, Options{Turns: []Turn{question()}, Patience: 3 * time.Second}, g)
			if !errors.Is(err, ErrUnanswered) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %s", err, tt.want)
			}
			if r.Turns[0].Answered {
				t.Errorf("got %+v", r.Turns[0])
			}
			find(t, events, EventFailed, 1)
		})
	}
}

func TestUnsaidTurns(t *testing.T) {
	g := newGateway()
	g.mute = true
	r, _, err := hold(t, Options{Turns: []Turn{question(), question()}, Patience: time.Second}, g)
	if !errors.Is(err, ErrUnanswered) || r.Turns[1].Reason != "not started" {
		t.Errorf("error %v, second turn %+v", err, r.Turns[1])
	}
}

// TestModelEndsTheSession: a goodbye by the model is a failure only if turns remain.
func TestModelEndsTheSession(t *testing.T) {
	for turns := 1; turns <= 2; turns++ {
		g := newGateway()
		g.saysBye = true
		r, _, err := hold(t, Options{Turns: slices.Repeat([]Turn{question()}, turns)}, g)
		if turns == 1 && err != nil || turns == 2 && !errors.Is(err, ErrUnanswered) {
			t.Errorf("%d turns: error %v", turns, err)
		}
		if !r.Turns[0].Answered || turns == 2 && r.Turns[1].Reason != "not started" {
			t.Errorf("%d turns: got %+v", turns, r.Turns)
		}
	}
}

func TestGatewayHangsUp(t *testing.T) {
	g := newGateway()
	g.hangsUp = "All models are ill."
	r, _, err := hold(t, Options{Turns: []Turn{question()}}, g)
	if !errors.Is(err, ErrLost) || !strings.Contains(err.Error(), "All models are ill.") {
		t.Errorf("error %v", err)
	}
	if r.Turns[0].Answered || r.Turns[0].Reason == "" {
		t.Errorf("got %+v", r.Turns[0])
	}
}

func TestAudioKeepsPaceAtEveryRate(t *testing.T) {
	for _, rate := range protocol.InputRates() {
		g := newGateway()
		r, events := complete(t, Options{Turns: []Turn{{Audio: tone(rate, 20, 1000, 20)}}}, g)
		if r.InputRate != rate {
			t.Errorf("a recording of %d Hz was sent at %d Hz", rate, r.InputRate)
		}
		total := events[len(events)-1].AtMS
		if sent := audio.MS(rate, g.bytesIn); sent > total || sent < total-200 {
			t.Errorf("%d Hz: %d ms of audio in %d ms", rate, sent, total)
		}
	}
}

func TestTypedConversationSendsNoAudio(t *testing.T) {
	g := newGateway()
	complete(t, Options{Turns: []Turn{{Text: "hello"}}}, g)
	if g.framesIn != 0 {
		t.Errorf("%d frames of silence were sent", g.framesIn)
	}
}

func TestWrongOptions(t *testing.T) {
	for name, o := range map[string]Options{
		"nothing to say":  {},
		"an empty turn":   {Turns: []Turn{{Name: "x"}}},
		"input rate":      {Turns: []Turn{{Text: "x"}}, InputRate: 22050},
		"output rate":     {Turns: []Turn{{Text: "x"}}, OutputRate: 44100},
		"negative":        {Turns: []Turn{{Text: "x"}}, InterruptAfter: -1},
		"too many turns":  {Turns: make([]Turn, maxTurns+1)},
		"resampling fail": {Turns: []Turn{{Audio: audio.Clip{Rate: 100, PCM: make([]byte, 100)}}}},
	} {
		if _, err := Run(t.Context(), withUnreachable(o)); !errors.Is(err, ErrOptions) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

func withUnreachable(o Options) Options {
	o.URL = "ws://127.0.0.1:1/"
	return o
}
