package session

import (
	"sync"
	"time"

	"golang.org/x/time/rate"

	"voicegw/protocol"
)

// Errors to a client are limited, because a client's flood would cause another one. More than floodErrors errors
// within floodWindow, or sessionErrors in all, are a flood. Errors that are not the client's fault are limited to one
// every faultEvery after the first floodErrors.
const (
	floodErrors   = 20
	floodWindow   = 10 * time.Second
	sessionErrors = 200
	faultEvery    = 10 * time.Second
)

// errorGate limits the errors to a running session's client. It may be used concurrently.
type errorGate struct {
	mu      sync.Mutex // guards the following fields
	recent  []time.Time
	faults  *rate.Limiter // limits other errors; nil before the first
	own     int32         // the client's own errors so far
	leftOut bool          // some errors were left out
}

type verdict int

const (
	errorSent verdict = iota
	errorLeftOut
	errorIsFlood
)

func (g *errorGate) pass(code string, now time.Time) (v verdict, first bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !clientsFault(code) {
		if g.faults == nil {
			g.faults = rate.NewLimiter(rate.Every(faultEvery), floodErrors)
		}
		if g.faults.AllowN(now, 1) {
			return errorSent, false
		}
		first, g.leftOut = !g.leftOut, true
		return errorLeftOut, first
	}
	g.own++
	for len(g.recent) > 0 && now.Sub(g.recent[0]) > floodWindow {
		g.recent = g.recent[1:]
	}
	g.recent = append(g.recent, now)
	if len(g.recent) > floodErrors || g.own > sessionErrors {
		return errorIsFlood, false
	}
	return errorSent, false
}

func clientsFault(code string) bool {
	switch code {
	case protocol.CodeProviderAuth, protocol.CodeProviderBusy, protocol.CodeProviderQuota, protocol.CodeProviderAnswer,
		protocol.CodeProviderUnavailable, protocol.CodeContentFilter,
		protocol.CodeProviderError, protocol.CodeTranscriptionFailed, protocol.CodeNoAnswer, protocol.CodeStoreUnavailable:
		return false
	}
	return true
}

// sendError sends an error to the client, within the limits. After the session's end, only the error that explains it
// is sent.
func (s *session) sendError(m *protocol.Error) {
	if s.isOver() {
		return
	}
	if clientsFault(m.Code) {
		s.event(Rejected{m.Code})
	}
	switch v, first := s.client.errors.pass(m.Code, time.Now()); v {
	case errorIsFlood:
		s.end(causeFlood)
		return
	case errorLeftOut:
		if first {
			s.log().Warn("too many errors: the client does not get all of them", "code", m.Code)
		}
		return
	}
	if r := protocol.RetryOf(m.Code); r != protocol.RetryDepends {
		m.Retryable = r == protocol.RetryLater
	}
	s.send(m)
}
