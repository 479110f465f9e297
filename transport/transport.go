package transport

import (
	"context"
	"encoding/json"
	"time"
)

// Transport opens connections to the models of one provider. It may be used
// concurrently.
type Transport interface {
	// Name is the provider's name in the configuration ("gemini", "azure-eu"): a label for
	// logs and for the client. Code must never decide by it.
	Name() string

	// Model is the model used for a Setup that names none; empty if there is no default.
	Model() string

	// Voices lists the voices that the provider documents for model, the default one
	// first; nil if it documents none. An empty model means the default, Model.
	Voices(model string) []string

	// Models lists the models that the provider documents for this wire, the default one first. A release is named
	// after its model ("gpt-realtime-2025-08-28"). Nil means that any name may be right: the service is not the
	// provider's own, or its customers name the models.
	Models() []string

	// Refuses reports whether the provider is known to refuse a model on this wire, such as one for text alone.
	// A name that it does not know may be that of a new model.
	Refuses(model string) bool

	// Capabilities describes what model can do; an empty model means the provider's
	// default. An unknown model gets the row of its nearest family, never an error.
	Capabilities(model string) Capabilities

	// Connect dials, sends the setup and returns when the provider has accepted it.
	// ctx applies only until Connect returns. Connect makes one attempt: the caller decides
	// by [Error.Kind] whether to try again. Every error is an [*Error].
	Connect(ctx context.Context, setup Setup) (Conn, error)
}

// Conn is one open conversation with a model.
//
// Only one goroutine at a time may call Send. Close may be called concurrently, at any time
// and more than once: a blocked Send then returns an error, and the function given to Notify
// is called one last time. A context without deadline or cancellation (context.Background)
// costs nothing on the audio path; cancelling a context that a call is using ends the
// connection.
type Conn interface {
	// Send passes one command to the model. A *AudioIn and its PCM belong to the caller
	// again when Send returns. A command that this model cannot carry out (see
	// [Capabilities]) is dropped without error. An error is an [*Error] and final.
	Send(ctx context.Context, cmd Command) error

	// Notify registers f, which is called whenever there may be an event, and one last time
	// after Close. Notify may be called only once. Calls of f never overlap, and each call
	// sees the effects of the one before. f must not block, because the goroutine that calls
	// it may serve other connections, and it must call Recv until Recv returns nil. Events
	// that f does not take stay in the network, so that a fast provider waits for a slow f.
	// Close does not wait for f, and f may call Close.
	Notify(f func())

	// Recv returns the next event without waiting. The event is nil if nothing has come
	// yet, or if f has taken its limit of frames and bytes; f is then called again after
	// other connections have been served. A *AudioOut and its PCM are valid until the next
	// Recv. An error is an [*Error] and final; its Kind tells whether connecting again may
	// help. Recv may be called only by the function given to Notify.
	Recv() (Event, error)

	// Ready reports whether a Send of audio will most likely not wait for the network,
	// because everything sent before has left. It returns false if that is unknown. It may
	// be called whenever Send may.
	Ready() bool

	// Close ends the connection and frees its resources. It does not wait for the
	// provider's closing message.
	Close() error

	// Info returns what is fixed once the connection is open.
	Info() Info

	// Stats may be called concurrently at any time.
	Stats() Stats
}

// The limit on frames from a provider, of any kind. Each frame costs 1, plus 1 for each full
// 2 KiB in it. Real providers send a few hundred frames a second while they speak, faster than
// real time. More than the limit is a flood: the connection ends with KindRetry and the code
// "flood".
const (
	FramesPerSecond = 2000
	FrameBurst      = 20000
)

// Setup configures a conversation when it starts.
type Setup struct {
	Model        string // empty means the provider's default
	Voice        string // empty means the provider's default
	Language     string // BCP 47; empty lets the model decide
	Instructions string
	Tools        []Tool

	// ManualActivity turns the provider's speech detection off: the caller marks the
	// user's speech with ActivityStart and ActivityEnd.
	ManualActivity bool

	// SilenceMS and PrefixMS tune the provider's speech detection, in ms of audio.
	// Zero means the provider's default.
	SilenceMS int
	PrefixMS  int

	// ResumeHandle continues an earlier connection (the value of a ResumeHandle event)
	// if Capabilities.Resume is set.
	ResumeHandle string

	// History is what was said before, oldest first, and Reanchor the caller's last words after it:
	// how the model must go on. Connect returns once the provider has taken both, and the model
	// answers neither. They need Capabilities.History, and are ignored with a ResumeHandle, because
	// the conversation that it continues has its own history. The caller bounds them.
	History  []Past
	Reanchor string
}

// Tool is one function that the model may call.
type Tool struct {
	Name        string
	Description string
	// Parameters is the schema in the form that the provider accepts.
	Parameters json.RawMessage
	// NonBlocking asks the model to continue while the tool runs, if it can.
	NonBlocking bool
}

// Info is what is fixed for the life of a connection.
type Info struct {
	Provider string
	Model    string
	// SessionID is the provider's id for logs; it may be empty.
	SessionID string
	// LocalAddr is the gateway's address on the connection, as host:port; it may be empty.
	LocalAddr string
	// InputRate is the sample rate of AudioIn and OutputRate that of AudioOut, both in Hz.
	InputRate  int
	OutputRate int
	// ExpiresAt is when the provider will end the connection; zero if it has not announced
	// a time.
	ExpiresAt    time.Time
	Capabilities Capabilities
}

// Stats counts what happened on a connection.
type Stats struct {
	// UnknownEvents counts well-formed events of types unknown to the adapter; they
	// were skipped.
	UnknownEvents int64
	// MalformedEvents counts events that could not be parsed; they were skipped.
	MalformedEvents int64
	// SlowPath counts audio events that the fast scanner passed to the typed decoder.
	SlowPath int64
}
