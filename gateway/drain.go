package gateway

import (
	"fmt"
	"net/http"
	"time"

	"voicegw/protocol"
)

// Drain drains this gateway. It must be safe for concurrent use.
type Drain interface {
	// Begin starts the drain, which ends everything after limit; zero means the configured limit. During a drain,
	// Begin can only shorten the limit.
	Begin(limit time.Duration)
	Progress() protocol.DrainProgress
}

// maxDrainMS limits a drain to a day, like drain_timeout.
const maxDrainMS = 24 * 60 * 60 * 1000

type drainBody struct {
	TimeoutMS int64 `json:"timeout_ms"`
}

// beginDrain starts the drain for an operator.
func (s operatorAPI) beginDrain(w http.ResponseWriter, r *http.Request) {
	var body drainBody
	if r.ContentLength != 0 && !s.readBody(w, r, &body, true, plainError) {
		return
	}
	if body.TimeoutMS < 0 || body.TimeoutMS > maxDrainMS {
		problem(w, http.StatusBadRequest, "invalid_message",
			fmt.Sprintf("timeout_ms must be between 1 and %d, a day; 0 or a missing timeout_ms means the "+
				"gateway's drain_timeout.", maxDrainMS))
		return
	}
	s.opts.Logger.Info("drain requested by an operator", "timeout_ms", body.TimeoutMS, "addr", s.clientAddr(r).String())
	s.opts.Drain.Begin(time.Duration(body.TimeoutMS) * time.Millisecond)
	answer(w, http.StatusAccepted, s.opts.Drain.Progress())
}

func (s operatorAPI) showDrain(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, s.opts.Drain.Progress())
}
