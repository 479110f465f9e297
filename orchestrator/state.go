package orchestrator

import (
	"slices"
	"time"

	"voicegw/cost"
	"voicegw/orchestrator/calls"
	"voicegw/orchestrator/policy"
	"voicegw/prompts"
	"voicegw/registry"
	"voicegw/registry/spec"
	"voicegw/transport"
)

// Policy is the operator's settings for a session. A zero field means the default given here.
type Policy struct {
	// MaxLength is the maximum length of a session. Zero means no limit.
	MaxLength time.Duration
	// MaxIdle is how long nobody may speak or type before the session ends. Zero means no limit.
	MaxIdle time.Duration
	// MaxCost is what the model of a session may cost. Zero means no limit.
	MaxCost cost.Micros
	// NudgeAfter is when a silent model is asked again, NoAnswerAfter when the turn fails. Zero
	// means 10 s and 15 s.
	NudgeAfter    time.Duration
	NoAnswerAfter time.Duration
	// SpeechSilence is for speech whose end the model does not report: it counts as over once
	// the gateway's own detector has heard nothing for this long. Zero means 15 s.
	SpeechSilence time.Duration
	// ReportWait is how long a truncation waits for the client's report of what was heard. Zero
	// means 250 ms.
	ReportWait time.Duration
	// FarewellWait is how long a session that a tool is ending waits for the farewell, once the
	// user has heard everything before it. A farewell that has been sent is heard to its end.
	// Zero means 12 s.
	FarewellWait time.Duration
	// ProgressEvery is how often the client is told that a tool is still running, once it has
	// exceeded its latency budget. Zero means 5 s.
	ProgressEvery time.Duration
	// Relink lets the session replace the connection to a model that can go on with a
	// conversation; see [Replaceable]. Without it, the session ends with its connection.
	Relink bool
	// Failover means that there is another provider, which an Attempt may ask.
	Failover bool
	// Tools are the rules for tool calls. Tools.Mode is ignored: it is always voice.
	Tools policy.Rules
	// ResumeGrace is how long a session goes on without a client before it ends. Zero means that it
	// ends at once.
	ResumeGrace time.Duration
	// SpokenConfirmation lets the model confirm with [calls.ConfirmAction] what the user has
	// agreed to aloud. Without it, only a button in the client does.
	SpokenConfirmation bool
}

func (p Policy) withDefaults() Policy {
	if p.NudgeAfter == 0 {
		p.NudgeAfter = 10 * time.Second
	}
	if p.NoAnswerAfter == 0 {
		p.NoAnswerAfter = 15 * time.Second
	}
	if p.SpeechSilence == 0 {
		p.SpeechSilence = 15 * time.Second
	}
	if p.ReportWait == 0 {
		p.ReportWait = 250 * time.Millisecond
	}
	if p.FarewellWait == 0 {
		p.FarewellWait = 12 * time.Second
	}
	if p.ProgressEvery == 0 {
		p.ProgressEvery = 5 * time.Second
	}
	p.Tools.Mode = spec.ModeVoice
	return p
}

// Rules are a Policy with its defaults. All sessions with that policy share them, and they never change.
type Rules struct {
	Policy

	calls calls.Rules
}

// NewRules returns the rules of a policy.
func NewRules(p Policy) *Rules {
	p = p.withDefaults()
	return &Rules{p, calls.Rules{
		Tools: p.Tools, Prefix: "call_", Spoken: p.SpokenConfirmation, Live: true,
		MaxOpen: maxCalls, MaxQuestions: maxConfirmations, ProgressEvery: p.ProgressEvery,
	}}
}

// State is everything that the orchestrator knows about a session. It is a value: Step returns a
// new State and leaves the old one unchanged.
type State struct {
	caps transport.Capabilities // of the model on the present connection
	link link
	move move

	// Fixed after NewState.
	policy    *Rules
	mark      prompts.Mark // the mark before the gateway's own words to this model
	startedAt time.Time

	phase      Phase
	lastActive time.Time // when anybody last spoke or typed
	warned     bool      // the client knows that MaxLength will end the session soon

	turn     *turn // the open turn; nil between turns
	turns    turns
	response response
	stop     stop
	signAt   time.Time // when the model last sent anything
	*work              // nil if the model has not said that it is at work

	line line  // what the user hears
	cuts []cut // flushed items of which the model does not yet know the heard part, oldest first
	user user

	calls   calls.Calls
	notices []notice // what the model will be told in the next turn, oldest first
	*page            // never nil

	switching  switching
	suppressed suppressed
	farewell   farewell
	absence    absence
	spending   spending
	lapse      *lapse // nil if the credentials have no end
}

// turns is what the State keeps about all turns so far.
type turns struct {
	last   int
	skip   int       // how many numbers the next turn leaves out
	gaps   int       // how many numbers were left out
	nudges int       // how often a silent model was asked to answer, by this process
	began  time.Time // when the last turn began
	// answered is what another process must know of the last turn, if it is over and was answered.
	answered *OpenTurn
	carry    *carried // what was used between turns, for the next turn; nil if nothing was. Immutable
}

// carried is what was used, and what that has cost.
type carried struct {
	usage transport.Tokens
	cost  cost.Amount
}

// response is the model's latest response.
type response struct {
	id    string
	state responseState
}

type responseState uint8

// The states of a response.
const (
	idle    responseState = iota // no response is under way
	open                         // a response is under way
	dropped                      // a response is under way, and nothing more of it reaches the client
	stray                        // no response is under way, and stray pieces of the last one do not reach the client
)

// underWay reports whether a response of the model is under way.
func (r response) underWay() bool { return r.state == open || r.state == dropped }

// held reports whether nothing more of the response may reach the client.
func (r response) held() bool { return r.state == dropped || r.state == stray }

// begin records that a response is under way. If a dropped response begins again, it stays
// dropped.
func (r *response) begin(id string) {
	if r.id != id || !r.held() {
		r.state = open
	} else {
		r.state = dropped
	}
	r.id = id
}

// hold keeps the rest of the response from the client.
func (r *response) hold() {
	if r.underWay() {
		r.state = dropped
	} else {
		r.state = stray
	}
}

// stop is the state of the stop button. pending means that the response that begins next is
// unwanted.
type stop struct {
	pending bool
	at      time.Time
}

// user is what the State keeps about the user: their speech and their actions.
type user struct {
	voice      voice
	unanswered bool        // speech has ended for which no turn has begun
	acted      bool        // the user has said or typed something since the last turn began
	certain    bool        // their latest speech is more than a noise: it has lasted, or the model has its words
	unsure     bool        // their latest speech has ended, and since is only when that was reported
	item       string      // the item of their latest speech
	since      time.Time   // when that speech began or, once it is over, when it ended
	known      time.Time   // when the gateway learned that it had ended
	quiet      time.Time   // the last sound that the gateway's detector heard, where the model reports speech
	earAt      time.Time   // when speech was last heard
	earMS      int64       // the same on the client's audio clock
	worded     int         // the last turn of which the user's words are known
	final      int         // the last turn of which they are complete
	wording    *wording    // the words of the latest turn that has any; nil without any
	settled    settled     // how far the user's speech is settled
	spokenAt   time.Time   // when the user last began to speak, or typed
	quietAt    time.Time   // from then on, the user has been quiet long enough for a notice
	utterances []utterance // when recent utterances began, oldest first; never changed in place
}

// voice is what the user is doing with their voice.
type voice uint8

// The values of voice.
const (
	silent   voice = iota
	speaking       // the model or the gateway hears the user
	pressing       // the user holds the push-to-talk button
	muted          // the gateway no longer listens to the user
)

// speaks reports whether the user is speaking.
func (u user) speaks() bool { return u.voice == speaking || u.voice == pressing }

// farewell is what the State keeps while a tool, or a limit, is ending the session: PhaseEnding.
type farewell struct {
	why      EndReason // empty if a tool ends it
	by       time.Time // when the session ends if nothing sounds
	most     time.Time // when the session ends, whatever sounds
	item     string    // the first item that the model began after the tool's result
	written  string    // the first such item that has words and no audio yet
	response string    // the response that was under way when the phase began
}

// turn is a user's turn and its answer so far.
type turn struct {
	number    int
	startedAt time.Time
	inputEnd  time.Time // the time of the user's last sample, or of the typed text
	knownAt   time.Time // when the gateway learned that the input had ended
	unheard   bool      // it is not known (yet) when the input that the turn answers ended
	modelAt   time.Time // when the model sent its first audio
	clientAt  time.Time // when the first audio was sent to the client
	usage     transport.Tokens
	cost      cost.Amount // of usage

	stage    stage
	response string    // the model's latest response in this turn
	calls    int       // number of tool calls in that response
	owedFrom time.Time // when the model last got a tool result
	spoke    bool      // since then the model has sent audio, or words that the client was shown
	caused   bool      // no words of the user have caused it
	toolsOff bool      // the budget is used up: the model must answer without tools
	nudge    nudging
	nudgeAt  time.Time // if nudgeSoon
	cut      cutting
	cutAt    time.Time // if cutByUser
	stopSent bool      // the model was asked to stop

	told    string    // the gateway's own words that are to be answered, for a connection that has not heard them
	given   bool      // the model has got a tool's result, and has not spoken since
	retryAt time.Time // when a failed answer is asked for again; zero for any other
	queued  int       // the turn began after that many connections had been given up, and before the next one
	owedBy  time.Time // when a turn that a lost connection has cut off fails; zero for any other
	waited  *Latency  // its latency, if the answer began at another process; nil otherwise
	late    bool      // its first audio had to wait for the client, or another process began it: it has no latency
	lost    bool      // a part of the answer was lost with the client's connection
}

// stage is how far the model's answer to a turn has got.
type stage uint8

// The stages of an answer.
const (
	answering stage = iota // the model is answering, or is expected to
	owing                  // its response is over, but tool results or an answer are still owed
	done                   // the answer is complete
)

// nudging tells whether a silent model has been asked once more.
type nudging uint8

// The states of a nudge.
const (
	nudgeLater nudging = iota // it will be asked if it stays silent for long
	nudgeSoon                 // its answer ended without speech: it will be asked at nudgeAt
	nudged                    // it has been asked
)

// cutting tells whether and how an answer was cut off.
type cutting uint8

// The values of cutting.
const (
	uncut     cutting = iota
	cutOff            // by another turn, or by the model itself
	cutByUser         // by the user
)

// cut is an item that was flushed and waits for the client's report of what was heard.
type cut struct {
	item     string
	heardMS  int64
	leastMS  int64 // by reports before the flush
	sentMS   int64
	audioMS  int64 // the item's full length; -1 if it had not ended
	deadline time.Time
}

// utterance is the turn and the beginning of one transcript.
type utterance struct {
	item  string
	turn  int
	since time.Time
}

// suppressed is what a tool has switched off.
type suppressed struct{ audio, transcript bool }

// The bounds on what State remembers.
const (
	maxUtterances = 32
	// maxItems is how many spoken items may wait at once to be heard.
	maxItems   = 256
	maxBegun   = 64
	maxNotices = 8
	// maxContexts is how many texts of the page may wait until the model can be told.
	maxContexts = 8
)

// NewState returns the state of a session that starts now, with a model of these capabilities
// and these tools; tools is nil if the session has none. own is the mark that the model's prompt
// declares to be the gateway's: Step puts it before its own words to the model, and removes it
// from all other text that goes there.
func NewState(caps transport.Capabilities, rules *Rules, tools *registry.Snapshot, own prompts.Mark, now time.Time) State {
	l := link{tries: NewAttempts(linkPatience, uint16(now.UnixNano()/int64(time.Microsecond)))}
	l.tries.open(now)
	return State{
		caps: caps, link: l, policy: rules, mark: own, startedAt: now, lastActive: now, phase: PhaseConnecting,
		calls: calls.New(tools, &rules.calls), page: &page{},
	}
}

// As names the agent with which the conversation begins, or goes on in this process: its calls are audited
// in that name, whoever goes on when they end.
func (s *State) As(a policy.Agent) { s.calls.Book().As(a) }

// Turn returns the number of the open turn, or 0 between turns.
func (s State) Turn() int {
	if s.turn == nil {
		return 0
	}
	return s.turn.number
}

// Turns returns the number of turns so far.
func (s State) Turns() int { return s.turns.last - s.turns.gaps }

// Named reports whether a call of the session has, or may have had, that name.
func (s State) Named(call string) bool { return s.calls.Named(call) }

// Nudges returns how often a silent model was asked to answer, since this process has the session.
func (s State) Nudges() int { return s.turns.nudges }

// Responding reports whether a response of the model is under way.
func (s State) Responding() bool { return s.response.underWay() }

// Audible reports whether the user still has something to hear.
func (s State) Audible(now time.Time) bool { return s.line.audible(now) }

// Spoken reports whether the model has begun to speak an item, whether it was heard or not. An
// item that is over is forgotten once the model has begun 64 newer ones.
func (s State) Spoken(item string) bool { return s.line.spoken(item) }

// clone returns a copy that shares nothing that Step changes.
func (s State) clone() State {
	if s.turn != nil {
		t := *s.turn
		s.turn = &t
	}
	s.line = s.line.clone()
	s.link = s.link.clone()
	s.cuts = slices.Clone(s.cuts)
	s.calls = s.calls.Clone()
	s.notices = slices.Clone(s.notices)
	return s
}

// WakeAt returns when the next Tick is due; zero if none is due.
func (s State) WakeAt() time.Time {
	var at time.Time
	sooner := func(t time.Time) {
		if !t.IsZero() && (at.IsZero() || t.Before(at)) {
			at = t
		}
	}
	if s.phase == PhaseEnded {
		return at
	}
	for _, c := range s.cuts {
		sooner(c.deadline)
	}
	s.calls.Due(sooner)
	sooner(s.goneAt())
	sooner(s.releasedAt())
	sooner(s.endsAt())
	sooner(s.abandonedAt())
	sooner(s.unendedAt())
	sooner(s.unfinishedAt())
	sooner(s.speechLostAt())
	sooner(s.overlookedAt())
	sooner(s.contextAt())
	sooner(s.newsAt())
	if s.turn != nil && s.turn.stage == done || s.turn == nil && s.ending() {
		sooner(s.line.lastAt(s.ending()))
	}
	if s.turn == nil && len(s.notices) > 0 && !s.user.speaks() && !s.ending() && !s.away() && !s.leaving() {
		sooner(latest(s.user.quietAt, s.workedUntil()))
	}
	if since := s.owedSince(); !since.IsZero() {
		if s.mayNudge() {
			if s.turn.nudge == nudgeSoon {
				sooner(s.afterWork(s.turn.nudgeAt))
			}
			sooner(since.Add(s.policy.NudgeAfter))
		}
		sooner(since.Add(s.policy.NoAnswerAfter))
		sooner(s.turnFailsAt())
	}
	sooner(s.retryDue())
	s.limitsDue(sooner)
	s.linkDue(sooner)
	sooner(s.switching.confirmBy)
	return at
}

// limitsDue calls sooner with each time at which one of the operator's limits falls due.
func (s State) limitsDue(sooner func(time.Time)) {
	if s.policy.MaxIdle > 0 {
		sooner(s.lastActive.Add(s.policy.MaxIdle))
	}
	if s.policy.MaxLength > 0 {
		if !s.warned {
			sooner(s.startedAt.Add(s.policy.MaxLength - s.policy.warning()))
		}
		sooner(s.startedAt.Add(s.policy.MaxLength))
	}
	s.lapseDue(sooner)
}

// warning is how long before the end of a session the client is warned.
func (p Policy) warning() time.Duration { return min(time.Minute, p.MaxLength/2) }

// owedSince returns since when the model owes the user speech; zero if it owes none. Nobody waits
// for it while the client is away.
func (s State) owedSince() time.Time {
	t := s.turn
	if s.down() || s.away() || t == nil || t.stage == done || t.cut != uncut || t.spoke || s.calls.Owed(t.number) {
		return time.Time{}
	}
	since := s.afterWork(t.inputEnd)
	if t.owedFrom.After(since) {
		since = t.owedFrom
	}
	if s.absence.back.After(since) {
		since = s.absence.back
	}
	if s.user.speaks() && s.user.earAt.After(since) {
		// A user who is speaking is not waiting yet. But the model's report that the speech is over
		// may be lost, so the wait begins when speech was last heard.
		since = s.user.earAt
	}
	return since
}

// turnFailsAt returns when the open turn fails because a lost connection has cut it off; zero if none has.
func (s State) turnFailsAt() time.Time {
	by := s.turn.owedBy
	if until := s.workedUntil(); !by.IsZero() && !until.IsZero() && until.Add(s.policy.NoAnswerAfter).After(by) {
		return until.Add(s.policy.NoAnswerAfter)
	}
	return by
}
