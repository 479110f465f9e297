package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/alecthomas/kong"

	"voicegw/client/load"
	"voicegw/client/load/report"
	"voicegw/client/voice"
)

type loadFlags struct {
	Run     loadRunFlags     `cmd:"" default:"withargs" help:"Run many concurrent calls and report latencies (default; see help load run)."`
	Compare loadCompareFlags `cmd:"" help:"Compare two reports."`
}

type loadRunFlags struct {
	load.Options

	FailIf []string `help:"Exit with 1 on a condition like 'first_audio_p95>1200ms' (default: any loss)." placeholder:"EXPR" sep:"none"`
	AnyLag bool     `help:"Accept the run even if this machine was too slow for exact times." name:"any-lag"`
	JSON   string   `help:"File for the JSON report; - is standard output." placeholder:"FILE" name:"json"`
	HTML   string   `help:"File for the HTML report." placeholder:"FILE" name:"html"`
	Quiet  bool     `help:"Show no progress." short:"q"`
}

type loadCompareFlags struct {
	A    string `arg:"" help:"JSON report of the first run." placeholder:"A.json"`
	B    string `arg:"" help:"JSON report of the second run." placeholder:"B.json"`
	HTML string `help:"File for the HTML comparison." placeholder:"FILE" name:"html"`
}

func (flags loadRunFlags) Run(ctx context.Context, p Process, parsed *kong.Context) error {
	options, thresholds, err := p.loadOptions(flags, parsed)
	if err != nil {
		return usage(err)
	}
	output, err := load.OpenOutput(flags.JSON, flags.HTML)
	if err != nil {
		return usage(err)
	}
	progress := load.NewProgress(p.Stderr, flags.Quiet)
	options.Progress = progress.Show
	rep, err := load.Run(ctx, options)
	progress.End()
	switch {
	case errors.Is(err, load.ErrOptions), errors.Is(err, load.ErrSchedule), errors.Is(err, voice.ErrRecordings):
		return usage(err)
	case err != nil:
		return err
	}
	rep.LagIgnored = flags.AnyLag
	rep.Judge(thresholds)
	if err := output.Report(p.Stdout, p.Stderr, rep); err != nil {
		return err
	}
	switch {
	case !rep.Valid():
		return shown(exitInvalid)
	case !rep.Passed:
		return shown(exitFailure)
	default:
		return nil
	}
}

func (p Process) loadOptions(flags loadRunFlags, parsed *kong.Context) (load.Options, []report.Threshold, error) {
	o := flags.Options
	o.APIKey, o.Program = cmp.Or(o.APIKey, p.Variable("VOICEGW_API_KEY")), "voicegw "+versionOf()
	on, address, err := o.Endpoint()
	if err != nil {
		return o, nil, err
	}
	if o.APIKey == "" {
		cfg, _, err := p.load(configFlags{}, true, parsed)
		if err != nil {
			return o, nil, err
		}
		if o.APIKey, err = p.localKey(address, cfg); err != nil {
			return o, nil, err
		}
	}
	o.Phone.Token = cmp.Or(o.Phone.Token, p.Variable(phoneTokenVariable))
	thresholds := report.DefaultThresholds(on.Unmeasured)
	if len(flags.FailIf) > 0 {
		thresholds = nil
	}
	var problems []error
	for _, text := range flags.FailIf {
		t, err := report.ParseThreshold(text)
		if err == nil && t.Of(on.Unmeasured) {
			err = fmt.Errorf("--fail-if %q: the wire %s cannot measure it", text, on.Name)
		}
		problems = append(problems, err)
		thresholds = append(thresholds, t)
	}
	o.Script, o.ScriptDir, err = load.ReadScript(o.ScriptFile, on)
	return o, thresholds, errors.Join(append(problems, err)...)
}

func (flags loadCompareFlags) Run(p Process) error {
	c, err := load.Compare(flags.A, flags.B)
	if err != nil {
		return usage(err)
	}
	output, err := load.OpenOutput("", flags.HTML)
	if err != nil {
		return usage(err)
	}
	return output.Comparison(p.Stdout, c)
}
