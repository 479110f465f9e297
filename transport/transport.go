// Package transport defines a realtime voice model as the gateway sees it: a
// [Transport] opens a connection, a [Conn] carries [Command] values to the model and
// [Event] values back, and a [Capabilities] record describes what the model can do. The
// package names no provider and knows nothing about the gateway's clients.
//
// Each package below it speaks one wire protocol.
//
// Audio is PCM16, signed little-endian, mono, everywhere in this package.
package transport

import (
	"context"
	"encoding/json"
	"time"
)

// Transport opens connections to the models of one provider. It is safe for concurrent use.
type Transport interface {
	// Name is the provider's name in the configuration ("gemini", "azure-eu"), for logs and the client. Code must
	// never depend on it.
	Name() string

	// Model is the default model; may be empty.
	Model() string

	// Voices lists the documented voices of a model, the default first; nil if none is documented. An empty model
	// means the default.
	Voices(model string) []string

	// Models lists the documented models of this wire, the default first. A release is named after its model
	// ("gpt-realtime-2025-08-28"). Nil means that any name may be valid: the service is not the provider's own, or
	// its customers name the models.
	Models() []string

	// Refuses reports whether the provider is known to refuse a model on this wire, such as a text-only one. An
	// unknown name may be a new model.
	Refuses(model string) bool

	// Capabilities describes a model; an empty name means the default. An unknown model gets the row of its nearest
	// family.
	Capabilities(model string) Capabilities

	// Connect dials, sends the setup and returns when the provider has accepted it. ctx applies only until then.
	// Connect makes one attempt: [Error.Kind] says whether to retry. Every error is an [*Error].
	Connect(ctx context.Context, setup Setup) (Conn, error)
}

// Conn is one open conversation with a model.
//
// Only one goroutine at a time may call Send. Close may be called concurrently and more than once: a blocked Send
// then returns an error, and the function given to Notify is called one last time. A context without deadline or
// cancellation (context.Background) costs nothing on the audio path; cancelling the context of a call ends the
// connection.
type Conn interface {
	// Send sends one command. The caller may reuse a *AudioIn and its PCM when Send returns. A command that the model
	// does not support (see [Capabilities]) is dropped without error. An error is an [*Error] and final.
	Send(ctx context.Context, cmd Command) error

	// Notify registers f, which is called when there may be an event, and one last time after Close. Notify may be
	// called only once. Calls of f never overlap, and each sees the effects of the one before. f must not block,
	// because its goroutine may serve other connections, and it must call Recv until Recv returns nil. Other events
	// stay in the network, so a slow f slows the provider down. Close does not wait for f, and f may call Close.
	Notify(f func())

	// Recv returns the next event without waiting; nil if none has arrived, or if f has used up its limit of frames
	// and bytes. f is called again after other connections have had their turn. A *AudioOut and its PCM are valid
	// until the next Recv. An error is an [*Error] and final; its Kind says whether to connect again. Only the
	// function given to Notify may call Recv.
	Recv() (Event, error)

	// Ready reports whether a Send of audio will most likely not wait for the network; false if unknown. The rules of
	// Send apply.
	Ready() bool

	// Close ends the connection and frees its resources. It does not wait for the provider.
	Close() error

	// Info returns the connection's constants.
	Info() Info

	// Stats is safe for concurrent use.
	Stats() Stats
}

// Limits on a provider's frames of any kind. A frame costs 1, plus 1 for each full 2 KiB. Real providers send a few
// hundred a second while they speak, faster than real time. Beyond the limit the connection ends with KindRetry and
// the code "flood".
const (
	FramesPerSecond = 2000
	FrameBurst      = 20000
)

// Setup configures a conversation.
type Setup struct {
	Model        string // empty means the provider's default
	Voice        string // empty means the provider's default
	Language     string // BCP 47; empty lets the model decide
	Instructions string
	Tools        []Tool

	// ManualActivity turns the provider's speech detection off: the caller marks speech with ActivityStart and
	// ActivityEnd.
	ManualActivity bool

	// SilenceMS and PrefixMS tune the provider's speech detection, in ms of audio. Zero means its default.
	SilenceMS int
	PrefixMS  int

	// ResumeHandle continues an earlier connection (see the event ResumeHandle) if Capabilities.Resume is set.
	ResumeHandle string

	// History is the conversation so far, oldest first, and Reanchor the caller's final instruction how to continue.
	// Connect returns once the provider has both, and the model answers neither. They need Capabilities.History and
	// are ignored with a ResumeHandle. The caller limits their size.
	History  []Past
	Reanchor string
}

// Tool is a function that the model may call.
type Tool struct {
	Name        string
	Description string
	// Parameters is the schema in the provider's form.
	Parameters json.RawMessage
	// NonBlocking asks the model to continue while the tool runs, if it can.
	NonBlocking bool
}

// Info holds the constants of a connection.
type Info struct {
	Provider string
	Model    string
	// SessionID is the provider's ID for logs; may be empty.
	SessionID string
	// LocalAddr is the connection's local address, host:port; may be empty.
	LocalAddr string
	// InputRate is the sample rate of AudioIn and OutputRate that of AudioOut, both in Hz.
	InputRate  int
	OutputRate int
	// ExpiresAt is when the provider will end the connection; zero if unknown.
	ExpiresAt    time.Time
	Capabilities Capabilities
}

// Stats counts events of a connection.
type Stats struct {
	// UnknownEvents counts skipped events of unknown types.
	UnknownEvents int64
	// MalformedEvents counts skipped events that could not be parsed.
	MalformedEvents int64
	// SlowPath counts audio events that needed the typed decoder.
	SlowPath int64
}
