package gateway

import (
	"errors"
	"net/http"
	"time"

	"voicegw/sim/scenario"
	"voicegw/sim/wire"
)

// Simulator simulates the providers in this process. It must be safe for concurrent use.
type Simulator interface {
	// Inject causes a fault on the connection with a peer. The error wraps wire.ErrNoConnection or wire.ErrTooMany.
	Inject(addr string, a scenario.Fault) error
}

// faultTime says when a fault happens: now, or at the next tool call on that connection.
func faultTime(k scenario.FaultKind) string {
	if k.OfCall() {
		return "next_call"
	}
	return "now"
}

type faultLine struct {
	Do    scenario.FaultKind `json:"do"`
	Label string             `json:"label"`
	For   bool               `json:"for"`
	ForMS int64              `json:"for_ms,omitempty"`
	When  string             `json:"when"`
}

func (s operatorAPI) listFaults(w http.ResponseWriter, _ *http.Request) *problem {
	lines := []faultLine{}
	for _, b := range scenario.FaultButtons() {
		lines = append(lines, faultLine{b.Do, b.Label, b.For > 0, b.For.Milliseconds(), faultTime(b.Do)})
	}
	return answer(w, http.StatusOK, map[string]any{"faults": lines})
}

type faultBody struct {
	SessionID string `json:"session_id"`
	Do        string `json:"do"`
	ForMS     *int64 `json:"for_ms"`
	Code      int    `json:"code"`
}

const maxFaultMS = 24 * 60 * 60 * 1000

func (s operatorAPI) commitFault(w http.ResponseWriter, r *http.Request) *problem {
	var body faultBody
	if no := readBody(w, r, &body, true); no != nil {
		return no
	}
	var length *time.Duration
	switch {
	case body.SessionID == "":
		return invalid("session_id is missing; see GET /v1/sessions.")
	case body.ForMS != nil && (*body.ForMS < 0 || *body.ForMS > maxFaultMS):
		return invalid("for_ms must be between 0 and 86400000, a day.")
	case body.ForMS != nil:
		d := time.Duration(*body.ForMS) * time.Millisecond
		length = &d
	}
	running, ok := s.opts.Sessions.Session(body.SessionID)
	if !ok {
		return refusal(http.StatusNotFound, "session_unknown",
			"No running session on this gateway has that id; see GET /v1/sessions.")
	}
	action, err := scenario.PressFault(body.Do, length, body.Code)
	if err == nil {
		err = s.opts.Simulator.Inject(running.ModelAddr, action)
	}
	if err != nil {
		return s.faultRefused(err)
	}
	when := faultTime(action.Kind)
	s.opts.Logger.Info("fault requested", "session_id", body.SessionID, "do", clip(body.Do), "when", when,
		"addr", s.clientAddr(r).String())
	return answer(w, http.StatusAccepted, map[string]any{"accepted": true, "when": when})
}

func (s operatorAPI) faultRefused(err error) *problem {
	var wrong *scenario.PressError
	switch {
	case errors.As(err, &wrong):
		return invalid(wrong.Message)
	case errors.Is(err, wire.ErrNoConnection):
		return refusal(http.StatusConflict, "not_connected", "The session has no connection to the simulator.")
	case errors.Is(err, wire.ErrTooMany):
		return refusal(http.StatusTooManyRequests, "limit",
			"Too many faults are waiting for that connection.").after(time.Second)
	default:
		s.opts.Logger.Error("causing a fault failed", "error", err)
		return refusal(http.StatusInternalServerError, "internal", "Internal error.")
	}
}
