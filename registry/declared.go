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

	"voicegw/registry/adapter"
	"voicegw/registry/document"
	"voicegw/registry/schema"
	"voicegw/registry/spec"
)

// Declared is a tool that the client of a conversation runs, as the client describes it.
type Declared struct {
	// Name is what a model calls it: letters, digits, underscores and hyphens, a letter or an underscore
	// first, at most [spec.MaxToolID]. It may be no tool of the gateway's.
	Name string
	// Description tells a model what it does, in at most [spec.MaxDescription] characters.
	Description string
	// Parameters is the JSON Schema of its arguments, as strict as that of a tool of the gateway's.
	// Empty means that it takes none.
	Parameters json.RawMessage
	// ReadOnly says that a call changes nothing. Otherwise each call is entered in the ledger.
	ReadOnly bool
	// TimeoutMS is how long a call may take, in ms. Zero means [spec.DefaultTimeoutMS].
	TimeoutMS int
}

const (
	// ClientTool is the name under which Stats counts all tools that clients have declared: their
	// names are the clients', and there would be no end of them.
	ClientTool = "(client)"
	// MaxClientTimeoutMS is the longest timeout that a client may declare, in ms.
	MaxClientTimeoutMS = 60_000
	// MaxClientData is the largest answer of a client's tool, in bytes of JSON.
	MaxClientData = 16 << 10

	clientVersion   = "0.0.0" // of a tool that a client declares: it has no other
	clientLatencyMS = 1500
)

// ClientTools is the client of a conversation, which runs the tools that it has declared. It may be used
// concurrently.
type ClientTools interface {
	// RunTool has the client run a call, and returns its answer, of at most MaxClientData, when that has
	// come. It returns an error of ctx when ctx is done, and a *ToolError if the client says that the call
	// has failed.
	RunTool(ctx context.Context, call ClientCall) (json.RawMessage, error)
}

// ClientCall is a call that the client runs.
type ClientCall struct {
	// ID is the gateway's name of the call, unique in the conversation.
	ID   string
	Turn int
	Tool string
	// Args are valid, with defaults.
	Args json.RawMessage
}

type clientNeeds struct{ Client ClientTools }

// byClient is the handler of each tool that a client runs.
var byClient = Bind(func(ctx context.Context, call Call[json.RawMessage, clientNeeds]) (Result, error) {
	data, err := call.Needs.Client.RunTool(ctx, ClientCall{ID: call.Session.Call, Turn: call.Session.Turn, Tool: call.Tool, Args: call.Args})
	return Result{Data: data}, err
})

var clientName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*$`)

// Declare makes a tool for voice of what a client declares, with its parameters in the providers' forms.
// The paths of the problems begin with name, description, schema or timeout_ms.
func Declare(d Declared) (*Tool, []document.Problem) {
	var problems []document.Problem
	wrong := func(field, format string, args ...any) {
		problems = append(problems, document.Problem{Path: document.Pointer{field}.String(), Message: fmt.Sprintf(format, args...)})
	}
	switch why := spec.Reserved(d.Name); {
	case len(d.Name) > spec.MaxToolID || !clientName.MatchString(d.Name):
		wrong("name", "%q is no name of a tool: write letters, digits, underscores and hyphens, a letter first, at most %d.", document.Shorten(d.Name, 80), spec.MaxToolID)
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
	for _, p := range found {
		problems = append(problems, document.Problem{Path: "/schema" + p.Path, Message: p.Message})
	}
	if len(problems) > 0 {
		return nil, problems
	}
	forms, err := FormsOf(text)
	var refused adapter.Problems
	if errors.As(err, &refused) {
		for _, p := range refused {
			problems = append(problems, document.Problem{Path: "/schema" + p.Path, Message: p.Message})
		}
		return nil, problems
	}
	t := &Tool{
		Entry: Entry{
			Spec: spec.Spec{
				ToolID: d.Name, Version: clientVersion, Description: d.Description, Category: spec.CategoryAction, SideEffects: spec.SideEffectsWrites,
				AllowedModes: []spec.Mode{spec.ModeVoice}, TimeoutMS: cmp.Or(d.TimeoutMS, spec.DefaultTimeoutMS), Cancellable: true, Parameters: text,
			},
			Summary: d.Description, Guide: d.Description, Forms: forms,
		},
		compiled: &spec.Compiled{Parameters: params},
		handler:  byClient,
		sources:  map[spec.Mode][]source{spec.ModeVoice: {{perCall: reflect.TypeFor[ClientTools]()}}},
		client:   true,
	}
	t.LatencyBudgetMS = min(clientLatencyMS, t.TimeoutMS)
	if d.ReadOnly {
		t.SideEffects, t.Category, t.Idempotent = spec.SideEffectsNone, spec.CategoryUtility, true
	}
	return t, nil
}

// ByClient reports whether the client of the conversation runs the tool.
func (t *Tool) ByClient() bool { return t.client }

// counted is the name under which Stats counts the tool.
func (t *Tool) counted() string {
	if t.client {
		return ClientTool
	}
	return cmp.Or(t.variant, t.ToolID)
}

// With returns a snapshot of the same version that also has these tools, made by [Declare]. The error
// names the first of them that has the name of another tool, or one that a model would take for it. s may
// be nil.
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

// noTools returns a snapshot without tools.
func noTools() *Snapshot {
	r := &Registry{}
	r.opts.complete()
	return &Snapshot{opts: &r.opts, stats: newStats(), switches: &r.switches, tools: map[string]*Tool{}}
}

// SameName says that two tools have one name, or names that a model would confuse.
type SameName struct{ Name, Other string }

// Error names both.
func (e *SameName) Error() string {
	if e.Name == e.Other {
		return fmt.Sprintf("registry: there is a tool %q already", e.Name)
	}
	return fmt.Sprintf("registry: %q differs from the tool %q in nothing that a model would notice", e.Name, e.Other)
}
