package transport

import (
	"log/slog"
	"net/http"
)

// Wire is one protocol that providers speak: a row of the table in package wires. A
// configured provider names its wire, and several providers may use the same one. A Wire
// is immutable and may be used concurrently.
type Wire struct {
	// Name is the value of providers.<name>.wire, in lower case letters.
	Name string

	// KeyVariables are the environment variables in which the provider's own clients look
	// for the key. If several are set, the last one wins. The key is used only for the
	// provider that has the same name as the wire.
	KeyVariables []string

	// Settings are the names of the wire's own settings in addition to those of
	// [Provider], as written in the configuration file ("transcription_model").
	Settings []string

	// Simulated means that the simulator speaks this wire too.
	Simulated bool

	// New makes the Transport of a configured provider. An error describes which setting is
	// wrong and how to correct it, and shows no credential.
	New func(Provider) (Transport, error)
}

// Provider is one configured provider, as passed to a wire's New.
type Provider struct {
	// Name is returned by Transport.Name and appears in errors and log lines.
	Name string
	// APIKey is the credential. BaseURL replaces the provider's own address; empty keeps it.
	APIKey, BaseURL string
	// Model and Voice are used if a Setup names none; empty means the defaults of the
	// adapter and of the provider.
	Model, Voice string
	// NoInterrupt prevents the Interrupt command from being sent to the model.
	NoInterrupt bool
	// Settings holds the wire's own settings by name; a missing one is unset.
	Settings map[string]string
	// Simulated means that BaseURL is the simulator's. It accepts the models that the wire's own service accepts.
	Simulated bool
	// HTTPClient makes the connections and is not modified. Nil means a client of the
	// adapter's own, whose every connection is read by a goroutine of its own.
	HTTPClient *http.Client
	// Logger receives what an operator should know; nil disables logging.
	Logger *slog.Logger
}
