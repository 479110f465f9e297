package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"voicegw/audio"
	"voicegw/client/voice"
	"voicegw/internal/testutil"
	"voicegw/protocol"
)

// The audio of the callers.
const (
	callerRate  = 16000
	answerRate  = 24000
	callerFrame = 100 * time.Millisecond
)

// The timeouts of a caller. They do not measure speed: when one expires, something is lost.
const (
	callerPatience = 90 * time.Second
	callerReturns  = 60 * time.Second
	callerGoodbye  = 60 * time.Second
)

// callEvery is the time between two callers.
const callEvery = 20 * time.Millisecond

// callerTurns are the turns of each caller, repeated.
var callerTurns = []voice.Turn{
	{Act: voice.Type, WaitFor: voice.ForAnswer, Patience: callerPatience},
	{Act: voice.Say, WaitFor: voice.ForAnswer, Patience: callerPatience},
	{Act: voice.Type, WaitFor: voice.ForAnswer, Patience: callerPatience, KeepText: true},
	{Act: voice.Say, WaitFor: voice.ForAnswer, Patience: callerPatience},
	{Act: voice.Type, WaitFor: voice.ForAnswer, Patience: callerPatience, KeepText: true},
	{Act: voice.Type, WaitFor: voice.ForAnswer, Patience: callerPatience, KeepText: true},
}

// turns are the caller's turns, repeated.
func (c *talker) turns() []voice.Turn {
	all := slices.Clone(callerTurns)
	for i := range all {
		if c.typed {
			all[i].Act = voice.Type
		}
	}
	return all
}

// The indices of the turns with answers that the test checks.
const (
	turnColour = 0
	turnBook   = 2
	turnNote   = 4
	turnAsk    = 5
)

// words is the caller's text for a turn.
func (c *talker) words(index, count, _ int) voice.Words {
	switch index {
	case turnColour:
		return voice.Words{Text: "my colour is " + c.colour()}
	case turnBook:
		return voice.Words{Text: fmt.Sprintf("%s c%d-%d", c.writes, c.n, count)}
	case turnNote:
		return voice.Words{Text: fmt.Sprintf("%s c%d-%d", toolNote, c.n, count)}
	case turnAsk:
		return voice.Words{Text: "what is my colour"}
	default:
		return voice.Words{Recording: c.crowd.speech, Text: spokenWords}
	}
}

// toolOf is the tool that a turn asks for.
func (c *talker) toolOf(x *exchange) string {
	if x.index == turnNote {
		return toolNote
	}
	return c.writes
}

// colour is the fact that the model must remember.
func (c *talker) colour() string { return fmt.Sprintf("shade%d", c.n) }

// crowd is callers that talk through a balancer.
type crowd struct {
	site    *site
	speech  *voice.Recording
	client  *http.Client
	talkers []*talker
	hangUp  context.CancelFunc
	talking sync.WaitGroup
}

// talker is one of them, with a record of its call.
type talker struct {
	// Constant.
	n      int
	crowd  *crowd
	writes string // the tool with a business key that it uses
	keep   bool   // the fact for the model to remember
	// typed means that it types every turn. Without a connection, a client stores only the last 2 s of speech.
	typed bool

	mu        sync.Mutex // guards the following fields
	talk      *voice.Conversation
	id        string
	exchanges []*exchange
	returns   []returned
	away      time.Time // since its connection was lost; zero while it is connected
	lost      time.Time // the last loss of its connection
	unheard   int       // turns spoken without a connection and dropped
	tries     int       // failed attempts to resume
	tried     time.Time // the newest of them
	heard     []time.Time
	broken    []string
	items     map[*voice.Item][]byte
	over      bool
	leaving   bool
	codes     map[string]int // of errors
	moves     int            // session.moving
	again     map[string]int // provider.reconnected, by how
}

// exchange is one turn of a caller.
type exchange struct {
	index, count   int
	ref            string
	began, settled time.Time
	first          time.Time // audio
	spoken         bool      // not typed
	failed         string    // the reason of its failure
	words          string    // of the answer
}

// returned is one successful resume.
type returned struct {
	lost, at time.Time
	how      voice.Resumption
}

// newCrowd starts callers that talk, half of them over each wire, until hang.
func newCrowd(t *testing.T, s *site, n int, change func(c *talker)) *crowd {
	t.Helper()
	lines, err := voice.LoadLibrary(voice.LibraryOptions{Rate: callerRate, Lines: []string{spokenWords}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cr := &crowd{site: s, speech: lines.Line(spokenWords), client: &http.Client{Transport: &http.Transport{}}, hangUp: cancel}
	t.Cleanup(func() {
		cancel()
		cr.talking.Wait()
		cr.client.CloseIdleConnections()
	})
	for i := range n {
		c := &talker{n: i + 1, crowd: cr, writes: toolBook, items: map[*voice.Item][]byte{}, codes: map[string]int{}, again: map[string]int{}}
		if change != nil {
			change(c)
		}
		cr.talkers = append(cr.talkers, c)
		cr.talking.Go(func() {
			<-time.After(time.Duration(i) * callEvery) // one after another, like real callers
			c.call(ctx)
		})
	}
	return cr
}

// talkerWires are the providers of the callers, in turn.
var talkerWires = []string{"gemini", "openai"}

// call holds the conversation.
func (c *talker) call(ctx context.Context) {
	random := rand.New(rand.NewPCG(uint64(c.n), 17))
	o := voice.Options{
		Start: protocol.Start{
			Provider: talkerWires[c.n%len(talkerWires)], InputRate: callerRate, OutputRate: answerRate,
			Client: &protocol.ClientInfo{Name: "nodes", ID: fmt.Sprint("user-", c.n)},
		},
		Turns: c.turns(), Words: c.words, Microphone: true, Frame: callerFrame, Silence: make([]byte, audio.Bytes(callerRate, callerFrame)),
		Until: time.Now().Add(time.Hour), Resume: voice.ResumeOptions{Within: callerReturns, Random: random.Float64},
		ConnectTime: callerReturns, GoodbyeTime: callerGoodbye, Patience: callerPatience,
		Buffers: []time.Duration{200 * time.Millisecond},
	}
	conn, err := c.dial(ctx, false)
	if err != nil {
		c.complain("it could not connect: %v", err)
		c.ended()
		return
	}
	talk := voice.New(o, c, time.Now())
	c.mu.Lock()
	c.talk = talk
	c.mu.Unlock()
	talk.Run(ctx, voice.Link{Conn: conn, Dial: func(ctx context.Context) (voice.Conn, error) { return c.dial(ctx, true) }})
	c.ended()
}

func (c *talker) ended() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = true
}

func (c *talker) dial(ctx context.Context, back bool) (voice.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, callerReturns)
	defer cancel()
	return protocol.Dial(ctx, c.crowd.site.url(), protocol.DialOptions{Client: c.crowd.client, Back: back})
}

func (c *talker) complain(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.complains(format, args...)
}

// complains is complain with mu held.
func (c *talker) complains(format string, args ...any) {
	c.broken = append(c.broken, time.Now().Format("15:04:05.000 ")+fmt.Sprintf(format, args...))
}

// complaints returns its complaints.
func (c *talker) complaints() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.broken)
}

// Heard is part of voice.Observer.
func (c *talker) Heard(_ time.Time, m protocol.ServerMessage) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch m := m.(type) {
	case *protocol.SessionStarted:
		if c.id != "" && m.SessionID != c.id {
			c.complains("its session was %s, and is %s now", c.id, m.SessionID)
		}
		c.id = m.SessionID
	case *protocol.SessionMoving:
		c.moves++
	case *protocol.ProviderReconnected:
		c.again[m.How]++
	case *protocol.Error:
		c.codes[m.Code]++
	}
}

// HeardAudio is part of voice.Observer.
func (c *talker) HeardAudio(now time.Time, pcm []byte, i *voice.Item) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.heard = append(c.heard, now)
	if i == nil {
		c.complains("%d bytes of audio came that belong to no answer", len(pcm))
		return
	}
	if c.keep {
		c.items[i] = append(c.items[i], pcm...)
	}
	if x := c.latest(); x != nil && x.first.IsZero() && x.settled.IsZero() {
		x.first = now
	}
}

// latest is the newest exchange; mu is held.
func (c *talker) latest() *exchange {
	if len(c.exchanges) == 0 {
		return nil
	}
	return c.exchanges[len(c.exchanges)-1]
}

// numbered returns the exchange with a number; mu is held.
func (c *talker) numbered(count int) *exchange {
	i := slices.IndexFunc(c.exchanges, func(x *exchange) bool { return x.count == count })
	return c.exchanges[i]
}

// Played and Underrun are parts of voice.Observer.
func (c *talker) Played(*voice.Item)          {}
func (c *talker) Underrun(int, time.Duration) {}

// Happened is part of voice.Observer.
func (c *talker) Happened(now time.Time, e voice.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch e.Kind {
	case voice.Began:
		x := &exchange{index: e.X.Index, count: e.X.Number, began: now, spoken: e.X.Turn.Act == voice.Say}
		if _, ref, ok := strings.Cut(e.X.Words.Text, " "); ok && (e.X.Index == turnBook || e.X.Index == turnNote) {
			x.ref = ref
		}
		c.exchanges = append(c.exchanges, x)
	case voice.Answered, voice.Failed:
		x := c.numbered(e.X.Number)
		x.settled, x.words = now, e.X.Answer.String()
		if e.Kind == voice.Failed {
			x.failed = e.Text
			if e.GatewayError == nil && e.X.Turn.Act == voice.Say && c.lost.After(x.began) {
				c.unheard++ // speech received by the killed gateway is lost with it
				x.failed = e.Text
				break
			}
			if e.GatewayError == nil {
				c.complains("turn %d (%s) failed without an error: %s", e.X.Number, e.X.Words.Text, e.Text)
				break
			}
			x.failed += ": " + e.GatewayError.Code + ": " + e.GatewayError.Message
		}
	case voice.Disconnected:
		c.away, c.lost = now, now
	case voice.Retrying:
		c.tries, c.tried = c.tries+1, now
	case voice.Resumed:
		c.returns = append(c.returns, returned{c.away, now, *e.Resumption})
		c.away = time.Time{}
	case voice.Stuck:
		c.complains("turn %d (%s) was never answered", e.X.Number, e.X.Words.Text)
	case voice.Refused, voice.Lost, voice.ResumeFailed, voice.Violation, voice.MissedMessages, voice.MissedAudio, voice.AudioRepeated, voice.Dropped:
		if c.leaving && e.Kind == voice.Lost || e.Kind == voice.Dropped && c.outlasted() {
			break
		}
		failure := ""
		if e.GatewayError != nil {
			failure = e.GatewayError.Code + ": " + e.GatewayError.Message
		}
		c.complains("%s: %s %v %s, N %d", kindNames[e.Kind], e.Text, e.Err, failure, e.N)
	}
}

// clientKeeps is the length of speech that a client stores while it has no session (docs/protocol.md).
const clientKeeps = 10 * time.Second

// outlasted reports whether the last outage was longer than the speech that a client stores: the rest is then lost in any
// case.
func (c *talker) outlasted() bool {
	if !c.away.IsZero() {
		return time.Since(c.away) > clientKeeps
	}
	n := len(c.returns)
	return n > 0 && c.returns[n-1].at.Sub(c.returns[n-1].lost) > clientKeeps
}

var kindNames = map[voice.Kind]string{
	voice.Refused: "refused", voice.Lost: "lost", voice.ResumeFailed: "not back", voice.Violation: "violation",
	voice.MissedMessages: "missed messages", voice.MissedAudio: "missed audio", voice.AudioRepeated: "audio again", voice.Dropped: "dropped",
}

// unanswered counts the turns of talkers that were being spoken or answered at a moment, and failed.
func (cr *crowd) unanswered(of []*talker, at time.Time) (n int) {
	for _, c := range of {
		c.mu.Lock()
		for _, x := range c.exchanges {
			if x.spoken && x.failed != "" && x.began.Before(at) && x.settled.After(at) {
				n++
			}
		}
		c.mu.Unlock()
	}
	return n
}

// answered counts the exchanges that began after a moment and were answered.
func (c *talker) answered(since time.Time) (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, x := range c.exchanges {
		if x.began.After(since) && !x.settled.IsZero() && x.failed == "" {
			n++
		}
	}
	return n
}

// goOn waits until each caller has had that many more answers to turns spoken after a moment, or cannot continue; it
// returns the number of callers that succeeded.
func (cr *crowd) goOn(t *testing.T, since time.Time, n int) (went int) {
	t.Helper()
	testutil.WaitUntil(t, fmt.Sprintf("all have %d more answers\n%s", n, cr), func() bool {
		went = 0
		over := 0
		for _, c := range cr.talkers {
			if c.answered(since) >= n {
				went++
			} else if c.isOver() {
				over++
			}
		}
		return went+over == len(cr.talkers)
	})
	return went
}

func (c *talker) isOver() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.over
}

// firstHeard is the time of the first audio after a moment; zero if there was none.
func (c *talker) firstHeard(since time.Time) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, at := range c.heard {
		if at.After(since) {
			return at
		}
	}
	return time.Time{}
}

// busy reports whether one of its turns was unfinished at a moment.
func (c *talker) busy(at time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, x := range c.exchanges {
		if x.began.Before(at) && (x.settled.IsZero() || x.settled.After(at)) {
			return true
		}
	}
	return false
}

// hang lets all callers hang up, and waits until all calls are over.
func (cr *crowd) hang() {
	for _, c := range cr.talkers {
		c.mu.Lock()
		c.leaving = true
		c.mu.Unlock()
	}
	cr.hangUp()
	cr.talking.Wait()
}

// check compares the records of the callers with the promises: no caller was cut off, nothing was repeated or lost, and
// the model remembered the facts. It returns the number of callers without a complaint.
func (cr *crowd) check(t *testing.T) (content int) {
	t.Helper()
	done := cr.site.world.effects(t)
	for _, c := range cr.talkers {
		c.mu.Lock()
		for _, x := range c.exchanges {
			if x.index == turnAsk && !x.settled.IsZero() && x.failed == "" && !strings.Contains(x.words, c.colour()) {
				c.complains("asked for its colour, %s, the model says %q", c.colour(), x.words)
			}
			if tool := c.toolOf(x); x.ref != "" && strings.Contains(x.words, worldDone) && len(done[tool+" "+x.ref]) != 1 {
				c.complains("%s %s was done %d times, and the model says %q", tool, x.ref, len(done[tool+" "+x.ref]), x.words)
			}
		}
		if len(c.broken) == 0 {
			content++
		} else {
			t.Logf("caller %d of %s complains:\n\t%s", c.n, c.id, strings.Join(c.broken, "\n\t"))
		}
		c.mu.Unlock()
	}
	return content
}

// String describes the state of the callers.
func (cr *crowd) String() string {
	var b strings.Builder
	for _, c := range cr.talkers {
		c.mu.Lock()
		fmt.Fprintf(&b, "caller %d, %s: over %v, away %v, %d exchanges, %d returns, %v\n", c.n, c.id, c.over, !c.away.IsZero(), len(c.exchanges), len(c.returns), c.broken)
		c.mu.Unlock()
	}
	return b.String()
}

// session is the id of its session.
func (c *talker) session() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.id
}

// of returns the talkers with a session among ids.
func (cr *crowd) of(ids []string) (those []*talker) {
	for _, c := range cr.talkers {
		if slices.Contains(ids, c.session()) {
			those = append(those, c)
		}
	}
	return those
}
