package orchestrator

import (
	"slices"
	"time"

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
	// ReportWait is how long a truncation waits for the client's word on what was
	// heard. Zero means 250 ms.
	ReportWait time.Duration
	// FarewellWait is how long a session that a tool ends may still go on, for its
	// farewell to be heard. Zero means 12 s.
	FarewellWait time.Duration
}

func (p Policy) withDefaults() Policy {
	if p.NudgeAfter == 0 {
		p.NudgeAfter = 10 * time.Second
	}
	if p.NoAnswerAfter == 0 {
		p.NoAnswerAfter = 15 * time.Second
	}
	if p.ReportWait == 0 {
		p.ReportWait = 250 * time.Millisecond
	}
	if p.FarewellWait == 0 {
		p.FarewellWait = 12 * time.Second
	}
	return p
}

// State is all that the orchestrator knows of a session. It is a value: Step
// leaves the one it is given as it was. Only Step makes a new one.
type State struct {
	// Fixed after NewState.
	caps      transport.Capabilities
	policy    Policy
	startedAt time.Time

	turn     *turn // the open turn; nil between turns
	lastTurn int
	carry    transport.Tokens // usage that came between turns

	responding bool // a response of the model is under way
	responseID string
	held       bool // nothing more of this response reaches the client
	stopped    bool // the user pressed stop before the response had begun

	items       []item // spoken items that the client may still be playing, oldest first
	truncations []truncation

	speaking    bool // the user speaks
	speechItem  string
	speechSince time.Time
	utterances  []utterance // where recent transcripts began, oldest first

	calls      []call // running, in the order they were asked for
	callCount  int
	suppressed suppressed
	pending    string // a message for the model's next turn
	ending     bool   // a tool ends the session with this turn, or by
	endBy      time.Time
	lastActive time.Time // somebody last said or typed something
	warned     bool      // the end by length has been announced
	ended      bool
}

// turn is a user's turn and its answer so far.
type turn struct {
	number    int
	startedAt time.Time
	inputEnd  time.Time // the user's last sample, or the typed text
	modelAt   time.Time // first audio from the model
	clientAt  time.Time // first audio sent to the client
	usage     transport.Tokens

	response    string    // the model's latest response in this turn
	calls       int       // tool calls of that response
	waiting     bool      // the response is over, but results or an answer are owed
	owedFrom    time.Time // when the last tool result was given
	spoke       bool      // audio has come since
	modelDone   bool      // the model has nothing to add
	interrupted bool
	nudged      bool
}

// item is one spoken item on its way to the client's ear.
type item struct {
	id       string
	turn     int
	openedAt time.Time
	sentAt   time.Time // first audio left for the client
	audioMS  int64     // all of it, once ended
	ended    bool
	playedMS int64
	reported bool // the client has reported on it
}

// truncation waits for the client's word on what was heard of a flushed item.
type truncation struct {
	item     string
	heardMS  int64
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

// call is one tool call of the model that is running.
type call struct {
	id        string // ours
	model     string // the adapter's name for it
	tool      string
	turn      int
	cancelled bool // the model wants no answer any more
}

// The bounds of what State remembers.
const (
	maxUtterances = 32
	maxCalls      = 64
	maxItems      = 16
)

// NewState returns the state of a session that starts now with a model that can
// do caps.
func NewState(caps transport.Capabilities, policy Policy, now time.Time) State {
	return State{caps: caps, policy: policy.withDefaults(), startedAt: now, lastActive: now}
}

// Turn returns the number of the open turn, or 0.
func (s State) Turn() int {
	if s.turn == nil {
		return 0
	}
	return s.turn.number
}

// Turns returns how many turns there have been.
func (s State) Turns() int { return s.lastTurn }

// Audible says whether the client may be playing something now.
func (s State) Audible(now time.Time) bool {
	return slices.ContainsFunc(s.items, func(it item) bool { return !it.over(now) })
}

// clone returns a copy that shares nothing which Step changes.
func (s State) clone() State {
	if s.turn != nil {
		t := *s.turn
		s.turn = &t
	}
	s.items = slices.Clone(s.items)
	s.truncations = slices.Clone(s.truncations)
	s.utterances = slices.Clone(s.utterances)
	s.calls = slices.Clone(s.calls)
	return s
}

// An item counts as playing for a while after its calculated end: playGrace for a
// client that says nothing of it (its jitter buffer), reportGrace for one that
// reports but has not said that it is done.
const (
	playGrace   = 300 * time.Millisecond
	reportGrace = 3 * time.Second
)

// over says whether an item has been heard to its end, by the clock where the
// client does not say so.
func (it item) over(now time.Time) bool {
	if !it.ended {
		return false
	}
	return !now.Before(it.overAt())
}

func (it item) overAt() time.Time {
	from := it.openedAt
	if !it.sentAt.IsZero() {
		from = it.sentAt
	}
	end := from.Add(time.Duration(it.audioMS) * time.Millisecond)
	if it.reported {
		return end.Add(reportGrace)
	}
	return end.Add(playGrace)
}

// heard is the best guess of how much of an item was heard by now.
func (it item) heard(now time.Time) int64 {
	if it.reported || it.sentAt.IsZero() {
		return it.playedMS
	}
	ms := now.Sub(it.sentAt).Milliseconds()
	if it.ended {
		ms = min(ms, it.audioMS)
	}
	return max(ms, 0)
}

// WakeAt returns when the next Tick is due; zero if none is.
func (s State) WakeAt() time.Time {
	var at time.Time
	sooner := func(t time.Time) {
		if !t.IsZero() && (at.IsZero() || t.Before(at)) {
			at = t
		}
	}
	if s.ended {
		return at
	}
	for _, t := range s.truncations {
		sooner(t.deadline)
	}
	sooner(s.endBy)
	if s.turn != nil && s.turn.modelDone {
		for _, it := range s.items {
			if it.ended {
				sooner(it.overAt())
			}
		}
	}
	if since := s.owedSince(); !since.IsZero() {
		if !s.turn.nudged {
			sooner(since.Add(s.policy.NudgeAfter))
		}
		sooner(since.Add(s.policy.NoAnswerAfter))
	}
	if s.policy.MaxIdle > 0 {
		sooner(s.lastActive.Add(s.policy.MaxIdle))
	}
	if s.policy.MaxLength > 0 {
		if !s.warned {
			sooner(s.startedAt.Add(s.policy.MaxLength - s.policy.warning()))
		}
		sooner(s.startedAt.Add(s.policy.MaxLength))
	}
	return at
}

// warning is how long before its end a session is told of it.
func (p Policy) warning() time.Duration { return min(time.Minute, p.MaxLength/2) }

// owedSince returns since when the user waits for speech; zero if nothing is owed.
func (s State) owedSince() time.Time {
	t := s.turn
	if t == nil || t.modelDone || t.interrupted || t.spoke || s.speaking || s.callsOpen(t.number) {
		return time.Time{}
	}
	if t.owedFrom.After(t.inputEnd) {
		return t.owedFrom
	}
	return t.inputEnd
}

// callsOpen says whether calls of a turn are still running and wanted.
func (s State) callsOpen(turn int) bool {
	return slices.ContainsFunc(s.calls, func(c call) bool { return c.turn == turn && !c.cancelled })
}
