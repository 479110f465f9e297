package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"voicegw/config"
	"voicegw/internal/agent"
	"voicegw/internal/audit"
	"voicegw/internal/textutil"
	"voicegw/orchestrator/calls"
	"voicegw/orchestrator/execute"
	"voicegw/protocol"
	"voicegw/registry"
	"voicegw/registry/spec"
)

// oneCall is a conversation with a single call, by the user at the terminal.
type oneCall struct {
	// Fixed after begin.
	p        Process
	cfg      *config.Config
	caps     *capabilities
	agents   *agents
	executor *execute.Executor
	record   func(audit.Record) // nil without an audit log
	tool     string
	yes      bool
	key      string
	session  registry.Session
	agent    calls.Agent
	tools    *registry.Snapshot
	runs     *execute.Runner
	results  chan calls.Input // from the executor's goroutines to run; never closed

	out sync.Mutex // serialises lines on standard error

	// Only for run's goroutine.
	calls    calls.Calls
	owed     int // outstanding results
	question *protocol.ConfirmationRequest
	envelope registry.Envelope
}

var errNoTerminal = errors.New("standard input is not a terminal")

// maxCallResults exceeds the results of a call and its nested calls.
const maxCallResults = 64

// begin makes the conversation. The error names the wrong flag.
func (c *oneCall) begin(flags toolsCallFlags, whole *registry.Snapshot) error {
	var pinned map[string]string
	if tool, version, ok := whole.VersionOf(c.tool); ok { // the author tries a version that models know by the tool's id
		c.tool, pinned = tool, map[string]string{tool: version}
	}
	whole = whole.Draw(string(flags.User), pinned)
	tool, known := whole.Tool(c.tool)
	mode := cmp.Or(spec.Mode(flags.Mode), spec.ModeText)
	if known && flags.Mode == "" {
		mode = tool.AllowedModes[0]
	}
	id := "tools-call-" + rand.Text()
	c.session = registry.Session{
		ID: id, UserID: string(flags.User), ConversationID: id, Agent: cmp.Or(flags.Agent, c.cfg.Agent.Name),
		Vouched: true, Scopes: flags.Scope, Mode: mode, Now: time.Now().UTC(),
	}
	rules := voicePolicy(c.cfg).Tools
	if mode == spec.ModeText {
		rules = textRules(c.cfg)
	}
	has, err := c.selection(&rules)
	if err != nil {
		return err
	}
	c.tools = whole.For(has)
	c.calls = calls.New(c.tools, &calls.Rules{Tools: rules, Prefix: "call_"})
	c.calls.Book().SetAgent(c.agent)
	if known {
		c.explain(tool, has)
	} else {
		c.explainOff(whole)
	}
	c.results = make(chan calls.Input, maxCallResults)
	of := execute.Conversation{
		Session: c.session, Ephemeral: true, Tell: c.tell, Audit: c.audit, Report: func(in calls.Input) { c.results <- in },
	}
	if mode == spec.ModeText {
		of.Capabilities = []any{host{c}}
	} else {
		of.Describe = func(s *registry.Session) { s.Phase = "active" }
	}
	c.runs = c.executor.Begin(of)
	return nil
}

func (c *oneCall) selection(rules *calls.Policy) (registry.Selection, error) {
	name := c.session.Agent
	sel := registry.Selection{Session: c.session, Live: func(source string, s registry.Session) []string {
		return liveValues(c.cfg, c.agents, c.caps, source, s)
	}}
	switch e := c.agents.persona(name); {
	case e != nil:
		c.agent = calls.Agent{Name: e.Name, Version: e.Version}
		sel.Only, sel.SwitchTo = e.Tools, e.SwitchTo
		if rules.Mode == spec.ModeVoice {
			rules.Budget = c.agents.Agent(name).Budget.Or(rules.Budget)
		} else {
			rules.Budget = e.Budget.Or(rules.Budget)
		}
	case name == c.cfg.Agent.Name:
		c.agent = calls.Agent{Name: name}
	default:
		hint := ""
		if meant := textutil.Nearest(name, c.agents.Names()); meant != "" {
			hint = ", did you mean " + meant + "?"
		}
		return sel, fmt.Errorf("--agent: no agent %q%s; available: %s", name, hint, strings.Join(c.agents.Names(), ", "))
	}
	return sel, nil
}

func (c *oneCall) explain(tool *registry.Tool, has registry.Selection) {
	if slices.ContainsFunc(c.tools.All(), func(t *registry.Tool) bool { return t.ToolID == tool.ToolID }) {
		return
	}
	lacks := slices.DeleteFunc(slices.Clone(tool.Requires), func(scope string) bool { return slices.Contains(c.session.Scopes, scope) })
	switch {
	case has.Only != nil && !slices.Contains(has.Only, tool.ToolID):
		c.say("the agent %s does not have %s", c.session.Agent, tool.ToolID)
	case len(lacks) > 0:
		c.say("%s requires scopes that this call does not have: --scope %s", tool.ToolID, strings.Join(lacks, " --scope "))
	case tool.Availability != nil:
		c.say("the conditions for %s are not met (%s)", tool.ToolID, tool.Availability)
	}
}

func (c *oneCall) explainOff(whole *registry.Snapshot) {
	unset := slices.IndexFunc(whole.Unset(), func(u registry.Unset) bool { return u.Tool == c.tool })
	switch off := slices.Contains(whole.Off(), c.tool); {
	case unset >= 0:
		c.say("%s", whole.Unset()[unset])
	case off && slices.Contains(agent.Tools(), c.tool) && !c.cfg.Agents.Tools:
		c.say("%s is disabled (agents.tools)", c.tool)
	case off:
		c.say("%s is disabled (tools.%s.enabled)", c.tool, c.tool)
	}
}

// run makes the call, asks for approval if required, and returns the answer. If ctx ends, it stops the call.
func (c *oneCall) run(ctx context.Context, args json.RawMessage) registry.Envelope {
	defer c.runs.Wait()
	defer c.runs.End()
	in := calls.Called{Turn: 1, Model: c.key, Provider: c.key, Tool: c.tool, Args: args}
	if c.key != "" {
		// The ledger has one name for all calls of the tool with that key by that user.
		name, _ := json.Marshal([]string{"tools-call", c.session.UserID, c.tool, c.key}) // strings only: cannot fail
		in.Message = string(name)
	}
	c.do(c.calls.Called(time.Now(), in))
	c.await(ctx)
	if q := c.question; q != nil {
		c.do(c.calls.Answered(q.Token, c.approves(ctx, q)))
		c.await(ctx)
	}
	return c.envelope.Kept()
}

func (c *oneCall) await(ctx context.Context) {
	gone := ctx.Done()
	for c.owed > 0 {
		select {
		case in := <-c.results:
			c.take(in)
		case <-gone:
			gone = nil
			c.runs.End()
			c.do(c.calls.Over())
		}
	}
}

func (c *oneCall) take(in calls.Input) {
	now := time.Now()
	switch in := in.(type) {
	case calls.Nested:
		c.do(c.calls.Nested(in))
		return
	case calls.Finished:
		do, _ := c.calls.Finished(in)
		c.do(do)
	case calls.Recorded:
		c.do(c.calls.Recorded(now, in))
	case calls.Resolved:
		c.do(c.calls.Resolved(now, in))
	}
	c.owed--
}

func (c *oneCall) do(all []calls.Action) {
	for _, a := range all {
		switch a := a.(type) {
		case calls.Run:
			c.owed++
			c.runs.Run(a)
		case calls.Ask:
			c.owed++
			c.runs.Ask(a)
		case calls.Resolve:
			c.owed++
			c.runs.Resolve(a)
		case calls.Permit:
			c.runs.Permit(a)
		case calls.ToClient:
			c.tell(a.Message)
			if q, ok := a.Message.(*protocol.ConfirmationRequest); ok {
				c.question = q
			}
		case calls.Approved: // an approved action always has its own turn
			c.do(c.calls.Approve(time.Now(), 2, a))
		case calls.Declined:
			c.say("%s was not approved (%s)", a.Tool, a.Outcome)
			c.audit(a.Record)
		case calls.Refused:
			c.say("the answer was rejected: %s", a.Why)
		case calls.Answer:
			c.answered(a)
		}
	}
}

func (c *oneCall) answered(a calls.Answer) {
	e := calls.Effect{Refused: a.Intents()}
	for _, i := range e.Refused {
		e.Why = "no session"
		c.say("the session would get: %s", i.Type)
	}
	c.audit(a.Record(time.Now(), e))
	c.envelope = a.Envelope
	if a.Approval != nil {
		c.runs.Settle(a.Approval.Reference)
	}
}

func (c *oneCall) audit(r audit.Record) {
	r.SessionID, r.UserID, r.ConversationID = c.session.ID, c.session.UserID, c.session.ConversationID
	if r.Agent == "" {
		r.Agent, r.AgentVersion = c.agent.Name, c.agent.Version
	}
	switch {
	case r.Event == audit.EventNote:
		c.say("the audit notes %s: %s", r.Note, r.NoteData)
	case r.ParentCallID != "":
		outcome := "ok"
		if !r.OK {
			outcome = string(r.ErrorType)
		}
		c.say("nested call of %s: %s", r.ToolID, outcome)
	}
	if c.record != nil {
		c.record(r)
	}
}

func (c *oneCall) approves(ctx context.Context, q *protocol.ConfirmationRequest) bool {
	if ctx.Err() != nil {
		return false
	}
	preview := textutil.Quote(cmp.Or(q.Preview, string(q.Args)))
	if c.yes {
		c.say("approved by --yes: %s", preview)
		return true
	}
	var lines <-chan string
	err := errNoTerminal
	if _, isTerminal := textutil.Width(c.p.Stdin); isTerminal {
		var stop func()
		if lines, stop, err = textutil.OpenTyped(); err == nil {
			defer stop()
		}
	}
	if err != nil {
		c.say("%s requires approval: %s. Run it at a terminal, or use --yes", q.Tool, preview)
		return false
	}
	c.out.Lock()
	_, _ = fmt.Fprintf(c.p.Stderr, "%s: %s\nApprove? [y/N] ", q.Tool, preview) // no other place to report an error
	c.out.Unlock()
	select {
	case line := <-lines:
		word := strings.ToLower(strings.TrimSpace(line))
		return word == "y" || word == "yes"
	case <-ctx.Done():
	case <-time.After(time.Until(q.ExpiresAt.Time)):
		c.say("the approval request has expired")
	}
	return false
}

// say writes a line to standard error. It is safe for concurrent use.
func (c *oneCall) say(format string, args ...any) {
	c.out.Lock()
	defer c.out.Unlock()
	c.p.complain(format, args...)
}

// tell shows messages for a client. It is safe for concurrent use.
func (c *oneCall) tell(m protocol.ServerMessage) {
	switch m := m.(type) {
	case *protocol.Timeout:
		c.say("the client would get a timeout until %s: %s", time.UnixMilli(m.TimeoutUntil).UTC().Format(time.RFC3339), m.Message)
	case *protocol.ToolMessage:
		c.say("the client would get %s: %s", m.Name, m.Data)
	case *protocol.ToolProgress:
		if m.Fraction != nil {
			c.say("progress: %s (%.0f %%)", m.Text, 100**m.Fraction)
		} else {
			c.say("progress: %s", m.Text)
		}
	}
}

// host replaces the client of a text conversation and shows its messages.
type host struct{ c *oneCall }

func (host) Origin() string { return "" }

func (host) Guarantor() registry.Guarantor { return registry.Guarantor{} }

func (host) Said() []registry.Utterance { return nil }

func (h host) Invite(offer registry.VoiceOffer) {
	h.c.say("the client would be invited to %s until %s", offer.SessionID, offer.ExpiresAt.UTC().Format(time.RFC3339))
}

func (h host) Show(i registry.Image) {
	h.c.say("the client would be shown %s (%d by %d)", i.URL, i.Width, i.Height)
}
