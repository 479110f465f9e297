package gateway

import (
	"errors"
	"net/http"
	"time"
)

// Simulator stands in for providers in this process, and can be told by hand to fail. Its
// methods may be used concurrently.
type Simulator interface {
	// Simulates says whether it stands in for a provider.
	Simulates(provider string) bool
	// Faults lists the possible faults.
	Faults() []Fault
	// Commit causes a fault on the connection whose other end has that address, as host:port.
	// The error wraps ErrNotConnected or ErrTooManyFaults, or is a *FaultError.
	Commit(addr string, o FaultOrder) (FaultMoment, error)
}

// Fault is a fault that can be caused by hand.
type Fault struct {
	Do string
	// Label describes to a person what it does.
	Label string
	// For is its default duration; zero if it has no duration.
	For  time.Duration
	When FaultMoment
}

// FaultOrder asks for a Fault.
type FaultOrder struct {
	Do string
	// For is nil for the fault's own duration. Code is 0 for the provider's own.
	For  *time.Duration
	Code int
}

// FaultMoment is when a fault happens.
type FaultMoment string

// The moments.
const (
	FaultNow        FaultMoment = "now"
	FaultAtNextCall FaultMoment = "next_call" // a tool call on that connection
)

// ErrNotConnected is wrapped if no connection has the address, and ErrTooManyFaults if too many
// faults wait for one connection.
var (
	ErrNotConnected  = errors.New("gateway: the simulator has no such connection")
	ErrTooManyFaults = errors.New("gateway: too many faults wait for that connection")
)

// FaultError says what is wrong with a FaultOrder, in words for its author.
type FaultError struct {
	// Field is do, for_ms or code.
	Field   string
	Message string
}

// Error returns the message.
func (e *FaultError) Error() string { return e.Message }

// faultLine is a fault in the answer of GET /v1/simulator.
type faultLine struct {
	Do    string `json:"do"`
	Label string `json:"label"`
	// For says whether for_ms has a meaning; ForMS is its default.
	For   bool        `json:"for"`
	ForMS int64       `json:"for_ms,omitempty"`
	When  FaultMoment `json:"when"`
}

// listFaults lists the faults that can be caused by hand.
func (s *Server) listFaults(w http.ResponseWriter, _ *http.Request) {
	lines := []faultLine{}
	for _, f := range s.opts.Simulator.Faults() {
		lines = append(lines, faultLine{f.Do, f.Label, f.For > 0, f.For.Milliseconds(), f.When})
	}
	answer(w, http.StatusOK, map[string]any{"faults": lines})
}

// faultBody is what POST /v1/simulator/faults takes.
type faultBody struct {
	SessionID string `json:"session_id"`
	Do        string `json:"do"`
	ForMS     *int64 `json:"for_ms"`
	Code      int    `json:"code"`
}

// maxFaultMS bounds the duration of a fault: a day.
const maxFaultMS = 24 * 60 * 60 * 1000

// commitFault causes a fault on a session's connection to its model.
func (s *Server) commitFault(w http.ResponseWriter, r *http.Request) {
	var body faultBody
	if !s.readBody(w, r, &body, true, plainError) {
		return
	}
	order := FaultOrder{Do: body.Do, Code: body.Code}
	switch {
	case body.SessionID == "":
		problem(w, http.StatusBadRequest, "invalid_message", "session_id is missing: GET /v1/sessions lists the sessions that run.")
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
		problem(w, http.StatusNotFound, "session_unknown", "No session of that id runs on this gateway; GET /v1/sessions lists those that do.")
		return
	}
	when, err := s.opts.Simulator.Commit(running.ModelAddr, order)
	if err != nil {
		s.faultRefused(w, err)
		return
	}
	s.opts.Logger.Info("a fault was asked for", "session_id", body.SessionID, "do", clip(body.Do), "when", string(when), "addr", s.clientAddr(r).String())
	answer(w, http.StatusAccepted, map[string]any{"accepted": true, "when": when})
}

// faultRefused answers when no fault was caused.
func (s *Server) faultRefused(w http.ResponseWriter, err error) {
	var wrong *FaultError
	switch {
	case errors.As(err, &wrong):
		problem(w, http.StatusBadRequest, "invalid_message", wrong.Message)
	case errors.Is(err, ErrNotConnected):
		problem(w, http.StatusConflict, "not_connected", "The session has no connection to the simulator: it is over, or just ending.")
	case errors.Is(err, ErrTooManyFaults):
		retryAfter(w, time.Second)
		problem(w, http.StatusTooManyRequests, "limit", "Too many faults wait for that connection already.")
	default:
		s.opts.Logger.Error("a fault could not be committed", "error", err)
		problem(w, http.StatusInternalServerError, "internal", "Something went wrong in the gateway.")
	}
}
