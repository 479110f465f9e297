// Command voicegw is the gateway: it carries spoken conversations between clients
// and realtime models. It also holds the simulator of the providers and a client
// for the command line.
//
// This package is wiring: it reads flags and configuration, puts the parts
// together, and turns signals and errors into exit codes. 0 is success, 1 a
// failure, 2 wrong usage or configuration.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// version is set by scripts/build.
var version = ""

func main() {
	signals := make(chan os.Signal, 2) // the runtime ends the program without waiting for us
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	os.Exit(Run(context.Background(), Process{
		Args: os.Args[1:], Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Environ: os.Environ(), Signals: signals,
	}))
}
