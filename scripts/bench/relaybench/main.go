//go:build linux

// The command relaybench compares voice gateways with other relays: it is the clients, the
// provider and the judge. scripts/bench/compare.sh builds and calls it.
//
//	relaybench compare  [-quick|-large] ...   measures all relays and prints the results
//	relaybench baseline -file F -version V    writes voicegw's figures, in multiples of a calibration
//	relaybench check    -file F               exit code 3 if voicegw needs more than that
//	relaybench beside   -release P -version V exit code 3 if it needs more than the program P
//
// It calls itself as provider, load and splice, each in a process of its own, so that a relay's
// CPU time is only the relay's.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"
)

func main() {
	if err := command(os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "relaybench:", err)
		if errors.Is(err, errWorse) {
			os.Exit(3) // only then: compare.sh checks for it
		}
		os.Exit(1)
	}
}

// command runs the command that the arguments name.
func command(args []string, in io.Reader, out io.Writer) error {
	if len(args) == 0 {
		return errors.New("say what to do: compare, baseline, check or beside")
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
	case "splice":
		to := set.String("to", "", "host:port")
		if err := set.Parse(args[1:]); err != nil {
			return err
		}
		return runSplice(in, out, *to)
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
	set.StringVar(&b.nodeRelay, "node-relay", "", "the file noderelay/relay.mjs; if empty, this relay is left out")
	file := set.String("file", "", "the baseline")
	version := set.String("version", "unknown", "version of the gateway, for the baseline and for beside")
	release := set.String("release", "", "the release's program, built with its probe, for beside")
	quick := set.Bool("quick", false, "a run of a minute")
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
		return b.compare(*quick, *large)
	case "baseline":
		return b.writeBaseline(*file, *version)
	case "check":
		return b.compareBaseline(*file)
	case "beside":
		return b.compareRelease(*release, *version)
	}
	return fmt.Errorf("%q is not known: say compare, baseline, check or beside", what)
}

// compare runs a plan with all relays that are installed.
func (b *bench) compare(quick, large bool) error {
	plan := fullPlan()
	switch {
	case quick:
		plan = quickPlan()
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

// present leaves out relays that are not installed.
func (b *bench) present(kinds []kind) (out []kind) {
	for _, k := range kinds {
		name, _ := k.plain()
		if (name != nginx.name || b.nginx != "") && (name != node.name || b.nodeRelay != "") {
			out = append(out, k)
		}
	}
	return out
}
