package bounded

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Bound names the bound that an answer has exceeded.
type Bound string

// The bounds.
const (
	BoundBytes      Bound = "bytes"      // the body is too long
	BoundFailure    Bound = "failure"    // the body of an answer without success is too long
	BoundHeader     Bound = "header"     // the head is too long, or there are too many 1xx answers
	BoundElements   Bound = "elements"   // JSON or XML has too many elements
	BoundDepth      Bound = "depth"      // JSON or XML is nested too deeply
	BoundPiece      Bound = "piece"      // one event of a stream, or one text in XML, is too long
	BoundDoctype    Bound = "doctype"    // XML has a document type
	BoundWhole      Bound = "whole"      // the whole answer takes too long
	BoundIdle       Bound = "idle"       // nothing has come for too long
	BoundRedirect   Bound = "redirect"   // the server redirects
	BoundCompressed Bound = "compressed" // the server compresses, although it was told not to
)

// Error says that an answer has exceeded a bound. It holds nothing of the answer.
type Error struct {
	// Service is the name in [Limits].
	Service string
	Bound   Bound
	// Most is the bound: bytes, elements, a depth, or a time in nanoseconds. Zero for
	// BoundDoctype, BoundRedirect and BoundCompressed.
	Most int64
	// Status is the answer's status; 0 if no head has come.
	Status int
}

// Error names the service and the bound.
func (e *Error) Error() string {
	return e.Service + ": " + strings.NewReplacer(
		"{most}", strconv.FormatInt(e.Most, 10), "{time}", time.Duration(e.Most).String(), "{status}", strconv.Itoa(e.Status),
	).Replace(said[e.Bound])
}

// said are the words for each bound.
var said = map[Bound]string{
	BoundBytes:      "the answer has more than {most} bytes, the most that is read",
	BoundFailure:    "the answer with status {status} has more than {most} bytes, the most that is read of a failure",
	BoundHeader:     "the head of the answer, with the interim answers before it, has more than {most} bytes, the most that is read",
	BoundElements:   "the answer has more than {most} elements, the most that are read",
	BoundDepth:      "the answer is nested more than {most} levels deep, the most that are read",
	BoundPiece:      "one piece of the answer has more than {most} bytes, the most that is read",
	BoundDoctype:    "the answer has a document type (<!DOCTYPE), which is not read",
	BoundWhole:      "the answer was not whole after {time}, the longest that is waited",
	BoundIdle:       "nothing came for {time}, the longest that is waited",
	BoundRedirect:   "it answers {status} and names another address; redirects are not followed: put the final address into the configuration",
	BoundCompressed: "it compresses its answer, although it was asked not to",
}

// Timeout implements net.Error: it says whether the answer took too long.
func (e *Error) Timeout() bool { return e.Bound == BoundWhole || e.Bound == BoundIdle }

// Temporary implements net.Error.
func (e *Error) Temporary() bool { return e.Passing() }

// Passing says that the same request may get another answer a moment later: the service was
// slow, or it failed (a status of 429 or of 500 and more). An answer that is too large stays
// too large.
func (e *Error) Passing() bool {
	return e.Timeout() || e.Status == http.StatusTooManyRequests || e.Status >= http.StatusInternalServerError
}

// As returns the *Error that err wraps.
func As(err error) (*Error, bool) { return errors.AsType[*Error](err) }

// Bare returns err without the address of the request, which net/http puts in front and which may
// contain something secret.
func Bare(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return fmt.Errorf("%s: %w", u.Op, u.Err)
	}
	return err
}
