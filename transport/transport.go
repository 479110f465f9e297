// Package transport defines a realtime voice model as the gateway sees it: a [Transport] opens a connection, a [Conn]
// carries [Command] values to the model and [Event] values back, and a [Capabilities] record describes what the model
// can do. The package names no provider and knows nothing about the gateway's clients.
//
// Each package below it speaks one wire protocol.
//
// Audio is PCM16, signed little-endian, mono, everywhere in this package.
package transport

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"time"
)

// Transport opens connections to the models of one provider. It is safe for concurrent use.
type Transport interface {
	// Name is the provider's name in the configuration ("azure-eu"), for logs and the client. Code must not depend on it.
	Name() string

	// Model is the default model; may be empty.
	Model() string

	// Voices lists a model's documented voices, the default first; nil without any. An empty model means the default.
	Voices(model string) []string

	// Models lists the wire's documented models, the default first, under which releases are named. Nil means that any
	// name may be valid: the service or its customers name the models.
	Models() []string

	// Refuses reports whether the provider is known to refuse a model here. An unknown name may be a new model.
	Refuses(model string) bool

	// Capabilities describes a model; empty means the default. An unknown one gets its nearest family's row.
	Capabilities(model string) Capabilities

	// Connect dials, sends the setup and returns when the provider has accepted it. ctx applies only until then.
	// Connect makes one attempt: [Error.Kind] says whether to retry. Every error is an [*Error].
	Connect(ctx context.Context, setup Setup) (Conn, error)
}

// Loading is implemented by a Transport whose model may have to be loaded before its first message.
type Loading interface {
	// LoadTime is how long Connect may wait for that message; zero if the model is always ready.
	LoadTime() time.Duration
}

// LoadTime returns t's, or zero if t does not implement Loading.
func LoadTime(t Transport) time.Duration {
	if l, ok := t.(Loading); ok {
		return l.LoadTime()
	}
	return 0
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

	// Notify, called once, registers f, which is called when there may be an event, and once after Close. Calls never
	// overlap, and each sees the effects of the previous one. f must not block and must call Recv until it returns nil; a
	// slow f slows the provider down. f may call Close, which does not wait for f.
	Notify(f func())

	// Recv returns the next event; nil without one, or f has used up its limit and is called again. A *AudioOut
	// and its PCM are valid until the next Recv. An error is an [*Error] and final. Only Notify's function may call
	// Recv.
	Recv() (Event, error)

	// Ready reports whether a Send of audio will hardly wait for the network; false if unknown. Rules as for Send.
	Ready() bool

	// Close ends the connection and frees its resources. It does not wait for the provider.
	Close() error

	// Info returns the connection's constants.
	Info() Info

	// Stats is safe for concurrent use.
	Stats() Stats
}

// Limits on a provider's frames: each costs 1, plus 1 for each full 2 KiB. Real ones send a few hundred a second.
// Beyond, the connection ends with KindRetry and the code "flood".
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

	// ManualActivity turns speech detection off: the caller sends ActivityStart and ActivityEnd.
	ManualActivity bool

	// SilenceMS and PrefixMS tune the provider's speech detection, in ms of audio: how much silence ends speech, and how
	// much audio before it is part of it (not for Gemini). Zero means its default.
	SilenceMS int
	PrefixMS  int

	// ResumeHandle continues an earlier connection (see the event ResumeHandle) if Capabilities.Resume is set.
	ResumeHandle string

	// History is the conversation so far, oldest first, of bounded size, and Reanchor the final instruction how to go
	// on. The model answers neither. They need Capabilities.History and are ignored with a ResumeHandle.
	History  []Past
	Reanchor string

	// Carried is the rest of the session's last connection; nil without any. See [Carrier].
	Carried Carried
	Checked bool // the caller checks the answers; see [CheckedConn]
}

// CheckedConn is implemented by a Conn that gives the answers to another model: with Setup.Checked, only words that were passed.
// Passed gives all such words of an item so far, or reports that a check has stopped its answer. It may be called at any time.
type CheckedConn interface {
	Passed(item, text string, stopped bool)
}

// Carrier is implemented by a Conn with work of its own that the session's next connection can continue.
type Carrier interface {
	// CarryOver parts the work from the connection; nil without any. Close, if called before, ends it instead.
	CarryOver() Carried
}

// Carried is such work, for [Setup.Carried]. A Transport that does not know it ignores it.
type Carried interface {
	// Drop ends the work, unless a connection has taken it.
	Drop()
}

// CarryOver returns what c leaves to the next connection; nil if c does not implement Carrier.
func CarryOver(c Conn) Carried {
	if c, ok := c.(Carrier); ok {
		return c.CarryOver()
	}
	return nil
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

// Wire is a protocol of providers, a row of the table in package wires. It is immutable.
type Wire struct {
	// Name is the value of providers.<name>.wire, in lower case.
	Name string

	// KeyVariables are the environment variables of the provider's clients for the key; the last one set wins.
	KeyVariables []string

	// Settings are the wire's own settings in addition to [Provider]'s, as in the configuration ("transcription_model").
	Settings []string

	// Simulated means that the simulator speaks this wire.
	Simulated bool

	// New makes a provider's Transport. An error names the wrong setting and its fix, and no credential.
	New func(Provider) (Transport, error)
}

// Provider is a configured provider.
type Provider struct {
	// Name is returned by Transport.Name and appears in errors and logs.
	Name string
	// APIKey is the credential. BaseURL replaces the provider's address if not empty.
	APIKey, BaseURL string
	// Model and Voice are the defaults of a Setup; may be empty.
	Model, Voice string
	// NoInterrupt drops the command Interrupt.
	NoInterrupt bool
	// Settings are the wire's own settings by name.
	Settings map[string]string
	// Simulated means that BaseURL is the simulator's, which accepts the same models.
	Simulated bool
	// HTTPClient makes the connections and is not modified. Nil: one with a goroutine for each connection.
	HTTPClient *http.Client
	// Logger may be nil.
	Logger *slog.Logger
}

// Capabilities describes a model. Every adapter has a table with one row per model and the row's source. Code outside
// the adapters depends on this record, never on a model's name.
type Capabilities struct {
	// SpeechEvents: the model reports the start and end of the user's speech. Otherwise the caller must detect speech.
	SpeechEvents bool

	// InterruptNotice: the model reports interruptions. Otherwise the start of speech is the interruption.
	InterruptNotice bool

	// Truncate: the model needs to know how much of an interrupted answer was heard.
	Truncate bool

	// Cancel: the model supports Interrupt.
	Cancel bool

	// RespondNeeded: after results and typed turns the model waits for Respond. Otherwise Respond does nothing.
	RespondNeeded bool

	// ToolsOff: one answer can be requested with tools switched off.
	ToolsOff bool

	// ToolCancelNotice: the model withdraws calls that an interruption made pointless.
	ToolCancelNotice bool

	Reconfigure ReconfigureForm

	// PlaysExact is the longest audio of PlayExact in seconds; zero without that command.
	PlaysExact uint8

	// TranscriptLagMS is how long after its sound a word's transcript may arrive, in ms; zero if it comes first or is unknown.
	TranscriptLagMS uint16

	Tools ToolWaiting

	// ToolSchemas is the form of a tool's parameters.
	ToolSchemas SchemaForm

	// Scheduling: a late tool result may say when the model should speak about it.
	Scheduling bool

	// Resume: the model provides handles to continue a conversation on a new connection.
	Resume bool

	AddItem AddItemForm

	// AddItemBeside: a model with AddItemIdle takes entries during calls that it does not pause for.
	AddItemBeside bool

	// Images: the model takes still images (Image).
	Images bool

	// AudioClock: the model measures time by the audio that it gets, so silence may come in longer frames.
	AudioClock bool

	// UsageCumulative: the provider reports totals, which the adapter turns into deltas. For information only.
	UsageCumulative bool

	// Free: use of the model costs nothing.
	Free bool

	// History is how the model takes the earlier conversation.
	History HistoryForm

	// ConnectionLife is the maximum duration of a connection; zero if unknown.
	ConnectionLife time.Duration

	// Source documents the row.
	Source string
}

// ToolWaiting is a model's behaviour while a tool runs.
type ToolWaiting string

// Values of ToolWaiting.
const (
	// ToolsBlock: the model is silent until it has the result.
	ToolsBlock ToolWaiting = "block"
	// ToolsDeclared: blocking or not is declared with each tool.
	ToolsDeclared ToolWaiting = "declared"
	// ToolsAsync: the model always continues while tools run.
	ToolsAsync ToolWaiting = "async"
)

// SchemaForm is a dialect in which tool parameters are declared.
type SchemaForm string

// Values of SchemaForm.
const (
	// SchemaJSON is unchanged JSON Schema.
	SchemaJSON SchemaForm = ""
	// SchemaOpenAPI is the subset of OpenAPI 3.0 schemas that Gemini accepts.
	SchemaOpenAPI SchemaForm = "openapi"
)

// ReconfigureForm is how a model takes other instructions and tools.
type ReconfigureForm uint8

// Values of ReconfigureForm.
const (
	// ReconfigureReconnect: only on a new connection. The command Reconfigure is dropped.
	ReconfigureReconnect ReconfigureForm = iota
	// ReconfigureLive: by the command Reconfigure.
	ReconfigureLive
)

// AddItemForm is how a model takes the command AddItem.
type AddItemForm uint8

// Values of AddItemForm.
const (
	// AddItemNone: the command is dropped.
	AddItemNone AddItemForm = iota
	// AddItemLive: at any time; the current answer continues without it.
	AddItemLive
	// AddItemIdle: it ends the current answer: send it while the model is silent and no call waits; see AddItemBeside.
	AddItemIdle
)
