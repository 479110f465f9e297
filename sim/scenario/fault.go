package scenario

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"time"

	"voicegw/internal/strict"
)

// FaultKind is the effect of a fault, as named in a script.
type FaultKind string

// The kinds of faults; docs/simulator.md describes each of them. wire.Conn carries out Delay, Drop, Close, UnknownEvent,
// Malformed, Silence, SlowRead and HTTPError; the others depend on the provider's protocol and are passed to the wire.
const (
	Delay         FaultKind = "delay"
	Drop          FaultKind = "drop"
	Close         FaultKind = "close"
	GoAway        FaultKind = "goaway"
	Expire        FaultKind = "expire"
	DuplicateCall FaultKind = "duplicate_call"
	LateCall      FaultKind = "late_call"
	CancelCall    FaultKind = "cancel_call"
	MissingID     FaultKind = "missing_id"
	UnknownEvent  FaultKind = "unknown_event"
	Malformed     FaultKind = "malformed"
	Silence       FaultKind = "silence"
	SlowRead      FaultKind = "slow_read"
	Quota         FaultKind = "quota"
	HTTPError     FaultKind = "http_error"
	RefuseResume  FaultKind = "refuse_resume"
	Amnesia       FaultKind = "amnesia"
	Deaf          FaultKind = "deaf"
	LateHandle    FaultKind = "late_handle"
	NoHandle      FaultKind = "no_handle"
	BusyHandle    FaultKind = "busy_handle"
	NoAudio       FaultKind = "no_audio"
	Unplaced      FaultKind = "unplaced"
	Undelegated   FaultKind = "undelegated"
)

// OfResumption reports whether a fault concerns resumption handles, which only Gemini Live has.
func (k FaultKind) OfResumption() bool {
	return k == RefuseResume || k == Amnesia || k == LateHandle || k == NoHandle || k == BusyHandle
}

// OfLive reports whether a fault concerns what only OpenAI Live has: a track of sound, appends and delegations.
func (k FaultKind) OfLive() bool { return k == NoAudio || k == Unplaced || k == Undelegated }

// Fault is a fault to inject now, with all random choices made. It is a step of a turn.
type Fault struct {
	Kind FaultKind
	// For depends on the Kind. It includes the jitter.
	For time.Duration
	// Code and Reason are for a close frame or an HTTP error. Code 0 means the kind's default.
	Code   int
	Reason string
	// Times repeats a call, or counts the appends that are lost; at least 1 for DuplicateCall and Unplaced.
	Times int
	// Event is the type of an unknown event; required for UnknownEvent.
	Event string
}

// API is an interface of the simulator, as named in a script.
type API string

// The APIs.
const (
	APIRealtime   API = "realtime"    // OpenAI Realtime
	APILive       API = "live"        // Gemini Live
	APIOpenAILive API = "openai_live" // OpenAI Live
	APIChat       API = "chat"        // Chat Completions
	APIEmbeddings API = "embeddings"  // embeddings
	APIImages     API = "images"      // of both providers
	APISpeech     API = "speech"      // text to speech
)

// Connection describes a server's connection for an injector. A request to an API without connections counts as one.
type Connection struct {
	// N counts all connections of the server from 1, OfAPI those of API.
	N, OfAPI int
	API      API
}

// Where is a kind of point in a connection's life, as named in a script.
type Where string

// The points; docs/simulator.md describes them. A wire reports AtConnect before it upgrades the connection.
const (
	AtConnect Where = "connect"
	// AtSetup is after the session's setup (OpenAI: session.created or session.started sent; Gemini: setupComplete about to be sent).
	AtSetup Where = "setup"
	AtTurn  Where = "turn"
	AtChunk Where = "chunk"
	AtCall  Where = "call"
	AtEvent Where = "event"
	AtFrame Where = "frame"
)

// Point is a point in the life of a connection.
type Point struct {
	At    Where
	N     int    // from 1, for counted points
	Turn  int    // the answer, from 1; 0 before the first
	Event string // only for AtEvent
}

// TimedFault is a fault at a time instead of a point.
type TimedFault struct {
	After time.Duration
	Fault Fault
}

// Injector is one connection's use of a script. It is not safe for concurrent use. A nil Injector injects nothing.
type Injector struct {
	rules []faultRule
	fired []int
	rand  *rand.Rand
}

// NewInjector returns the injector of a connection or a request. The same seed gives the same faults at the same
// points. Wires get theirs from wire.Options.Begin.
func (s *FaultScript) NewInjector(seed uint64, c Connection) *Injector {
	if s == nil {
		return nil
	}
	i := &Injector{rand: rand.New(rand.NewPCG(seed, 0x6661756c74))}
	for _, u := range s.rules {
		if u.meant(c) {
			i.rules = append(i.rules, u)
		}
	}
	i.fired = make([]int, len(i.rules))
	return i
}

func (u *faultRule) meant(c Connection) bool {
	n := c.N
	if u.api != "" {
		if u.api != string(c.API) {
			return false
		}
		n = c.OfAPI
	}
	return u.connection == 0 || u.connection == n
}

// At returns and counts the faults due at p, in the script's order.
func (i *Injector) At(p Point) []Fault {
	if i == nil {
		return nil
	}
	var due []Fault
	for k := range i.rules {
		u := &i.rules[k]
		if u.at == string(p.At) && u.matches(p) && i.fires(k) {
			due = append(due, i.decide(u))
		}
	}
	return due
}

func (u *faultRule) matches(p Point) bool {
	return (u.n == 0 || u.n == p.N) && (u.turn == 0 || u.turn == p.Turn) && (u.event == "" || u.event == p.Event)
}

func (i *Injector) fires(k int) bool {
	u := &i.rules[k]
	if u.limit > 0 && i.fired[k] >= u.limit {
		return false
	}
	if u.chance > 0 && u.chance < 1 && i.rand.Float64() >= u.chance {
		return false
	}
	i.fired[k]++
	return true
}

func (i *Injector) decide(u *faultRule) Fault {
	a := u.action
	if u.jitter > 0 {
		a.For += time.Duration(i.rand.Int64N(int64(u.jitter) + 1))
	}
	return a
}

// Timed returns the timed faults, earliest first. It is called once, when the connection is accepted.
func (i *Injector) Timed() []TimedFault {
	if i == nil {
		return nil
	}
	var all []TimedFault
	for k := range i.rules {
		if u := &i.rules[k]; u.at == atTime && i.fires(k) {
			all = append(all, TimedFault{After: u.after, Fault: i.decide(u)})
		}
	}
	sort.SliceStable(all, func(a, b int) bool { return all[a].After < all[b].After })
	return all
}

// FaultButton is a fault that a person can inject into an open connection.
type FaultButton struct {
	Do    FaultKind
	Label string
	// For is the default duration; zero if the fault has none.
	For time.Duration
}

var buttons = []FaultButton{
	{Drop, "Drop the provider's connection", 0},
	{Close, "Close the connection with a code", 0},
	{GoAway, "Announce the end of the connection, then end it", 10 * time.Second},
	{Expire, "Let the provider's session expire", 0},
	{Delay, "Hold everything back", 2 * time.Second},
	{Silence, "Drop everything the model says", 5 * time.Second},
	{SlowRead, "Read slowly", 500 * time.Millisecond},
	{DuplicateCall, "Send the next tool call twice", 0},
	{LateCall, "Send the next tool call after its turn", 2 * time.Second},
	{CancelCall, "Withdraw the next tool call", 300 * time.Millisecond},
	{MissingID, "Send the next tool call without an id", 0},
	{Malformed, "Send a broken frame", 0},
	{UnknownEvent, "Send an event of an unknown type", 0},
	{Quota, "Report that the quota is used up", 0},
	{Deaf, "Hear the user, but never answer again", 0},
	{RefuseResume, "Refuse the next resume of the conversation (Gemini)", 0},
	{Amnesia, "Forget everything at the next resume (Gemini)", 0},
	{LateHandle, "Send resumption handles late (Gemini)", 5 * time.Second},
	{NoHandle, "Send no resumption handles (Gemini)", 0},
	{BusyHandle, "Send resumption handles also during answers (Gemini)", 0},
	{NoAudio, "Send no sound at all (OpenAI Live)", 5 * time.Second},
	{Unplaced, "Never place the next text of the gateway (OpenAI Live)", 0},
	{Undelegated, "Claim the next work instead of delegating it (OpenAI Live)", 0},
}

// FaultButtons lists the faults that a person can inject.
func FaultButtons() []FaultButton { return slices.Clone(buttons) }

// PressError is a mistake in a request, worded for the person who made it.
type PressError struct {
	// Field is "do", "for_ms" or "code".
	Field   string
	Message string
}

func (e *PressError) Error() string { return e.Message }

// PressFault makes a button's action. A nil d means the button's default duration, code 0 the provider's default. The
// error is a *PressError.
func PressFault(do string, d *time.Duration, code int) (Fault, error) {
	i := slices.IndexFunc(buttons, func(b FaultButton) bool { return string(b.Do) == do })
	if i < 0 {
		return Fault{}, &PressError{"do", "do must be one of " + strict.Join(buttonWords()) + "."}
	}
	a := Fault{Kind: buttons[i].Do, For: buttons[i].For, Code: code}
	switch {
	case d != nil && a.For == 0:
		return Fault{}, &PressError{"for_ms", fmt.Sprintf("for_ms does not apply to %s.", do)}
	case d != nil && (*d < 0 || *d > longestFault):
		return Fault{}, &PressError{"for_ms", fmt.Sprintf("for_ms must be between 0 and %d.", longestFault.Milliseconds())}
	case code != 0 && !a.coded():
		return Fault{}, &PressError{"code", fmt.Sprintf("code does not apply to %s.", do)}
	case code != 0 && !sendable(code):
		return Fault{}, &PressError{"code", fmt.Sprintf(
			"code %d cannot be sent in a close frame: 1000 to 1003, 1007 to 1014 and 3000 to 4999 can.", code)}
	}
	if d != nil {
		a.For = *d
	}
	a.fill()
	return a, nil
}

func buttonWords() []string {
	var all []string
	for _, b := range buttons {
		all = append(all, string(b.Do))
	}
	return all
}

// OfCall reports whether a fault concerns a tool call; pressed by hand, it affects the next one.
func (k FaultKind) OfCall() bool {
	return k == DuplicateCall || k == LateCall || k == CancelCall || k == MissingID || k == Undelegated
}
