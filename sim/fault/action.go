package fault

import "time"

// Kind is what a fault does, as named in a script.
type Kind string

// The kinds of faults. wire.Conn carries out those marked (conn); the others depend on the provider's protocol and
// are passed to the wire.
const (
	// Delay delays everything the server sends by Action.For, in order. (conn)
	Delay Kind = "delay"
	// Drop ends the TCP connection without a close frame. (conn)
	Drop Kind = "drop"
	// Close closes with Action.Code and Action.Reason. (conn)
	Close Kind = "close"
	// GoAway announces the end of the connection, Action.For from now, then closes it as the provider does.
	GoAway Kind = "goaway"
	// Expire ends the session as at its maximum duration.
	Expire Kind = "expire"
	// DuplicateCall repeats the next tool call Action.Times times, with the same id.
	DuplicateCall Kind = "duplicate_call"
	// LateCall sends the next tool call Action.For after the end of its turn.
	LateCall Kind = "late_call"
	// CancelCall withdraws the next tool call Action.For after it was sent (Gemini: toolCallCancellation; OpenAI: the
	// response is cancelled).
	CancelCall Kind = "cancel_call"
	// MissingID sends the next tool call without an id.
	MissingID Kind = "missing_id"
	// UnknownEvent sends an event of the unknown type Action.Event before the next frame. (conn)
	UnknownEvent Kind = "unknown_event"
	// Malformed cuts the next frame in the middle, so that it is invalid JSON. At a point without a frame it sends a
	// broken one. (conn)
	Malformed Kind = "malformed"
	// Silence drops all output for Action.For, or for the rest of the connection if 0. (conn)
	Silence Kind = "silence"
	// SlowRead waits Action.For before each read. (conn)
	SlowRead Kind = "slow_read"
	// Quota sends the provider's quota error.
	Quota Kind = "quota"
	// HTTPError answers a request with the HTTP status Action.Code and the provider's error object, with
	// Action.Reason as its message and, if above 0, Action.For as Retry-After. In a started answer it is the
	// provider's error in the stream. It refuses a WebSocket handshake, and closes an open WebSocket with 1011.
	HTTPError Kind = "http_error"
	// RefuseResume closes a resumed session instead of setting it up, with Action.Code and Action.Reason. On other
	// connections, and after the setup, it applies to the conversation's next resume. Gemini only.
	RefuseResume Kind = "refuse_resume"
	// Amnesia accepts a resume, but the model has forgotten the conversation and greets. Like RefuseResume it applies
	// to this resume or the next one. Gemini only.
	Amnesia Kind = "amnesia"
	// Deaf keeps transcribing the user, but the model never answers again.
	Deaf Kind = "deaf"
	// LateHandle delays each resumption handle by Action.For, and longer while the model is busy. The handle is a
	// snapshot of when it is sent. Gemini only.
	LateHandle Kind = "late_handle"
	// NoHandle sends no more resumption handles: updates say that the session can't be resumed. Gemini only.
	NoHandle Kind = "no_handle"
	// BusyHandle also sends handles while the model is busy or a call is open, as seen with Vertex AI. Gemini only.
	BusyHandle Kind = "busy_handle"
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

// The points. A wire reports AtConnect before it upgrades the connection.
const (
	// AtConnect is before the response to the WebSocket handshake.
	AtConnect Where = "connect"
	// AtSetup is after the session's setup (OpenAI: session.created sent; Gemini: setupComplete about to be sent).
	AtSetup Where = "setup"
	// AtTurn is the start of an answer; Point.N counts answers from 1.
	AtTurn Where = "turn"
	// AtChunk is before an audio chunk; Point.N counts the answer's chunks from 1.
	AtChunk Where = "chunk"
	// AtCall is before a tool call is sent; Point.N counts the connection's calls from 1.
	AtCall Where = "call"
	// AtEvent is before any event; Point.Event is its type (OpenAI: the type; Gemini: the top-level key, or
	// serverContent's first field).
	AtEvent Where = "event"
	// AtFrame is before every frame. wire.Conn reports it.
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
	// After is the time since the connection was accepted.
	After  time.Duration
	Action Action
}
