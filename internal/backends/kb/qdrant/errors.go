package qdrant

import (
	"errors"
	"fmt"
)

// ErrCollection is wrapped by Open's error about a collection that this package did not make.
var ErrCollection = errors.New("qdrant: unsuitable collection; name another one, or delete it")

// StatusError is an unsuccessful answer of the server.
type StatusError struct {
	Method, Path string
	Status       int
	// Message is the server's text, at most 300 characters.
	Message string
}

// Error returns the request, the status and the message.
func (e *StatusError) Error() string {
	return fmt.Sprintf("qdrant: %s %s: HTTP %d: %s", e.Method, e.Path, e.Status, e.Message)
}
