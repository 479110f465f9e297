package gemini

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"voicegw/sim/scenario"
	"voicegw/sim/wire"
)

const maxCalls = 1000

type callState int

const (
	callOpen callState = iota
	callAnswered
	callCancelled
)

type call struct {
	id    string // empty if it was sent without an id
	name  string
	async bool
	state callState
	// result is set while state is callAnswered, and taken when the model has seen it.
	result scenario.Result
	taken  bool
}

type calls struct {
	all []*call
}

func (c *calls) add(k *call) {
	c.all = append(c.all, k)
	if len(c.all) > maxCalls { // snapshots share the old list
		c.all = append(c.all[:0:0], c.all[maxCalls/4:]...)
	}
}

func (c *calls) open(async bool) []*call {
	var out []*call
	for _, k := range c.all {
		if k.state == callOpen && k.async == async {
			out = append(out, k)
		}
	}
	return out
}

func (c *calls) take(async bool) []scenario.Result {
	var out []scenario.Result
	for _, k := range c.all {
		if k.state == callAnswered && !k.taken && k.async == async {
			k.taken = true
			out = append(out, k.result)
		}
	}
	return out
}

// providerID matches the form of the ids that the provider makes.
var providerID = regexp.MustCompile(`^(function-call-[0-9]{12,20}|fc_[0-9]{12,20}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})$`)

// match returns the call that a response answers, or nil if it answers none.
//
// An id decides; without one the oldest open call of that name does (a recorded call without ids was answered so), or
// the oldest of all for a response without a name. A response with an id that this session never gave out is ignored,
// as in js-genai's recording of a toolResponse that answers no call. One exception allows recorded sessions to be
// played against the simulator (foreign): an id of the provider's own form, with the name of an open call, answers that
// call.
func (c *calls) match(r functionResponse, foreign bool) *call {
	if r.ID != "" {
		// A scenario may reuse an id: the response is for the call that waits.
		var known *call
		for _, k := range c.all {
			if k.id != r.ID {
				continue
			}
			if known = k; k.state == callOpen {
				break
			}
		}
		if known != nil {
			return known
		}
		if !foreign || !providerID.MatchString(r.ID) || r.Name == "" {
			return nil
		}
	}
	for _, k := range c.all {
		if k.state == callOpen && (r.Name == "" || k.name == r.Name) {
			return k
		}
	}
	return nil
}

// sendCalls carries out a Calls step: calls that are due now are sent in one
// message, and each repetition in a message of its own.
func (s *session) sendCalls(now time.Time, step scenario.Calls) {
	var batch, repeats []functionCall
	t := s.turn
	if s.cfg.habits.vertex {
		s.openTranscription(t)
	}
	for _, c := range step.Calls {
		s.callCount++
		p := s.planCall(now, c)
		t.spent.text += wire.TextTokens(c.Name) + wire.TextTokens(string(c.Args))
		t.called = true
		if p.Late > 0 {
			t.late = append(t.late, p)
			continue
		}
		s.issue(now, p)
		batch = append(batch, p.frame())
		repeats = append(repeats, slices.Repeat([]functionCall{p.frame()}, p.Repeat)...)
		if s.turn != t {
			return
		}
	}
	if len(batch) > 0 {
		s.send(serverFrame{ToolCall: &toolCall{FunctionCalls: batch}})
	}
	for _, f := range repeats {
		s.send(serverFrame{ToolCall: &toolCall{FunctionCalls: []functionCall{f}}})
	}
	if s.handles.busy {
		s.sendState(now)
	}
	if len(s.conv.calls.open(false)) > 0 && s.turn == t {
		t.phase = waiting
	}
}

type plannedCall struct {
	scenario.Call
	async  bool
	cancel []time.Duration
}

func (p plannedCall) frame() functionCall { return functionCall{Name: p.Name, Args: p.Args, ID: p.ID} }

func (s *session) planCall(now time.Time, c scenario.Call) plannedCall {
	p := plannedCall{async: s.cfg.async(c.Name)}
	point := scenario.Point{At: scenario.AtCall, N: s.callCount, Turn: s.turns}
	for _, a := range wire.PlanCall(&c, s.cfg.habits.callID(s.conv.ids), s.out.At(point)) {
		if a.Kind == scenario.CancelCall {
			p.cancel = append(p.cancel, a.For)
		} else {
			s.commit(now, a)
		}
	}
	p.Call = c
	return p
}

func (s *session) issue(now time.Time, p plannedCall) {
	k := &call{id: p.ID, name: p.Name, async: p.async}
	s.conv.calls.add(k)
	s.conv.remember("call", k.name+" "+string(p.Args))
	s.opts.Stats.Calls.Add(1)
	for _, d := range p.cancel {
		s.after(now, d, func(now time.Time) { s.cancelCall(now, k) })
	}
}

func (s *session) cancelCall(now time.Time, k *call) {
	if k.state != callOpen {
		return
	}
	k.state = callCancelled
	if k.id != "" {
		s.send(serverFrame{ToolCancellation: &toolCancellation{IDs: []string{k.id}}})
	}
	s.resumeBlocked(now)
}

func (s *session) cancelBlocking() {
	ids := []string{}
	for _, k := range s.conv.calls.open(false) {
		k.state = callCancelled
		if k.id != "" {
			ids = append(ids, k.id)
		}
	}
	if len(ids) > 0 {
		s.send(serverFrame{ToolCancellation: &toolCancellation{IDs: ids}})
	}
}

// handleResponses takes the client's results. In a resumed session a result of a call that the
// handle does not know closes the connection.
func (s *session) handleResponses(now time.Time, m *toolResponseMessage) *closeError {
	if s.cfg.habits.vertex && len(s.conv.calls.all) == 0 && !s.resumed {
		s.uncalledResults(now, m)
		return nil
	}
	speak, urgent := false, false // the default scheduling is WHEN_IDLE (ai.google.dev/gemini-api/docs/live-tools, read 2026-11-20)
	for _, r := range m.Responses {
		k := s.conv.calls.match(r, !s.resumed)
		if k == nil && s.resumed && r.ID != "" {
			return policy(reasonNotImplemented)
		}
		if k == nil || k.state != callOpen {
			// Late, repeated or unknown: the provider silently ignores it.
			s.log.Debug("tool response ignored", "id", r.ID, "name", r.Name)
			continue
		}
		if s.takeResult(k, r) {
			speak, urgent = true, urgent || r.Scheduling == "INTERRUPT"
		}
	}
	s.resumeBlocked(now)
	if speak {
		s.background(now, urgent)
	}
	if s.turn == nil && s.busy && len(s.conv.calls.open(true)) == 0 {
		s.sendState(now)
	}
	return nil
}

// takeResult gives an open call its result. It returns true if the model is to speak about it as soon as it is free.
func (s *session) takeResult(k *call, r functionResponse) bool {
	output := string(r.Response)
	if r.Name == "" && s.cfg.habits.gen == gen38 {
		// roomkit#42: 3.8 treats an unnamed response as a failed call.
		output = `{"error":"a system error occurred"}`
	}
	s.opts.Stats.Results.Add(1)
	s.conv.usage.text += wire.TextTokens(output)
	s.conv.remember("result", k.name+" "+output)
	k.result = scenario.Result{Name: k.name, Output: output}
	aloud := k.async && r.Scheduling != "SILENT"
	if r.WillContinue {
		// A generator's piece: the model sees it, and the call stays open.
		if aloud {
			s.pieces = append(s.pieces, k.result)
		}
		return aloud
	}
	k.state = callAnswered
	k.taken = k.async && !aloud
	return aloud
}

// uncalledResults is Vertex's reaction to results of calls that it never made: it
// treats them as input and speaks, as js-genai's recording shows.
func (s *session) uncalledResults(now time.Time, m *toolResponseMessage) {
	var rs []scenario.Result
	for _, r := range m.Responses {
		rs = append(rs, scenario.Result{Name: r.Name, Output: string(r.Response)})
	}
	if len(rs) > 0 && s.turn == nil {
		s.begin(now, s.results(rs), false)
	}
}

func (s *session) resumeBlocked(now time.Time) {
	t := s.turn
	if t == nil || s.deaf || t.phase != waiting || len(s.conv.calls.open(false)) > 0 {
		return
	}
	results := s.conv.calls.take(false)
	if len(results) == 0 {
		t.phase, t.steps = playing, nil
		if s.cfg.habits.vertex {
			s.finish(t)
		}
		s.advance(now)
		return
	}
	if s.cfg.habits.vertex {
		// The turn that made the call ends, and the answer is a separate turn (recorded with gemini-live-2.5-flash).
		s.finish(t)
		s.endTurn(now, t, false)
		s.scheduleLate(now, t)
		s.begin(now, s.results(results), false)
		s.next(now)
		return
	}
	h := s.cfg.habits
	if h.unaskedHandles && !h.handleAtSetup && s.cfg.SessionResumption == nil {
		s.sendHandle(now)
	}
	t.steps = s.results(results).Steps
	t.phase = generating
	s.open(t)
	s.advance(now)
}

func (s *session) background(now time.Time, urgent bool) {
	s.ready = true
	if urgent && s.turn != nil && s.turn.phase != waiting && !s.ear.speaking {
		s.interrupt(now)
	}
	s.next(now)
}

// Tool declarations: schemas that parse as the provider's Schema but are refused anyway
// (https://ai.google.dev/api/caching#Schema and #FunctionDeclaration, read 2026-11-20). Unknown keywords such as
// additionalProperties are refused earlier, as unknown names.

var (
	toolName      = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.:-]{0,127}$`)
	parameterName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,63}$`)
)

type schema struct {
	Type       string            `json:"type"`
	Enum       []string          `json:"enum"`
	Items      *schema           `json:"items"`
	Properties map[string]schema `json:"properties"`
	Required   []string          `json:"required"`
	AnyOf      []schema          `json:"anyOf"`
}

var schemaTypes = []string{"TYPE_UNSPECIFIED", "STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT", "NULL"}

func checkTools(groups []toolGroup, path string, h habits) ([]functionDeclaration, *closeError) {
	var out []functionDeclaration
	seen := map[string]bool{}
	for i, g := range groups {
		for j, d := range g.FunctionDeclarations {
			at := fmt.Sprintf("%s[%d].function_declarations[%d]", path, i, j)
			if err := checkDeclaration(d, at, h); err != nil {
				return nil, err
			}
			if seen[d.Name] {
				return nil, invalid("Duplicate function declaration found: %s", d.Name)
			}
			seen[d.Name] = true
			out = append(out, d)
		}
	}
	return out, nil
}

func checkDeclaration(d functionDeclaration, at string, h habits) *closeError {
	if !toolName.MatchString(d.Name) {
		return invalid("* BidiGenerateContentRequest.%s.name: Invalid function name. Must start with a letter or an underscore. "+
			"Must be alphanumeric (a-z, A-Z, 0-9), underscores (_), dots (.), colons (:) or dashes (-), with a maximum length of 128.", at)
	}
	switch d.Behavior {
	case "", "UNSPECIFIED", "NON_BLOCKING":
	case "BLOCKING":
		if !h.blockingAllowed {
			return invalid(reasonInvalidArgument)
		}
	default:
		return invalid("Invalid value at '%s.behavior' "+
			"(type.googleapis.com/google.ai.generativelanguage.v1beta.FunctionDeclaration.Behavior), %q", at, d.Behavior)
	}
	if len(d.Parameters) > 0 && len(d.JSONSchema) > 0 {
		return invalid(reasonInvalidArgument)
	}
	if len(d.Parameters) == 0 {
		return nil
	}
	var s schema
	if err := json.Unmarshal(d.Parameters, &s); err != nil {
		return invalid(reasonInvalidArgument)
	}
	if s.Type != "" && !strings.EqualFold(s.Type, "OBJECT") {
		return invalid("* BidiGenerateContentRequest.%s.parameters.type: must be OBJECT", at)
	}
	return checkSchema(s, at+".parameters")
}

func checkSchema(s schema, at string) *closeError {
	if s.Type != "" && !slices.Contains(schemaTypes, strings.ToUpper(s.Type)) {
		return invalid("Invalid value at '%s.type' (type.googleapis.com/google.ai.generativelanguage.v1beta.Type), %q", at, s.Type)
	}
	if len(s.Enum) > 0 && s.Type != "" && !strings.EqualFold(s.Type, "STRING") {
		return invalid("* BidiGenerateContentRequest.%s.enum: only allowed for STRING type", at)
	}
	if strings.EqualFold(s.Type, "ARRAY") && s.Items == nil {
		return invalid("* BidiGenerateContentRequest.%s.items: missing field.", at)
	}
	for i, name := range s.Required {
		if _, ok := s.Properties[name]; !ok && len(s.AnyOf) == 0 {
			return invalid("* BidiGenerateContentRequest.%s.required[%d]: property is not defined", at, i)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		p := s.Properties[name]
		if !parameterName.MatchString(name) {
			return invalid("* BidiGenerateContentRequest.%s.properties[%s]: Invalid property name.", at, name)
		}
		if err := checkSchema(p, fmt.Sprintf("%s.properties[%s]", at, name)); err != nil {
			return err
		}
	}
	for i, a := range s.AnyOf {
		if err := checkSchema(a, fmt.Sprintf("%s.any_of[%d]", at, i)); err != nil {
			return err
		}
	}
	if s.Items != nil {
		return checkSchema(*s.Items, at+".items")
	}
	return nil
}
