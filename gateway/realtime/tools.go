package realtime

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"voicegw/internal/openaiwire"
	"voicegw/internal/textutil"
	"voicegw/prompts"
	"voicegw/protocol"
)

// toolState are the calls of the client's tools and, for a client that asks to see them, of the gateway's.
type toolState struct {
	open    map[string]string // the session's ids of calls without a result, by the client's, which are unique in all sessions
	outputs []protocol.ToolResult
	turn    int  // of the newest call
	waited  int  // the turn whose calls have ended a response
	early   bool // a result came after the client had asked for the response that has it

	visible   bool
	shown     []*shownCall      // of the gateway's tools, in the active response
	asked     map[string]string // tokens of confirmations, by the id of the request
	approvals int               // answered, without their response.create so far
}

// toolSide handles the calls of the client's tools, and of the gateway's tools that it sees.
type toolSide struct{ *State }

type shownCall struct {
	id, tool string
	item     *openaiwire.Item
	place    openaiwire.Place
	ended    *protocol.ToolEnded // it waits for the details of inspection
	args     string
}

// Label is the server_label under which clients see the gateway's tools.
const Label = "voicegw"

// includeTools is the value of include that shows the gateway's tools.
const includeTools = "voicegw.tools"

// clientToolTime is how long a client may take for a call, in ms. Some models hold their answer until every call has a
// result.
const clientToolTime = 60_000

// declared are the tools that the client runs.
func declared(tools []openaiwire.Tool) (list []protocol.ClientTool) {
	for _, t := range tools {
		if t.Type != "function" {
			continue
		}
		d := protocol.ClientTool{Name: t.Name, Schema: t.Parameters, TimeoutMS: clientToolTime}
		if t.Description != nil {
			d.Description = *t.Description
		}
		list = append(list, d)
	}
	return list
}

// CheckTool is for [openaiwire.Rules]: a client may ask for the gateway's own tools, but for no other server's.
func CheckTool(t *openaiwire.Tool, path string) *openaiwire.Error {
	if t.Type != "mcp" {
		return nil
	}
	var server struct {
		Label string `json:"server_label"`
	}
	if json.Unmarshal(t.Raw, &server) != nil || server.Label != Label {
		return openaiwire.Invalid("invalid_value", path+".server_label",
			"Invalid value: '%s'. This server calls no other servers; the label '%s' shows its own tools.", server.Label, Label)
	}
	return nil
}

// checkTools returns the error of the first tool that the session would refuse. of is "session" or "response".
func (s toolSide) checkTools(tools []openaiwire.Tool, of string) *openaiwire.Error {
	list := declared(tools)
	if s.opts.CheckTools == nil || len(list) == 0 {
		return nil
	}
	field, why := s.opts.CheckTools(list)
	if why == "" {
		return nil
	}
	path := of + ".tools"
	var i int
	if n, err := fmt.Sscanf(field, "tools[%d]", &i); err == nil && n == 1 && i < len(list) {
		at := slices.IndexFunc(tools, func(t openaiwire.Tool) bool {
			if t.Type == "function" {
				i--
			}
			return i < 0
		})
		path = openaiwire.Path(path, at) + strings.Replace(field[strings.IndexByte(field, ']')+1:], ".schema", ".parameters", 1)
	}
	why = strings.TrimPrefix(why, "session.start: the field "+field+" ")
	return openaiwire.Invalid("invalid_value", path, "Invalid value for '%s': it %s", path, why)
}

func asksToSee(s *openaiwire.Session) bool {
	var include []string
	return slices.ContainsFunc(s.Tools, func(t openaiwire.Tool) bool { return t.Type == "mcp" }) ||
		json.Unmarshal(s.Include, &include) == nil && slices.Contains(include, includeTools)
}

// showTools lists the gateway's tools for a client that asks to see them, once.
func (s toolSide) showTools(before *openaiwire.Session) {
	s.tools.visible = asksToSee(s.sess)
	if !s.tools.visible || before != nil && asksToSee(before) {
		return
	}
	tools := []openaiwire.Object{}
	for _, t := range s.opts.Tools {
		schema := t.Schema
		if len(schema) == 0 {
			schema = json.RawMessage(`{"type":"object","properties":{}}`)
		}
		tools = append(tools, openaiwire.Object{"name", t.Name, "description", t.Description, "input_schema", schema})
	}
	it := &openaiwire.Item{ID: s.ids.New("mcpl"), Type: openaiwire.MCPListTools}
	s.store(it, "server_label", Label, "tools", tools)
	clientSide(s).addItem(it, nil)
}

// store sets the members of an item of another type after its id and type.
func (s toolSide) store(it *openaiwire.Item, members ...any) {
	raw, err := append(openaiwire.Object{"id", it.ID, "type", it.Type}, members...).Encode(false)
	if err != nil {
		return // strings and JSON that was parsed before
	}
	s.mirror.grew(len(raw) - it.Size)
	it.Raw, it.Size = raw, len(raw)
}

func (s toolSide) call(now time.Time, m *protocol.ToolCall) {
	s.tools.turn = m.Turn
	if m.Again {
		return
	}
	id := s.ids.New("call")
	s.tools.open[id] = m.CallID
	r := s.responseOf(now, m.Turn)
	if r == nil {
		return
	}
	if r.waiting == nil && s.tools.waited == m.Turn { // it could not run together with the earlier ones
		r.waiting = &protocol.AnswerEnded{Waiting: true}
	}
	call := *m
	call.CallID = id
	if i := slices.IndexFunc(r.begun, func(b begunCall) bool { return b.id == m.CallID }); i >= 0 {
		r.begun[i].call = &call
	} else {
		r.begun = append(r.begun, begunCall{m.CallID, &call})
	}
	s.callsKnown(now, r)
}

// showClientCall adds the item of a call to the response.
func (s toolSide) showClientCall(r *response, m *protocol.ToolCall) {
	s.closeEnded(r)
	r.calls++
	it := &openaiwire.Item{ID: s.ids.New("item"), Type: openaiwire.FunctionCall, Status: openaiwire.InProgress,
		Name: m.Name, CallID: m.CallID}
	place := s.openItem(r, it)
	it.Arguments = string(m.Args)
	it.Size += len(it.Arguments)
	s.mirror.grew(len(it.Arguments))
	s.emit(place.Event("response.function_call_arguments.delta", m.CallID, it.Arguments))
	s.emit(place.Event("response.function_call_arguments.done", m.CallID, m.Name, it.Arguments))
	s.closeItem(place, it, openaiwire.Completed)
}

// earlierCall takes a call of the client's history. Its role says who informs the model; calls of this conversation have none.
func (s toolSide) earlierCall(it *openaiwire.Item) {
	if it.CallID == "" {
		it.CallID = s.ids.New("call")
	}
	if it.Role = "system"; s.sess.Rules.LockInstructions {
		it.Role = "user"
	}
}

// output keeps the result of a call until the client asks for a response or the user speaks. A late one is dropped.
// The result of an earlier call becomes a note.
func (s toolSide) output(it *openaiwire.Item) {
	id, open := s.tools.open[it.CallID]
	if !open {
		i := slices.IndexFunc(s.mirror.List, func(of *openaiwire.Item) bool {
			return of.Type == openaiwire.FunctionCall && of.Role != "" && of.CallID == it.CallID
		})
		if i < 0 {
			s.Dropped++
			return
		}
		call := s.mirror.List[i]
		it.Role, it.Content = call.Role, []openaiwire.Content{{Text: prompts.EarlierCall(call.Name,
			textutil.Shorten(call.Arguments, maxText/4), textutil.Shorten(it.Output, maxText/2))}}
		return
	}
	delete(s.tools.open, it.CallID)
	result := protocol.ToolResult{CallID: id}
	if out := json.RawMessage(it.Output); json.Valid(out) {
		result.Result = out
	} else if text, err := json.Marshal(it.Output); err == nil {
		result.Result = text
	}
	s.tools.outputs = append(s.tools.outputs, result)
	if r := s.answer.response; r != nil && r.continues {
		// Some clients ask for a response after the first result, and again after the last. The model waits for all.
		s.giveOutputs()
		s.tools.early = true
	}
}

// giveOutputs gives the session the results of calls. It returns the turn that continues; zero without results.
func (s toolSide) giveOutputs() (turn int) {
	outputs := s.tools.outputs
	s.tools.outputs = nil
	for i := range outputs {
		s.put(&outputs[i])
		turn = s.tools.turn
	}
	return turn
}

// runsIt reports whether the client has declared the tool.
func (s toolSide) runsIt(tool string) bool {
	return slices.ContainsFunc(s.given.tools, func(t protocol.ClientTool) bool { return t.Name == tool })
}

func (s toolSide) showCall(now time.Time, turn int, m *protocol.ToolStarted) {
	own := s.runsIt(m.Tool)
	if !own && !s.tools.visible {
		return
	}
	r := s.responseOf(now, turn)
	if r == nil {
		return
	}
	if own {
		r.begun = append(r.begun, begunCall{id: m.CallID})
		return
	}
	s.closeEnded(r)
	c := &shownCall{id: m.CallID, tool: m.Tool, item: &openaiwire.Item{ID: s.ids.New("mcp"), Type: openaiwire.MCPCall}}
	s.describe(c, nil, nil)
	c.place = s.openItem(r, c.item)
	s.emit(c.place.Event("response.mcp_call.in_progress"))
	s.tools.shown = append(s.tools.shown, c)
}

func (s toolSide) describe(c *shownCall, output, failure any) {
	s.store(c.item, "server_label", Label, "name", c.tool, "arguments", c.args, "output", output, "error", failure,
		"approval_request_id", nil)
}

// callEnded drops a call that the client has not answered, or completes a shown call.
func (s toolSide) callEnded(now time.Time, m *protocol.ToolEnded) {
	maps.DeleteFunc(s.tools.open, func(_, id string) bool { return id == m.CallID })
	if r := s.answer.response; r != nil {
		r.begun = slices.DeleteFunc(r.begun, func(b begunCall) bool { return b.id == m.CallID && b.call == nil })
		s.callsKnown(now, r)
	}
	for _, c := range s.tools.shown {
		if c.id == m.CallID {
			c.ended = m
		}
	}
}

// inspected completes a shown call with its arguments and its result, for a client that may inspect.
func (s toolSide) inspected(m *protocol.InspectCall) {
	for i, c := range s.tools.shown {
		if c.id != m.CallID {
			continue
		}
		c.args = string(m.Args)
		s.closeCall(c, string(m.Envelope))
		s.tools.shown = append(s.tools.shown[:i:i], s.tools.shown[i+1:]...)
		return
	}
}

func (s toolSide) closeCall(c *shownCall, output string) {
	var result, failure any
	done := "response.mcp_call.completed"
	if c.ended != nil && !c.ended.OK && !c.ended.Asks() {
		done, failure = "response.mcp_call.failed", openaiwire.Object{"type", "tool_execution_error", "content", c.ended.Error}
	} else if output != "" {
		result = output
	}
	s.describe(c, result, failure)
	s.emit(c.place.Event("response.mcp_call_arguments.done", c.args), c.place.Event(done))
	s.closeItem(c.place, c.item, openaiwire.Completed)
}

// endToolItems completes the shown calls of a response at its end.
func (s toolSide) endToolItems(r *response) {
	for _, c := range s.tools.shown {
		if c.place.ResponseID == r.ID {
			s.closeCall(c, "")
		}
	}
	s.tools.shown = nil
}

// maxAsked bounds the open confirmations.
const maxAsked = 64

// confirm asks the client for an approval, whose token stays here.
func (s toolSide) confirm(now time.Time, m *protocol.ConfirmationRequest) {
	if !s.tools.visible || len(s.tools.asked) >= maxAsked {
		return
	}
	it := &openaiwire.Item{ID: s.ids.New("mcpr"), Type: openaiwire.MCPRequest}
	s.store(it, "server_label", Label, "name", m.Tool, "arguments", string(m.Args))
	s.tools.asked[it.ID] = m.Token
	r := s.responseOf(now, m.Turn)
	if r == nil {
		clientSide(s).addItem(it, nil)
		return
	}
	s.closeEnded(r)
	place := s.openItem(r, it)
	s.closeItem(place, it, openaiwire.Completed)
}

func (s toolSide) approve(it *openaiwire.Item) *openaiwire.Error {
	request, yes, err := it.Approval()
	if err != nil {
		return err
	}
	token, known := s.tools.asked[request]
	if !known {
		return openaiwire.Invalid("invalid_value", "item.approval_request_id",
			"Invalid value: '%s'. There is no open approval request with this id.", request)
	}
	delete(s.tools.asked, request)
	s.tools.approvals++
	s.store(it, "approval_request_id", request, "approve", yes, "reason", nil)
	s.put(&protocol.ConfirmationResolve{Token: token, Approved: yes})
	return nil
}
