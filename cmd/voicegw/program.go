package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"

	"voicegw/client/load"
	"voicegw/config"
	"voicegw/internal/server"
	"voicegw/internal/textutil"
)

// Process is the program's environment.
type Process struct {
	Args  []string // without the program's name
	Stdin io.Reader
	server.Host
}

// grammar is the command line. The tag "key" names the setting that a flag overrides.
type grammar struct {
	Serve    serveFlags    `cmd:"" help:"Serve voice conversations over WebSocket, and a page to try them."`
	Sim      simFlags      `cmd:"" help:"Simulate the providers, or a phone carrier, for tests without keys."`
	Talk     talkFlags     `cmd:"" help:"Hold a voice conversation from recordings or text."`
	Chat     chatFlags     `cmd:"" help:"Hold a text conversation, optionally continued by voice."`
	Load     loadFlags     `cmd:"" help:"Load-test a gateway with many concurrent calls."`
	Tools    toolsFlags    `cmd:"" help:"Create, check, build and try tools."`
	MCP      mcpFlags      `cmd:"" name:"mcp" help:"Approve tools of MCP servers, and offer tools to MCP clients."`
	Agents   agentsFlags   `cmd:"" help:"List, show, change and delete the agents of a running gateway."`
	Audit    auditFlags    `cmd:"" help:"Show the audit log of tool calls, filtered or live."`
	Jobs     jobsFlags     `cmd:"" help:"List and cancel background jobs."`
	Blocks   blocksFlags   `cmd:"" help:"List and unblock blocked users."`
	Keys     keysFlags     `cmd:"" help:"Make API keys for a gateway's configuration."`
	Drain    drainFlags    `cmd:"" help:"Drain a running gateway: move its sessions to others and refuse new ones."`
	Health   healthFlags   `cmd:"" help:"Check whether a running gateway is alive or ready; see the exit code."`
	Console  consoleFlags  `cmd:"" help:"Print a link that opens the console of a running gateway."`
	ToolHost toolHostFlags `cmd:"" hidden:"" help:"Run tools in JavaScript for a gateway, which starts it."`
	Version  versionFlags  `cmd:"" help:"Print the version and build information."`
	Help     helpFlags     `cmd:"" help:"Show help for a command."`
}

type helpFlags struct {
	Command []string `arg:"" optional:"" help:"The command."`
}

// callerContext is the context of Run's caller, for commands that handle signals themselves. A context.Context of other
// commands ends at the first signal, too.
type callerContext interface{ context.Context }

// Run runs the program and returns the exit code. Cancelling ctx acts like a first signal.
func Run(ctx context.Context, p Process) int {
	p.Version = versionOf()
	var cli grammar
	exited, stop := false, func() {}
	defer func() { stop() }()
	parser, err := kong.New(&cli,
		kong.Name("voicegw"),
		kong.Description("A gateway between voice clients and realtime models."),
		kong.Writers(p.Stdout, p.Stderr),
		kong.Exit(func(int) { exited = true }), // --help has been answered
		kong.Bind(p),
		kong.BindTo(ctx, (*callerContext)(nil)),
		kong.BindSingletonProvider(func() (until context.Context) {
			until, stop = p.untilSignal(ctx)
			return until
		}),
		kong.Vars{"scripts": strings.Join(load.ExampleNames(), ", ")},
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true}),
	)
	if err != nil {
		p.complain("internal error in the command line: %v", err)
		return exitFailure
	}
	args := p.Args
	if len(args) > 0 && args[0] == "help" && !strings.HasPrefix(strings.Join(args[1:], " "), "-") {
		args = append(append([]string{}, args[1:]...), "--help")
	}
	parsed, err := parser.Parse(args)
	if exited {
		return exitOK
	}
	if err != nil {
		p.complain("%v", err)
		p.complain("%s", hint(args, err))
		return exitUsage
	}
	return p.exit(parsed.Run())
}

func hint(args []string, err error) string {
	var pe *kong.ParseError
	if errors.As(err, &pe) && len(args) > 0 && pe.Context != nil && pe.Context.Selected() != nil {
		return "voicegw help " + strings.TrimPrefix(pe.Context.Selected().FullPath(), "voicegw ") + " lists all flags"
	}
	return "voicegw help lists all commands"
}

func (p Process) complain(format string, args ...any) {
	// no other place to report the error
	_, _ = fmt.Fprintf(p.Stderr, "voicegw: "+format+"\n", args...)
}

// typed returns the lines typed at the terminal; ok is false if standard input is not a terminal.
func (p Process) typed() (lines <-chan string, stop func(), ok bool) {
	if _, isTerminal := textutil.Width(p.Stdin); isTerminal {
		if lines, stop, err := textutil.OpenTyped(); err == nil {
			return lines, stop, true
		}
	}
	return nil, func() {}, false
}

// untilSignal returns a context that ends at the first signal. stop waits for its goroutine.
func (p Process) untilSignal(ctx context.Context) (until context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-p.Signals:
			cancel(server.ErrSignal)
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil); <-done }
}

// Exit codes.
const (
	exitOK      = 0
	exitFailure = 1
	exitUsage   = 2
	exitInvalid = 3 // a load run with unreliable measurements
)

type exitError struct {
	code int
	err  error // nil if the error was already shown
}

func (e *exitError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

func usage(err error) error { return &exitError{exitUsage, err} }

func shown(code int) error { return &exitError{code: code} }

func (p Process) exit(err error) int {
	var coded *exitError
	switch {
	case err == nil:
		return exitOK
	case !errors.As(err, &coded):
		p.complain("%v", err)
		return exitFailure
	case coded.err != nil:
		p.complainAll(coded.err)
	}
	return coded.code
}

func (p Process) complainAll(err error) {
	var problems config.Problems
	if !errors.As(err, &problems) {
		p.complain("%v", err)
		return
	}
	if len(problems) == 1 {
		p.complain("invalid configuration:")
	} else {
		p.complain("invalid configuration, %d problems:", len(problems))
	}
	for _, problem := range problems {
		_, _ = fmt.Fprintf(p.Stderr, "  %s\n", problem)
	}
}
