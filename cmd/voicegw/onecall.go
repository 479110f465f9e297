package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

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
	p     Process
	bench *toolBench
	yes   bool
	call  execute.SingleCall // fixed after begin

	out sync.Mutex // serialises lines on standard error
}

var errNoTerminal = errors.New("standard input is not a terminal")

// begin makes the conversation. The error names the wrong flag.
func (c *oneCall) begin(flags toolsCallFlags, whole *registry.Snapshot) error {
	var pinned map[string]string
	if tool, version, ok := whole.VersionOf(c.call.Tool); ok { // the author tries a version that models know by the tool's id
		c.call.Tool, pinned = tool, map[string]string{tool: version}
	}
	whole = whole.Draw(string(flags.User), pinned)
	tool, known := whole.Tool(c.call.Tool)
	mode := cmp.Or(spec.Mode(flags.Mode), spec.ModeText)
	if known && flags.Mode == "" {
		mode = tool.AllowedModes[0]
	}
	id := "tools-call-" + rand.Text()
	c.call.Session = registry.Session{
		ID: id, UserID: string(flags.User), ConversationID: id, Agent: cmp.Or(flags.Agent, c.bench.cfg.Agent.Name),
		Vouched: true, Scopes: flags.Scope, Mode: mode, Now: time.Now().UTC(),
	}
	c.call.Rules = voicePolicy(c.bench.cfg).Tools
	if mode == spec.ModeText {
		c.call.Rules = textRules(c.bench.cfg)
	}
	has, err := c.selection(&c.call.Rules)
	if err != nil {
		return err
	}
	c.call.Tools = whole.For(has)
	if known {
		c.explain(tool, has)
	} else {
		c.explainOff(whole)
	}
	c.call.Executor, c.call.Scope = c.bench.executor, []string{"tools-call", string(flags.User)}
	c.call.Tell, c.call.Audit, c.call.Watch, c.call.Approve = c.tell, c.audit, c.watch, c.approves
	if mode == spec.ModeText {
		c.call.Capabilities = []any{host{c: c}}
	} else {
		c.call.Describe = func(s *registry.Session) { s.Phase = "active" }
	}
	return nil
}

func (c *oneCall) selection(rules *calls.Policy) (registry.Selection, error) {
	name := c.call.Session.Agent
	sel := registry.Selection{Session: c.call.Session, Live: c.bench.live}
	switch e := c.bench.agents.persona(name); {
	case e != nil:
		c.call.Agent = calls.Agent{Name: e.Name, Version: e.Version}
		sel.Only, sel.SwitchTo = e.Tools, e.SwitchTo
		if rules.Mode == spec.ModeVoice {
			rules.Budget = c.bench.agents.Agent(name).Budget.Or(rules.Budget)
		} else {
			rules.Budget = e.Budget.Or(rules.Budget)
		}
	case name == c.bench.cfg.Agent.Name:
		c.call.Agent = calls.Agent{Name: name}
	default:
		hint := ""
		if meant := textutil.Nearest(name, c.bench.agents.Names()); meant != "" {
			hint = ", did you mean " + meant + "?"
		}
		return sel, fmt.Errorf("--agent: no agent %q%s; available: %s", name, hint, strings.Join(c.bench.agents.Names(), ", "))
	}
	return sel, nil
}

func (c *oneCall) explain(tool *registry.Tool, has registry.Selection) {
	if slices.ContainsFunc(c.call.Tools.All(), func(t *registry.Tool) bool { return t.ToolID == tool.ToolID }) {
		return
	}
	lacks := slices.DeleteFunc(slices.Clone(tool.Requires), func(scope string) bool {
		return slices.Contains(c.call.Session.Scopes, scope)
	})
	switch {
	case has.Only != nil && !slices.Contains(has.Only, tool.ToolID):
		c.say("the agent %s does not have %s", c.call.Session.Agent, tool.ToolID)
	case len(lacks) > 0:
		c.say("%s requires scopes that this call does not have: --scope %s", tool.ToolID, strings.Join(lacks, " --scope "))
	case tool.Availability != nil:
		c.say("the conditions for %s are not met (%s)", tool.ToolID, tool.Availability)
	}
}

func (c *oneCall) explainOff(whole *registry.Snapshot) {
	unset := slices.IndexFunc(whole.Unset(), func(u registry.Unset) bool { return u.Tool == c.call.Tool })
	switch off := slices.Contains(whole.Off(), c.call.Tool); {
	case unset >= 0:
		c.say("%s", whole.Unset()[unset])
	case off && slices.Contains(agent.Tools(), c.call.Tool) && !c.bench.cfg.Agents.Tools:
		c.say("%s is disabled (agents.tools)", c.call.Tool)
	case off:
		c.say("%s is disabled (tools.%s.enabled)", c.call.Tool, c.call.Tool)
	}
}

// watch shows the decisions that another client would see.
func (c *oneCall) watch(a calls.Action) {
	switch a := a.(type) {
	case calls.Declined:
		c.say("%s was not approved (%s)", a.Tool, a.Outcome)
	case calls.Refused:
		c.say("the answer was rejected: %s", a.Why)
	case calls.Answer:
		for _, i := range a.Intents() {
			c.say("the session would get: %s", i.Type)
		}
	}
}

func (c *oneCall) audit(r audit.Record) {
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
	c.bench.audit(r)
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
		if m.Text == "" {
			c.say("still running after %d s", m.DurationMS/1000)
		} else if m.Fraction != nil {
			c.say("progress: %s (%.0f %%)", m.Text, 100**m.Fraction)
		} else {
			c.say("progress: %s", m.Text)
		}
	}
}

// host replaces the client of a text conversation and shows its messages.
type host struct {
	execute.NoClient
	c *oneCall
}

func (h host) Invite(offer registry.VoiceOffer) {
	h.c.say("the client would be invited to %s until %s", offer.SessionID, offer.ExpiresAt.UTC().Format(time.RFC3339))
}

func (h host) Show(i registry.Image) {
	h.c.say("the client would be shown %s (%d by %d)", i.URL, i.Width, i.Height)
}
