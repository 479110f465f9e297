package gateway

import (
	"fmt"
	"net/http"
	"time"
)

// Drain empties this gateway before it is stopped. Its methods may be called concurrently.
type Drain interface {
	// Begin begins the drain. What has not ended after limit is ended then; a zero limit means the
	// configured one. A drain that is under way is shortened by a shorter limit, and never made
	// longer.
	Begin(limit time.Duration)
	// Progress says how far the drain is.
	Progress() DrainProgress
}

// DrainProgress is how far a drain is: the answer of GET and POST /v1/drain.
type DrainProgress struct {
	// Draining says that the drain has begun, Done that nothing is left of what it waits for.
	Draining bool `json:"draining"`
	Done     bool `json:"done"`
	// Until is when the drain ends whatever is left; zero if it has not begun.
	Until time.Time `json:"until,omitzero"`
	// Sessions is how many voice sessions run here, and Away of how many of them the client is away.
	Sessions int `json:"sessions"`
	Away     int `json:"away"`
	// Moved is how many sessions were given up for another gateway since the drain began.
	Moved int `json:"moved"`
	// Carried is how many clients this gateway carries to sessions of others.
	Carried int `json:"carried"`
	// Messages is how many messages of text conversations are being answered.
	Messages int `json:"messages"`
}

// maxDrainMS bounds the time of a drain: a day, as drain_timeout.
const maxDrainMS = 24 * 60 * 60 * 1000

// drainBody is what POST /v1/drain takes.
type drainBody struct {
	TimeoutMS int64 `json:"timeout_ms"`
}

// beginDrain empties this gateway for an operator.
func (s *Server) beginDrain(w http.ResponseWriter, r *http.Request) {
	var body drainBody
	if r.ContentLength != 0 && !s.readBody(w, r, &body, true, plainError) {
		return
	}
	if body.TimeoutMS < 0 || body.TimeoutMS > maxDrainMS {
		problem(w, http.StatusBadRequest, "invalid_message",
			fmt.Sprintf("timeout_ms must be between 1 and %d, a day; 0 or a missing timeout_ms means the gateway's drain_timeout.", maxDrainMS))
		return
	}
	s.opts.Logger.Info("an operator drains this gateway", "timeout_ms", body.TimeoutMS, "addr", s.clientAddr(r).String())
	s.opts.Drain.Begin(time.Duration(body.TimeoutMS) * time.Millisecond)
	answer(w, http.StatusAccepted, s.opts.Drain.Progress())
}

// showDrain says how far the drain is.
func (s *Server) showDrain(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, s.opts.Drain.Progress())
}
