package registry

import (
	"cmp"
	"context"
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"voicegw/registry/document"
	"voicegw/registry/schema"
	"voicegw/registry/spec"
)

// Call is the input of a handler. A is generated from the tool's schema. N is a struct whose
// exported fields are the capabilities the handler needs; it may be empty. Load refuses a
// tool with a need that nothing provides.
type Call[A, N any] struct {
	// Args are the arguments: decoded strictly, defaults applied, valid, clamped.
	Args A
	// Clamped are the arguments that were lowered before the handler got them, by name; empty
	// if no argument was.
	Clamped map[string]Clamped
	// Invalid are the list items that were left out because they are invalid: the handler
	// gets the others. They are reported in the answer's meta. See [Prepared.Invalid].
	Invalid []document.Problem
	// Needs are the capabilities.
	Needs N
	// Session is a snapshot of the session at the time of the call.
	Session Session
	// Tool is the tool's id.
	Tool string
	// IdempotencyKey is the key under which this operation is done only once; empty if neither
	// the spec nor the caller has one.
	IdempotencyKey string
}

// Session is what a handler may know of the session; it is a copy, so changes have no effect.
type Session struct {
	ID             string
	UserID         string
	ConversationID string
	Agent          string
	// Vouched says that a trusted caller named the user, one that presented the operators'
	// key. Otherwise UserID is only the client's own claim.
	Vouched bool
	// Scopes are what such a caller has granted the conversation. They are shared and must
	// not be changed.
	Scopes []string
	Mode   spec.Mode
	// Turn counts from 1.
	Turn int
	// Call is the gateway's name of the call, unique in the conversation; empty if it has none.
	Call string
	// Now is the time of the call, UTC.
	Now time.Time
	// TimeZone is the IANA name of the user's time zone; empty if it is not known. A tool takes times
	// without an offset as that zone's.
	TimeZone string
	// ToolsVersion is the version of the registry with which the call was prepared.
	ToolsVersion string
	// Phase is the stage of a voice session when the call began: "active", "ending" (a tool is
	// ending it, and the user has still to hear the farewell) or "ended". It is empty in text mode.
	Phase string
	// Suppressed is what tools had switched off in a voice session by then.
	Suppressed Suppressed
}

// Suppressed is what the intents SUPPRESS_AUDIO and SUPPRESS_TRANSCRIPT have switched off.
type Suppressed struct{ Audio, Transcript bool }

// Result is a handler's answer.
type Result struct {
	// Data is the answer; encoding/json encodes it, in at most MaxDataBytes.
	Data any
	// Intents are applied in order after the call has succeeded.
	Intents []Intent
	// Job begins long work, of a tool that declares it; Data must be nil then. Nil begins none.
	Job *NewJob
}

// Handler is a tool's function without its type parameters, made by [Bind]. The zero
// Handler is invalid.
type Handler struct {
	args  reflect.Type
	needs reflect.Type
	check func(args json.RawMessage) error
	// vet says what is wrong with a call before anything is done; nil if the tool has
	// no check.
	vet func(ctx context.Context, in invocation) (Result, error)
	run func(ctx context.Context, in invocation) (Result, error)
	// work does what a call has begun, readable says whether it can read a payload, and workNeeds is the type
	// of its needs; nil without long work.
	work      func(ctx context.Context, in invocation, job string, attempt int) (Result, error)
	readable  func(payload json.RawMessage) error
	workNeeds reflect.Type
}

// invocation is one call on its way to a handler.
type invocation struct {
	args    json.RawMessage
	needs   []reflect.Value // one for each field of N, in order; a zero Value leaves the field unset
	session Session
	tool    string
	key     string
	clamped map[string]Clamped
	invalid []document.Problem
}

// Bind makes a [Handler] of a tool's Execute function. N must be a struct; its
// fields are exported and matched by type (see [Options]). By encoding/json, A must accept
// everything that the tool's schema accepts: [Load] checks that it has the schema's
// properties.
//
// The checks are the tool's Check functions: they say what is wrong with valid arguments,
// as an error like those of execute, and change nothing. They run before a person is
// asked to approve the call, see [Prepared.Check], and again before execute.
func Bind[A, N any](execute func(context.Context, Call[A, N]) (Result, error), checks ...func(context.Context, Call[A, N]) error) Handler {
	h := Handler{
		args:  reflect.TypeFor[A](),
		needs: reflect.TypeFor[N](),
		check: func(args json.RawMessage) error { return json.Unmarshal(args, new(A)) },
	}
	if execute == nil {
		return h
	}
	// callOf restores the types of a call.
	callOf := func(in invocation) (Call[A, N], error) {
		call := Call[A, N]{Session: in.session, Tool: in.tool, IdempotencyKey: in.key, Clamped: in.clamped, Invalid: in.invalid}
		if err := json.Unmarshal(in.args, &call.Args); err != nil {
			return call, err // Prepare has decoded it before, so this is a bug in the gateway
		}
		setNeeds(&call.Needs, in.needs)
		return call, nil
	}
	h.run = func(ctx context.Context, in invocation) (Result, error) {
		call, err := callOf(in)
		if err != nil {
			return Result{}, err
		}
		return execute(ctx, call)
	}
	if len(checks) == 0 {
		return h
	}
	h.vet = func(ctx context.Context, in invocation) (Result, error) {
		call, err := callOf(in)
		for i := 0; err == nil && i < len(checks); i++ {
			err = checks[i](ctx, call)
		}
		return Result{Data: passed{}}, err
	}
	return h
}

// passed is the data of a check that has found nothing wrong: it is no answer, and no output describes it.
type passed struct{}

// fits reports the properties of the schema that the handler's arguments lack: they would
// be dropped silently.
func (h Handler) fits(root *schema.Node) []document.Problem {
	f := fitter{seen: map[fitted]bool{}}
	f.walk(root, h.args, document.Pointer{"parameters"})
	return document.SortProblems(f.problems)
}

type fitter struct {
	problems []document.Problem
	seen     map[fitted]bool
}

type fitted struct {
	n *schema.Node
	t reflect.Type
}

var (
	unmarshaler = reflect.TypeFor[json.Unmarshaler]()
	textual     = reflect.TypeFor[encoding.TextUnmarshaler]()
)

func (f *fitter) walk(n *schema.Node, t reflect.Type, place document.Pointer) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if f.seen[fitted{n, t}] || reflect.PointerTo(t).Implements(unmarshaler) || reflect.PointerTo(t).Implements(textual) {
		return
	}
	f.seen[fitted{n, t}] = true
	switch t.Kind() {
	case reflect.Struct:
		fields := jsonFields(t)
		for _, name := range n.Names {
			field, ok := fields[name]
			if !ok {
				f.problems = append(f.problems, document.Problem{Path: place.With("properties", name).String(),
					Message: fmt.Sprintf("The handler's arguments (%s) have no field for %q: they were generated from another schema.json. Run `voicegw tools build` and build the program again.", t, name)})
				continue
			}
			f.walk(n.Props[name], field, place.With("properties", name))
		}
	case reflect.Slice, reflect.Array:
		if n.Items != nil {
			f.walk(n.Items, t.Elem(), place.With("items"))
		}
	}
	for _, part := range slices.Concat(n.AllOf, n.AnyOf, n.OneOf) {
		f.walk(part, t, place)
	}
	if n.Ref != nil {
		f.walk(n.Ref, t, place)
	}
}

// jsonFields returns the fields that encoding/json fills, by name.
func jsonFields(t reflect.Type) map[string]reflect.Type {
	fields := map[string]reflect.Type{}
	for _, field := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if !field.IsExported() || name == "-" || (field.Anonymous && name == "") {
			continue
		}
		name = cmp.Or(name, field.Name)
		fields[name] = field.Type
	}
	return fields
}
