package gateway

import (
	"errors"
	"net/http"
	"time"
)

// Simulator simulates providers in this process and causes faults on request. It must be safe for concurrent use.
type Simulator interface {
	// Simulates reports whether it simulates a provider.
	Simulates(provider string) bool
	Faults() []Fault
	// Commit causes a fault on the connection with that peer (host:port). The error wraps ErrNotConnected or
	// ErrTooManyFaults, or is a *FaultError.
	Commit(addr string, o FaultOrder) (FaultMoment, error)
}

// Fault is a fault that an operator can cause.
type Fault struct {
	Do string
	// Label describes the effect for people.
	Label string
	// For is its default duration, or zero.
	For  time.Duration
	When FaultMoment
}

// FaultOrder requests a Fault.
type FaultOrder struct {
	Do string
	// A nil For means the fault's default, and a zero Code the provider's.
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

// ErrNotConnected and ErrTooManyFaults are wrapped by errors of Simulator.Commit: no connection has the address, or
// too many faults wait for it.
var (
	ErrNotConnected  = errors.New("gateway: the simulator has no such connection")
	ErrTooManyFaults = errors.New("gateway: too many faults wait for that connection")
)

// FaultError is a problem of a FaultOrder.
type FaultError struct {
	// Field is do, for_ms or code.
	Field   string
	Message string
}

// Error returns Message.
func (e *FaultError) Error() string { return e.Message }

// faultLine is a fault in GET /v1/simulator.
type faultLine struct {
	Do    string `json:"do"`
	Label string `json:"label"`
	// For reports whether for_ms applies; ForMS is its default.
	For   bool        `json:"for"`
	ForMS int64       `json:"for_ms,omitempty"`
	When  FaultMoment `json:"when"`
}

func (s operatorAPI) listFaults(w http.ResponseWriter, _ *http.Request) {
	lines := []faultLine{}
	for _, f := range s.opts.Simulator.Faults() {
		lines = append(lines, faultLine{f.Do, f.Label, f.For > 0, f.For.Milliseconds(), f.When})
	}
	answer(w, http.StatusOK, map[string]any{"faults": lines})
}

type faultBody struct {
	SessionID string `json:"session_id"`
	Do        string `json:"do"`
	ForMS     *int64 `json:"for_ms"`
	Code      int    `json:"code"`
}

// maxFaultMS limits a fault to a day.
const maxFaultMS = 24 * 60 * 60 * 1000

// commitFault causes a fault on a session's connection to its model.
func (s operatorAPI) commitFault(w http.ResponseWriter, r *http.Request) {
	var body faultBody
	if !s.readBody(w, r, &body, true, plainError) {
		return
	}
	order := FaultOrder{Do: body.Do, Code: body.Code}
	switch {
	case body.SessionID == "":
		problem(w, http.StatusBadRequest, "invalid_message", "session_id is missing; see GET /v1/sessions.")
		return
	case body.ForMS != nil && (*body.ForMS < 0 || *body.ForMS > maxFaultMS):
		problem(w, http.StatusBadRequest, "invalid_message", "for_ms must be between 0 and 86400000, a day.")
		return
	case body.ForMS != nil:
		d := time.Duration(*body.ForMS) * time.Millisecond
		order.For = &d
	}
	running, ok := s.opts.Sessions.Session(body.SessionID)
	if !ok {
		problem(w, http.StatusNotFound, "session_unknown", "No running session on this gateway has that id; see GET /v1/sessions.")
		return
	}
	when, err := s.opts.Simulator.Commit(running.ModelAddr, order)
	if err != nil {
		s.faultRefused(w, err)
		return
	}
	s.opts.Logger.Info("fault requested", "session_id", body.SessionID, "do", clip(body.Do), "when", string(when),
		"addr", s.clientAddr(r).String())
	answer(w, http.StatusAccepted, map[string]any{"accepted": true, "when": when})
}

// faultRefused answers why no fault was caused.
func (s operatorAPI) faultRefused(w http.ResponseWriter, err error) {
	var wrong *FaultError
	switch {
	case errors.As(err, &wrong):
		problem(w, http.StatusBadRequest, "invalid_message", wrong.Message)
	case errors.Is(err, ErrNotConnected):
		problem(w, http.StatusConflict, "not_connected", "The session has no connection to the simulator.")
	case errors.Is(err, ErrTooManyFaults):
		retryAfter(w, time.Second)
		problem(w, http.StatusTooManyRequests, "limit", "Too many faults are waiting for that connection.")
	default:
		s.opts.Logger.Error("causing a fault failed", "error", err)
		problem(w, http.StatusInternalServerError, "internal", "Internal error.")
	}
}
