package gateway

import (
	"errors"
	"net/http"
	"time"
)

// Simulator simulates providers in this process and causes faults on request. It must be safe for concurrent use.
type Simulator interface {
	Simulates(provider string) bool
	Faults() []Fault
	// Commit causes a fault on the connection with a peer. The error wraps ErrNotConnected or ErrTooManyFaults, or is a
	// *FaultError.
	Commit(addr string, o FaultOrder) (FaultMoment, error)
}

// Fault is a fault that an operator can cause.
type Fault struct {
	Do    string
	Label string
	For   time.Duration
	When  FaultMoment
}

// FaultOrder requests a Fault.
type FaultOrder struct {
	Do   string
	For  *time.Duration
	Code int
}

// FaultMoment is when a fault happens.
type FaultMoment string

// The moments.
const (
	FaultNow        FaultMoment = "now"
	FaultAtNextCall FaultMoment = "next_call" // at a tool call on that connection
)

// The errors of Simulator.Commit.
var (
	ErrNotConnected  = errors.New("gateway: the simulator has no such connection")
	ErrTooManyFaults = errors.New("gateway: too many faults wait for that connection")
)

// FaultError is a problem of a FaultOrder.
type FaultError struct {
	Field   string
	Message string
}

func (e *FaultError) Error() string { return e.Message }

type faultLine struct {
	Do    string      `json:"do"`
	Label string      `json:"label"`
	For   bool        `json:"for"`
	ForMS int64       `json:"for_ms,omitempty"`
	When  FaultMoment `json:"when"`
}

func (s operatorAPI) listFaults(w http.ResponseWriter, _ *http.Request) *problem {
	lines := []faultLine{}
	for _, f := range s.opts.Simulator.Faults() {
		lines = append(lines, faultLine{f.Do, f.Label, f.For > 0, f.For.Milliseconds(), f.When})
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
	order := FaultOrder{Do: body.Do, Code: body.Code}
	switch {
	case body.SessionID == "":
		return invalid("session_id is missing; see GET /v1/sessions.")
	case body.ForMS != nil && (*body.ForMS < 0 || *body.ForMS > maxFaultMS):
		return invalid("for_ms must be between 0 and 86400000, a day.")
	case body.ForMS != nil:
		d := time.Duration(*body.ForMS) * time.Millisecond
		order.For = &d
	}
	running, ok := s.opts.Sessions.Session(body.SessionID)
	if !ok {
		return refusal(http.StatusNotFound, "session_unknown",
			"No running session on this gateway has that id; see GET /v1/sessions.")
	}
	when, err := s.opts.Simulator.Commit(running.ModelAddr, order)
	if err != nil {
		return s.faultRefused(err)
	}
	s.opts.Logger.Info("fault requested", "session_id", body.SessionID, "do", clip(body.Do), "when", string(when),
		"addr", s.clientAddr(r).String())
	return answer(w, http.StatusAccepted, map[string]any{"accepted": true, "when": when})
}

func (s operatorAPI) faultRefused(err error) *problem {
	var wrong *FaultError
	switch {
	case errors.As(err, &wrong):
		return invalid(wrong.Message)
	case errors.Is(err, ErrNotConnected):
		return refusal(http.StatusConflict, "not_connected", "The session has no connection to the simulator.")
	case errors.Is(err, ErrTooManyFaults):
		return refusal(http.StatusTooManyRequests, "limit",
			"Too many faults are waiting for that connection.").after(time.Second)
	default:
		s.opts.Logger.Error("causing a fault failed", "error", err)
		return refusal(http.StatusInternalServerError, "internal", "Internal error.")
	}
}
