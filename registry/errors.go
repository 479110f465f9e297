package registry

import (
	"errors"
	"fmt"
	"strings"

	"voicegw/prompts"
	"voicegw/registry/document"
	"voicegw/registry/spec"
)

// ErrorType classifies a tool's failure for the model and the audit.
type ErrorType string

// Error types of the registry.
const (
	ErrorValidation ErrorType = "VALIDATION"
	ErrorNotFound   ErrorType = "NOT_FOUND"
	ErrorInternal   ErrorType = "INTERNAL"
)

// Error types of the orchestrator's policy. The registry itself also returns MODE_RESTRICTED.
const (
	ErrorModeRestricted       ErrorType = "MODE_RESTRICTED"
	ErrorBudgetExceeded       ErrorType = "BUDGET_EXCEEDED"
	ErrorConfirmationRequired ErrorType = "CONFIRMATION_REQUIRED"
	// ErrorUnavailable: the tool is unavailable at the time of the call.
	ErrorUnavailable ErrorType = "UNAVAILABLE"
)

// Error types of handlers.
const (
	ErrorSessionInactive ErrorType = "SESSION_INACTIVE"
	ErrorSessionActive   ErrorType = "SESSION_ACTIVE"
	ErrorTransient       ErrorType = "TRANSIENT"
	ErrorPermanent       ErrorType = "PERMANENT"
	ErrorConflict        ErrorType = "CONFLICT"
	ErrorAuth            ErrorType = "AUTH"
	ErrorRateLimit       ErrorType = "RATE_LIMIT"
)

// ErrorTypes lists all error types.
func ErrorTypes() []ErrorType {
	return []ErrorType{
		ErrorValidation, ErrorNotFound, ErrorInternal,
		ErrorModeRestricted, ErrorBudgetExceeded, ErrorConfirmationRequired, ErrorUnavailable,
		ErrorSessionInactive, ErrorSessionActive, ErrorTransient, ErrorPermanent, ErrorConflict, ErrorAuth, ErrorRateLimit,
	}
}

// statusTypes are the error types for the status of a service's answer. See docs/http-tools.md.
var statusTypes = map[int]ErrorType{
	400: ErrorValidation, 422: ErrorValidation,
	401: ErrorAuth, 403: ErrorAuth, 407: ErrorAuth,
	404: ErrorNotFound, 410: ErrorNotFound,
	409: ErrorConflict, 412: ErrorConflict, 423: ErrorConflict,
	408: ErrorTransient, 425: ErrorTransient,
	429: ErrorRateLimit,
	501: ErrorPermanent, 505: ErrorPermanent,
}

// OfStatus is the error of an answer with an HTTP status that is not a success. said, the service's words, reach the model.
func OfStatus(s *spec.Spec, status int, said string, cause error) *ToolError {
	kind, known := statusTypes[status]
	switch {
	case known:
	case status >= 500:
		kind = ErrorTransient
	default:
		kind = ErrorPermanent
	}
	return Answered(s, kind, status == 408 || status >= 500, cause, prompts.ServiceStatus(s.ToolID, status, said))
}

// Answered is the error of a call that another program has refused, or answered unusably. changed means that it may have
// changed something, if the tool writes.
func Answered(s *spec.Spec, kind ErrorType, changed bool, cause error, message string) *ToolError {
	e := &ToolError{Type: kind, Message: message, Err: cause, PartialSideEffects: changed && s.Writes()}
	e.Repeatable = e.PartialSideEffects && s.MayRepeat()
	e.Retryable = kind == ErrorRateLimit || kind == ErrorTransient && s.MayRepeat()
	return e
}

// Lost is the error of a call that another program has not answered. sent means that it may have got the call.
func Lost(s *spec.Spec, sent bool, cause error, message string) *ToolError {
	e := Answered(s, ErrorTransient, sent, cause, message)
	e.Retryable = e.Retryable || !sent
	return e
}

// ToolError is a handler's error for the model. The model gets other errors as INTERNAL without text; they are
// logged. Deadline errors (of a context, connection or HTTP client) become TRANSIENT.
type ToolError struct {
	// Type is one of [ErrorTypes]; any other becomes INTERNAL.
	Type ErrorType
	// Message explains the failure to the model, which may repeat it. It must not contain a secret.
	Message string
	// Retryable means that the same call may succeed later.
	Retryable bool
	// PartialSideEffects means that something may have changed despite the error.
	PartialSideEffects bool
	// Repeatable means, with PartialSideEffects, that the same call may run again, because the handler identifies the
	// operation to the system it writes to, and a second run finds the first one's result. Otherwise the ledger
	// answers CONFLICT.
	Repeatable bool
	// Details goes to the model as JSON; may be nil.
	Details any
	// Suggestion is an alternative for the model; may be empty.
	Suggestion string
	// Err is the cause, only for the log; may be nil.
	Err error
}

// Error returns the type, the message and the cause.
func (e *ToolError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("%s: %s: %v", e.Type, e.Message, e.Err)
	}
	return fmt.Sprintf("%s: %s", e.Type, e.Message)
}

// Unwrap returns the cause; nil for a nil *ToolError.
func (e *ToolError) Unwrap() error {
	if e == nil {
		return nil
	}
	return e.Err
}

// Errorf makes a [ToolError] with the formatted message. The error of a %w becomes Err, and its text is part of the
// message, so wrap only errors that a model may read. TRANSIENT and RATE_LIMIT are retryable; set the other fields on
// the result.
func Errorf(t ErrorType, format string, args ...any) *ToolError {
	err := fmt.Errorf(format, args...)
	return &ToolError{
		Type: t, Message: err.Error(), Err: errors.Unwrap(err),
		Retryable: t == ErrorTransient || t == ErrorRateLimit,
	}
}

// Invalid makes a [ToolError] for arguments that match the schema but are invalid. Its details list the problems.
func Invalid(problems []document.Problem, format string, args ...any) *ToolError {
	return &ToolError{Type: ErrorValidation, Message: fmt.Sprintf(format, args...), Details: map[string]any{"errors": problems}}
}

var (
	// ErrLocked is returned by [Registry.Reload] after [Registry.Lock].
	ErrLocked = errors.New("registry: locked: restart to load another tool_registry.json, or run with --dev")
	// ErrEmpty is returned by [Load] for an empty file.
	ErrEmpty             = errors.New("registry: there is no tool_registry.json: run `voicegw tools build` (or `make tools`)")
	errMissingCapability = errors.New("registry: a capability was not given to Run")
)

// LoadError lists all problems that prevent a registry from loading.
type LoadError struct {
	// Problems is never empty; paths point into tool_registry.json.
	Problems []document.Problem
}

// Error lists all problems, one per line.
func (e *LoadError) Error() string {
	var b strings.Builder
	b.WriteString("registry: tool_registry.json cannot be used:")
	for _, p := range e.Problems {
		b.WriteString("\n  " + p.String())
	}
	return b.String()
}

// Causes of a call's failure, only for the log.
var (
	errDeadline  = errors.New("the tool's time is up")
	errPanic     = errors.New("the handler panicked")
	errGoexit    = errors.New("the handler ended its goroutine")
	errBadResult = errors.New("the handler's result cannot be used")
	errStuck     = errors.New("too many handlers of this tool are still running after their calls ended")
	errNotBegun  = errors.New("cancelled before it began")
)
