package registry

import (
	"errors"
	"fmt"
	"strings"
)

// ErrorType classes a tool's failure for the model and the audit.
type ErrorType string

// The error types. Of the registry:
const (
	ErrorValidation ErrorType = "VALIDATION"
	ErrorNotFound   ErrorType = "NOT_FOUND"
	ErrorInternal   ErrorType = "INTERNAL"
)

// Of the orchestrator's policy (the registry itself answers MODE_RESTRICTED):
const (
	ErrorModeRestricted       ErrorType = "MODE_RESTRICTED"
	ErrorBudgetExceeded       ErrorType = "BUDGET_EXCEEDED"
	ErrorConfirmationRequired ErrorType = "CONFIRMATION_REQUIRED"
)

// Of handlers:
const (
	ErrorSessionInactive ErrorType = "SESSION_INACTIVE"
	ErrorSessionActive   ErrorType = "SESSION_ACTIVE"
	ErrorTransient       ErrorType = "TRANSIENT"
	ErrorPermanent       ErrorType = "PERMANENT"
	ErrorConflict        ErrorType = "CONFLICT"
	ErrorAuth            ErrorType = "AUTH"
	ErrorRateLimit       ErrorType = "RATE_LIMIT"
)

// ErrorTypes lists every error type.
func ErrorTypes() []ErrorType {
	return []ErrorType{
		ErrorValidation, ErrorNotFound, ErrorInternal,
		ErrorModeRestricted, ErrorBudgetExceeded, ErrorConfirmationRequired,
		ErrorSessionInactive, ErrorSessionActive, ErrorTransient, ErrorPermanent, ErrorConflict, ErrorAuth, ErrorRateLimit,
	}
}

// ToolError is what a handler returns to name its error. Any other error is told to
// the model as INTERNAL, without its text, and logged in full; one that is a deadline
// (of a context, a connection or an HTTP client) as TRANSIENT.
type ToolError struct {
	// Type is one of [ErrorTypes]; any other becomes INTERNAL.
	Type ErrorType
	// Message is for the model: what went wrong, in words it may say. It holds no secret.
	Message string
	// Retryable says that the same call may succeed later.
	Retryable bool
	// PartialSideEffects says that something may have been changed all the same.
	PartialSideEffects bool
	// Repeatable says, with PartialSideEffects, that the same call may run again: the
	// handler names the deed to the system that it writes to, so a second run finds what
	// the first has done, and does it once. Without it the ledger answers CONFLICT.
	Repeatable bool
	// Details goes to the model as JSON; nil for none.
	Details any
	// Suggestion tells the model what to do instead; empty for none.
	Suggestion string
	// Err is the cause, for the log alone; may be nil.
	Err error
}

// Error is the type, the message and the cause.
func (e *ToolError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("%s: %s: %v", e.Type, e.Message, e.Err)
	}
	return fmt.Sprintf("%s: %s", e.Type, e.Message)
}

// Unwrap is the cause; nil of a nil *ToolError.
func (e *ToolError) Unwrap() error {
	if e == nil {
		return nil
	}
	return e.Err
}

// Errorf makes a [ToolError]. Its message is the formatted text; a %w among it becomes Err,
// and the text of that error is part of the message, so wrap only what a model may
// read. TRANSIENT and RATE_LIMIT are retryable; set the other fields on the result.
func Errorf(t ErrorType, format string, args ...any) *ToolError {
	err := fmt.Errorf(format, args...)
	return &ToolError{
		Type: t, Message: err.Error(), Err: errors.Unwrap(err),
		Retryable: t == ErrorTransient || t == ErrorRateLimit,
	}
}

var (
	// ErrLocked is what [Registry.Reload] returns after [Registry.Lock].
	ErrLocked = errors.New("registry: locked: restart to load another tool_registry.json, or run with --dev")
	// ErrEmpty is what [Load] returns for an empty file.
	ErrEmpty             = errors.New("registry: there is no tool_registry.json: run `voicegw tools build` (or `make tools`)")
	errMissingCapability = errors.New("registry: a capability was not handed to Run")
	errNothingOpened     = errors.New("a schema refers to nothing outside itself")

	// ErrVersion is what [Registry.CheckVersion] returns, and what a [LoadError] is if
	// the file's version is not that of its content.
	ErrVersion = errors.New("registry: the version does not fit")
)

// LoadError is everything that keeps a registry from being loaded.
type LoadError struct {
	// Problems is never empty; paths are pointers into tool_registry.json.
	Problems []Problem
	version  bool
}

// Error lists all problems, one a line.
func (e *LoadError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "registry: tool_registry.json cannot be used (%d problems):", len(e.Problems))
	for _, p := range e.Problems {
		b.WriteString("\n  " + p.String())
	}
	return b.String()
}

// Is says whether the version is among the problems.
func (e *LoadError) Is(target error) bool { return target == ErrVersion && e.version }

// What ends a call, for the log alone.
var (
	errDeadline  = errors.New("the tool's time is up")
	errPanic     = errors.New("the handler panicked")
	errGoexit    = errors.New("the handler ended its goroutine")
	errBadResult = errors.New("the handler's result cannot be used")
	errStuck     = errors.New("too many handlers of this tool were left behind and still run")
	errNotBegun  = errors.New("cancelled before it began")
)
