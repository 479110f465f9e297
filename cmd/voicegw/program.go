package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"voicegw/client/load"
	"voicegw/registry"
)

// Process is what the system gives a program.
type Process struct {
	Args    []string // without the program's name
	Stdin   io.Reader
	Stdout  io.Writer
	Stderr  io.Writer
	Environ []string
	// Signals delivers the signals that ask the program to end. Nil delivers none.
	Signals <-chan os.Signal
	// Reloads delivers the signals that ask a gateway to read its configuration again. Nil means SIGHUP,
	// unless the program runs at a terminal.
	Reloads <-chan os.Signal
	// Registry returns the tool_registry.json to use. Nil means the one that was built into the
	// program.
	Registry func() ([]byte, error)
	// Handlers are those of the registry's tools. Nil means those that were built into the program.
	Handlers map[string]registry.Handler

	sweeps  <-chan time.Time // replaces the times of sweep unless it is nil, for tests
	leaving time.Duration    // replaces leaveTime unless it is zero, for tests on a slow disk
}

// grammar is the command line. The tag "key" names the setting that a flag overrides.
type grammar struct {
	Serve   serveFlags   `cmd:"" help:"Serve voice conversations over WebSocket, and a page to try them."`
	Sim     simFlags     `cmd:"" help:"Simulate the providers: both real wires, for tests without keys."`
	Talk    talkFlags    `cmd:"" help:"Hold a conversation with a gateway from recordings or text."`
	Chat    chatFlags    `cmd:"" help:"Hold a conversation in text with a running gateway, and go on in it by voice."`
	Load    loadFlags    `cmd:"" help:"Call a gateway with many callers at once: a load and a regression test."`
	Tools   toolsFlags   `cmd:"" help:"Check, build, write and try tools."`
	Agents  agentsFlags  `cmd:"" help:"List, show, change and delete the agents of a running gateway."`
	Audit   auditFlags   `cmd:"" help:"Show what tools did: the audit, filtered, and as it comes."`
	Jobs    jobsFlags    `cmd:"" help:"List the long work that calls have begun, and cancel it."`
	Blocks  blocksFlags  `cmd:"" help:"List the users who are locked out, and let them in again."`
	Keys    keysFlags    `cmd:"" help:"Make API keys for a gateway's configuration."`
	Drain   drainFlags   `cmd:"" help:"Empty a running gateway: its sessions move to others, and it takes no new ones."`
	Health  healthFlags  `cmd:"" help:"Ask a running gateway whether it lives, or is ready: the exit code says it."`
	Console consoleFlags `cmd:"" help:"Print a link that opens the console of a running gateway."`
	Version versionFlags `cmd:"" help:"Tell the version and how it was built."`
	Help    helpFlags    `cmd:"" help:"Tell about a command."`
}

type helpFlags struct {
	Command []string `arg:"" optional:"" help:"Command to tell about."`
}

// Run runs the program and returns the exit code. Cancelling ctx acts like a first signal.
func Run(ctx context.Context, p Process) int {
	var cli grammar
	exited := false
	parser, err := kong.New(&cli,
		kong.Name("voicegw"),
		kong.Description("A gateway between voice clients and realtime models."),
		kong.Writers(p.Stdout, p.Stderr),
		kong.Exit(func(int) { exited = true }), // --help has been answered
		kong.BindTo(ctx, (*context.Context)(nil)),
		kong.Vars{"scripts": strings.Join(load.ExampleNames(), ", ")},
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true}),
	)
	if err != nil {
		p.complain("the command line is broken: %v", err)
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
	return p.exit(parsed.Run(p))
}

// hint names the help to read next.
func hint(args []string, err error) string {
	var pe *kong.ParseError
	if errors.As(err, &pe) && len(args) > 0 && pe.Context != nil && pe.Context.Selected() != nil {
		return "voicegw help " + strings.TrimPrefix(pe.Context.Selected().FullPath(), "voicegw ") + " tells all flags"
	}
	return "voicegw help tells all commands"
}

// complain writes a line for the person at the terminal.
func (p Process) complain(format string, args ...any) {
	// There is no other place to report the error.
	_, _ = fmt.Fprintf(p.Stderr, "voicegw: "+format+"\n", args...)
}
