package fault

import "time"

// Kind is what a fault does. Its text is the word used in a script.
type Kind string

// The kinds of fault. wire.Conn carries out those marked (conn); the
// others depend on the provider's protocol and are passed to the wire.
const (
	// Delay holds back everything the server sends for Action.For, in order. (conn)
	Delay Kind = "delay"
	// Drop ends the TCP connection without a close frame. (conn)
	Drop Kind = "drop"
	// Close closes with Action.Code and Action.Reason. (conn)
	Close Kind = "close"
	// GoAway announces the end of the connection, Action.For from now, and
	// then closes it as the provider does.
	GoAway Kind = "goaway"
	// Expire ends the session as if it had reached its maximum duration.
	Expire Kind = "expire"
	// DuplicateCall sends the next tool call Action.Times more times,
	// with the same id.
	DuplicateCall Kind = "duplicate_call"
	// LateCall holds back the next tool call and sends it Action.For
	// after its turn has ended.
	LateCall Kind = "late_call"
	// CancelCall withdraws the next tool call, Action.For after it was
	// sent (Gemini: toolCallCancellation; OpenAI: the response is cancelled).
	CancelCall Kind = "cancel_call"
	// MissingID sends the next tool call without an id.
	MissingID Kind = "missing_id"
	// UnknownEvent sends an event of the unknown type Action.Event
	// before the next frame. (conn)
	UnknownEvent Kind = "unknown_event"
	// Malformed cuts the next frame in the middle, so that it is invalid
	// JSON. At a point without a frame it sends a broken frame of its own. (conn)
	Malformed Kind = "malformed"
	// Silence sends nothing for Action.For, or nothing ever again if For is 0;
	// frames that become due meanwhile are dropped. (conn)
	Silence Kind = "silence"
	// SlowRead makes the server wait Action.For before each frame it reads. (conn)
	SlowRead Kind = "slow_read"
	// Quota sends the provider's quota error to the client.
	Quota Kind = "quota"
	// HTTPError answers a request with the HTTP status Action.Code and the provider's
	// error object, with Action.Reason as its message and, if Action.For is above 0,
	// that duration as Retry-After. In an answer that has begun it is the provider's error in the
	// stream. It refuses a WebSocket handshake and closes an open WebSocket with 1011.
	HTTPError Kind = "http_error"
	// RefuseResume closes a resumed session instead of setting it up, with Action.Code and
	// Action.Reason. On a connection that is not resumed, and after the setup, it is kept for
	// the next resume of the conversation. Gemini only.
	RefuseResume Kind = "refuse_resume"
	// Amnesia lets a resume succeed, but the model knows nothing of the conversation and
	// greets. Like RefuseResume it is for this resume or the next one. Gemini only.
	Amnesia Kind = "amnesia"
	// Deaf means that the user is still transcribed but the model never answers again.
	Deaf Kind = "deaf"
	// LateHandle sends each resumption handle Action.For later than it is due, and not while
	// the model is at work again. The handle is a snapshot of when it is sent. Gemini only.
	LateHandle Kind = "late_handle"
	// NoHandle sends no resumption handle any more: updates say that the session cannot be
	// resumed. Gemini only.
	NoHandle Kind = "no_handle"
	// BusyHandle sends handles also while the model is at work or a call is open, as Vertex AI
	// was seen to do. Gemini only.
	BusyHandle Kind = "busy_handle"
)

// OfResumption reports whether a fault concerns resumption handles, which only Gemini Live has.
func (k Kind) OfResumption() bool {
	return k == RefuseResume || k == Amnesia || k == LateHandle || k == NoHandle || k == BusyHandle
}

// Action is one fault to inject now. All random choices have been made.
type Action struct {
	Kind Kind
	// For is a duration; each Kind defines its meaning. It includes the jitter.
	For time.Duration
	// Code and Reason belong to a close frame or an HTTP error. Code 0 means
	// the kind's default.
	Code   int
	Reason string
	// Times is how often a call is repeated; at least 1 for DuplicateCall.
	Times int
	// Event is the type of an unknown event; never empty for UnknownEvent.
	Event string
}

// API is one of the interfaces that the simulator serves. Its text is the word used
// in a script.
type API string

// The APIs.
const (
	APIRealtime   API = "realtime"   // OpenAI Realtime
	APILive       API = "live"       // Gemini Live
	APIChat       API = "chat"       // Chat Completions
	APIEmbeddings API = "embeddings" // embeddings
	APIImages     API = "images"     // images, of both providers
)

// Connection describes the connection of a server for which an injector is made. A request
// to an API without connections counts as a connection.
type Connection struct {
	// N counts all connections of the server from 1; OfAPI counts those of API.
	N, OfAPI int
	API      API
}

// Where is a kind of point in a connection's life. Its text is the word
// used in a script.
type Where string

// The points. A wire reports Connect before it upgrades the connection, and the
// others as they occur.
const (
	// AtConnect is before the WebSocket handshake is answered.
	AtConnect Where = "connect"
	// AtSetup is after the session is set up (OpenAI: session.created sent;
	// Gemini: setupComplete about to be sent).
	AtSetup Where = "setup"
	// AtTurn is when the model begins to answer; Point.N counts answers from 1.
	AtTurn Where = "turn"
	// AtChunk is before an audio chunk; Point.N counts chunks of the answer from 1.
	AtChunk Where = "chunk"
	// AtCall is before a tool call is sent; Point.N counts calls of the connection from 1.
	AtCall Where = "call"
	// AtEvent is before any event is sent; Point.Event is its type (OpenAI: the
	// type; Gemini: the top-level key, or serverContent's first field).
	AtEvent Where = "event"
	// AtFrame is every frame sent, of any kind. wire.Conn reports it.
	AtFrame Where = "frame"
)

// Point is a point in a connection's life.
type Point struct {
	At    Where
	N     int    // from 1, for points that are counted
	Turn  int    // the answer it belongs to, from 1; 0 before the first
	Event string // only for AtEvent
}

// Timed is a fault that happens at a time instead of a point.
type Timed struct {
	// After is the time since the connection was accepted.
	After  time.Duration
	Action Action
}
