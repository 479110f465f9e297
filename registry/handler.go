package registry

import (
	"context"
	"encoding/json"
	"reflect"
	"time"
)

// Call is what a handler is given. A is generated from the tool's schema, N is a
// struct whose exported fields are the capabilities the handler needs, empty for
// none: Load refuses a tool with a need that nobody provides.
type Call[A, N any] struct {
	// Args are the arguments: decoded strictly, defaults applied, valid, clamped.
	Args A
	// Needs are the capabilities.
	Needs N
	// Session is a snapshot of the session at the time of the call.
	Session Session
	// Tool is the tool's id.
	Tool string
	// IdempotencyKey is the key under which this deed is done once; empty if neither
	// the spec nor the caller has one.
	IdempotencyKey string
}

// Session is what a handler may know of the session; a copy, changing it changes nothing.
type Session struct {
	ID             string
	UserID         string
	ConversationID string
	Agent          string
	Mode           Mode
	// Turn counts from 1.
	Turn int
	// Now is the time of the call, UTC.
	Now time.Time
}

// Result is what a handler answers with.
type Result struct {
	// Data is the answer; encoded with encoding/json, at most Options.MaxDataBytes.
	Data any
	// Intents are applied in order after the call has succeeded.
	Intents []Intent
}

// Handler is a tool's function with its types taken away, made by [Bind]. The zero
// Handler is none.
type Handler struct {
	args  reflect.Type
	needs reflect.Type
	check func(args json.RawMessage) error
	run   func(ctx context.Context, in invocation) (Result, error)
}

// invocation is one call on its way to a handler.
type invocation struct {
	args    json.RawMessage
	needs   []reflect.Value // one for each field of N, in order
	session Session
	tool    string
	key     string
}

// Bind makes a [Handler] of a tool's Execute function. N must be a struct; its
// exported fields are matched by type (see [Options]), others stay zero.
func Bind[A, N any](execute func(context.Context, Call[A, N]) (Result, error)) Handler {
	return Handler{
		args:  reflect.TypeFor[A](),
		needs: reflect.TypeFor[N](),
	}
}
