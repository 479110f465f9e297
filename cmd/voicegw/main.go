// Command voicegw is the gateway between voice clients and realtime models. It includes the simulator of the
// providers and a command line client.
//
// This package has the commands: it reads flags and configuration, calls the packages that do the work, and turns signals
// and errors into exit codes: 0 for success, 1 for a failure, 2 for wrong usage or configuration.
package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"

	"voicegw/internal/server"
)

// version is set by scripts/build.
var version = ""

func main() {
	signals := make(chan os.Signal, 2) // buffered: the runtime doesn't wait for the receiver
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	os.Exit(Run(context.Background(), Process{
		Args: os.Args[1:], Stdin: os.Stdin,
		Host: server.Host{Stdout: os.Stdout, Stderr: os.Stderr, Environ: os.Environ(), Signals: signals},
	}))
}

func versionOf() string {
	info, ok := debug.ReadBuildInfo()
	if version == "" && ok && info.Main.Version != "(devel)" {
		return cmp.Or(info.Main.Version, "unknown")
	}
	return cmp.Or(version, "unknown")
}

type versionFlags struct{}

func (versionFlags) Run(p Process) error {
	text := fmt.Sprintf("voicegw %s\n%s %s/%s\n", p.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision", "vcs.time", "vcs.modified", "CGO_ENABLED", "-tags":
				text += s.Key + " " + s.Value + "\n"
			}
		}
	}
	return p.print(text)
}
