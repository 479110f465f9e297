package registry

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"voicegw/prompts"
	"voicegw/registry/adapter"
	"voicegw/registry/document"
	"voicegw/registry/schema"
	"voicegw/registry/spec"
)

// Declared is a tool that the conversation's client declares and runs.
type Declared struct {
	// Name is for models: at most [spec.MaxToolID] letters, digits, underscores and hyphens, starting with a letter
	// or an underscore. It must differ from the gateway's tools.
	Name string
	// Description is for models, at most [spec.MaxDescription] characters.
	Description string
	// Parameters is the JSON Schema of the arguments, with the rules for the gateway's tools. Empty means no
	// arguments.
	Parameters json.RawMessage
	// ReadOnly means that calls have no side effects. Other calls are recorded in the ledger.
	ReadOnly bool
	// TimeoutMS limits a call, in ms. Zero means [spec.DefaultTimeoutMS].
	TimeoutMS int
	// AnySchema fits Parameters that break the rules, and lets the client alone check the arguments; see [Fit].
	AnySchema bool
}

const (
	// ClientTool is the name of all clients' tools in Stats, because their names are unbounded.
	ClientTool = "(client)"
	// MaxClientTimeoutMS limits a declared timeout, in ms.
	MaxClientTimeoutMS = 60_000
	// MaxClientData limits the answer of a client's tool, in bytes of JSON.
	MaxClientData = 16 << 10

	clientVersion   = "0.0.0" // clients' tools have no version
	clientLatencyMS = 1500
)

// ClientTools is the conversation's client, which runs its declared tools. It must be safe for concurrent use.
type ClientTools interface {
	// RunTool lets the client run a call and returns its answer, at most MaxClientData long. The error is ctx's, or a
	// *ToolError if the client reports a failure.
	RunTool(ctx context.Context, call ClientCall) (json.RawMessage, error)
}

// ClientCall is a call for the client to run.
type ClientCall struct {
	ID   string
	Turn int
	Tool string
	Args json.RawMessage
}

type clientNeeds struct{ Client ClientTools }

// byClient runs a tool whose arguments f turns into the client's; nil for unchanged ones.
func byClient(f *Fitted) Handler {
	return Bind(func(ctx context.Context, call Call[json.RawMessage, clientNeeds]) (Result, error) {
		args := call.Args
		if f != nil && len(f.texts) > 0 {
			own, problems := f.Decode(args)
			if len(problems) > 0 {
				return Result{}, Invalid(problems, "%s", prompts.InvalidArguments(call.Tool, problems[0].String()).Message)
			}
			args = document.AppendCanonical(nil, own)
		}
		data, err := call.Needs.Client.RunTool(ctx, ClientCall{ID: call.Session.Call, Turn: call.Session.Turn, Tool: call.Tool,
			Args: args})
		return Result{Data: data}, err
	})
}

var clientName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*$`)

// Declare makes a voice tool from a client's declaration. Paths of problems start with name, description, schema or
// timeout_ms.
func Declare(d Declared) (*Tool, []document.Problem) {
	var problems []document.Problem
	var fitted *Fitted
	if d.AnySchema {
		var err error
		if fitted, err = d.fit(); err != nil {
			return nil, []document.Problem{{Path: "/schema", Message: err.Error()}}
		}
	}
	wrong := func(field, format string, args ...any) {
		problems = append(problems, document.Problem{Path: document.Pointer{field}.String(), Message: fmt.Sprintf(format, args...)})
	}
	switch why := spec.Reserved(d.Name); {
	case len(d.Name) > spec.MaxToolID || !clientName.MatchString(d.Name):
		wrong("name", "%q is no name of a tool: write letters, digits, underscores and hyphens, a letter first, at most %d.",
			document.Shorten(d.Name, 80), spec.MaxToolID)
	case why != "":
		wrong("name", "%q %s; choose another name.", d.Name, why)
	}
	switch n := utf8.RuneCountInString(d.Description); {
	case strings.TrimSpace(d.Description) == "" || document.Wordless(d.Description):
		wrong("description", "The description is empty; write a sentence that tells a model when to call the tool.")
	case n > spec.MaxDescription:
		wrong("description", "The description has %d characters; at most %d are accepted.", n, spec.MaxDescription)
	}
	problems = append(problems, document.Legible(d.Description, document.Pointer{"description"})...)
	if d.TimeoutMS < 0 || d.TimeoutMS > MaxClientTimeoutMS {
		wrong("timeout_ms", "It must be 1 to %d, not %d.", MaxClientTimeoutMS, d.TimeoutMS)
	}
	text := d.Parameters
	if empty := strings.TrimSpace(string(text)); empty == "" || empty == "null" {
		text = json.RawMessage(spec.NoParameters)
	}
	params, found := schema.CompileParameters(text)
	if params != nil {
		found = append(found, document.Legible(params.Doc, nil)...)
	}
	problems = append(problems, document.Under(document.Pointer{"schema"}, found)...)
	if len(problems) > 0 {
		return nil, problems
	}
	forms, err := FormsOf(text)
	if refused, ok := errors.AsType[adapter.Problems](err); ok {
		for _, p := range refused {
			problems = append(problems, document.Problem{Path: "/schema" + p.Path, Message: p.Message})
		}
		return nil, problems
	}
	t := &Tool{
		Entry: Entry{
			Spec: spec.Spec{
				ToolID: d.Name, Version: clientVersion, Description: d.Description, Category: spec.CategoryAction,
				SideEffects:  spec.SideEffectsWrites,
				AllowedModes: []spec.Mode{spec.ModeVoice}, TimeoutMS: cmp.Or(d.TimeoutMS, spec.DefaultTimeoutMS),
				Cancellable: true, Parameters: text,
			},
			Summary: d.Description, Guide: d.Description, Forms: forms,
		},
		compiled: &spec.Compiled{Parameters: params},
		handler:  byClient(fitted),
		sources:  map[spec.Mode][]source{spec.ModeVoice: {{perCall: reflect.TypeFor[ClientTools]()}}},
		client:   true,
	}
	t.LatencyBudgetMS = min(clientLatencyMS, t.TimeoutMS)
	if d.ReadOnly {
		t.SideEffects, t.Category, t.Idempotent = spec.SideEffectsNone, spec.CategoryUtility, true
	}
	return t, nil
}

// fit makes the declaration one that the registry accepts. The client's schema checks nothing here.
func (d *Declared) fit() (*Fitted, error) {
	d.Description = cmp.Or(document.Shorten(document.CleanText(d.Description), spec.MaxDescription-1), d.Name)
	text := d.Parameters
	if empty := strings.TrimSpace(string(text)); empty == "" || empty == "null" || empty == "{}" {
		text = json.RawMessage(spec.NoParameters)
	}
	f, parameters, _, err := Fit(text)
	if err != nil {
		return nil, err
	}
	d.Parameters, f.schema = parameters, nil
	return f, nil
}

// ByClient reports whether the conversation's client runs the tool.
func (t *Tool) ByClient() bool { return t.client }

func (t *Tool) counted() string {
	if t.client {
		return ClientTool
	}
	return cmp.Or(t.variant, t.ToolID)
}

// With returns a snapshot of the same version that also has these tools, made by [Declare]. The error is a *SameName
// for the first tool with a name equal or similar to another tool's. s may be nil.
func (s *Snapshot) With(tools []*Tool) (*Snapshot, error) {
	if s == nil {
		s = noTools()
	}
	all := slices.Clone(s.sorted)
	for _, t := range tools {
		if i := slices.IndexFunc(all, func(other *Tool) bool { return spec.Folded(other.ToolID) == spec.Folded(t.ToolID) }); i >= 0 {
			return nil, &SameName{Name: t.ToolID, Other: all[i].ToolID}
		}
		all = append(all, t)
	}
	return s.holding(all), nil
}

func noTools() *Snapshot {
	r := &Registry{}
	r.opts.complete()
	return &Snapshot{opts: &r.opts, stats: newStats(), switches: &r.switches, tools: map[string]*Tool{}}
}

// SameName means that two tools have equal names, or names that models would confuse.
type SameName struct{ Name, Other string }

// Error names both tools.
func (e *SameName) Error() string {
	if e.Name == e.Other {
		return fmt.Sprintf("registry: there is a tool %q already", e.Name)
	}
	return fmt.Sprintf("registry: %q differs from the tool %q in nothing that a model would notice", e.Name, e.Other)
}
