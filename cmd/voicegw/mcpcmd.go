package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"voicegw/config"
	"voicegw/internal/logging"
	"voicegw/internal/mcp"
	"voicegw/internal/server"
	"voicegw/internal/textutil"
	"voicegw/internal/user"
	"voicegw/registry/build"
	"voicegw/registry/document"
)

type mcpFlags struct {
	Add    mcpAddFlags    `cmd:"" help:"Approve tools of an MCP server, or show those that can be approved."`
	Diff   mcpDiffFlags   `cmd:"" help:"Show what MCP servers have changed since their tools were approved."`
	Update mcpUpdateFlags `cmd:"" help:"Approve the changes of a server's tools."`
	List   mcpListFlags   `cmd:"" help:"List the approved tools of MCP servers."`
	Serve  mcpServeFlags  `cmd:"" help:"Serve the tools to an MCP client over standard input and output."`
}

type mcpAddFlags struct {
	configFlags
	Server      string        `arg:"" help:"Name of the server below mcp.servers."`
	Tools       []string      `arg:"" optional:"" help:"The server's names of the tools to approve (default: show all that can be)."`
	Category    string        `help:"retrieval, action or utility." enum:"retrieval,action,utility" default:"action"`
	SideEffects string        `help:"none, read_only or writes." enum:"none,read_only,writes" default:"writes"`
	Idempotent  bool          `help:"Calling a tool twice does no more than calling it once."`
	NoConfirm   bool          `help:"No person needs to approve the calls."`
	Modes       []string      `help:"Modes of conversations: text, voice." default:"text" enum:"text,voice"`
	Timeout     time.Duration `help:"The longest time of a call." default:"5s"`
}

type mcpDiffFlags struct {
	configFlags
	Server string `arg:"" optional:"" help:"Name of a server (default: all)."`
}

type mcpUpdateFlags struct {
	configFlags
	Server string   `arg:"" help:"Name of the server below mcp.servers."`
	Tools  []string `arg:"" optional:"" help:"The server's names of the tools (default: all that have changed)."`
}

type mcpListFlags struct{ configFlags }

// locked is the configuration of the commands, with the lock file.
type locked struct {
	p   Process
	cfg config.MCP
	*mcp.Lock
}

// ProvideLock reads the configuration and the lock file, which may not exist yet. Kong calls it for each Run that has a
// *locked as a parameter.
func (flags configFlags) ProvideLock(p Process, parsed *kong.Context) (*locked, error) {
	source, problems := p.source(flags, parsed)
	cfg, err := config.LoadMCP(source)
	if err := errors.Join(problems.Err(), err); err != nil {
		return nil, usage(err)
	}
	if len(cfg.Servers) == 0 {
		return nil, usage(errors.New("mcp.servers names no server; add one (docs/mcp-tools.md)"))
	}
	lock, err := server.ReadLock(cfg.Lock)
	if errors.Is(err, fs.ErrNotExist) {
		lock, err = &mcp.Lock{}, nil
	}
	if err != nil {
		return nil, usage(err)
	}
	if lock.Servers == nil {
		lock.Servers = map[string]map[string]*mcp.Pinned{}
	}
	return &locked{p, cfg, lock}, nil
}

// ask returns a server's descriptions of its tools, by name.
func (l *locked) ask(ctx context.Context, name string) (map[string]mcp.Said, error) {
	s, has := server.MCPServers(l.cfg)[name]
	if !has {
		known := strings.Join(slices.Sorted(maps.Keys(l.cfg.Servers)), ", ")
		return nil, usage(fmt.Errorf("mcp.servers has no %q; it has %s", name, known))
	}
	says, err := mcp.Ask(ctx, name, s, logging.Open(l.p.Stderr, "warn", "auto").Logger)
	if err != nil {
		return nil, fmt.Errorf("the server %s: %w", name, err)
	}
	return says, nil
}

// write replaces the lock file at once, so that a running gateway never reads half of it.
func (l *locked) write() error {
	data, err := l.Encode()
	if err == nil {
		err = build.Replace(l.cfg.Lock, data)
	}
	if err != nil {
		return fmt.Errorf("mcp.lock: %w", err)
	}
	return nil
}

// pin approves a tool with a reviewer's decisions.
func (l *locked) pin(server string, said mcp.Said, decisions map[string]json.RawMessage) error {
	pin, err := said.Pin()
	if err != nil {
		return err
	}
	p := &mcp.Pinned{Pin: pin, Said: said, Tool: decisions}
	made, problems := mcp.NewTool(server, said.Name, p)
	if len(problems) > 0 {
		return usage(fmt.Errorf("%s: %s", said.Name, problems[0]))
	}
	delete(l.Servers[server], said.Name)
	others, _ := l.Tools() // which may have problems of their own
	for _, other := range others {
		if id := other.Entry.ToolID; id == made.Entry.ToolID {
			return usage(fmt.Errorf("%s would get the id of another approved tool: %s", said.Name, id))
		}
	}
	if l.Servers[server] == nil {
		l.Servers[server] = map[string]*mcp.Pinned{}
	}
	l.Servers[server][said.Name] = p
	return nil
}

func (flags mcpAddFlags) decisions() map[string]json.RawMessage {
	all := map[string]json.RawMessage{}
	for key, value := range map[string]any{
		"category": flags.Category, "sideEffects": flags.SideEffects, "requiresConfirmation": !flags.NoConfirm, "allowedModes": flags.Modes,
		"idempotent": flags.Idempotent || flags.Category == "retrieval", "timeoutMs": flags.Timeout.Milliseconds(),
		"latencyBudgetMs": min(3000, flags.Timeout.Milliseconds()),
	} {
		all[key], _ = json.Marshal(value) // texts, numbers and lists of texts
	}
	return all
}

// Run shows or approves tools of a server.
func (flags mcpAddFlags) Run(ctx context.Context, p Process, l *locked) error {
	says, err := l.ask(ctx, flags.Server)
	if err != nil {
		return err
	}
	if len(flags.Tools) == 0 {
		return p.print(flags.candidates(l, says))
	}
	var out strings.Builder
	for _, name := range flags.Tools {
		said, has := says[name]
		switch {
		case !has:
			meant := document.DidYouMean(name, slices.Sorted(maps.Keys(says)))
			return usage(fmt.Errorf("the server %s has no tool %q%s", flags.Server, name, meant))
		case l.Servers[flags.Server][name] != nil:
			return usage(fmt.Errorf("%s is approved already; edit its decisions in %s, or see voicegw mcp update", name, l.cfg.Lock))
		}
		out.WriteString(describeSaid(flags.Server, said, flags.decisions()))
		if err := l.pin(flags.Server, said, flags.decisions()); err != nil {
			return err
		}
	}
	if err := l.write(); err != nil {
		return err
	}
	fmt.Fprintf(&out, "approved in %s: %s. Review the file, and edit the decisions below \"tool\".\n",
		l.cfg.Lock, strings.Join(flags.Tools, ", "))
	return p.print(out.String())
}

// candidates describes the tools that are not approved.
func (flags mcpAddFlags) candidates(l *locked, says map[string]mcp.Said) string {
	var out strings.Builder
	for _, name := range slices.Sorted(maps.Keys(says)) {
		if l.Servers[flags.Server][name] == nil {
			out.WriteString(describeSaid(flags.Server, says[name], flags.decisions()))
		}
	}
	return out.String() + "Approve tools with: voicegw mcp add " + flags.Server + " NAME ... (see --help for decisions)\n"
}

// describeSaid shows a tool to a reviewer: the server's words, its hints, and doubts.
func describeSaid(server string, said mcp.Said, decisions map[string]json.RawMessage) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", said.Name)
	for line := range strings.SplitSeq(strings.TrimSpace(document.CleanText(said.Description)), "\n") {
		fmt.Fprintf(&b, "    %s\n", line)
	}
	if len(said.Annotations) > 0 {
		fmt.Fprintf(&b, "    hints of the server, which decide nothing: %s\n", document.CleanText(string(said.Annotations)))
	}
	pin, err := said.Pin()
	tool, problems := mcp.NewTool(server, said.Name, &mcp.Pinned{Pin: pin, Said: said, Tool: decisions})
	switch {
	case err != nil:
		fmt.Fprintf(&b, "    cannot be used: %v\n", err)
	case len(problems) > 0:
		fmt.Fprintf(&b, "    cannot be used: %s\n", problems[0])
	default:
		fmt.Fprintf(&b, "    id: %s\n", tool.Entry.ToolID)
		for _, loss := range tool.Losses {
			fmt.Fprintf(&b, "    schema: %s\n", loss)
		}
	}
	for _, doubt := range said.Doubts() {
		fmt.Fprintf(&b, "    CAUTION: %s\n", doubt)
	}
	return b.String() + "\n"
}

// changes returns the differences of a server's approved tools, by name.
func (l *locked) changes(server string, says map[string]mcp.Said) map[string][]string {
	all := map[string][]string{}
	for name, p := range l.Servers[server] {
		said, has := says[name]
		pin, err := said.Pin()
		switch {
		case !has:
			all[name] = []string{"the server does not have it any more"}
		case err != nil:
			all[name] = []string{err.Error()}
		case pin != p.Pin:
			all[name] = mcp.Differences(p.Said, said)
		}
	}
	return all
}

// Run shows the changes. The exit code is 1 if there are any.
func (flags mcpDiffFlags) Run(ctx context.Context, p Process, l *locked) error {
	servers := slices.Sorted(maps.Keys(l.Servers))
	if flags.Server != "" {
		servers = []string{flags.Server}
	}
	var out strings.Builder
	var failed []error
	for _, server := range servers {
		says, err := l.ask(ctx, server)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		changes := l.changes(server, says)
		for _, name := range slices.Sorted(maps.Keys(changes)) {
			out.WriteString(describeChange(server, says[name], name, changes[name]))
		}
	}
	if err := errors.Join(append(failed, p.print(out.String()))...); err != nil || out.Len() == 0 {
		return err
	}
	return shown(exitFailure)
}

// describeChange shows a change of a tool, and doubts about its new words.
func describeChange(server string, said mcp.Said, name string, lines []string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s\n    %s\n", server, name, strings.Join(lines, "\n    "))
	for _, doubt := range said.Doubts() {
		fmt.Fprintf(&b, "    CAUTION: %s\n", doubt)
	}
	return b.String()
}

// Run approves changes, and removes tools that the server does not have any more. The decisions stay.
func (flags mcpUpdateFlags) Run(ctx context.Context, p Process, l *locked) error {
	says, err := l.ask(ctx, flags.Server)
	if err != nil {
		return err
	}
	changes := l.changes(flags.Server, says)
	names := flags.Tools
	if len(names) == 0 {
		names = slices.Sorted(maps.Keys(changes))
	}
	var out strings.Builder // a reviewer may not have seen this: the server can change its tools after mcp diff
	for _, name := range names {
		if lines := changes[name]; len(lines) > 0 {
			out.WriteString(describeChange(flags.Server, says[name], name, lines))
		}
		was := l.Servers[flags.Server][name]
		said, has := says[name]
		switch {
		case was == nil:
			return usage(fmt.Errorf("%q is not approved; see voicegw mcp add %s", name, flags.Server))
		case !has:
			delete(l.Servers[flags.Server], name)
		default:
			if err := l.pin(flags.Server, said, was.Tool); err != nil {
				return err
			}
		}
	}
	if err := l.write(); err != nil {
		return err
	}
	return p.print(out.String() + textutil.Count(len(names), "tool") + " updated in " + l.cfg.Lock + "\n")
}

// Run lists the approved tools.
func (mcpListFlags) Run(p Process, l *locked) error {
	tools, problems := l.Tools()
	if len(problems) > 0 {
		return usage(server.LockProblems(l.cfg.Lock, problems))
	}
	var out strings.Builder
	for _, t := range tools {
		e := t.Entry
		confirm := "no approval"
		if e.RequiresConfirmation {
			confirm = cmp.Or(map[bool]string{true: "approval if confirmWhen holds"}[len(e.ConfirmWhen) > 0], "approval")
		}
		fmt.Fprintf(&out, "%s  %s, %s, %s, %v\n", e.ToolID, e.Category, e.SideEffects, confirm, e.AllowedModes)
	}
	return p.print(cmp.Or(out.String(), "no tools are approved; see voicegw mcp add\n"))
}

type mcpServeFlags struct {
	User userName `help:"User of the calls." default:"local" placeholder:"ID"`
	toolsetFlags
}

// Run serves until the client closes standard input.
func (flags mcpServeFlags) Run(ctx context.Context, caller callerContext, p Process, parsed *kong.Context) error {
	if err := checkScopes(flags.Scope); err != nil {
		return usage(err)
	}
	who, err := user.Parse(string(flags.User))
	if err != nil {
		return usage(err)
	}
	cfg, _, err := p.load(flags.configFlags, false, parsed)
	if err != nil {
		return usage(err)
	}
	logger := logging.Open(p.Stderr, flags.LogLevel, "auto", cfg.Secrets()...).Logger
	return p.withTools(caller, cfg, flags.Store, logger, func(t *server.Tools) error {
		from := mcp.Caller{User: who, Vouched: true, Scopes: flags.Scope}
		return t.ServeMCP(ctx, io.NopCloser(p.Stdin), unclosed{p.Stdout}, from)
	})
}

// unclosed is a writer that its user cannot close.
type unclosed struct{ io.Writer }

func (unclosed) Close() error { return nil }
