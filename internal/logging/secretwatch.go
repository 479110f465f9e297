package logging

import "sync/atomic"

// Kind is a secret's purpose.
type Kind string

// The kinds.
const (
	Ticket       Kind = "ticket"
	Confirmation Kind = "token of a confirmation"
	OperatorsKey Kind = "operators' key"
	Console      Kind = "code or token of the console"
	Image        Kind = "address of an image"
	Resume       Kind = "token of a resume"
	APIKey       Kind = "API key"
)

var told atomic.Pointer[func(Kind, string)]

// Made must be called with each new secret before any other code gets it. It may be called concurrently.
func Made(kind Kind, secret string) {
	if tell := told.Load(); tell != nil {
		(*tell)(kind, secret)
	}
}

// Tell sets the function that receives secrets, for tests.
func Tell(tell func(Kind, string)) { told.Store(&tell) }
