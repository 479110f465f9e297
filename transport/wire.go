package transport

import (
	"log/slog"
	"net/http"
)

// Wire is one protocol that providers speak: a row of the table in package wires. A
// provider of the configuration names its wire, and several may name the same one. A Wire
// never changes, so any number of goroutines may use it at once.
type Wire struct {
	// Name is what providers.<name>.wire says, in lower case letters.
	Name string

	// KeyVariables are the environment variables in which the provider's own clients look
	// for the key. Where several are set, the last one counts. The key goes to the provider
	// of the wire's own name alone.
	KeyVariables []string

	// Settings are the names of the settings that this wire has beyond those of
	// [Provider], in the form of the configuration file ("transcription_model").
	Settings []string

	// Simulated says that the simulator speaks this wire too.
	Simulated bool

	// New makes the Transport of a configured provider. An error says which setting is
	// wrong and how to correct it, and shows no credential.
	New func(Provider) (Transport, error)
}

// Provider is one configured provider, as a wire's New takes it.
type Provider struct {
	// Name is what Transport.Name returns and what errors and log lines carry.
	Name string
	// APIKey is the credential, BaseURL another address than the provider's own, empty for
	// that one.
	APIKey, BaseURL string
	// Model and Voice are used where a Setup names none; empty for the defaults of the
	// adapter and of the provider.
	Model, Voice string
	// NoInterrupt keeps the Interrupt command from the model.
	NoInterrupt bool
	// Settings holds the wire's own settings by name; one that is missing is unset.
	Settings map[string]string
	// HTTPClient makes the connections; nil means one of the adapter's own, whose every
	// connection is read by a goroutine. It is not changed.
	HTTPClient *http.Client
	// Logger gets what a person should know; nil logs nothing.
	Logger *slog.Logger
}
