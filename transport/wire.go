package transport

import (
	"log/slog"
	"net/http"
)

// Wire is a protocol of providers: a row of the table in package wires. Several configured providers may use the same
// one. A Wire is immutable.
type Wire struct {
	// Name is the value of providers.<name>.wire, in lower case.
	Name string

	// KeyVariables are the environment variables of the provider's own clients for the key; the last one set wins.
	// The key is used only for the provider with the wire's name.
	KeyVariables []string

	// Settings are the wire's own settings in addition to those of [Provider], as in the configuration file
	// ("transcription_model").
	Settings []string

	// Simulated means that the simulator speaks this wire.
	Simulated bool

	// New makes the Transport of a configured provider. An error names the wrong setting and its fix, and contains no
	// credential.
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
	// HTTPClient makes the connections and is not modified. Nil means the adapter's own client, with a goroutine for
	// each connection.
	HTTPClient *http.Client
	// Logger may be nil.
	Logger *slog.Logger
}
