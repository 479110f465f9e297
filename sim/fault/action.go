package fault

import "time"

// Kind is what a fault does. The text is the word used in a script.
type Kind string

// The kinds of fault. Those marked (conn) are carried out by wire.Conn, the
// others need to know the provider's protocol and are handed to the wire.
const (
	// Delay holds everything the server sends for Action.For; order is kept. (conn)
	Delay Kind = "delay"
	// Drop ends the TCP connection without a close frame. (conn)
	Drop Kind = "drop"
	// Close closes with Action.Code and Action.Reason. (conn)
	Close Kind = "close"
	// GoAway announces the end of the connection, Action.For from now, and
	// closes then as the provider does.
	GoAway Kind = "goaway"
	// Expire ends the session as if its longest duration were reached.
	Expire Kind = "expire"
	// DuplicateCall sends the tool call that is due Action.Times more times,
	// with the same id.
	DuplicateCall Kind = "duplicate_call"
	// LateCall holds the tool call that is due back and sends it Action.For
	// after the turn it belongs to has ended.
	LateCall Kind = "late_call"
	// CancelCall takes the tool call that is due back, Action.For after it was
	// sent (Gemini: toolCallCancellation; OpenAI: the response is cancelled).
	CancelCall Kind = "cancel_call"
	// MissingID sends the tool call that is due without an id.
	MissingID Kind = "missing_id"
	// UnknownEvent sends an event of the type Action.Event, which no client
	// knows, before the frame that is due. (conn)
	UnknownEvent Kind = "unknown_event"
	// Malformed cuts the frame that is due in the middle, so that it is not
	// JSON. At a point that is no frame it sends a broken frame of its own. (conn)
	Malformed Kind = "malformed"
	// Silence sends nothing for Action.For, and nothing ever when For is 0;
	// what became due meanwhile is thrown away. (conn)
	Silence Kind = "silence"
	// SlowRead makes the server wait Action.For before each frame it reads. (conn)
	SlowRead Kind = "slow_read"
	// Quota meets the client with the provider's quota error.
	Quota Kind = "quota"
	// HTTPError answers a request with the HTTP status Action.Code and the provider's
	// error object, with Action.Reason as its message and, when Action.For is above 0,
	// a Retry-After of so long. In an answer that has begun it is the provider's error in the
	// stream. A WebSocket's handshake is refused with it; one that is open is closed with 1011.
	HTTPError Kind = "http_error"
)

// Action is one fault to commit now. Everything random has been decided.
type Action struct {
	Kind Kind
	// For is a duration; what it means is said at each Kind. Jitter is in it.
	For time.Duration
	// Code and Reason are those of a close frame, or of an HTTP error. Code 0 means
	// the kind's default.
	Code   int
	Reason string
	// Times is how often a call is repeated; at least 1 for DuplicateCall.
	Times int
	// Event is the type of an unknown event; never empty for UnknownEvent.
	Event string
}

// API is one of the interfaces that the simulator serves. The text is the word used
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

// Connection says which connection of a server an injector is for. A request of an API
// without connections counts as one.
type Connection struct {
	// N counts the connections of the server, from 1, and OfAPI those of API.
	N, OfAPI int
	API      API
}

// Where names a kind of point in a connection's life. The text is the word
// used in a script.
type Where string

// The points. A wire reports Connect before it upgrades the connection, the
// others as they come.
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
	// AtFrame is every frame sent, whatever it is. wire.Conn reports it.
	AtFrame Where = "frame"
)

// Point is where a connection stands.
type Point struct {
	At    Where
	N     int    // from 1, where the point counts something
	Turn  int    // the answer it belongs to, from 1; 0 before the first
	Event string // only for AtEvent
}

// Timed is a fault that is due at a time and not at a point.
type Timed struct {
	// After is the time since the connection was accepted.
	After  time.Duration
	Action Action
}
