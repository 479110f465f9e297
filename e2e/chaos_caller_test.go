package e2e

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"voicegw/audio"
	"voicegw/internal/testutil"
	"voicegw/protocol"
)

// caller is a user who calls repeatedly.
type caller struct {
	// Fixed.
	n      int
	seed   uint64
	crowd  *crowd
	user   string
	proxy  *testutil.Proxy // in front of the gateway
	url    string          // of the proxy
	visits int             // so far

	mu sync.Mutex // guards the following field
	to *chaosNode // the newest connection's gateway
}

// route picks the gateway for a connection.
func (c *caller) route() string {
	n := c.crowd.balance()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.to = n
	return n.address
}

func (c *caller) routed() *chaosNode {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.to
}

// crowd is shared by all callers.
type crowd struct {
	// Fixed.
	seed    uint64
	balance func() *chaosNode
	door    *testutil.Proxy // to the gateways, for thieves
	client  *http.Client
	speech  map[int][]byte // a phrase for each input rate, in Hz
	over    <-chan struct{}
	pulse   *pulse
	stored  *storePulse
	links   *linkSide
	first   chan struct{} // holds a token while a caller is next

	mu     sync.Mutex    // guards the following fields
	held   time.Duration // total wait for a store that keeps up
	visits []*visit
	tokens []string // of recent confirmations, for thieves
	ways   []string // resume tokens of recent visits, for thieves
}

// chaosRates are the input rates that callers use.
var chaosRates = []int{16000, 24000, 48000}

func newCrowd(ch *chaos) *crowd {
	c := &crowd{
		seed: ch.seed, balance: ch.balance, over: ch.over, pulse: ch.pulse, stored: ch.stored, links: ch.links, first: make(chan struct{}, 1), speech: map[int][]byte{},
		client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}, // each connection may lead to another gateway
	}
	var err error
	if c.door, err = testutil.Balance("127.0.0.1:0", func() string { return ch.balance().address }); err != nil {
		ch.t.Fatal(err)
	}
	for _, rate := range chaosRates {
		c.speech[rate] = append(testutil.SpeechLike(rate, time.Second, 11), testutil.Silence(rate, 1200*time.Millisecond)...)
	}
	return c
}

// call lets a caller call until the end of the test.
func (c *crowd) call(n int) {
	who := &caller{n: n, seed: c.seed, crowd: c, user: fmt.Sprint("user-", n/2)} // two callers share a user
	var err error
	if who.proxy, err = testutil.Balance("127.0.0.1:0", who.route); err != nil {
		panic(err) // a port of this machine
	}
	defer func() { _ = who.proxy.Close() }() // it has no connections left
	who.url = "http://" + who.proxy.Addr() + "/v1/voice"
	rng := rand.New(rand.NewPCG(c.seed, uint64(n)))
	if !who.rest(between(rng, 0, 2*time.Second)) {
		return
	}
	for who.waitsForRoom() {
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

// waitsForRoom admits one caller at a time while the store keeps up, so that a busy machine has fewer callers and a
// starved store causes no findings. It returns false at the end of the test.
func (c *caller) waitsForRoom() bool {
	select {
	case c.crowd.first <- struct{}{}:
	case <-c.crowd.over:
		return false
	}
	defer func() { <-c.crowd.first }()
	since := time.Now()
	for !c.crowd.stored.keepsUp(time.Now()) {
		if !c.rest(20 * time.Millisecond) {
			return false
		}
	}
	c.crowd.mu.Lock()
	c.crowd.held += time.Since(since)
	c.crowd.mu.Unlock()
	return c.rest(10 * time.Millisecond)
}

// rest waits; false at the end of the test.
func (c *caller) rest(d time.Duration) bool {
	select {
	case <-c.crowd.over:
		return false
	case <-time.After(d):
		return true
	}
}

// habits are a caller's behaviour in one visit, drawn before the visit so that a seed repeats it.
type habits struct {
	provider  string
	rate      int
	push      bool   // push-to-talk
	pending   string // the pending request
	honest    int    // reports playback: 0 truthfully, 1 never, 2 at once
	steps     []step
	leave     leaving
	reactions []reaction // for questions in order; the last repeats
	overtalk  bool       // speaks while the model's connection is replaced
	thefts    []theft
}

// leaving is how a visit ends.
type leaving string

const (
	leaveQuietly leaving = "waits for all and hangs up"
	leaveHangUp  leaving = "hangs up"
	leaveVanish  leaving = "vanishes"
)

// reaction is a caller's reaction to a confirmation.
type reaction string

const (
	reactionApprove reaction = "approve"
	reactionDeny    reaction = "deny"
	reactionIgnore  reaction = "ignore"
	reactionTwice   reaction = "approve twice"
	reactionVanish  reaction = "approve and vanish"
)

// act is a caller's next action.
type act string

const (
	actType      act = "type"
	actSpeak     act = "speak"
	actStop      act = "stop"
	actSteal     act = "steal" // answers another caller's confirmation
	actNonsense  act = "nonsense"
	actInterrupt act = "interrupt" // types while the answer is spoken
	actLose      act = "lose"      // loses its connection and resumes
	actThief     act = "thief"     // another client tries another token
)

type step struct {
	after time.Duration // since the previous one
	act   act
	text  string
	lose  outage
}

var acts = weighted[act]{{actType, 60}, {actInterrupt, 14}, {actSpeak, 12}, {actStop, 8}, {actSteal, 3}, {actNonsense, 3}, {actLose, 30}, {actThief, 5}}

// chaosWires are the providers with the shares of visits over them.
var chaosWires = weighted[string]{{"openai", 2}, {"gemini", 2}, {"live", 1}}

var reactions = weighted[reaction]{{reactionApprove, 10}, {reactionDeny, 4}, {reactionIgnore, 3}, {reactionTwice, 2}, {reactionVanish, 1}}

func (c *caller) draw() habits {
	rng := rand.New(rand.NewPCG(c.seed, uint64(c.n)<<32|uint64(c.visits)))
	h := habits{
		provider: cmp.Or(*chaosWire, chaosWires.draw(rng)), rate: chaosRates[rng.IntN(len(chaosRates))],
		push: rng.IntN(8) == 0, honest: weighted[int]{{0, 5}, {1, 2}, {2, 3}}.draw(rng),
		leave: weighted[leaving]{{leaveQuietly, 3}, {leaveHangUp, 4}, {leaveVanish, 3}}.draw(rng),
	}
	ref := func(i int) string { return fmt.Sprintf("c%dv%dw%d", c.n, c.visits, i) }
	if rng.IntN(4) == 0 {
		h.pending = chaosText(rng, ref(0))
	}
	for i := range 2 + rng.IntN(10) {
		s := step{after: between(rng, 300*time.Millisecond, 2*time.Second), act: acts.draw(rng), text: chaosText(rng, ref(i+1))}
		if s.lose = drawOutage(rng); s.act == actInterrupt || s.act == actStop || s.act == actLose {
			s.after = between(rng, 50*time.Millisecond, 600*time.Millisecond)
		} else if h.provider == "live" {
			s.after *= 2 // a delegation takes longer than a call
		}
		h.steps = append(h.steps, s)
	}
	for range 6 {
		h.reactions = append(h.reactions, reactions.draw(rng))
	}
	h.overtalk = rng.IntN(2) == 0
	for range 3 {
		h.thefts = append(h.thefts, thefts.draw(rng))
	}
	return h
}

// visit is a session from the client's side, with its record.
type visit struct {
	// Fixed after visit began.
	caller *caller
	number int // of its caller
	habits habits
	began  time.Time

	// Owned by caller.visit.
	record
	at       *attached      // the newest connection
	in       chan happening // its input; nil during an outage
	all      []*attached
	away     bool // cannot send: no connection, or the session has not resumed
	losing   bool // the connection is about to break
	over     bool // cannot resume
	outage   outage
	answers  map[string]func()    // answers to questions, by token
	answered map[string]*attached // the connection that each answer was sent on
	due      []dueAct             // pending actions, the soonest first
	step     int
	leaving  bool
	closing  bool            // session.end was sent
	hushed   time.Time       // when it began to wait for everything owed
	swaps    <-chan struct{} // receives when the gateway closes a connection to the model
	gang     gang            // other clients that try its session
}

type dueAct struct {
	at time.Time
	do func()
}

// visit makes one call, from dialling to the end of the connection.
func (c *caller) visit() *visit {
	v := &visit{caller: c, number: c.visits, habits: c.draw(), began: time.Now(), answers: map[string]func(){}, answered: map[string]*attached{}}
	v.record = newRecord()
	if !v.dial(false) {
		return v
	}
	defer c.crowd.links.forget(v.voice())
	v.swaps = c.crowd.links.swaps(v.voice())
	start := &protocol.Start{
		Voice: v.voice(), Provider: v.habits.provider, InputRate: v.habits.rate, OutputRate: 24000, PendingRequest: v.habits.pending,
		Client: &protocol.ClientInfo{ID: c.user, Name: fmt.Sprint("chaos-", c.n)},
	}
	if v.habits.push {
		start.TurnDetection = protocol.TurnDetectionClient
	}
	v.say(start)
	v.run()
	v.overAt = time.Now()
	v.hangUp()
	v.complaints = append(v.complaints, v.gang.wait()...)
	return v
}

// voice identifies the visit on the gateway's connections to models.
func (v *visit) voice() string { return fmt.Sprintf("c%dv%d", v.caller.n, v.number) }

// begins handles session.started.
func (v *visit) begins(m *protocol.SessionStarted) {
	if v.session == "" {
		v.session = m.SessionID
		v.owner = v.at.node
		v.next()
	} else {
		v.isBack(m)
		v.spent = append(v.spent, v.before)
	}
	v.before, v.token = v.token, m.ResumeToken
	v.caller.crowd.exposeResume(v.session, v.token)
}

// run performs due actions and handles input until the connection ends.
func (v *visit) run() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	over := v.caller.crowd.over
	for !v.over {
		if len(v.due) > 0 {
			timer.Reset(max(time.Until(v.due[0].at), 0))
		} else {
			timer.Reset(time.Hour)
		}
		select {
		case h, ok := <-v.in:
			if !ok && !v.lost() {
				return
			}
			if ok {
				v.take(h)
			}
		case <-timer.C:
			if len(v.due) > 0 && !time.Now().Before(v.due[0].at) {
				do := v.due[0].do
				v.due = v.due[1:]
				do()
			}
		case <-v.swaps:
			v.overtalk()
		case <-over:
			over = nil
			v.wait()
		}
	}
}

// after schedules an action.
func (v *visit) after(d time.Duration, do func()) {
	a := dueAct{time.Now().Add(d), do}
	i, _ := slices.BinarySearchFunc(v.due, a, func(a, b dueAct) int { return a.at.Compare(b.at) })
	v.due = slices.Insert(v.due, i, a)
}

// patiently schedules an action after d of this process's working time.
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

// say writes a message. The reader reports a closed connection.
func (v *visit) say(m protocol.ClientMessage) {
	if !v.away {
		v.write(m)
	}
}

func (v *visit) write(m protocol.ClientMessage) {
	text, err := protocol.EncodeClient(m)
	if err != nil {
		v.complain("%T could not be encoded: %v", m, err)
		return
	}
	_ = v.at.conn.WriteText(text)
}

// next schedules the next step, or the end of the visit.
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
	v.mention("%.3f I %s %s", time.Since(v.began).Seconds(), s.act, s.text)
	switch s.act {
	case actType, actInterrupt:
		v.typedAt = append(v.typedAt, time.Now())
		v.say(&protocol.InputText{Text: s.text})
	case actSpeak:
		v.speak()
	case actStop:
		v.say(&protocol.Interrupt{})
	case actSteal:
		v.say(&protocol.ConfirmationResolve{Token: v.caller.crowd.steal(v.session), Approved: true})
	case actNonsense:
		if !v.away {
			_ = v.at.conn.WriteText([]byte(`{"type":"chaos.nonsense"}`))
		}
	case actLose:
		v.mention("  %v for %v", s.lose.how, s.lose.away)
		v.outages[string(s.lose.how)]++
		v.lose(s.lose)
	case actThief:
		v.thief()
	}
}

// speak sends a phrase at once: the gateway accepts some seconds ahead of real time.
func (v *visit) speak() {
	if v.away {
		return
	}
	if v.habits.push {
		v.say(&protocol.InputActivity{Active: true})
	}
	for frame := range slices.Chunk(v.caller.crowd.speech[v.habits.rate], audio.Bytes(v.habits.rate, 100*time.Millisecond)) {
		if v.at.conn.WriteAudio(frame) != nil {
			return
		}
	}
	if v.habits.push {
		v.say(&protocol.InputActivity{})
	}
}

// leave ends the visit by the caller's habit.
func (v *visit) leave() {
	if v.leaving {
		return
	}
	if v.away || v.losing {
		v.after(50*time.Millisecond, v.leave)
		return
	}
	switch v.habits.leave {
	case leaveQuietly:
		v.wait()
	case leaveHangUp:
		v.leaving = true
		v.goodbye()
	case leaveVanish:
		v.vanish()
	}
}

func (v *visit) vanish() {
	v.leaving, v.vanished = true, true
	v.at.conn.Abort()
	v.over = v.away
}

// chaosPatience limits a caller's wait for owed messages, in pulse time. A call of a tool that writes may wait for the
// store twice 5 s on a stalled disk.
const chaosPatience = 16 * time.Second

// hushPatience limits the wait before hanging up: an answer may wait 30 s for a new connection to the model.
const hushPatience = 45 * time.Second

// wait waits for everything owed before hanging up.
func (v *visit) wait() {
	if v.hushed.IsZero() {
		v.leaving, v.hushed = true, time.Now()
		v.after(0, v.hush)
	}
}

// hush hangs up when nothing is owed.
func (v *visit) hush() {
	owed, patient := v.owed(), v.caller.crowd.pulse.between(v.hushed, time.Now()) < hushPatience
	switch {
	case (v.session == "" || v.away || v.losing) && patient:
		v.after(50*time.Millisecond, v.hush)
	case owed == "":
		v.quiet = true
		v.goodbye()
	case patient:
		v.after(50*time.Millisecond, v.hush)
	default:
		v.complain("after %v the session still owes: %s\n\t%s", hushPatience, owed, strings.Join(v.latest, "\n\t"))
		v.goodbye()
	}
}

// goodbye hangs up, and drops a connection that does not end.
func (v *visit) goodbye() {
	if v.closing {
		return
	}
	if v.away || v.losing {
		v.after(50*time.Millisecond, v.goodbye)
		return
	}
	v.closing = true
	v.say(&protocol.End{})
	v.patiently(chaosPatience, func() {
		v.complain("the connection was not closed %v after session.end", chaosPatience)
		v.at.conn.Abort()
	})
}

// asked reacts to a confirmation as the visit's habits say.
func (v *visit) asked(m *protocol.ConfirmationRequest) {
	f := v.habits.reactions[min(len(v.questions), len(v.habits.reactions))-1]
	answer := func(approved bool) {
		if _, before := v.answered[m.Token]; approved && !before {
			v.approvals = append(v.approvals, approval{tool: m.Tool, args: string(m.Args), at: time.Now()})
		}
		if v.away || v.losing {
			return // it answers after resuming
		}
		v.answered[m.Token] = v.at
		v.say(&protocol.ConfirmationResolve{Token: m.Token, Approved: approved})
	}
	if f != reactionIgnore {
		v.answers[m.Token] = func() { answer(f != reactionDeny) }
	}
	switch f {
	case reactionIgnore:
	case reactionApprove, reactionDeny:
		v.after(150*time.Millisecond, func() { answer(f == reactionApprove) })
	case reactionTwice:
		v.after(150*time.Millisecond, func() { answer(true); v.say(&protocol.ConfirmationResolve{Token: m.Token, Approved: true}) })
	case reactionVanish:
		v.after(150*time.Millisecond, func() { answer(true); v.vanish() })
	}
}

// heard reports playback as the visit's habits say. The caller listens eight times as fast as a human.
func (v *visit) heard(item string, ms int64) {
	report := func() {
		v.say(&protocol.Playback{ItemID: item, PlayedMS: ms, Done: true, ReceivedMS: int64(v.have[item] / 48), Seq: v.seq})
	}
	switch v.habits.honest {
	case 0:
		v.after(time.Duration(ms)*time.Millisecond/8, report)
	case 2:
		report()
	}
}

// unanswered returns the open questions with an answer of the caller.
func (v *visit) unanswered() map[string]func() {
	open := map[string]func(){}
	for token, answer := range v.answers {
		if outcome, asked := v.questions[token]; asked && outcome == "" { // a snapshot shows which
			open[token] = answer
		}
	}
	return open
}
