package transport

import (
	"context"
	"encoding/json"
	"time"
)

// Transport opens connections to the models of one provider. It may be used by
// any number of goroutines at once.
type Transport interface {
	// Name is the provider's name as configured ("gemini", "azure-eu"): a label for
	// logs and for the client, never something to decide by.
	Name() string

	// Model is the model that a Setup without one gets; empty where there is none.
	Model() string

	// Voices lists the voices that the provider's documentation has for model, the
	// default one first; nil where it has none. An empty model means Model.
	Voices(model string) []string

	// Capabilities says what model can do; an empty model means the provider's
	// default. An unknown model gets the row of its nearest family, never an error.
	Capabilities(model string) Capabilities

	// Connect dials, sends the setup and returns when the provider has accepted it.
	// ctx bounds the opening only. It makes one attempt: trying again is the
	// caller's decision, from [Error.Kind]. Every error is an [*Error].
	Connect(ctx context.Context, setup Setup) (Conn, error)
}

// Conn is one open conversation with a model.
//
// One goroutine at a time may call Send, and Close may be called by any, at any time and
// more than once: a blocked Send then returns an error, and the function of Notify is called
// one last time. A context without deadline or cancellation (context.Background) costs
// nothing on the audio path; cancelling one that is in use ends the connection.
type Conn interface {
	// Send hands one command to the model. A *AudioIn and its PCM are the caller's
	// again when Send returns. A command that this model cannot carry out (see
	// [Capabilities]) is dropped without error. An error is an [*Error] and final.
	Send(ctx context.Context, cmd Command) error

	// Notify has f called from now on: when there may be an event, and one last time after
	// Close. It is called once. There are never two calls of f at once, and each sees what
	// the one before has done. f must not wait for anything, for others may be heard by the
	// goroutine that calls it, and it has to call Recv until that has none. What it does
	// not take stays with the network, so that a fast provider waits for a slow f. Close
	// does not wait for f, which may call it.
	Notify(f func())

	// Recv returns the next event, and does not wait: the event is nil where there is none
	// yet, or f has taken a bounded number of frames and bytes; then f is called again, after
	// others have been heard. A *AudioOut and its PCM are valid until the next Recv. An
	// error is an [*Error] and final: it says by its Kind whether connecting again may help.
	// Only within the function of Notify.
	Recv() (Event, error)

	// Ready says that a Send of audio will most likely not wait for the network: what
	// was sent before has left. False where that is not known. It may be called
	// whenever Send may.
	Ready() bool

	// Close ends the connection and frees what belongs to it. It does not wait for
	// the provider's goodbye.
	Close() error

	// Info is what is fixed once connected.
	Info() Info

	// Stats may be read at any time, from any goroutine.
	Stats() Stats
}

// What a provider may send over a WebSocket, of frames of any kind: each costs 1, and 1 more
// for each full 2 KiB of it. Real ones send some hundred a second while they speak, faster than
// they are heard. More is a flood, and ends the connection with KindRetry and the code "flood".
const (
	FramesPerSecond = 2000
	FrameBurst      = 20000
)

// Setup is what a conversation starts with.
type Setup struct {
	Model        string // empty means the provider's default
	Voice        string // empty means the provider's default
	Language     string // BCP 47; empty lets the model decide
	Instructions string
	Tools        []Tool

	// ManualActivity turns the provider's speech detection off: the caller says
	// with ActivityStart and ActivityEnd when the user speaks.
	ManualActivity bool

	// SilenceMS and PrefixMS tune the provider's speech detection, in ms of audio.
	// Zero leaves the provider's own default.
	SilenceMS int
	PrefixMS  int

	// ResumeHandle continues an earlier connection (a ResumeHandle event's value)
	// where Capabilities.Resume is set.
	ResumeHandle string
}

// Tool is one function that the model may call.
type Tool struct {
	Name        string
	Description string
	// Parameters is the schema in the form that the provider takes.
	Parameters json.RawMessage
	// NonBlocking asks the model to go on while the tool runs, where it can.
	NonBlocking bool
}

// Info is what is fixed for the life of a connection.
type Info struct {
	Provider string
	Model    string
	// SessionID is the provider's, for logs; it may be empty.
	SessionID string
	// LocalAddr is this side's address on the connection, as host:port; it may be empty.
	LocalAddr string
	// InputRate is the rate in Hz that AudioIn must have, OutputRate that of
	// AudioOut.
	InputRate  int
	OutputRate int
	// ExpiresAt is when the provider will end the connection by itself; zero if it
	// has not said.
	ExpiresAt    time.Time
	Capabilities Capabilities
}

// Stats counts what a connection has seen.
type Stats struct {
	// UnknownEvents were well formed but of no type that the adapter knows; they
	// were skipped.
	UnknownEvents int64
	// MalformedEvents could not be parsed; they were skipped.
	MalformedEvents int64
	// SlowPath counts audio events that the fast scanner handed to the typed path.
	SlowPath int64
}
