//go:build linux

// The command relaybench compares voice gateways with other relays: it is the clients, the
// provider and the judge. scripts/bench/compare.sh builds and calls it.
//
//	relaybench compare [-quick|-large] ...    measures all relays and prints the results
//	relaybench check   -release P -version V  fails if voicegw needs more than the program P
//
// It calls itself as provider and load, each in a process of its own, so that a relay's CPU time
// is only the relay's.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"time"
)

func main() {
	if err := command(os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "relaybench:", err)
		os.Exit(1)
	}
}

// command runs the command that the arguments name.
func command(args []string, in io.Reader, out io.Writer) error {
	if len(args) == 0 {
		return errors.New("say what to do: compare or check")
	}
	set := flag.NewFlagSet("relaybench "+args[0], flag.ContinueOnError)
	switch args[0] {
	case "provider":
		frame := set.Duration("frame", 20*time.Millisecond, "length of a frame")
		cert := set.String("cert", "", "speak TLS, and leave the certificate in this file")
		if err := set.Parse(args[1:]); err != nil {
			return err
		}
		return serveProvider(in, out, frameBytes(*frame), *cert)
	case "load":
		opts := loadFlags(set)
		if err := set.Parse(args[1:]); err != nil {
			return err
		}
		return runLoad(in, out, *opts)
	}
	return judgement(args[0], set, args[1:], out)
}

func loadFlags(set *flag.FlagSet) *loadOptions {
	o := &loadOptions{}
	set.StringVar(&o.Addr, "addr", "", "host:port of the relay")
	set.StringVar(&o.Cert, "cert", "", "speak TLS, and trust the certificate in this file")
	set.StringVar(&o.Speak, "speak", speakVoicegw, "protocol")
	set.StringVar(&o.Provider, "provider", wireGemini, "provider to ask for")
	set.IntVar(&o.Sessions, "sessions", 200, "how many")
	set.DurationVar(&o.Frame, "frame", 20*time.Millisecond, "length of a frame")
	set.DurationVar(&o.Warm, "warm", time.Second, "time before what counts")
	set.DurationVar(&o.Measure, "measure", 5*time.Second, "time that counts")
	return o
}

// judgement is what measures.
func judgement(what string, set *flag.FlagSet, args []string, out io.Writer) error {
	b := &bench{out: out}
	set.StringVar(&b.gateway, "gateway", "", "voicegw, built with the probe")
	set.StringVar(&b.nginx, "nginx", "", "the nginx program; if empty, nginx is left out")
	version := set.String("version", "unknown", "version of the release, for check")
	release := set.String("release", "", "the release's program, built with its probe, for check")
	quick := set.Bool("quick", false, "a run of a minute")
	front := set.Bool("tls", false, "only TLS to the clients")
	large := set.Bool("large", false, "more rounds, longer, and 5000 idle sessions")
	if err := set.Parse(args); err != nil {
		return err
	}
	var err error
	if b.self, err = os.Executable(); err != nil {
		return err
	}
	if b.dir, err = os.MkdirTemp("", "relaybench"); err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(b.dir) }()
	switch what {
	case "compare":
		return b.compare(*quick, *front, *large)
	case "check":
		return b.check(*release, *version)
	}
	return fmt.Errorf("%q is not known: say compare or check", what)
}

// compare runs a plan with all relays that are installed.
func (b *bench) compare(quick, front, large bool) error {
	plan := fullPlan()
	switch {
	case quick:
		plan = quickPlan()
	case front:
		plan = tlsPlan()
	case large:
		plan = largePlan()
	}
	for _, s := range plan {
		s.kinds = b.present(s.kinds)
		res, err := b.carryOut(s)
		if err != nil {
			return err
		}
		res.print(b.out)
	}
	return nil
}

// present leaves out nginx if it is not installed.
func (b *bench) present(kinds []kind) []kind {
	return slices.DeleteFunc(slices.Clone(kinds), func(k kind) bool {
		name, _, _ := k.plain()
		return name == nginx.name && b.nginx == ""
	})
}
