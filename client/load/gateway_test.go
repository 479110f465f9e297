package load

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"voicegw/audio"
	"voicegw/client/load/report"
	"voicegw/client/voice"
	"voicegw/client/wire"
	"voicegw/internal/testutil"
	"voicegw/protocol"
)

// gateway is a scripted peer: test functions handle each message and frame on the caller's own goroutine, one at a
// time.
type gateway struct {
	t *testing.T
	// acting serialises on, heard and delayed actions.
	acting sync.Mutex
	// on is called with each message, heard with each frame's number from 1.
	on    func(g *gateway, m protocol.ClientMessage)
	heard func(g *gateway, n int)
	// refuse is sent instead of session.started; mute ignores session.start, deaf ignores session.end.
	refuse     *protocol.Error
	mute, deaf bool
	// stall is how long the write of frame n takes.
	stall func(n int) time.Duration

	out  chan protocol.Frame // to the caller; large enough for every test
	gone chan struct{}       // closed with the connection
	once sync.Once

	mu       sync.Mutex // guards the following fields
	seq      int64
	err      error // why it ended
	frames   []time.Time
	loud     []int // frames with sound
	messages []said
}

// said is a message from the caller.
type said struct {
	at  time.Time
	msg protocol.ClientMessage
}

func newGateway(t *testing.T, on func(*gateway, protocol.ClientMessage)) *gateway {
	return &gateway{t: t, on: on, err: errors.New("the connection broke")}
}

func (g *gateway) Read() (protocol.Frame, error) {
	select {
	case f := <-g.out:
		return f, nil
	default:
	}
	select {
	case f := <-g.out:
		return f, nil
	case <-g.gone:
		g.mu.Lock()
		defer g.mu.Unlock()
		return protocol.Frame{}, g.err
	}
}

func (g *gateway) WriteAudio(pcm []byte) error {
	g.mu.Lock()
	g.frames = append(g.frames, time.Now())
	n := len(g.frames)
	if rms, _ := testutil.Level(pcm); rms > -60 {
		g.loud = append(g.loud, n)
	}
	g.mu.Unlock()
	if g.stall != nil {
		select {
		case <-time.After(g.stall(n)):
		case <-g.gone:
			return errors.New("the connection broke")
		}
	}
	if g.heard != nil {
		g.acting.Lock()
		defer g.acting.Unlock()
		g.heard(g, n)
	}
	return nil
}

func (g *gateway) WriteText(text []byte) error {
	m, err := protocol.ParseClient(text)
	if err != nil {
		g.t.Errorf("the caller said %s: %v", text, err)
		return nil
	}
	g.mu.Lock()
	g.messages = append(g.messages, said{time.Now(), m})
	g.mu.Unlock()
	g.acting.Lock()
	defer g.acting.Unlock()
	g.serve(m)
	if g.on != nil {
		g.on(g, m)
	}
	return nil
}

// serve sends the standard answers of a gateway.
func (g *gateway) serve(m protocol.ClientMessage) {
	switch m.(type) {
	case *protocol.Start:
		switch {
		case g.mute:
		case g.refuse != nil:
			g.say(g.refuse)
			g.Abort()
		default:
			g.say(&protocol.SessionStarted{SessionID: "voice-1", InputRate: 16000, OutputRate: 24000})
		}
	case *protocol.End:
		if !g.deaf {
			g.say(&protocol.SessionEnded{Reason: "client_ended"})
			g.Abort()
		}
	}
}

func (g *gateway) Abort() { g.once.Do(func() { close(g.gone) }) }

func (g *gateway) say(all ...protocol.ServerMessage) {
	for _, m := range all {
		g.mu.Lock()
		g.seq++
		seq := g.seq
		g.mu.Unlock()
		g.raw(seq, m)
	}
}

// raw sends a message with a given seq.
func (g *gateway) raw(seq int64, m protocol.ServerMessage) {
	text, err := protocol.EncodeServer(seq, m)
	if err != nil {
		g.t.Error(err)
	}
	g.out <- protocol.Frame{Data: text}
}

func (g *gateway) sound(d time.Duration) {
	g.out <- protocol.Frame{Audio: true, Data: make([]byte, audio.Bytes(24000, d))}
}

func (g *gateway) after(d time.Duration, do func()) {
	time.AfterFunc(d, func() {
		g.acting.Lock()
		defer g.acting.Unlock()
		do()
	})
}

// inTurn returns the header of a message about a turn.
func inTurn(n int) protocol.Header { return protocol.Header{Turn: n} }

// answer sends an answer of length d at once; the turn ends when it has been heard.
func (g *gateway) answer(turn int, text string, d time.Duration) {
	id := fmt.Sprint("item_", turn)
	g.say(&protocol.TurnStarted{Header: inTurn(turn)}, &protocol.AudioStart{Header: inTurn(turn), ItemID: id})
	g.sound(d)
	g.say(&protocol.Transcript{Header: inTurn(turn), ID: id, Role: "assistant", Text: text, Final: true},
		&protocol.AudioEnd{Header: inTurn(turn), ItemID: id, AudioMS: d.Milliseconds()})
}

// ends ends an item's turn when the caller has heard it.
func (g *gateway) ends(m protocol.ClientMessage, turn int) {
	if p, ok := m.(*protocol.Playback); ok && p.Done && p.ItemID == fmt.Sprint("item_", turn) {
		g.say(&protocol.TurnEnded{Header: inTurn(turn), Status: "completed"})
	}
}

// reports returns the playback messages so far.
func (g *gateway) reports() []protocol.Playback {
	g.mu.Lock()
	defer g.mu.Unlock()
	var out []protocol.Playback
	for _, s := range g.messages {
		if p, ok := s.msg.(*protocol.Playback); ok {
			out = append(out, *p)
		}
	}
	return out
}

// first returns when the caller first sent a message of a type.
func first[M protocol.ClientMessage](g *gateway) time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, s := range g.messages {
		if _, ok := s.msg.(M); ok {
			return s.at
		}
	}
	return time.Time{}
}

// scene is the call under test.
type scene struct {
	*testing.T
	set  *Settings
	c    *report.Collector
	gate *gateway
}

// spoken is 100 ms of silence, a second of speech and 200 ms of silence, at 16 kHz, with hard edges.
func spoken() []byte {
	var harmonics [][]byte
	for h := 1; h <= 8; h++ {
		harmonics = append(harmonics, testutil.Tone(16000, float64(150*h), -20-3*float64(h), time.Second))
	}
	pcm := append(testutil.Silence(16000, 100*time.Millisecond), testutil.Mix(harmonics...)...)
	return append(pcm, testutil.Silence(16000, 200*time.Millisecond)...)
}

// how changes a scene from one pass through the script.
type how struct {
	until  time.Duration // no turn begins after it
	hangUp bool          // the call ends at until
	stop   time.Duration // when the run is stopped
	change func(*Settings)
}

// play runs a caller against a gateway under synctest and checks the outcome.
func play(t *testing.T, text string, g *gateway, check func(s *scene, outcome Outcome)) {
	t.Helper()
	playSo(t, text, g, how{}, check)
}

func playSo(t *testing.T, text string, g *gateway, h how, check func(s *scene, outcome Outcome)) {
	t.Helper()
	sc, err := ParseScript("script.yaml", []byte(text), wire.Wire{})
	if err != nil {
		t.Fatal(err)
	}
	library := libraryOf(t)
	synctest.Test(t, func(t *testing.T) {
		g.t = t
		g.out, g.gone = make(chan protocol.Frame, 10_000), make(chan struct{})
		s := &scene{T: t, c: report.New(), gate: g}
		s.set = &Settings{
			Options: Options{
				URL: "ws://test/v1/voice", Script: sc, InputRate: 16000, OutputRate: 24000,
				Frame: 20 * time.Millisecond, ConnectTime: 10 * time.Second,
				Dial: func(context.Context, string) (voice.Conn, error) { return g, nil },
			},
			Speech: library, Collector: s.c, Began: time.Now(), HTTP: http.DefaultClient,
		}
		if h.change != nil {
			h.change(s.set)
		}
		var end time.Time
		if h.until > 0 {
			end = time.Now().Add(h.until)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		if h.stop > 0 {
			time.AfterFunc(h.stop, cancel)
		}
		check(s, New(s.set, 7).Call(ctx, Limit{Until: end, HangUp: h.hangUp}))
	})
}

// libraryOf has the recording it.wav.
func libraryOf(t *testing.T) *voice.Library {
	t.Helper()
	path := filepath.Join(t.TempDir(), "it.wav")
	var b bytes.Buffer
	if err := audio.WriteWAV(&b, 16000, spoken()); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := voice.LoadLibrary(voice.LibraryOptions{Rate: 16000, Paths: []string{path}})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// report is the report so far.
func (s *scene) report() *report.Report {
	r := &report.Report{}
	r.Measured(s.c, 0)
	return r
}

// problems lists the problems, one per line.
func (s *scene) problems() string {
	var out []string
	for _, p := range s.report().Problems {
		if p.Session != 7 || p.Call != 1 {
			s.Errorf("a problem of another caller: %+v", p)
		}
		out = append(out, fmt.Sprintf("turn %d: %s: %s", p.Turn, p.Kind, p.What))
	}
	return strings.Join(out, "\n")
}

// ended checks the outcome of the call and its problems, one per line.
func (s *scene) ended(outcome, want Outcome, problems ...string) {
	s.Helper()
	if got := s.problems(); outcome != want || got != strings.Join(problems, "\n") {
		s.Errorf("outcome %d, want %d; problems\n%s\nwant\n%s", outcome, want, got, strings.Join(problems, "\n"))
	}
}

func (s *scene) counts(want map[report.Counter]int64) {
	s.Helper()
	for c, n := range want {
		if got := s.c.Count(c); got != n {
			s.Errorf("%s: got %d, want %d", c.Definition().Name, got, n)
		}
	}
}

// took checks a figure with a single value, in ms, at the histogram's precision.
func (s *scene) took(f report.Figure, want float64) {
	s.Helper()
	got := s.c.Summary(f)
	if got.Count != 1 || got.Max < want-0.5 || got.Max > want+0.5 {
		s.Errorf("%s: got %v ms (%d values), want %v", f.Definition().Name, got.Max, got.Count, want)
	}
}
