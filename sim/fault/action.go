package fault

import "time"

// Kind is what a fault does, as named in a script.
type Kind string

// The kinds of faults; docs/simulator.md describes each of them. wire.Conn carries out Delay, Drop, Close, UnknownEvent,
// Malformed, Silence, SlowRead and HTTPError; the others depend on the provider's protocol and are passed to the wire.
const (
	Delay         Kind = "delay"
	Drop          Kind = "drop"
	Close         Kind = "close"
	GoAway        Kind = "goaway"
	Expire        Kind = "expire"
	DuplicateCall Kind = "duplicate_call"
	LateCall      Kind = "late_call"
	CancelCall    Kind = "cancel_call"
	MissingID     Kind = "missing_id"
	UnknownEvent  Kind = "unknown_event"
	Malformed     Kind = "malformed"
	Silence       Kind = "silence"
	SlowRead      Kind = "slow_read"
	Quota         Kind = "quota"
	HTTPError     Kind = "http_error"
	RefuseResume  Kind = "refuse_resume"
	Amnesia       Kind = "amnesia"
	Deaf          Kind = "deaf"
	LateHandle    Kind = "late_handle"
	NoHandle      Kind = "no_handle"
	BusyHandle    Kind = "busy_handle"
)

// OfResumption reports whether a fault concerns resumption handles, which only Gemini Live has.
func (k Kind) OfResumption() bool {
	return k == RefuseResume || k == Amnesia || k == LateHandle || k == NoHandle || k == BusyHandle
}

// Action is a fault to inject now, with all random choices made.
type Action struct {
	Kind Kind
	// For depends on the Kind. It includes the jitter.
	For time.Duration
	// Code and Reason are for a close frame or an HTTP error. Code 0 means the kind's default.
	Code   int
	Reason string
	// Times repeats a call; at least 1 for DuplicateCall.
	Times int
	// Event is the type of an unknown event; required for UnknownEvent.
	Event string
}

// API is an interface of the simulator, as named in a script.
type API string

// The APIs.
const (
	APIRealtime   API = "realtime"   // OpenAI Realtime
	APILive       API = "live"       // Gemini Live
	APIChat       API = "chat"       // Chat Completions
	APIEmbeddings API = "embeddings" // embeddings
	APIImages     API = "images"     // of both providers
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
	// AtSetup is after the session's setup (OpenAI: session.created sent; Gemini: setupComplete about to be sent).
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

// Timed is a fault at a time instead of a point.
type Timed struct {
	After  time.Duration
	Action Action
}
