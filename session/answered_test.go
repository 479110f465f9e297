package session

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"voicegw/audio"
	"voicegw/client/voice"
	"voicegw/config"
	"voicegw/internal/testutil"
	"voicegw/internal/user"
	"voicegw/protocol"
	"voicegw/registry"
	"voicegw/registry/registrytest"
	"voicegw/sim"
	"voicegw/sim/scenario"
	"voicegw/transport"
	"voicegw/transport/textmodel"
)

// orders is the number of conversations of TestEverythingIsAnswered over each wire, and firstOrder the seed of the
// first.
var (
	orders     = flag.Int("orders", 8, "how many conversations are held over each wire in which a session changes its node")
	firstOrder = flag.Uint64("orders.from", 0, "the seed of the first of them")
)

// Words of the conversation about the harbour.
const (
	harbourWords  = "What is new at the harbour?"
	harbourAnswer = "The harbour is quiet today, and the ferry is late."
)

// harbour is the scenario of the simulated model. Another connection gets the history of speech as text.
const harbour = `
name: harbour
rules:
  - when: {utterance: any}
    heard: ` + harbourWords + `
    do: [{say: "` + harbourAnswer + `"}]
  - when: {text: 'harbour'}
    do: [{say: "` + harbourAnswer + `"}]
  - when: {text: '^linger'}
    do:
      - call: {tool: linger, args: {n: 1}}
      - then: [{say: "Done."}]
      - on_error: [{say: "That did not work."}]
  - when: {text: any}
    do: [{say: "Let us go on."}]
`

// crossing is two nodes, a caller, and the simulated models, in a synctest bubble. A seed sets all delays between them.
type crossing struct {
	t       *testing.T
	shelf   *shelf
	here    *stage // the session's node at first
	there   *stage // its node after the move
	network *slowNet
	lag     func() time.Duration // between the caller and the nodes

	rngMu sync.Mutex // guards the following field
	rng   *rand.Rand

	mu       sync.Mutex // guards the following fields
	at       *stage     // the node that the caller reaches
	log      []string
	answered int
	broken   []string // complaints of the caller
}

// below returns a random number below n.
func (x *crossing) below(n int) int {
	x.rngMu.Lock()
	defer x.rngMu.Unlock()
	return x.rng.IntN(n)
}

// lags returns a function for random delays: a few ms, and one in `one` up to most. They are never 0.
func (x *crossing) lags(one int, most time.Duration) func() time.Duration {
	return func() time.Duration {
		if one > 0 && x.below(one) == 0 {
			return time.Duration(x.below(int(most)))
		}
		return time.Duration(x.below(int(5 * time.Millisecond)))
	}
}

// newCrossing starts the nodes, and the models of a wire. stop ends all of them.
func newCrossing(t *testing.T, wire string, seed uint64) (x *crossing, stop func()) {
	t.Helper()
	x = &crossing{t: t, shelf: newShelf(), rng: rand.New(rand.NewPCG(seed, 77))}
	script, err := scenario.Parse("harbour.yaml", []byte(harbour))
	if err != nil {
		t.Fatal(err)
	}
	provider, listener := sim.New(sim.Options{Seed: seed, Scenario: script}), testutil.ListenPipe()
	srv := &http.Server{Handler: provider}
	var served sync.WaitGroup
	served.Go(func() { _ = srv.Serve(listener) })
	x.network = &slowNet{dial: listener.Dial, lag: x.lags([]int{0, 30, 8}[x.below(3)], 1500*time.Millisecond)}
	x.lag = x.lags([]int{0, 30, 8, 1}[x.below(4)], 800*time.Millisecond)
	dialer := &http.Transport{DialContext: x.network.Dial, DisableKeepAlives: true}
	all := config.Wires()
	i := slices.IndexFunc(all, func(w transport.Wire) bool { return w.Name == wire })
	model, err := all[i].New(transport.Provider{
		Name: wire, APIKey: "sk-test", BaseURL: map[string]string{"openai": "http://sim/v1", "live": "http://sim/v1", "gemini": "http://sim"}[wire], HTTPClient: &http.Client{Transport: dialer},
	})
	if err != nil {
		t.Fatal(err)
	}
	if voice, ok := model.(interface {
		UseText(model textmodel.Model, name string)
	}); ok {
		text, err := textmodel.New(textmodel.Options{BaseURL: "http://sim/v1", APIKey: "sk-test", Model: "gpt-5.6-terra", Retries: -1,
			HTTPClient: &http.Client{Transport: dialer}})
		if err != nil {
			t.Fatal(err)
		}
		voice.UseText(text, "gpt-5.6-terra")
	}
	lingers := handlerFunc(func(context.Context) (registry.Result, error) {
		pass(700 * time.Millisecond)
		return registry.Result{Data: "done"}, nil
	})
	tools, err := registry.Load(registrytest.File(t, entry("linger", "1.0.0")), registry.Options{Handlers: map[string]registry.Handler{"linger": lingers.bind()}})
	if err != nil {
		t.Fatal(err)
	}
	tools.Lock()
	with := func(o *Options) {
		o.Transports, o.Provider, o.Tools = map[string]transport.Transport{wire: model}, wire, tools.Snapshot
	}
	x.here, x.there = x.shelf.stage(t, "a", transport.Capabilities{}, with), x.shelf.stage(t, "b", transport.Capabilities{}, with)
	x.at = x.here
	return x, func() {
		x.here.m.Close()
		x.there.m.Close()
		if err := provider.Close(); err != nil {
			t.Error(err)
		}
		_ = srv.Close()
		dialer.CloseIdleConnections()
		served.Wait()
		x.network.work.Wait()
	}
}

// dial connects the caller to the current node.
func (x *crossing) dial(context.Context) (voice.Conn, error) {
	x.mu.Lock()
	st := x.at
	x.mu.Unlock()
	a, err := st.m.Admit(someone, Coming{Back: true, Behind: st != x.here})
	if err != nil {
		return nil, err
	}
	a.Anonymous = user.Anonymous(someone, true)
	near, far := newCallerEnd(x.lag)
	st.m.Start(a, far)
	return near, nil
}

// leaves moves the session to the other node: by a drain of limited time, or by the node's death.
func (x *crossing) leaves(dies bool, within time.Duration) {
	x.mu.Lock()
	x.at = x.there
	x.note("the node dies: %v; otherwise the session moves within %v", dies, within)
	x.mu.Unlock()
	if dies {
		x.shelf.kill("a")
		x.here.m.endAll(causeMoving)
		return
	}
	x.here.m.roster.mu.Lock()
	all := x.here.m.roster.sessions
	sessions := make([]*session, 0, len(all))
	for _, s := range all {
		sessions = append(sessions, s)
	}
	x.here.m.roster.mu.Unlock()
	for _, s := range sessions {
		s.askToMove(time.Now().Add(within))
	}
}

// note logs an event; x.mu is held.
func (x *crossing) note(format string, args ...any) {
	x.log = append(x.log, time.Now().Format("04:05.000 ")+fmt.Sprintf(format, args...))
}

// Heard implements voice.Observer.
func (x *crossing) Heard(_ time.Time, m protocol.ServerMessage) {
	if _, words := m.(*protocol.Transcript); words {
		return
	}
	text, err := protocol.EncodeServer(0, m)
	if err != nil {
		x.t.Error(err)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.note("< %s", text[:min(len(text), 150)])
	if started, ok := m.(*protocol.SessionStarted); ok && !started.Resumed {
		dies, within := x.below(4) == 0, time.Duration(x.below(4)*x.below(3000))*time.Millisecond
		time.AfterFunc(time.Duration(x.below(20_000))*time.Millisecond, func() { x.leaves(dies, within) })
	}
}

// HeardAudio, Played and Underrun implement voice.Observer.
func (*crossing) HeardAudio(time.Time, []byte, *voice.Item) {}
func (*crossing) Played(*voice.Item)                        {}
func (*crossing) Underrun(int, time.Duration)               {}

// complaints are the events that must not occur. A turn may fail only with an error that gives the reason.
var complaints = map[voice.Kind]string{
	voice.Failed: "failed", voice.Stuck: "was never answered", voice.Refused: "refused", voice.Lost: "lost", voice.ResumeFailed: "not back",
	voice.Violation: "violation", voice.MissedMessages: "missed messages", voice.MissedAudio: "missed audio", voice.AudioRepeated: "audio again", voice.Dropped: "dropped",
}

// Happened implements voice.Observer.
func (x *crossing) Happened(_ time.Time, e voice.Event) {
	x.mu.Lock()
	defer x.mu.Unlock()
	what := complaints[e.Kind]
	if e.X != nil {
		what = fmt.Sprintf("turn %d (%s) %s", e.X.Number, e.X.Turn.Act, what)
	}
	what += fmt.Sprintf(": %s %v", e.Text, e.Err)
	x.note("* event %d, %s", e.Kind, what)
	switch received := e.GatewayError != nil && e.Kind == voice.Failed; {
	case e.Kind == voice.Answered:
		x.answered++
	case complaints[e.Kind] != "" && !received:
		x.broken = append(x.broken, what)
	}
}

// callerTurns returns the turns of the caller, repeated.
func callerTurns() []voice.Turn {
	const patience = 90 * time.Second
	var all []voice.Turn
	for _, act := range []voice.Act{voice.Type, voice.Say, voice.Type, voice.Say} {
		all = append(all, voice.Turn{Act: act, WaitFor: voice.ForAnswer, Patience: patience})
	}
	return all
}

// converse holds a conversation of a minute in which the session moves once.
func (x *crossing) converse(lines *voice.Library) {
	const frame = 100 * time.Millisecond
	talk := voice.New(voice.Options{
		Start: protocol.Start{InputRate: 16000, OutputRate: 24000}, Turns: callerTurns(),
		Words: func(index, count, _ int) voice.Words {
			if index%2 > 0 {
				return voice.Words{Recording: lines.Line(harbourWords), Text: harbourWords}
			}
			return voice.Words{Text: []string{"my colour is blue", fmt.Sprint("linger ", count)}[index/2]}
		},
		Microphone: true, Frame: frame, Silence: make([]byte, audio.Bytes(16000, frame)), Until: time.Now().Add(time.Minute),
		Resume:      voice.ResumeOptions{Within: time.Minute, Random: func() float64 { return float64(x.below(1000)) / 1000 }},
		ConnectTime: time.Minute, GoodbyeTime: time.Minute, Patience: 90 * time.Second, Buffers: []time.Duration{200 * time.Millisecond},
	}, x, time.Now())
	conn, err := x.dial(x.t.Context())
	if err != nil {
		x.t.Fatal(err)
	}
	talk.Run(x.t.Context(), voice.Link{Conn: conn, Dial: x.dial})
}

// TestEverythingIsAnswered: while a caller types and speaks, the session moves to another node at a random moment, by a
// drain or a node's death, over both wires. Each turn is answered, or fails with an error.
func TestEverythingIsAnswered(t *testing.T) {
	lines, err := voice.LoadLibrary(voice.LibraryOptions{Rate: 16000, Lines: []string{harbourWords}})
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range config.Wires() {
		for seed := *firstOrder; seed < *firstOrder+uint64(*orders); seed++ {
			synctest.Test(t, func(t *testing.T) {
				x, stop := newCrossing(t, w.Name, seed)
				x.converse(lines)
				stop()
				synctest.Wait()
				if x.answered < 4 {
					x.broken = append(x.broken, fmt.Sprintf("only %d turns were answered", x.answered))
				}
				if len(x.broken) > 0 {
					t.Errorf("%s, seed %d: %q\n%s", w.Name, seed, x.broken, strings.Join(x.log, "\n"))
				}
			})
		}
	}
}
