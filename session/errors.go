package session

import (
	"sync"
	"time"

	"golang.org/x/time/rate"

	"voicegw/protocol"
	"voicegw/protocol/errcode"
)

// What a client gets errors for is bounded, or its flood would be answered by another one.
// More than floodErrors errors of its own within floodWindow are flooding, and more than
// sessionErrors in a session. Of errors that are not the client's fault so many are told in
// the beginning, and one each faultEvery after that.
const (
	floodErrors   = 20
	floodWindow   = 10 * time.Second
	sessionErrors = 200
	faultEvery    = 10 * time.Second
)

// errorGate is the one way of errors to a running session's client. It may be used by any
// number of goroutines.
type errorGate struct {
	mu     sync.Mutex // guards the following fields
	recent []time.Time
	own    int           // errors of the client's so far
	faults *rate.Limiter // of others' errors; nil before the first
	told   bool          // that some were left out
}

// verdict is what the gate says of an error.
type verdict int

const (
	errorTold verdict = iota
	errorLeftOut
	errorIsFlood
)

// pass counts an error and says whether the client may be told.
func (g *errorGate) pass(code string, now time.Time) (v verdict, first bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !clientsFault(code) {
		if g.faults == nil {
			g.faults = rate.NewLimiter(rate.Every(faultEvery), floodErrors)
		}
		if g.faults.AllowN(now, 1) {
			return errorTold, false
		}
		first, g.told = !g.told, true
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
	return errorTold, false
}

// clientsFault says whether errors of a code in a running session are what the client has
// done.
func clientsFault(code string) bool {
	switch code {
	case errcode.ProviderError, errcode.TranscriptionFailed, errcode.NoAnswer, errcode.StoreUnavailable:
		return false
	}
	return true
}

// tellError tells the client of an error, if it was not told of too many. Once the session
// has ended there are no errors any more but the one that says why.
func (s *session) tellError(m *protocol.Error) {
	if s.isOver() {
		return
	}
	switch v, first := s.errors.pass(m.Code, time.Now()); v {
	case errorIsFlood:
		s.end(causeFlood)
		return
	case errorLeftOut:
		if first {
			s.logger.Warn("the client is not told of every error: there are too many", "code", m.Code)
		}
		return
	}
	if r := errcode.RetryOf(m.Code); r != errcode.Says {
		m.Retryable = r == errcode.Later
	}
	s.tell(m)
}
