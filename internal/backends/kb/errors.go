package kb

import (
	"errors"
	"fmt"
)

var (
	// ErrClosed is returned by every method of an index or source after Close.
	ErrClosed = errors.New("kb: closed")
	// ErrQuery is wrapped by Search's error for a query that no index can answer. The text
	// around it says what to change.
	ErrQuery = errors.New("kb: bad query")
	// ErrRecord is wrapped by the error of Apply and Record.Check for a record that is
	// incomplete or breaks a limit.
	ErrRecord = errors.New("kb: bad record")
	// ErrVectors is wrapped by CheckVectors's error.
	ErrVectors = errors.New("kb: the embedder's answer does not fit the question")
)

// Problem is one fault in a source: an unreadable file, an incomplete record, an id that occurs
// twice. It is an error.
type Problem struct {
	// File is the path below the source's folder, with slashes.
	File string
	// Line counts from 1; 0 if the problem concerns the whole file.
	Line int
	// Message says what is wrong and how to mend it.
	Message string
}

// Error is "file:line: message".
func (p Problem) Error() string {
	if p.Line == 0 {
		return p.File + ": " + p.Message
	}
	return fmt.Sprintf("%s:%d: %s", p.File, p.Line, p.Message)
}
