package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"voicegw/audio"
	"voicegw/audio/audiotest"
	"voicegw/protocol"
)

// caller is one person who calls again and again.
type caller struct {
	// Fixed.
	n      int
	seed   uint64
	crowd  *crowd
	user   string
	visits int // so far
}

// crowd is what all callers share.
type crowd struct {
	// Fixed.
	seed   uint64
	url    string
	client *http.Client
	speech map[int][]byte // a phrase for each input rate, in Hz
	over   <-chan struct{}
	pulse  *pulse

	mu     sync.Mutex // guards the following fields
	visits []*visit
	tokens []string // of confirmations of the latest visits, for thieves
}

// chaosRates are the input rates that callers use.
var chaosRates = []int{16000, 24000, 48000}

func newCrowd(seed uint64, url string, over <-chan struct{}, p *pulse) *crowd {
	c := &crowd{seed: seed, url: url, over: over, pulse: p, client: &http.Client{Transport: &http.Transport{}}, speech: map[int][]byte{}}
	for _, rate := range chaosRates {
		c.speech[rate] = append(audiotest.SpeechLike(rate, time.Second, 11), audiotest.Silence(rate, 1200*time.Millisecond)...)
	}
	return c
}

// call lets a caller call until the test is over.
func (c *crowd) call(n int) {
	who := &caller{n: n, seed: c.seed, crowd: c, user: fmt.Sprint("user-", n/2)} // two callers are one user
	rng := rand.New(rand.NewPCG(c.seed, uint64(n)))
	if !who.rest(between(rng, 0, 2*time.Second)) {
		return
	}
	for {
		who.visits++
		v := who.visit()
		c.mu.Lock()
		c.visits = append(c.visits, v)
		c.mu.Unlock()
		if !who.rest(between(rng, 10*time.Millisecond, 300*time.Millisecond)) {
			return
		}
	}
}

// rest waits; false when the test is over.
func (c *caller) rest(d time.Duration) bool {
	select {
	case <-c.crowd.over:
		return false
	case <-time.After(d):
		return true
	}
}

// habits are what a caller is like in one visit. All of it is drawn before the visit
// begins, so that a seed gives the same whatever the machine does.
type habits struct {
	provider string
	rate     int
	push     bool   // push-to-talk
	pending  string // the pending request
	honest   int    // tells what was played: 0 truly, 1 not at all, 2 at once
	steps    []step
	leave    leaving
	fates    []fate // of the questions, in their order; the last for all that follow
}

// leaving is how a visit ends.
type leaving string

const (
	leaveQuietly leaving = "waits for all and hangs up"
	leaveHangUp  leaving = "hangs up"
	leaveVanish  leaving = "vanishes"
)

// fate is what a caller does about a confirmation.
type fate string

const (
	fateApprove fate = "approve"
	fateDeny    fate = "deny"
	fateIgnore  fate = "ignore"
	fateTwice   fate = "approve twice"
	fateVanish  fate = "approve and vanish"
)

// act is what a caller does next.
type act string

const (
	actType      act = "type"
	actSpeak     act = "speak"
	actStop      act = "stop"
	actSteal     act = "steal" // answers somebody else's confirmation
	actNonsense  act = "nonsense"
	actInterrupt act = "interrupt" // types while the answer is spoken
)

type step struct {
	after time.Duration // since the one before
	act   act
	text  string
}

var acts = weighted[act]{{actType, 60}, {actInterrupt, 14}, {actSpeak, 12}, {actStop, 8}, {actSteal, 3}, {actNonsense, 3}}

var fates = weighted[fate]{{fateApprove, 10}, {fateDeny, 4}, {fateIgnore, 3}, {fateTwice, 2}, {fateVanish, 1}}

func (c *caller) draw() habits {
	rng := rand.New(rand.NewPCG(c.seed, uint64(c.n)<<32|uint64(c.visits)))
	h := habits{
		provider: providers[rng.IntN(len(providers))], rate: chaosRates[rng.IntN(len(chaosRates))],
		push: rng.IntN(8) == 0, honest: weighted[int]{{0, 5}, {1, 2}, {2, 3}}.draw(rng),
		leave: weighted[leaving]{{leaveQuietly, 3}, {leaveHangUp, 4}, {leaveVanish, 3}}.draw(rng),
	}
	ref := func(i int) string { return fmt.Sprintf("c%dv%dw%d", c.n, c.visits, i) }
	if rng.IntN(4) == 0 {
		h.pending = chaosText(rng, ref(0))
	}
	for i := range 2 + rng.IntN(10) {
		s := step{after: between(rng, 300*time.Millisecond, 2*time.Second), act: acts.draw(rng), text: chaosText(rng, ref(i+1))}
		if s.act == actInterrupt || s.act == actStop {
			s.after = between(rng, 50*time.Millisecond, 600*time.Millisecond)
		}
		h.steps = append(h.steps, s)
	}
	for range 6 {
		h.fates = append(h.fates, fates.draw(rng))
	}
	return h
}

// visit is one session from the client's side, and the record of it.
type visit struct {
	// Fixed after visit began.
	caller *caller
	habits habits
	began  time.Time
	conn   *protocol.Conn
	in     chan happening // from its reader to visit, closed by the reader when the connection is over; 256 frames are some seconds

	// Owned by caller.visit.
	record
	due     []dueAct // what is to be done, the soonest first
	step    int
	leaving bool
	closing bool      // has said goodbye
	hushed  time.Time // when it began to wait for all that is owed
}

// dueAct is something to be done at its time.
type dueAct struct {
	at time.Time
	do func()
}

// visit calls once, from the dialling to the end of the connection.
func (c *caller) visit() *visit {
	v := &visit{caller: c, habits: c.draw(), began: time.Now(), in: make(chan happening, 256)}
	v.record = newRecord()
	conn, err := protocol.Dial(context.Background(), c.crowd.url+"/v1/voice", protocol.DialOptions{Client: c.crowd.client})
	if err != nil {
		v.complain("it could not connect: %v", err)
		return v
	}
	v.conn = conn
	var reader sync.WaitGroup
	reader.Go(v.read)
	start := &protocol.Start{
		Provider: v.habits.provider, InputRate: v.habits.rate, OutputRate: 24000, PendingRequest: v.habits.pending,
		Client: &protocol.ClientInfo{ID: c.user, Name: fmt.Sprint("chaos-", c.n)},
	}
	if v.habits.push {
		start.TurnDetection = protocol.TurnDetectionClient
	}
	v.say(start)
	v.run()
	conn.Abort()
	for range v.in { // lets the reader end
	}
	reader.Wait()
	return v
}

// read passes on what comes until the connection is over.
func (v *visit) read() {
	defer close(v.in)
	for {
		f, err := v.conn.Read()
		h := happening{at: time.Now(), err: err}
		switch {
		case err != nil:
		case f.Audio:
			h.bytes = len(f.Data)
		default:
			h.msg, h.err = protocol.ParseServer(f.Data)
		}
		v.in <- h
		if h.err != nil {
			return
		}
	}
}

// run does what is due and takes what comes until the connection is over.
func (v *visit) run() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	over := v.caller.crowd.over
	for {
		if len(v.due) > 0 {
			timer.Reset(max(time.Until(v.due[0].at), 0))
		} else {
			timer.Reset(time.Hour)
		}
		select {
		case h, ok := <-v.in:
			if !ok {
				return
			}
			v.take(h)
		case <-timer.C:
			if len(v.due) > 0 && !time.Now().Before(v.due[0].at) {
				do := v.due[0].do
				v.due = v.due[1:]
				do()
			}
		case <-over:
			over = nil
			v.wait()
		}
	}
}

// after has something done later.
func (v *visit) after(d time.Duration, do func()) {
	a := dueAct{time.Now().Add(d), do}
	i, _ := slices.BinarySearchFunc(v.due, a, func(a, b dueAct) int { return a.at.Compare(b.at) })
	v.due = slices.Insert(v.due, i, a)
}

// patiently has something done later, when this process could work for so long.
func (v *visit) patiently(d time.Duration, do func()) {
	since := time.Now()
	var look func()
	look = func() {
		if rest := d - v.caller.crowd.pulse.between(since, time.Now()); rest > 0 {
			v.after(rest, look)
			return
		}
		do()
	}
	v.after(d, look)
}

// say writes a message. A connection that is over is told of by the reader.
func (v *visit) say(m protocol.ClientMessage) {
	text, err := protocol.EncodeClient(m)
	if err != nil {
		v.complain("%T could not be encoded: %v", m, err)
		return
	}
	_ = v.conn.WriteText(text)
}

// next has the next step done in its time, or the visit ended.
func (v *visit) next() {
	if v.step == len(v.habits.steps) {
		v.after(200*time.Millisecond, v.leave)
		return
	}
	s := v.habits.steps[v.step]
	v.step++
	v.after(s.after, func() {
		if v.leaving {
			return
		}
		v.act(s)
		v.next()
	})
}

func (v *visit) act(s step) {
	v.latest = append(v.latest, fmt.Sprintf("%.3f I %s %s", time.Since(v.began).Seconds(), s.act, s.text))
	switch s.act {
	case actType, actInterrupt:
		v.say(&protocol.InputText{Text: s.text})
	case actSpeak:
		v.speak()
	case actStop:
		v.say(&protocol.Interrupt{})
	case actSteal:
		v.say(&protocol.ConfirmationResolve{Token: v.caller.crowd.steal(v.session), Approved: true})
	case actNonsense:
		_ = v.conn.WriteText([]byte(`{"type":"chaos.nonsense"}`))
	}
}

// speak sends a phrase at once: the gateway takes some seconds ahead of real time.
func (v *visit) speak() {
	if v.habits.push {
		v.say(&protocol.InputActivity{Active: true})
	}
	for frame := range slices.Chunk(v.caller.crowd.speech[v.habits.rate], audio.Bytes(v.habits.rate, 100*time.Millisecond)) {
		if v.conn.WriteAudio(frame) != nil {
			return
		}
	}
	if v.habits.push {
		v.say(&protocol.InputActivity{})
	}
}

// leave ends the visit as it is the caller's habit.
func (v *visit) leave() {
	if v.leaving {
		return
	}
	switch v.habits.leave {
	case leaveQuietly:
		v.wait()
	case leaveHangUp:
		v.leaving = true
		v.goodbye()
	case leaveVanish:
		v.leaving, v.vanished = true, true
		v.conn.Abort()
	}
}

// chaosPatience is how long a caller waits for what is owed, as a pulse counts. A call of a tool that writes
// may wait for the store twice 5 s, when the disk stands still.
const chaosPatience = 16 * time.Second

// wait lets everything that is owed come before the caller hangs up.
func (v *visit) wait() {
	if v.hushed.IsZero() {
		v.leaving, v.hushed = true, time.Now()
		v.after(0, v.hush)
	}
}

// hush hangs up once nothing is owed any more.
func (v *visit) hush() {
	owed, patient := v.owed(), v.caller.crowd.pulse.between(v.hushed, time.Now()) < chaosPatience
	switch {
	case v.session == "" && patient:
		v.after(50*time.Millisecond, v.hush)
	case owed == "":
		v.quiet = true
		v.goodbye()
	case patient:
		v.after(50*time.Millisecond, v.hush)
	default:
		v.complain("after %v there is still owed: %s\n\t%s", chaosPatience, owed, strings.Join(v.latest, "\n\t"))
		v.goodbye()
	}
}

// goodbye hangs up, and drops a connection that does not end then.
func (v *visit) goodbye() {
	if v.closing {
		return
	}
	v.closing = true
	v.say(&protocol.End{})
	v.patiently(chaosPatience, func() {
		v.complain("the connection was not closed %v after session.end", chaosPatience)
		v.conn.Abort()
	})
}

// asked does what is this visit's fate for a confirmation.
func (v *visit) asked(m *protocol.ConfirmationRequest) {
	f := v.habits.fates[min(len(v.questions), len(v.habits.fates))-1]
	answer := func(approved bool) {
		if approved {
			v.approvals = append(v.approvals, approval{tool: m.Tool, args: string(m.Args), at: time.Now()})
		}
		v.say(&protocol.ConfirmationResolve{Token: m.Token, Approved: approved})
	}
	switch f {
	case fateIgnore:
	case fateApprove, fateDeny:
		v.after(150*time.Millisecond, func() { answer(f == fateApprove) })
	case fateTwice:
		v.after(150*time.Millisecond, func() { answer(true); v.say(&protocol.ConfirmationResolve{Token: m.Token, Approved: true}) })
	case fateVanish:
		v.after(150*time.Millisecond, func() { answer(true); v.leaving, v.vanished = true, true; v.conn.Abort() })
	}
}

// heard reports what was played of an item, as it is this visit's habit. The caller
// listens eight times as fast as a person.
func (v *visit) heard(item string, ms int64) {
	report := func() { v.say(&protocol.Playback{ItemID: item, PlayedMS: ms, Done: true}) }
	switch v.habits.honest {
	case 0:
		v.after(time.Duration(ms)*time.Millisecond/8, report)
	case 2:
		report()
	}
}

// steal returns a token of another visit, or one that nobody has.
func (c *crowd) steal(session string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := len(c.tokens) - 1; i >= 0; i-- {
		if owner, token, _ := cutToken(c.tokens[i]); owner != session {
			return token
		}
	}
	return "cf_nobodys"
}

// expose lets thieves know of a token.
func (c *crowd) expose(session, token string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tokens = append(c.tokens, session+" "+token)
	if len(c.tokens) > 64 {
		c.tokens = slices.Delete(c.tokens, 0, 32)
	}
}
