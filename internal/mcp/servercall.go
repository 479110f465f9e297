package mcp

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"voicegw/orchestrator/calls"
	"voicegw/orchestrator/execute"
	"voicegw/prompts"
	"voicegw/protocol"
	"voicegw/registry"
	"voicegw/registry/document"
	"voicegw/store"
)

// Channel marks the calls of MCP clients in the audit.
const Channel = "mcp"

// call answers tools/call. The filter has checked that the caller may use the tool.
func (s *Server) call(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	v, p := s.current().view(ctx), req.Params
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	if client, ok := ctx.Value(leavingKey{}).(context.Context); ok {
		defer context.AfterFunc(client, stop)()
	}
	if p.RequestState != "" {
		return v.answered(ctx, p)
	}
	given, has := p.Meta[KeyMeta]
	key, text := given.(string)
	if err := execute.CheckKey(key); has && (err != nil || !text || key == "") {
		return nil, wrong("_meta " + KeyMeta + " " + cmp.Or(err, errors.New("must be a text that is not empty")).Error())
	}
	who := cmp.Or(v.from.Key, v.session.UserID)
	if _, wait := s.rates.Begin(who, v.settings.PerMinute, time.Minute); wait > 0 {
		s.opts.Logger.Debug("call of an MCP client over mcp.per_minute", "tool", p.Name, "key", who)
		wait = time.Duration(math.Ceil(wait.Seconds())) * time.Second
		return v.result(v.mine.Refuse(p.Name, registry.NewError(registry.ErrorRateLimit,
			prompts.CallsTooOften(v.settings.PerMinute, wait)))), nil
	}
	name := v.nameOf(p, key)
	if env, open := s.asked.open(ctx, s.opts.Executor, name); open {
		return v.answer(env, req), nil
	}
	v.session.ID = Channel + "-" + rand.Text()
	call := execute.SingleCall{
		Executor: s.opts.Executor, Session: v.session, Tools: v.mine, Rules: s.opts.Rules, Agent: calls.Agent{Name: v.session.Agent},
		Tool: p.Name, Args: p.Arguments, Key: key, Scope: []string{Channel, v.from.Key, v.session.UserID}, Channel: Channel,
		Capabilities: []any{execute.NoClient{}}, Audit: s.opts.Audit,
	}
	if len(call.Args) == 0 {
		call.Args = json.RawMessage("{}")
	}
	if token := p.GetProgressToken(); token != nil {
		call.Tell = progress(ctx, req.Session, token)
	}
	env := call.Run(ctx)
	if asks(env) {
		s.asked.add(name, env)
	}
	return v.answer(env, req), nil
}

// answer turns the result of a call into an answer, which may ask for an approval.
func (v view) answer(env registry.Envelope, req *sdk.CallToolRequest) *sdk.CallToolResult {
	if asks(env) && v.settings.Elicit && elicits(req.ClientCapabilities()) {
		return ask(env.Error.ConfirmationRequest)
	}
	if asks(env) {
		told, words := *env.Error, prompts.ApprovalNeededElsewhere(req.Params.Name)
		told.Message, told.Suggestion = words.Message, words.Suggestion
		env.Error = &told
	}
	return v.result(env)
}

// nameOf is equal for equal calls of a caller.
func (v view) nameOf(p *sdk.CallToolParamsRaw, key string) string {
	args, _, _ := document.Decode(p.Arguments, document.MaxArgsBytes, document.MaxArgsDepth) // a call with others asks nothing
	return fmt.Sprintf("%q %s", []string{v.from.Key, v.session.UserID, p.Name, key, v.tools.Version()}, document.AppendCanonical(nil, args))
}

// questions are those that wait for an answer, by the names of their calls: a client that repeats a call gets the same
// question. It is safe for concurrent use.
type questions struct {
	mu  sync.Mutex // guards all
	all map[string]registry.Envelope
}

// maxQuestions limits the questions that are kept; a repeated call of another one is a new question.
const maxQuestions = 10_000

func (q *questions) add(name string, env registry.Envelope) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.all == nil || len(q.all) >= maxQuestions {
		q.all = map[string]registry.Envelope{}
	}
	q.all[name] = env
}

func (q *questions) open(ctx context.Context, executor *execute.Executor, name string) (env registry.Envelope, is bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if env, is = q.all[name]; is {
		asked := store.QuestionName(env.Error.ConfirmationRequest.Token)
		if is = executor.QuestionState(ctx, asked) == execute.QuestionOpen; !is {
			delete(q.all, name)
		}
	}
	return env, is
}

func wrong(message string) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: message}
}

func (v view) result(env registry.Envelope) *sdk.CallToolResult {
	text := env.Encode()
	return &sdk.CallToolResult{Meta: v.meta(), Content: []sdk.Content{&sdk.TextContent{Text: string(text)}},
		StructuredContent: text, IsError: !env.OK}
}

// progress returns a function that passes tool.progress on. The protocol wants numbers that grow: they are the tool's
// fraction while that grows.
func progress(ctx context.Context, to *sdk.ServerSession, token any) func(protocol.ServerMessage) {
	var mu sync.Mutex // guards last
	last := 0.0
	return func(m protocol.ServerMessage) {
		p, ok := m.(*protocol.ToolProgress)
		if !ok {
			return
		}
		n := &sdk.ProgressNotificationParams{ProgressToken: token, Message: p.Text}
		mu.Lock()
		defer mu.Unlock()
		if n.Progress = math.Nextafter(last, 2); p.Fraction != nil {
			n.Progress, n.Total = max(*p.Fraction, n.Progress), 1
		}
		last = n.Progress
		_ = to.NotifyProgress(ctx, n) // a client that has left needs none
	}
}

// approval is the id of the question in an input request.
const approval = "approval"

func elicits(c *sdk.ClientCapabilities) bool {
	return c != nil && c.Elicitation != nil && (c.Elicitation.Form != nil || c.Elicitation.URL == nil)
}

// asks reports whether a question waits for its answer. A tool that has called another one may lack one.
func asks(env registry.Envelope) bool {
	return env.AsksUser() && env.Error.ConfirmationRequest != nil && env.Error.ConfirmationRequest.Token != ""
}

// ask asks for an approval through the client. The state is the question's name, which does not reveal its token.
func ask(q *registry.ConfirmationRequest) *sdk.CallToolResult {
	return &sdk.CallToolResult{RequestState: store.QuestionName(q.Token), InputRequests: sdk.InputRequestMap{approval: &sdk.ElicitParams{
		Mode: "form", Message: q.Tool + ": " + cmp.Or(q.Preview, string(q.Args)),
		RequestedSchema: json.RawMessage(`{"type":"object","properties":{"approve":{"type":"boolean","title":"Approve"}},` +
			`"required":["approve"]}`),
	}}}
}

// answered runs the call of a question after the user's answer. The arguments are those of the question.
func (v view) answered(ctx context.Context, p *sdk.CallToolParamsRaw) (*sdk.CallToolResult, error) {
	executor := v.s.opts.Executor
	q, err := executor.Question(ctx, p.RequestState)
	if err != nil && !errors.Is(err, store.ErrUnknown) {
		return v.unrecorded(p.Name, err), nil
	}
	if err != nil || q.Channel != Channel || q.User != v.session.UserID || q.Tool != p.Name {
		return nil, wrong("requestState is not that of a question about this call, or has expired; make the call without it")
	}
	said, ok := p.InputResponses[approval].(*sdk.ElicitResult)
	if !ok {
		return nil, wrong("inputResponses has no answer to " + approval)
	}
	approved := said.Action == "accept" && said.Content["approve"] == true
	c, err := executor.AnswerNamed(ctx, p.RequestState, approved)
	repeated := errors.Is(err, store.ErrUsed) && c.Outcome == store.Approved && approved
	outcome := calls.OutcomeDenied
	switch {
	case err == nil, repeated: // the ledger has the result of a repeated answer
		decider := execute.Decider{Executor: executor, Tools: v.s.opts.Tools, Audit: v.s.opts.Audit}
		if env := decider.Decide(ctx, c, approved, calls.ByClient); env != nil {
			executor.Settle(c.Conversation, c.Session, c.Reference)
			return v.result(*env), nil
		}
	case errors.Is(err, store.ErrUsed):
		outcome = calls.OutcomeUsed
	case errors.Is(err, store.ErrExpired), errors.Is(err, store.ErrUnknown):
		outcome = calls.OutcomeExpired
	default:
		return v.unrecorded(p.Name, err), nil
	}
	return v.result(v.mine.Refuse(p.Name, registry.NewError(registry.ErrorPermanent,
		prompts.ApprovalNotGiven(calls.OutcomeNotice(p.Name, q.Reference, outcome))))), nil
}

func (v view) unrecorded(tool string, err error) *sdk.CallToolResult {
	v.s.opts.Logger.Error("answer to a confirmation not recorded", "tool", tool, "error", err)
	return v.result(v.mine.Refuse(tool, registry.NewError(registry.ErrorTransient, prompts.AnswerNotRecorded)))
}
