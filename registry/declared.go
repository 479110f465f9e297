package registry

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"voicegw/prompts"
	"voicegw/registry/document"
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
	var fitted *Fitted
	if d.AnySchema {
		var err error
		if fitted, err = d.fit(); err != nil {
			return nil, []document.Problem{{Path: "/schema", Message: err.Error()}}
		}
	}
	if empty := strings.TrimSpace(string(d.Parameters)); empty == "" || empty == "null" {
		d.Parameters = json.RawMessage(spec.NoParameters)
	}
	params, problems := d.check()
	if len(problems) > 0 {
		return nil, problems
	}
	forms, err := FormsOf(d.Parameters)
	if err != nil {
		return nil, document.Under(document.Pointer{"schema"}, formProblems(err))
	}
	t := &Tool{
		Entry: Entry{
			Spec: spec.Spec{
				ToolID: d.Name, Version: clientVersion, Description: d.Description, Category: spec.CategoryAction,
				SideEffects:  spec.SideEffectsWrites,
				AllowedModes: []spec.Mode{spec.ModeVoice}, TimeoutMS: cmp.Or(d.TimeoutMS, spec.DefaultTimeoutMS),
				Cancellable: true, Parameters: d.Parameters,
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

// check returns the compiled parameters and the problems of a declaration.
func (d Declared) check() (params *document.Schema, problems []document.Problem) {
	wrong := func(field, format string, args ...any) {
		problems = append(problems, document.Problem{Path: document.Pointer{field}.String(), Message: fmt.Sprintf(format, args...)})
	}
	switch why := spec.Reserved(d.Name); {
	case len(d.Name) > spec.MaxToolID || !clientName.MatchString(d.Name):
		wrong("name", "%q is not a valid tool name: use letters, digits, underscores and hyphens, beginning with a letter, at most %d.",
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
	params, found := document.CompileParameters(d.Parameters)
	if params != nil {
		found = append(found, document.Legible(params.Doc, nil)...)
	}
	return params, append(problems, document.Under(document.Pointer{"schema"}, found)...)
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
	return fmt.Sprintf("registry: %q looks the same to a model as the tool %q", e.Name, e.Other)
}

const describeParameters = `{
  "type": "object",
  "properties": {"tool": {"type": "string", "description": "` + prompts.DescribeToolName + `"}},
  "required": ["tool"],
  "additionalProperties": false
}`

type describeArgs struct {
	Tool string `json:"tool"`
}

type describeNeeds struct{ Snapshot *Snapshot }

type description struct {
	Tool     string        `json:"tool"`
	Version  string        `json:"version"`
	Category spec.Category `json:"category"`
	Guide    string        `json:"guide"`
}

func describeTool(_ context.Context, call Call[describeArgs, describeNeeds]) (Result, error) {
	tool, ok := call.Needs.Snapshot.Tool(call.Args.Tool)
	if !ok || !tool.Allows(call.Session.Mode) {
		var names []string
		for _, t := range call.Needs.Snapshot.Tools(call.Session.Mode) {
			names = append(names, t.ToolID)
		}
		words := prompts.NoGuide(document.Shorten(call.Args.Tool, 80), document.Shorten(strings.Join(names, ", "), 1000))
		return Result{}, &ToolError{Type: ErrorNotFound, Message: words.Message, Suggestion: words.Suggestion}
	}
	return Result{Data: description{Tool: tool.ToolID, Version: tool.Version, Category: tool.Category, Guide: tool.Guide}}, nil
}

// Builtins returns the built-in tools, sorted by id. The caller owns the slice.
func Builtins() []Entry { return []Entry{describer().Entry} }

// describer makes the tool describe_tool of a registry.
func describer() *Tool {
	return ownTool(spec.Spec{
		ToolID: spec.DescribeTool, Description: prompts.DescribeTool, Idempotent: true, LatencyBudgetMS: 100,
		Parameters: json.RawMessage(describeParameters), Dynamic: map[string]string{"/properties/tool/enum": spec.LiveTools},
	}, prompts.DescribeToolSummary, prompts.DescribeToolGuide, Bind(describeTool), source{tools: true})
}

// ownTool makes a tool of the gateway's own. needs are the sources of the handler's needs.
func ownTool(s spec.Spec, summary, guide string, h Handler, needs ...source) *Tool {
	s.Version, s.TimeoutMS = "1.0.0", 1000
	s.Category, s.SideEffects = spec.CategoryUtility, spec.SideEffectsNone
	s.AllowedModes = []spec.Mode{spec.ModeText, spec.ModeVoice}
	params, problems := document.CompileParameters(s.Parameters)
	forms, err := FormsOf(s.Parameters)
	if len(problems) > 0 || err != nil {
		panic(fmt.Sprint("registry: the schema of "+s.ToolID+": ", problems, err)) // cannot happen: the schema is made here
	}
	return &Tool{
		Entry:    Entry{Spec: s, Summary: summary, Guide: guide, Forms: forms},
		compiled: &spec.Compiled{Parameters: params},
		handler:  h,
		sources:  map[spec.Mode][]source{spec.ModeText: needs, spec.ModeVoice: needs},
	}
}

// SwitchTarget is an agent that another one may hand the user over to.
type SwitchTarget struct {
	// ID is the agent's name for the model, at most MaxAgent bytes. Name and Description explain its purpose; may be empty.
	ID, Name, Description string
}

// maxTargetWords limits the description of a target, and maxTargets that of all, in characters. maxSwitches limits the
// cached tools, one for each set of targets.
const (
	maxTargetWords = 200
	maxTargets     = 6000
	maxSwitches    = 1024
)

type switchArgs struct {
	Agent   string `json:"agent"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

type switched struct {
	Agent string `json:"agent"`
	Note  string `json:"note"`
}

// Switching returns a snapshot of the same version that also has the built-in tool [spec.AgentSwitch], with these agents
// as the values of its parameter agent. Snapshots with the same targets share the tool. Without targets it returns s.
func (s *Snapshot) Switching(targets []SwitchTarget) *Snapshot {
	if s == nil || len(targets) == 0 {
		return s
	}
	tool := s.switches.get(fmt.Sprintf("%q", targets), maxSwitches, func() *Tool { return switchTool(targets) })
	return s.holding(append(slices.Clone(s.sorted), tool))
}

func switchHandler(targets []SwitchTarget) Handler {
	names := make(map[string]string, len(targets))
	for _, t := range targets {
		names[t.ID] = t.Name
	}
	return Bind(func(_ context.Context, call Call[switchArgs, struct{}]) (Result, error) {
		return Result{
			Data: switched{Agent: call.Args.Agent, Note: prompts.SwitchedNote(names[call.Args.Agent], call.Args.Agent,
				call.Args.Message)},
			Intents: []Intent{SwitchAgent(call.Args.Agent, call.Args.Reason, call.Args.Message)},
		}, nil
	})
}

func switchTool(targets []SwitchTarget) *Tool {
	ids := make([]string, len(targets))
	for i, t := range targets {
		ids[i] = t.ID
	}
	quoted := func(v any) []byte {
		text, _ := document.Marshal(v) // strings only: cannot fail
		return text
	}
	parameters := fmt.Appendf(nil, `{"type":"object","properties":{"agent":{"type":"string","enum":%s,"description":%s},`+
		`"reason":{"type":"string","minLength":1,"maxLength":%d,"description":%s},"message":{"type":"string","maxLength":%d,`+
		`"description":%s}},`+
		`"required":["agent","reason"],"additionalProperties":false}`,
		quoted(ids), quoted(prompts.AgentSwitchAgent+targetWords(targets)), MaxReason, quoted(prompts.AgentSwitchReason),
		MaxPendingMessage, quoted(prompts.AgentSwitchMessage))
	return ownTool(spec.Spec{
		ToolID: spec.AgentSwitch, Description: prompts.AgentSwitch, LatencyBudgetMS: 500, Parameters: parameters,
	}, prompts.AgentSwitchSummary, prompts.AgentSwitchGuide+targetWords(targets), switchHandler(targets))
}

func targetWords(targets []SwitchTarget) string {
	var b strings.Builder
	for _, t := range targets {
		line := "\n" + t.ID
		if words := strings.TrimSpace(strings.Join(strings.Fields(t.Name+". "+t.Description), " ")); words != "." {
			line += ": " + document.Shorten(words, maxTargetWords)
		}
		if b.Len()+len(line) > maxTargets {
			break
		}
		b.WriteString(line)
	}
	return b.String()
}
