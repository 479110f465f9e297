package orchestrator

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"voicegw/internal/testutil"
	"voicegw/transport"
)

// dialogue simulates a user, their client, and an orderly model, with a session between them. Speech, commands and
// events arrive after random delays from a seed. Connections to the model are lost, the session moves, its process
// dies, and the user's words are replayed to the next one. The model ends some answers without a word.
type dialogue struct {
	t     *testing.T
	rng   *rand.Rand
	caps  transport.Capabilities
	state State
	at    time.Time
	plan  []planned
	log   strings.Builder

	serial int  // for unique names
	tidy   bool // from now on the model speaks in each answer
	over   bool // the session has ended

	model *farEnd
	upAt  time.Time // when the last message sent to the model arrives
	back  bool      // the step of LinkBack is running
	front []func()  // commands of that step, which are sent first
	held  []func()  // commands that wait for a connection
	clock PlayClock

	said   []*phrase
	keeps  bool      // this process has sent part of it
	waits  time.Time // start of the user's wait for an answer; zero without one
	epoch  uint64    // counts the processes
	memory []byte    // the newest checkpoint
	upTo   int64     // end of the speech that is settled in it
}

// planned is a future event.
type planned struct {
	at time.Time
	n  int // orders events of the same time
	do func()
}

// phrase is a user's utterance, on the client's audio clock.
type phrase struct {
	from, to int64 // to is 0 until the phrase ends
	sent     bool  // its beginning was sent to the present model
	known    bool  // the step knows of it
}

func newDialogue(t *testing.T, seed uint64, caps transport.Capabilities) *dialogue {
	caps.History = transport.HistoryItems
	d := &dialogue{t: t, rng: rand.New(rand.NewPCG(seed, 9)), caps: caps, at: epoch, epoch: 1}
	d.begin()
	d.take(Began{})
	d.checkpoint()
	return d
}

// begin starts a process with an empty state.
func (d *dialogue) begin() {
	d.state = NewState(d.caps, NewRules(Policy{Relink: true, ResumeGrace: 30 * time.Second}), toolbox(), testMark, d.at)
	d.model, d.held, d.clock, d.keeps = &farEnd{d: d}, nil, PlayClock{}, false
}

// ms is the time on the client's audio clock.
func (d *dialogue) ms() int64 { return d.at.Sub(epoch).Milliseconds() }

// soon is a short time, sometimes a long one. Two of them are less than leadTime.
func (d *dialogue) soon() time.Duration {
	if d.rng.IntN(8) == 0 {
		return time.Duration(d.rng.IntN(450)) * time.Millisecond
	}
	return time.Duration(d.rng.IntN(40)) * time.Millisecond
}

func (d *dialogue) after(wait time.Duration, do func()) {
	d.serial++
	d.plan = append(d.plan, planned{d.at.Add(max(wait, 0)), d.serial, do})
}

// pass advances the time and runs the events that become due.
func (d *dialogue) pass(wait time.Duration) {
	until := d.at.Add(wait)
	for !d.over {
		next := planned{at: until}
		at := -1
		for i, p := range d.plan {
			if p.at.Before(next.at) || at >= 0 && p.at.Equal(next.at) && p.n < next.n {
				at, next = i, p
			}
		}
		if due := d.state.WakeAt(); !due.IsZero() && !due.After(next.at) {
			d.at = later(d.at, due)
			d.take(Tick{})
			continue
		}
		d.at = later(d.at, next.at)
		if at < 0 {
			return
		}
		d.plan = slices.Delete(d.plan, at, at+1)
		next.do()
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func (d *dialogue) note(format string, args ...any) {
	fmt.Fprintf(&d.log, "%8d %s\n", d.ms(), fmt.Sprintf(format, args...))
}

// take makes a step and carries out its actions.
func (d *dialogue) take(in Input) {
	if d.over {
		return
	}
	if _, speech := in.(UserSpeechStarted); speech {
		d.said[len(d.said)-1].known = true
	}
	next, actions := Step(d.state, d.at, in)
	if _, tick := in.(Tick); !tick || len(actions) > 0 {
		d.note("%T %+v", in, in)
	}
	d.state = next
	for _, a := range actions {
		d.note("    %s", show(a))
		d.notify(a)
		d.carryOut(a)
	}
}

// notify records the messages to the client, and the facts that a session saves for another process.
func (d *dialogue) notify(a Action) {
	switch a := a.(type) {
	case OpenItem, Failed:
		d.waits = time.Time{}
	case Transcript:
		if a.Role == transport.RoleAssistant && strings.TrimSpace(a.Text) != "" {
			d.waits = time.Time{}
		}
		if a.Role == transport.RoleUser && a.Final {
			d.checkpoint()
		}
	case SpeechStopped:
		if p := d.speaks(); p != nil {
			p.known = false // its rest is new to the next connection
		}
	case SpeechStarted, TurnStarted, TurnEnded, SwitchLink, Moving:
		d.checkpoint()
	}
}

func (d *dialogue) carryOut(a Action) {
	switch a := a.(type) {
	case OpenItem:
		d.inThisProcess(20*time.Millisecond, func() {
			d.take(AudioSent{Item: a.Item, Sent: 900 * time.Millisecond, Until: d.clock.Add(d.at, 900*time.Millisecond)})
		})
	case FlushItem:
		d.clock.Cut(d.at)
	case End:
		d.over = true
	case Command:
		d.command(func() { d.send(func() { d.model.command(a.Command) }) })
	case SayAgain:
		last := d.said[len(d.said)-1]
		last.sent = false
		d.command(func() { d.hears(last) })
	case SwitchLink, Moving:
		d.model.gone = true
		d.model, d.held = &farEnd{d: d}, nil
		for _, p := range d.said {
			p.sent = p.to > 0 // a completed phrase is lost with the connection
		}
		d.after(10*time.Millisecond+d.soon(), d.connect)
	}
}

// inThisProcess is after, for an event that dies with the process.
func (d *dialogue) inThisProcess(wait time.Duration, do func()) {
	epoch := d.epoch
	d.after(wait, func() {
		if d.epoch == epoch {
			do()
		}
	})
}

// command sends a command to the model, or keeps it for the next connection.
func (d *dialogue) command(do func()) {
	switch {
	case d.back:
		d.front = append(d.front, do)
	case d.state.down():
		d.held = append(d.held, do)
	default:
		do()
	}
}

// connect opens another connection, or moves the session to another process.
func (d *dialogue) connect() {
	switch {
	case !d.state.down():
		return
	case d.state.leaving():
		d.takeOver(true)
		return
	case d.rng.IntN(4) == 0:
		d.after(d.soon(), d.connect)
		return
	}
	// Sometimes the user's words could not be saved for lack of room.
	kept := d.keeps && (d.rng.IntN(2) == 0 || !d.caps.SpeechEvents || !d.said[len(d.said)-1].known)
	d.back, d.front = true, nil
	d.take(LinkBack{Caps: d.caps, How: LinkReplayed, Kept: kept})
	d.back = false
	for _, do := range append(d.front, d.held...) {
		do()
	}
	d.held = nil
	if p := d.speaks(); p != nil {
		d.hears(p) // the rest of it
	}
}

// checkpoint saves the state that another process needs.
func (d *dialogue) checkpoint() {
	var err error
	if d.memory, err = json.Marshal(d.state.Memory()); err != nil {
		d.t.Fatal(err)
	}
	d.upTo = d.state.Settled(d.ms())
}

// takeOver continues from the newest checkpoint in another process. The client replays everything after it.
func (d *dialogue) takeOver(given bool) {
	var m Memory
	if err := json.Unmarshal(d.memory, &m); err != nil {
		d.t.Fatal(err)
	}
	upTo := d.upTo
	d.epoch++
	d.note("another process takes over; speech is settled up to %d", upTo)
	d.model.gone = true
	d.begin()
	d.take(Restored{Memory: m, StartedAt: epoch, Epoch: d.epoch, Given: given, SettledMS: upTo, SaidAgain: true})
	wait := d.soon()
	for _, p := range d.said {
		if p.sent, p.known = false, false; p.to > 0 && p.to <= upTo+200 {
			p.known = true
			continue
		}
		p.from = max(p.from, upTo)
		d.inThisProcess(wait, func() {
			d.hears(p)
			d.earBegins()
			if p.to > 0 {
				d.earEnds(p)
			}
		})
	}
}

// speaks returns the user's current phrase; nil if they are silent.
func (d *dialogue) speaks() *phrase {
	if n := len(d.said); n > 0 && d.said[n-1].to == 0 {
		return d.said[n-1]
	}
	return nil
}

// begins and ends are the user's speech.
func (d *dialogue) begins() {
	d.note("the user speaks")
	p := &phrase{from: d.ms()}
	d.said, d.waits = append(d.said, p), time.Time{}
	d.hears(p)
	d.earBegins()
}

func (d *dialogue) ends() {
	p := d.speaks()
	if spoken := d.ms() - p.from; spoken < minSpeech.Milliseconds() {
		d.pass(minSpeech) // a cough needs no answer
	}
	d.note("the user is silent")
	p.to, d.waits = d.ms(), d.at
	if p.sent {
		d.send(func() { d.model.speechEnds(p) })
	}
	d.earEnds(p)
}

// hears sends the model the part of a phrase that exists.
func (d *dialogue) hears(p *phrase) {
	switch {
	case d.state.down():
		d.held = append(d.held, func() { d.hears(p) })
		return
	case p.sent:
		return
	}
	p.sent, d.keeps = true, true
	d.send(func() { d.model.speechBegins(p) })
	if p.to > 0 {
		d.send(func() { d.model.speechEnds(p) })
	}
}

// earBegins and earEnds are the gateway's own speech detection, for a model that does not report the user's speech.
func (d *dialogue) earBegins() {
	if !d.caps.SpeechEvents {
		d.inThisProcess(200*time.Millisecond, func() { d.take(UserSpeechStarted{AudioMS: d.ms(), At: d.at.Add(-200 * time.Millisecond)}) })
		d.inThisProcess(200*time.Millisecond+SustainedSpeech, func() { d.take(UserHeard{AudioMS: d.ms(), Sustained: true}) })
	}
}

func (d *dialogue) earEnds(p *phrase) {
	if end := d.at; !d.caps.SpeechEvents {
		d.inThisProcess(500*time.Millisecond, func() { d.take(UserSpeechStopped{AudioMS: d.ms(), EndAt: end, SpeechMS: p.to - p.from}) })
	}
}

// send delivers a message to the model, after all earlier ones.
func (d *dialogue) send(do func()) {
	model := d.model
	d.upAt = later(d.upAt, d.at.Add(d.soon()))
	d.after(d.upAt.Sub(d.at), func() {
		if !model.gone {
			do()
		}
	})
}

// dialogues is the number of dialogues of TestEverythingSaidIsAnswered for each kind of model.
var dialogues = flag.Int("dialogues", 1500, "random dialogues for each kind of model")

// patience is longer than every wait of the step.
const patience = time.Minute

// chat is a conversation of n events, after which the model is tidy. It returns the user's complaint, if any.
func (d *dialogue) chat(n int) (complaint string) {
	for range n {
		d.pass(time.Duration(d.rng.IntN(1500)) * time.Millisecond)
		if complaint = d.happens(); complaint != "" || d.over {
			return complaint
		}
	}
	if d.speaks() != nil {
		d.ends()
	}
	d.tidy = true
	if !d.answered() {
		return "the user's last words have no answer"
	}
	for range 2 {
		d.begins()
		d.pass(2 * time.Second)
		d.ends()
		switch {
		case !d.answered():
			return "the session ignores the user's speech"
		case d.state.turn != nil && !d.over:
			return "a turn is still open"
		}
	}
	return ""
}

// answered waits, and reports whether the user has an answer.
func (d *dialogue) answered() bool {
	d.pass(patience)
	return d.over || d.waits.IsZero()
}

// happens performs one random event.
func (d *dialogue) happens() (complaint string) {
	speaks := d.speaks() != nil
	switch k := d.rng.IntN(20); {
	case speaks && k < 12:
		d.ends()
	case !speaks && k < 7:
		d.begins()
	case !speaks && k < 9:
		d.take(UserText{Text: "hi"})
		d.waits = d.at
	case k < 14:
		d.take(Move{By: d.at.Add(time.Duration(d.rng.IntN(4000)) * time.Millisecond)})
	case k < 15 && !d.state.down():
		d.takeOver(false)
	case k < 17 && d.mayLose():
		d.take(LinkLost{})
	case k < 18 && !speaks && !d.answered():
		return "the user's words have no answer"
	}
	return ""
}

// mayLose reports whether the step can know everything that is lost with the connection: it knows of the beginning of
// speech from the model, or from the client, which repeats it.
func (d *dialogue) mayLose() bool {
	n := len(d.said)
	return n == 0 || d.said[n-1].known || d.state.user.settled.owed
}

// TestEverythingSaidIsAnswered: everything the user says is followed by speech, words or an error, and no session
// stops listening, whatever is lost and in whatever order replayed speech, its reports, requests for answers and
// their ends arrive (invariants 2 and 12).
func TestEverythingSaidIsAnswered(t *testing.T) {
	for name, caps := range map[string]transport.Capabilities{"hearing": capsHearing, "deaf": capsDeaf, "stopped": capsStopped} {
		t.Run(name, func(t *testing.T) {
			many := testutil.SampleUnderRace(*dialogues)
			if testing.Short() {
				many /= 10
			}
			for seed := range uint64(many) {
				d := newDialogue(t, seed, caps)
				if complaint := d.chat(3 + int(seed%20)); complaint != "" {
					t.Fatalf("seed %d: %s\n%s", seed, complaint, d.log.String())
				}
			}
		})
	}
}
