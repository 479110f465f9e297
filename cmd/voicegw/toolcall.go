package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/alecthomas/kong"

	"voicegw/config"
	"voicegw/internal/agent"
	"voicegw/internal/audit"
	"voicegw/internal/logging"
	"voicegw/internal/server"
	"voicegw/internal/textutil"
	"voicegw/orchestrator/calls"
	"voicegw/orchestrator/execute"
	"voicegw/protocol"
	"voicegw/registry"
	"voicegw/registry/build"
	"voicegw/registry/spec"
)

type toolsCallFlags struct {
	Name  string   `arg:"" help:"Name or id of the tool."`
	Args  string   `arg:"" optional:"" help:"Its arguments, a JSON object; - reads them from standard input." default:"{}"`
	Mode  string   `help:"Mode: text or voice (default: as the tool allows)." placeholder:"MODE" enum:",text,voice" default:""`
	Agent string   `help:"Agent whose tools and budget apply (default: agent.name)." placeholder:"ID"`
	User  userName `help:"User of the session." default:"author" placeholder:"ID"`
	Yes   bool     `help:"Approve the call if required, instead of asking at the terminal."`
	Key   string   `help:"Idempotency key: the ledger answers the same key again." placeholder:"KEY"`
	toolsetFlags
}

// maxArgs limits the arguments on standard input, in bytes.
const maxArgs = 1 << 20

func (flags toolsCallFlags) check() error {
	if err := execute.CheckKey(flags.Key); err != nil {
		return fmt.Errorf("--key %w", err)
	}
	return checkScopes(flags.Scope)
}

func checkScopes(scopes []string) error {
	for _, scope := range scopes {
		if !spec.ValidScope(scope) {
			return fmt.Errorf("--scope: %q must be 1 to %d letters, digits or . _ : / -", scope, spec.MaxScopeBytes)
		}
	}
	return nil
}

// Run makes one call as the model of a conversation would, with the same policy, ledger and audit log.
func (flags toolsCallFlags) Run(ctx context.Context, caller callerContext, p Process, parsed *kong.Context) error {
	if err := flags.check(); err != nil {
		return usage(err)
	}
	args := json.RawMessage(flags.Args)
	if flags.Args == "-" {
		data, err := io.ReadAll(io.LimitReader(p.Stdin, maxArgs))
		if err != nil {
			return fmt.Errorf("reading the arguments: %w", err)
		}
		args = data
	}
	cfg, _, err := p.load(flags.configFlags, false, parsed)
	if err != nil {
		return usage(err)
	}
	logger := logging.Open(p.Stderr, flags.LogLevel, "auto").Logger
	return p.withTools(caller, cfg, flags.Store, logger, func(tools *server.Tools) error {
		ctx, stop := context.WithCancel(ctx)
		defer stop()
		c := &oneCall{p: p, cfg: cfg, tools: tools, yes: flags.Yes}
		c.call.Tool, c.call.Args, c.call.Key = strings.ReplaceAll(flags.Name, "-", "_"), args, flags.Key
		if c.call.Tool == "kb_search" {
			if err := tools.AwaitVectors(ctx); err != nil {
				p.complain("%v", err)
			}
		}
		if err := c.begin(flags, tools.Snapshot()); err != nil {
			return usage(err)
		}
		envelope := c.call.Run(ctx).Kept()
		if err := p.printJSON(envelope); err != nil || envelope.OK {
			return err
		}
		return shown(exitFailure)
	})
}

// withTools opens the tools for use, and closes them.
func (p Process) withTools(ctx context.Context, cfg *config.Config, kept bool, logger *slog.Logger, use func(*server.Tools) error) error {
	tools, err := p.OpenTools(ctx, cfg, kept, logger)
	if _, wrong := errors.AsType[config.Problems](err); wrong {
		return usage(err)
	} else if err != nil {
		return err
	}
	if len(cfg.ToolDirs) == 0 && cfg.MCP.Lock == "" { // otherwise the version is not that of a file
		p.warnIfOld(tools.Snapshot().Version())
	}
	err = use(tools)
	if closed := tools.Close(); closed != nil {
		p.complain("%v", closed)
		return cmp.Or(err, shown(exitFailure))
	}
	return err
}

// warnIfOld warns if the project in the working directory has built a registry that differs from the built-in one.
func (p Process) warnIfOld(version string) {
	data, err := os.ReadFile(build.RegistryFile)
	if err != nil {
		return // not in a project, or nothing built
	}
	var file registry.File
	if err := json.Unmarshal(data, &file); err == nil && file.Version != version {
		p.complain("this binary has registry %s, but %s is %s: run make build", version, build.RegistryFile, file.Version)
	}
}

// oneCall is a conversation with a single call, by the user at the terminal.
type oneCall struct {
	p     Process
	cfg   *config.Config
	tools *server.Tools
	yes   bool
	call  execute.SingleCall // fixed after begin

	out sync.Mutex // serialises lines on standard error
}

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
		ID: id, UserID: string(flags.User), ConversationID: id, Agent: flags.Agent,
		Vouched: true, Scopes: flags.Scope, Mode: mode, Now: time.Now().UTC(),
	}
	has, ok := c.tools.Prepare(&c.call)
	if !ok {
		hint := ""
		if meant := textutil.Nearest(flags.Agent, c.tools.Agents()); meant != "" {
			hint = ", did you mean " + meant + "?"
		}
		return fmt.Errorf("--agent: no agent %q%s; available: %s", flags.Agent, hint, strings.Join(c.tools.Agents(), ", "))
	}
	c.call.Tools = whole.For(has)
	if known {
		c.explain(tool, has)
	} else {
		c.explainOff(whole)
	}
	c.call.Scope = []string{"tools-call", string(flags.User)}
	c.call.Tell, c.call.Audit, c.call.Watch, c.call.Approve = c.tell, c.audit, c.watch, c.approves
	if mode == spec.ModeText {
		c.call.Capabilities = []any{host{c: c}}
	} else {
		c.call.Describe = func(s *registry.Session) { s.Phase = "active" }
	}
	return nil
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
	case off && slices.Contains(agent.Tools(), c.call.Tool) && !c.cfg.Agents.Tools:
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
	c.tools.Record(r)
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
	lines, stop, ok := c.p.typed()
	defer stop()
	if !ok {
		c.say("%s requires approval: %s. Run it at a terminal, or use --yes", q.Tool, strings.TrimSuffix(preview, "."))
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
