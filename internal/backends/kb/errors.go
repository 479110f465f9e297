package kb

import (
	"errors"
	"fmt"
)

var (
	// ErrClosed is returned by every method of an index or source after Close.
	ErrClosed = errors.New("kb: closed")
	// ErrQuery is wrapped by errors about an invalid Query.
	ErrQuery = errors.New("kb: bad query")
	// ErrRecord is wrapped by errors about a record that is incomplete or exceeds a limit.
	ErrRecord = errors.New("kb: bad record")
	// ErrVectors is wrapped by errors about the answer of an Embedder.
	ErrVectors = errors.New("kb: the embedder's answer does not match the texts")
)

// Problem is a fault in a source, such as an unreadable file, an incomplete record or a duplicate id. It is an error.
type Problem struct {
	// File is the path below the source's folder, with slashes.
	File string
	// Line counts from 1; 0 if the problem concerns the whole file.
	Line int
	// Message describes the fault and its fix.
	Message string
}

// Error returns "file:line: message".
func (p Problem) Error() string {
	if p.Line == 0 {
		return p.File + ": " + p.Message
	}
	return fmt.Sprintf("%s:%d: %s", p.File, p.Line, p.Message)
}
