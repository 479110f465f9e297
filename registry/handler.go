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
	"voicegw/registry/spec"
)

// Call is a handler's input. A is generated from the tool's schema. N is a struct whose exported fields are the
// needed capabilities; it may be empty. Load rejects tools with needs that nothing provides.
type Call[A, N any] struct {
	Args    A
	Clamped map[string]Clamped
	// Invalid are invalid list items that were dropped; the answer's meta reports them. See [Prepared.Invalid].
	Invalid []document.Problem
	Needs   N
	Session Session
	Tool    string
	// IdempotencyKey identifies an operation that must run only once; empty if neither the spec nor the caller has
	// one.
	IdempotencyKey string
}

// Session describes a session to a handler; it is a copy.
type Session struct {
	ID             string
	UserID         string
	ConversationID string
	Agent          string
	// Vouched means that a trusted caller named the user. Otherwise UserID is the client's own claim.
	Vouched bool
	// Scopes are the trusted caller's grants. They are shared and must not be changed.
	Scopes []string
	Mode   spec.Mode
	// Turn counts from 1.
	Turn int
	// Call is the gateway's name of the call, unique in the conversation; may be empty.
	Call string
	// Now is the time of the call, UTC.
	Now time.Time
	// TimeZone is the user's IANA time zone, or empty. Tools use it for times without an offset.
	TimeZone     string
	ToolsVersion string
	// Phase is a voice session's phase at the start of the call: "active", "ending" (a tool ends it after the
	// farewell) or "ended"; empty in text mode.
	Phase      string
	Suppressed Suppressed
}

// Suppressed is the output that SUPPRESS_AUDIO and SUPPRESS_TRANSCRIPT have disabled.
type Suppressed struct{ Audio, Transcript bool }

// Result is a handler's answer.
type Result struct {
	// Data is encoded with encoding/json, in at most MaxDataBytes.
	Data any
	// Intents are applied in order after the call has succeeded.
	Intents []Intent
	// Job starts a background job, for tools that declare one; Data must then be nil.
	Job *NewJob
}

// Handler is a tool's function without type parameters, made by [Bind]. The zero Handler is invalid.
type Handler struct {
	args  reflect.Type
	needs reflect.Type
	check func(args json.RawMessage) error
	// vet checks a call before execution; nil without a check.
	vet func(ctx context.Context, in invocation) (Result, error)
	run func(ctx context.Context, in invocation) (Result, error)
	// work runs a background job, readable checks whether it can decode a payload, and workNeeds is the type of its
	// needs; all nil without jobs.
	work      func(ctx context.Context, in invocation, job string, attempt int) (Result, error)
	readable  func(payload json.RawMessage) error
	workNeeds reflect.Type
}

type invocation struct {
	args    json.RawMessage
	needs   []reflect.Value // one for each field of N, in order; a zero Value leaves the field unset
	session Session
	tool    string
	key     string
	clamped map[string]Clamped
	invalid []document.Problem
}

// Bind makes a [Handler] from a tool's Execute function. N must be a struct with exported fields, which are matched
// by type (see [Options]). encoding/json must decode into A everything that the tool's schema accepts; [Load] checks
// its properties.
//
// checks are the tool's Check functions: they reject valid arguments with an error like execute's, and change
// nothing. They run before a person is asked for approval, see [Prepared.Check], and again before execute.
func Bind[A, N any](execute func(context.Context, Call[A, N]) (Result, error), checks ...func(context.Context, Call[A, N]) error) Handler {
	h := Handler{
		args:  reflect.TypeFor[A](),
		needs: reflect.TypeFor[N](),
		check: func(args json.RawMessage) error { return json.Unmarshal(args, new(A)) },
	}
	if execute == nil {
		return h
	}
	callOf := func(in invocation) (Call[A, N], error) {
		call := Call[A, N]{Session: in.session, Tool: in.tool, IdempotencyKey: in.key, Clamped: in.clamped, Invalid: in.invalid}
		if err := json.Unmarshal(in.args, &call.Args); err != nil {
			return call, err // Prepare has already decoded it, so this is a bug
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

type passed struct{}

// fits reports schema properties that the handler's arguments lack, because they would be silently dropped.
func (h Handler) fits(root *document.Node) []document.Problem {
	f := fitter{seen: map[fitted]bool{}}
	f.walk(root, h.args, document.Pointer{"parameters"})
	return document.SortProblems(f.problems)
}

type fitter struct {
	problems []document.Problem
	seen     map[fitted]bool
}

type fitted struct {
	n *document.Node
	t reflect.Type
}

var (
	unmarshaler = reflect.TypeFor[json.Unmarshaler]()
	textual     = reflect.TypeFor[encoding.TextUnmarshaler]()
)

func (f *fitter) walk(n *document.Node, t reflect.Type, place document.Pointer) {
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
					Message: fmt.Sprintf("The handler's arguments (%s) have no field for %q: they were generated from another "+
						"schema.json. Run `voicegw tools build` and build the program again.", t, name)})
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
