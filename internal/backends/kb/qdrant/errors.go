package qdrant

import (
	"errors"
	"fmt"
)

// ErrCollection is wrapped by Open's error for an existing collection that does not have the
// form that this package makes.
var ErrCollection = errors.New("qdrant: the collection does not fit; name another one, or delete it")

// StatusError is an answer of the server without success.
type StatusError struct {
	Method, Path string
	Status       int
	// Message is the server's own, at most 300 characters.
	Message string
}

// Error names the server, the status and the message.
func (e *StatusError) Error() string {
	return fmt.Sprintf("qdrant: %s %s: HTTP %d: %s", e.Method, e.Path, e.Status, e.Message)
}
