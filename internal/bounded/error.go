package bounded

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Bound names a limit.
type Bound string

// The limits.
const (
	BoundBytes      Bound = "bytes"      // the body is too long
	BoundFailure    Bound = "failure"    // the body of a failed answer is too long
	BoundHeader     Bound = "header"     // the head is too long, or too many 1xx answers
	BoundElements   Bound = "elements"   // JSON or XML has too many elements
	BoundDepth      Bound = "depth"      // JSON or XML is nested too deeply
	BoundPiece      Bound = "piece"      // one event of a stream, or one text in XML, is too long
	BoundDoctype    Bound = "doctype"    // XML has a document type
	BoundWhole      Bound = "whole"      // the answer takes too long
	BoundIdle       Bound = "idle"       // no data for too long
	BoundRedirect   Bound = "redirect"   // the server redirects
	BoundCompressed Bound = "compressed" // the server compresses although asked not to
)

// Error reports an exceeded limit, without content of the answer.
type Error struct {
	// Service is the name in [Limits].
	Service string
	Bound   Bound
	// Most is the limit: bytes, elements, a depth, or nanoseconds. Zero for BoundDoctype, BoundRedirect and
	// BoundCompressed.
	Most int64
	// Status is the answer's status; 0 before the head.
	Status int
}

func (e *Error) Error() string {
	return e.Service + ": " + strings.NewReplacer(
		"{most}", strconv.FormatInt(e.Most, 10), "{time}", time.Duration(e.Most).String(), "{status}", strconv.Itoa(e.Status),
	).Replace(said[e.Bound])
}

var said = map[Bound]string{
	BoundBytes:      "the answer has more than {most} bytes, the maximum",
	BoundFailure:    "the answer with status {status} has more than {most} bytes, the maximum for a failure",
	BoundHeader:     "the head of the answer, with the interim answers before it, has more than {most} bytes, the maximum",
	BoundElements:   "the answer has more than {most} elements, the maximum",
	BoundDepth:      "the answer is nested more than {most} levels deep, the maximum",
	BoundPiece:      "one piece of the answer has more than {most} bytes, the maximum",
	BoundDoctype:    "the answer has a document type (<!DOCTYPE), which is not allowed",
	BoundWhole:      "the answer was not complete after {time}",
	BoundIdle:       "no data for {time}",
	BoundRedirect:   "it answers {status} and names another address; redirects are not followed: configure the final address",
	BoundCompressed: "it compresses its answer, although it was asked not to",
}

// Timeout implements net.Error.
func (e *Error) Timeout() bool { return e.Bound == BoundWhole || e.Bound == BoundIdle }

// Temporary implements net.Error.
func (e *Error) Temporary() bool { return e.Passing() }

// Passing reports whether a retry may succeed: the service was slow or failed (status 429 or at least 500). An answer
// that is too large stays too large.
func (e *Error) Passing() bool {
	return e.Timeout() || e.Status == http.StatusTooManyRequests || e.Status >= http.StatusInternalServerError
}

// As returns the *Error that err wraps.
func As(err error) (*Error, bool) { return errors.AsType[*Error](err) }

// Bare removes the request's URL, which may contain secrets, from an error of net/http.
func Bare(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return fmt.Errorf("%s: %w", u.Op, u.Err)
	}
	return err
}

const longestWait = 24 * time.Hour

// RetryAfter returns the wait a server asks for in an answer received at now: seconds or a date in Retry-After (RFC
// 9110, section 10.2.3), or OpenAI's retry-after-ms. It is at most a day; zero without a valid header.
func RetryAfter(h http.Header, now time.Time) time.Duration {
	text := h.Get("Retry-After")
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil {
		return waitOf(ms / 1000)
	}
	if seconds, err := strconv.ParseFloat(text, 64); err == nil {
		return waitOf(seconds)
	}
	if at, err := http.ParseTime(text); err == nil {
		return waitOf(at.Sub(now).Seconds())
	}
	return 0
}

// waitOf bounds a number of seconds. Values over 32 bits are a server bug.
func waitOf(seconds float64) time.Duration {
	if math.IsNaN(seconds) || seconds <= 0 || seconds > math.MaxInt32 {
		return 0
	}
	return time.Duration(min(seconds, longestWait.Seconds()) * float64(time.Second))
}
