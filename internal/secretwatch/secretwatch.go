// Package secretwatch tells tests of each secret that the program makes, so that they can
// look for it where no secret may stand (package secrettest). In production nobody is told.
package secretwatch

import "sync/atomic"

// Kind says what a secret opens.
type Kind string

// The kinds.
const (
	Ticket       Kind = "ticket"
	Confirmation Kind = "token of a confirmation"
	OperatorsKey Kind = "operators' key"
	Console      Kind = "code or token of the console"
	Image        Kind = "address of an image"
	ProviderKey  Kind = "key of a provider"
)

var told atomic.Pointer[func(Kind, string)]

// Made is called with each new secret, before anybody else has it. Any number of goroutines
// may call it.
func Made(kind Kind, secret string) {
	if tell := told.Load(); tell != nil {
		(*tell)(kind, secret)
	}
}

// Tell sets who is told of secrets. Only tests do that.
func Tell(tell func(Kind, string)) { told.Store(&tell) }
