package orchestrator

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"voicegw/internal/cost"
	"voicegw/orchestrator/calls"
	"voicegw/prompts"
	"voicegw/registry"
	"voicegw/registry/spec"
	"voicegw/transport"
)

// Policy is the operator's settings for a session. Zero fields have the default given here.
type Policy struct {
	MaxLength time.Duration // the maximum duration of a session; zero means no limit
	MaxIdle   time.Duration // the maximum time without speech or typing; zero means no limit
	MaxCost   cost.Micros   // the maximum cost of a session; zero means no limit
	// NudgeAfter is when a silent model is asked again; NoAnswerAfter is when the turn fails. Zero means 10 s and 15 s.
	NudgeAfter    time.Duration
	NoAnswerAfter time.Duration
	// Relink lets the session replace its connection to the model; see [Replaceable]. Otherwise the session ends with
	// the connection.
	Relink      bool
	Failover    bool          // another provider is available to an Attempt
	Tools       calls.Policy  // the rules for tool calls. Tools.Mode is ignored; it is always voice.
	ResumeGrace time.Duration // how long a session continues without a client; zero means that it ends at once
	// SpokenConfirmation lets the model report spoken approvals with [calls.ConfirmAction]. Otherwise only the client's
	// button approves.
	SpokenConfirmation bool
	// Keypad means that the user is on the phone and approves by pressing keys.
	Keypad bool
	// RefuseUnsaid does not let the model read an exact sentence without audio: a session whose notice cannot be said ends.
	RefuseUnsaid bool
	HoldsBack    bool                 // the session holds answers back for checks and wants DropHeld
	Claims       calls.ClaimLanguages // the languages in which the assistant's claims are checked; see [ClaimUnmatched]
}

func (p Policy) withDefaults() Policy {
	p.NudgeAfter = cmp.Or(p.NudgeAfter, 10*time.Second)
	p.NoAnswerAfter = cmp.Or(p.NoAnswerAfter, 15*time.Second)
	p.Tools.Mode = spec.ModeVoice
	return p
}

// Rules are a Policy with its defaults. Sessions share them; they never change.
type Rules struct {
	Policy

	calls calls.Rules
}

// NewRules returns the rules of a policy.
func NewRules(p Policy) *Rules {
	p = p.withDefaults()
	return &Rules{p, calls.Rules{
		Tools: p.Tools, Prefix: "call_", Spoken: p.SpokenConfirmation, Keypad: p.Keypad, Live: true,
		MaxOpen: maxCalls, MaxQuestions: maxConfirmations, Claims: p.Claims,
	}}
}

// State is everything that the orchestrator knows about a session. It is a value: Step leaves the old one unchanged.
type State struct {
	caps transport.Capabilities // capabilities of the current connection's model
	link link
	move move

	// Fixed after NewState.
	policy    *Rules
	mark      prompts.Mark // prefix of the gateway's own words to this model
	startedAt time.Time

	phase      Phase
	lastActive time.Time // when the user or the model last spoke or typed
	warned     bool      // the client knows that MaxLength is near
	suppressed suppressed
	refused    uint8 // answers that checks have stopped since the user acted

	turn     *turn // the open turn; nil between turns
	turns    turns
	response response
	stop     stop
	signAt   time.Time // when the model last sent anything
	*work              // nil if the model has not said that it is at work

	line line  // the user's playback
	cuts []cut // flushed items whose heard part the model does not know yet, oldest first
	user user

	calls        calls.Calls
	notices      []notice // texts for the next turn, oldest first
	*page                 // never nil
	*spokenWords          // nil before the first words, or if claims are not checked

	switching switching
	farewell  farewell
	absence   absence
	spending  spending
	lapse     *lapse // nil if the credentials do not expire
}

type turns struct {
	last     int
	skip     int       // how many numbers the next turn skips
	gaps     int       // how many numbers were skipped
	nudges   int       // how often this process asked a silent model to answer
	began    time.Time // when the last turn began
	answered *OpenTurn // what another process needs of the last turn, if it is over and was answered
	carry    *carried  // usage between turns, counted for the next turn; may be nil. Immutable
}

type carried struct {
	usage transport.Tokens
	cost  cost.Amount
}

type response struct {
	id       string
	underWay bool
	held     bool // nothing more of it reaches the client
	exact    bool // it is the provider's playback of an exact sentence
}

// begin records that a response is under way. One that is held stays held.
func (r *response) begin(ev transport.ResponseStarted) {
	*r = response{id: ev.ID, underWay: true, held: r.held && r.id == ev.ID, exact: ev.Exact}
}

// stop is the state of the stop button. pending means that the next response is unwanted.
type stop struct {
	pending bool
	at      time.Time
}

type user struct {
	voice      voice
	unanswered bool        // speech has ended and no turn has begun for it
	acted      bool        // the user has spoken or typed since the last turn began
	certain    bool        // the latest speech is more than noise: it has lasted, or its words are known
	unsure     bool        // since is only the time of the report
	item       string      // item of the latest speech
	since      time.Time   // start of that speech or, once it is over, its end
	known      time.Time   // when the gateway learned of its end
	quiet      time.Time   // last sound heard by the detector, for a model that reports speech
	earAt      time.Time   // when speech was last heard
	earMS      int64       // the same, on the client's audio clock
	worded     int         // the last turn with known words
	final      int         // the last turn with complete words
	wording    *wording    // words of the latest turn; may be nil
	settled    settled     // position up to which the user's speech is settled
	spokenAt   time.Time   // when the user last began to speak, or typed
	quietAt    time.Time   // from then on a notice may follow the user's speech
	utterances []utterance // starts of recent utterances, oldest first; never changed in place
}

type voice uint8

func (u user) speaks() bool { return u.voice == speaking || u.voice == pressing }

type farewell struct {
	why      EndReason // empty if a tool ends the session
	by       time.Time // when the session ends if nothing plays
	most     time.Time // when the session ends in any case
	item     string    // the first item begun after the tool's result
	written  string    // the first such item that has words and no audio yet
	response string    // the response under way when the phase began
}

type turn struct {
	number    int
	startedAt time.Time
	inputEnd  time.Time // time of the user's last sample, or of the typed text
	knownAt   time.Time // when the gateway learned that the input had ended
	unheard   bool      // inputEnd is not known (yet)
	modelAt   time.Time // first audio from the model
	clientAt  time.Time // first audio to the client
	usage     transport.Tokens
	cost      cost.Amount // of usage

	stage    stage
	response string    // the latest response of this turn
	calls    int       // number of tool calls in that response
	owedFrom time.Time // when the model last got a tool result
	spoke    bool      // the model has sent audio, or text shown to the client, since owedFrom
	caused   bool      // the user's words did not cause the turn
	toolsOff bool      // the budget is used up: the answer must need no tools
	nudge    nudging
	nudgeAt  time.Time // if nudgeSoon
	cut      cutting
	cutAt    time.Time // if cutByUser
	stopSent bool      // the model was asked to stop

	told    string    // the gateway's own text to be answered, for a connection that lacks it
	given   bool      // the model has a tool's result and has not spoken since
	retryAt time.Time // when a failed answer is retried; zero if none is
	queued  int       // the value of link.count if the turn began without a connection
	owedBy  time.Time // when a turn that a lost connection has cut off fails; otherwise zero
	waited  *Latency  // latency of an answer that began in another process; otherwise nil
	late    bool      // the first audio had to wait for the client, or another process sent it: no latency is reported
	lost    bool      // a part of the answer was lost with the client's connection
	exact   bool      // it is for an exact sentence alone
}

type stage uint8

type nudging uint8

// cutting says whether and how an answer was cut off.
type cutting uint8

// reportWait is how long a truncation waits for the client's playback report.
const reportWait = 250 * time.Millisecond

type cut struct {
	item     string
	heardMS  int64
	leastMS  int64 // by reports before the flush
	sentMS   int64
	audioMS  int64 // length of the item; -1 if it had not ended
	exact    bool  // an exact sentence, which the model does not know
	deadline time.Time
}

type utterance struct {
	item  string
	turn  int
	since time.Time
}

type suppressed struct{ audio, transcript bool }

// NewState returns the state of a session that starts now. tools may be nil. own is the mark that the model's prompt
// declares: Step puts it before the gateway's own words and removes it from all other text.
func NewState(caps transport.Capabilities, rules *Rules, tools *registry.Snapshot, own prompts.Mark, now time.Time) State {
	l := link{tries: NewAttempts(linkPatience, uint16(now.UnixNano()/int64(time.Microsecond)))}
	l.tries.open(now)
	return State{
		caps: caps, link: l, policy: rules, mark: own, startedAt: now, lastActive: now, phase: PhaseConnecting,
		calls: calls.New(tools, &rules.calls), page: &page{},
	}
}

// As names the agent in whose name calls are audited from now on.
func (s *State) As(a calls.Agent) { s.calls.Book().SetAgent(a) }

// In sets the user's time zone; nil if it is unknown.
func (s *State) In(zone *time.Location) { s.calls.Book().SetZone(zone) }

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

// Nudges returns how often this process asked a silent model to answer.
func (s State) Nudges() int { return s.turns.nudges }

// Calm reports whether the user is silent and the model neither answers nor is about to.
func (s State) Calm() bool {
	return s.phase == PhaseActive && s.turn == nil && !s.response.underWay && !s.user.speaks() && !s.user.unanswered && !s.down()
}

// Responding reports whether a response of the model is under way.
func (s State) Responding() bool { return s.response.underWay }

// Audible reports whether the user still has something to hear.
func (s State) Audible(now time.Time) bool { return s.line.audible(now) }

// Spoken reports whether the model has begun to speak an item. An item that is over is forgotten after 64 newer ones.
func (s State) Spoken(item string) bool { return s.line.spoken(item) }

func (s State) clone() State {
	if s.turn != nil {
		t := *s.turn
		s.turn = &t
	}
	s.line = s.line.clone()
	s.cuts = slices.Clone(s.cuts)
	s.calls = s.calls.Clone()
	s.notices = slices.Clone(s.notices)
	if s.sayings != nil {
		s.page = &page{s.contexts, s.resultAt, s.sayings.clone()}
	}
	return s
}

// WakeAt returns when the next Tick is due; zero if none is due.
func (s State) WakeAt() time.Time {
	var first time.Time
	next := func(t time.Time) { first = sooner(first, t) }
	if s.phase == PhaseEnded {
		return first
	}
	for _, w := range waits {
		if w.at != nil {
			next(w.at(s))
		}
	}
	for _, c := range s.cuts {
		next(c.deadline)
	}
	s.calls.Due(next)
	next(s.overlookedAt())
	next(s.contextAt())
	next(s.newsAt())
	if s.turn != nil && s.turn.stage == done || s.turn == nil && s.ending() {
		next(s.line.lastAt(s.ending()))
	}
	if s.turn == nil && len(s.notices) > 0 && !s.user.speaks() && !s.ending() && !s.away() && !s.leaving() && !s.sayings.noticeOpen() {
		next(latest(s.user.quietAt, s.workedUntil()))
	}
	s.linkDue(next)
	return first
}

// Answer is the generation of the open turn's answer.
type Answer struct {
	Turn    int  // zero without an open turn
	Over    bool // the model has generated all of it
	Waiting bool // the model waits for the results of calls
	Usage   transport.Tokens
}

// Answer returns the state of the open turn's answer. Waiting may be early for a model whose calls come one by one.
func (s State) Answer() Answer {
	t := s.turn
	if t == nil {
		return Answer{}
	}
	return Answer{Turn: t.number, Over: t.stage == done, Usage: t.usage,
		Waiting: s.calls.Owed(t.number) && (t.stage == owing || !s.caps.RespondNeeded)}
}

// warning returns how long before the end of a session the client is warned.
func (p Policy) warning() time.Duration { return min(time.Minute, p.MaxLength/2) }

// owedSince returns since when the model owes the user speech; zero if it owes none or the client is lost.
func (s State) owedSince() time.Time {
	t := s.turn
	if s.down() || s.away() || t == nil || t.stage == done || t.cut != uncut || t.spoke || s.calls.Owed(t.number) {
		return time.Time{}
	}
	since := latest(s.afterWork(t.inputEnd), t.owedFrom, s.absence.back)
	if s.user.speaks() {
		// A user who is speaking is not waiting yet. But the model's report that the speech is over
		// may be lost, so the wait begins when speech was last heard.
		since = latest(since, s.user.earAt)
	}
	return since
}

func (s State) turnFailsAt() time.Time {
	by := s.turn.owedBy
	if until := s.workedUntil(); !by.IsZero() && !until.IsZero() && until.Add(s.policy.NoAnswerAfter).After(by) {
		return until.Add(s.policy.NoAnswerAfter)
	}
	return by
}

// View is a summary of a session's state for the inspector. Views are comparable.
type View struct {
	Turn                 int // the number of the open turn; 0 between turns
	Phase                Phase
	Speaking, Responding bool // Speaking: the user is speaking. Responding: a response of the model is under way.
	Muted                bool // the gateway ignores the user
	// Awaiting counts the calls the model waits for, Questions the open confirmations, Notices the texts for the next
	// turn.
	Awaiting, Questions, Notices int
	AudioOff, TranscriptOff      bool        // AudioOff and TranscriptOff: a tool has switched these off
	Spent                        cost.Amount // the cost of the session so far

	// used and limit are the open turn's use and budget; zero between turns.
	used   calls.Account
	budget calls.Budget
}

// View returns the summary of s.
func (s State) View() View {
	v := View{
		Turn: s.Turn(), Phase: s.phase, Speaking: s.user.speaks(), Responding: s.response.underWay, Muted: s.user.voice == muted,
		Questions: s.calls.Questions(), Awaiting: s.calls.Awaited(), Notices: len(s.notices),
		AudioOff: s.suppressed.audio, TranscriptOff: s.suppressed.transcript,
		Spent: s.Spent(),
	}
	if s.turn != nil {
		v.used, v.budget = s.calls.Book().Account(), s.calls.Book().Budget()
	}
	return v
}

// Budget returns the account of the open turn, in the audit's form; nil between turns.
func (v View) Budget() json.RawMessage {
	if v.Turn == 0 {
		return nil
	}
	return v.used.Encode(v.budget)
}

// Values of voice.
const (
	silent   voice = iota
	speaking       // the model or the gateway hears the user
	pressing       // the user holds the push-to-talk button
	muted          // the gateway ignores the user
)

// Stages of an answer.
const (
	answering stage = iota // the model answers, or is expected to
	owing                  // the response is over; tool results or an answer are still owed
	done                   // the answer is complete
)

// States of a nudge.
const (
	nudgeLater nudging = iota // after a long silence
	nudgeSoon                 // the answer ended without speech: at nudgeAt
	nudged                    // it has been asked
)

// Values of cutting.
const (
	uncut     cutting = iota
	cutOff            // by another turn, or by the model itself
	cutByUser         // by the user
)

// Limits of what State remembers.
const (
	maxUtterances = 32
	maxItems      = 256 // limits the spoken items that wait to be heard
	maxBegun      = 64
	maxNotices    = 8
	maxContexts   = 8  // limits the page texts that wait for the model
	maxEarlier    = 64 // limits the earlier parts of the conversation that wait
)
