package orchestrator

import (
	"slices"
	"time"

	"voicegw/internal/mark"
	"voicegw/orchestrator/calls"
	"voicegw/orchestrator/policy"
	"voicegw/registry"
	"voicegw/transport"
)

// Policy is what the operator has decided. Zero fields mean the defaults named.
type Policy struct {
	// MaxLength ends a session after this long. Zero means no limit.
	MaxLength time.Duration
	// MaxIdle ends a session in which nobody has said or typed anything for this
	// long. Zero means no limit.
	MaxIdle time.Duration
	// NudgeAfter asks a silent model again, NoAnswerAfter gives a turn up. Zero
	// means 10 s and 15 s.
	NudgeAfter    time.Duration
	NoAnswerAfter time.Duration
	// SpeechSilence is how long the user may say nothing that the gateway's own ear hears
	// until speech counts as over although the model has not said so. Zero means 15 s.
	SpeechSilence time.Duration
	// ReportWait is how long a truncation waits for the client's word on what was
	// heard. Zero means 250 ms.
	ReportWait time.Duration
	// FarewellWait is how long a session that a tool ends waits for its farewell, once what
	// was said before has been heard. What has been sent of a farewell is heard to its end.
	// Zero means 12 s.
	FarewellWait time.Duration
	// ProgressEvery is how often the client is told that a tool is still at work, once
	// it has outlasted its latency budget. Zero means 5 s.
	ProgressEvery time.Duration
	// Tools are the rules for tool calls; their mode is voice, whatever they say.
	Tools policy.Rules
	// SpokenConfirmation lets the model confirm with [calls.ConfirmAction] what the user has
	// agreed to aloud. Without it only a button does.
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
	p.Tools.Mode = registry.ModeVoice
	return p
}

// State is all that the orchestrator knows of a session. It is a value: Step
// leaves the one it is given as it was. Only Step makes a new one.
type State struct {
	// Fixed after NewState.
	caps      transport.Capabilities
	policy    Policy
	mark      mark.Mark // of the gateway's own words to this model
	startedAt time.Time

	phase      Phase
	lastActive time.Time // somebody last said or typed something
	warned     bool      // the end by length has been announced

	turn     *turn // the open turn; nil between turns
	turns    turns
	response response
	stop     stop
	signAt   time.Time // when something last came of the model

	line line  // what the user hears
	cuts []cut // flushed items whose heard part is not settled yet, oldest first
	user user

	calls   calls.Calls
	notices []notice // what the model is told in the next turn, oldest first

	suppressed suppressed
	farewell   farewell
}

// turns is what is known of the turns so far.
type turns struct {
	last  int
	began time.Time        // when that one did
	carry transport.Tokens // usage that came between turns
}

// response is the model's latest response.
type response struct {
	id    string
	state responseState
}

type responseState uint8

// The states of a response.
const (
	idle    responseState = iota // it is over, or there was none
	open                         // it is under way
	dropped                      // it is under way, and nothing more of it reaches the client
	stray                        // none is under way, and what comes all the same reaches nobody
)

// underWay says whether a response of the model is under way.
func (r response) underWay() bool { return r.state == open || r.state == dropped }

// held says whether nothing more of the response reaches the client.
func (r response) held() bool { return r.state == dropped || r.state == stray }

// begin notes that a response is under way. One that begins again stays dropped.
func (r *response) begin(id string) {
	if r.id != id || !r.held() {
		r.state = open
	} else {
		r.state = dropped
	}
	r.id = id
}

// hold sees to it that nothing more of the response reaches the client.
func (r *response) hold() {
	if r.underWay() {
		r.state = dropped
	} else {
		r.state = stray
	}
}

// stop is the stop button: pending says that a response which begins now is not wanted.
type stop struct {
	pending bool
	at      time.Time
}

// user is what is known of the user: their speech, and what they did.
type user struct {
	voice      voice
	item       string      // of their latest speech
	since      time.Time   // where that began or, once it is over, where it ended
	known      time.Time   // when the gateway learnt of its end
	earAt      time.Time   // when speech was last heard
	earMS      int64       // the same on the client's audio clock
	unanswered bool        // speech has ended that no turn has begun for
	acted      bool        // the user has said or typed something since the last turn began
	spokenAt   time.Time   // the user last began to speak, or typed
	quietAt    time.Time   // from then on the user has said nothing more for a while
	utterances []utterance // where recent transcripts began, oldest first
}

// voice is what the user's side of the line does.
type voice uint8

// What the user does.
const (
	silent   voice = iota
	speaking       // as the model or the gateway hears
	pressing       // as the user says, by push-to-talk
	muted          // the user is not listened to any more
)

// speaks says whether the user speaks.
func (u user) speaks() bool { return u.voice == speaking || u.voice == pressing }

// farewell is the end of a session that a tool ends: PhaseEnding.
type farewell struct {
	by       time.Time // when it ends, where nothing sounds
	most     time.Time // when it ends, whatever sounds
	item     string    // the first item that knows of the tool's result
	written  string    // the first item with words that has not sounded, of those that know of it
	response string    // the response that was under way when the phase began
}

// turn is a user's turn and its answer so far.
type turn struct {
	number    int
	startedAt time.Time
	inputEnd  time.Time // the user's last sample, or the typed text
	knownAt   time.Time // when it was known that the input had ended
	unheard   bool      // the model has begun it while the user spoke: inputEnd is not known yet
	modelAt   time.Time // first audio from the model
	clientAt  time.Time // first audio sent to the client
	usage     transport.Tokens

	stage    stage
	response string    // the model's latest response in this turn
	calls    int       // tool calls of that response
	owedFrom time.Time // when the last tool result was given
	spoke    bool      // audio has come since, or words that the client was shown
	toolsOff bool      // the budget is used up: the answer is to come without tools
	nudge    nudging
	nudgeAt  time.Time // of nudgeSoon
	cut      cutting
	cutAt    time.Time // of cutByUser
	stopSent bool      // the model was told to stop
}

// stage is how far the model's answer to a turn has come.
type stage uint8

// The stages of an answer.
const (
	answering stage = iota // the model answers, or is to
	owing                  // its response is over, but results or an answer are owed
	done                   // it has nothing to add
)

// nudging is whether a silent model was asked once more.
type nudging uint8

// The states of a nudge.
const (
	nudgeLater nudging = iota // when it has been silent for long
	nudgeSoon                 // its answer ended without a sound: at nudgeAt
	nudged                    // it was asked
)

// cutting is how an answer was cut off.
type cutting uint8

// The ways in which an answer is cut off.
const (
	uncut     cutting = iota
	cutOff            // by another turn, or by the model itself
	cutByUser         // the user has stopped it
)

// cut is an item that was flushed: it waits for the client's word on what was heard.
type cut struct {
	item     string
	heardMS  int64
	leastMS  int64 // by reports before the flush
	sentMS   int64
	audioMS  int64 // all of it; -1 where more was to come
	deadline time.Time
}

// utterance is where one transcript began.
type utterance struct {
	item  string
	turn  int
	since time.Time
}

// suppressed is what a tool has turned off.
type suppressed struct{ audio, transcript bool }

// The bounds of what State remembers.
const (
	maxUtterances = 32
	// maxItems is how many spoken items may wait to be heard at once.
	maxItems   = 256
	maxBegun   = 64
	maxNotices = 8
)

// NewState returns the state of a session that starts now with a model that can do
// caps, and holds tools; nil if it holds no tools. own is the mark that the model's prompt
// calls the gateway's: it stands before what Step tells the model itself, and nothing else
// that goes to the model holds it.
func NewState(caps transport.Capabilities, rules Policy, tools *registry.Snapshot, own mark.Mark, now time.Time) State {
	rules = rules.withDefaults()
	return State{
		caps: caps, policy: rules, mark: own, startedAt: now, lastActive: now, phase: PhaseConnecting,
		calls: calls.New(tools, calls.Rules{
			Tools: rules.Tools, Prefix: "call_", Spoken: rules.SpokenConfirmation, Live: true,
			MaxOpen: maxCalls, MaxQuestions: maxConfirmations, ProgressEvery: rules.ProgressEvery,
		}),
	}
}

// Turn returns the number of the open turn, or 0.
func (s State) Turn() int {
	if s.turn == nil {
		return 0
	}
	return s.turn.number
}

// Turns returns how many turns there have been.
func (s State) Turns() int { return s.turns.last }

// Audible says whether the user has still to hear something that was said.
func (s State) Audible(now time.Time) bool { return s.line.audible(now) }

// Spoken says whether the model has begun to speak an item, heard or not. Items of which 64
// newer ones have begun are forgotten once they are over.
func (s State) Spoken(item string) bool { return s.line.spoken(item) }

// clone returns a copy that shares nothing which Step changes.
func (s State) clone() State {
	if s.turn != nil {
		t := *s.turn
		s.turn = &t
	}
	s.line = s.line.clone()
	s.cuts = slices.Clone(s.cuts)
	s.user.utterances = slices.Clone(s.user.utterances)
	s.calls = s.calls.Clone()
	s.notices = slices.Clone(s.notices)
	return s
}

// WakeAt returns when the next Tick is due; zero if none is.
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
	sooner(s.endsAt())
	sooner(s.abandonedAt())
	sooner(s.unendedAt())
	sooner(s.unfinishedAt())
	sooner(s.speechLostAt())
	if s.turn != nil && s.turn.stage == done || s.turn == nil && s.ending() {
		sooner(s.line.lastAt(s.ending()))
	}
	if s.turn == nil && len(s.notices) > 0 && !s.user.speaks() && !s.ending() {
		sooner(s.user.quietAt)
	}
	if since := s.owedSince(); !since.IsZero() {
		if s.turn.nudge != nudged && !s.user.speaks() {
			if s.turn.nudge == nudgeSoon {
				sooner(s.turn.nudgeAt)
			}
			sooner(since.Add(s.policy.NudgeAfter))
		}
		sooner(since.Add(s.policy.NoAnswerAfter))
	}
	s.limitsDue(sooner)
	return at
}

// limitsDue tells sooner when the operator's limits fall due.
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
}

// warning is how long before its end a session is told of it.
func (p Policy) warning() time.Duration { return min(time.Minute, p.MaxLength/2) }

// owedSince returns since when the user waits for speech; zero if nothing is owed.
func (s State) owedSince() time.Time {
	t := s.turn
	if t == nil || t.stage == done || t.cut != uncut || t.spoke || s.calls.Owed(t.number) {
		return time.Time{}
	}
	since := t.inputEnd
	if t.owedFrom.After(since) {
		since = t.owedFrom
	}
	if s.user.speaks() && s.user.earAt.After(since) {
		// Who speaks waits for nothing yet. But the model's word that the speech is over may
		// be lost, so the wait begins where speech was last heard.
		since = s.user.earAt
	}
	return since
}
