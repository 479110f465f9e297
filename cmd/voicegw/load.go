package main

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/alecthomas/kong"

	"voicegw/client/load"
	"voicegw/client/load/report"
	"voicegw/client/voice"
	"voicegw/config"
)

// loadFlags are the commands of the load generator.
type loadFlags struct {
	Run     loadRunFlags     `cmd:"" default:"withargs" help:"Run many concurrent calls and report latencies (default; see help load run)."`
	Compare loadCompareFlags `cmd:"" help:"Compare two reports."`
}

type loadRunFlags struct {
	URL       string        `help:"Voice endpoint of the gateway (${default})." default:"ws://127.0.0.1:8080/v1/voice" placeholder:"URL"`
	YesReally bool          `help:"Allow an address that is not this machine." name:"yes-really"`
	Sessions  int           `help:"Number of concurrent sessions (10)." default:"10" placeholder:"N" short:"n"`
	Mode      string        `help:"Shape of the run: steady, ramp, step or soak (steady)." default:"steady" enum:"steady,ramp,step,soak"`
	Duration  time.Duration `help:"Duration; without it each session runs the script once (steady only)." placeholder:"TIME" short:"d"`
	Ramp      time.Duration `help:"Time over which the sessions start (default: 50 ms each)." placeholder:"TIME"`
	Steps     int           `help:"Steps of --mode step (5)." default:"5" placeholder:"N"`
	Call      time.Duration `help:"Length of a call in --mode soak (30s)." default:"30s" placeholder:"TIME"`
	Rest      time.Duration `help:"Pause between calls in --mode soak (2s)." default:"2s" placeholder:"TIME"`
	Wait      time.Duration `help:"Maximum wait for the gateway to be ready." placeholder:"TIME"`
	Warmup    time.Duration `help:"Time to run before measuring." placeholder:"TIME"`

	DropEvery   time.Duration `help:"Interval for dropping each caller's connection without a close." placeholder:"TIME" name:"drop-every"`
	ReloadEvery time.Duration `help:"Interval for leaving like a reloaded page, without buffered audio." placeholder:"TIME"`
	RoamEvery   time.Duration `help:"Interval for replacing each caller's open connection." placeholder:"TIME" name:"roam-every"`
	Away        time.Duration `help:"Time without a connection after --drop-every and --reload-every." placeholder:"TIME"`

	Script        string        `help:"File with the conversation, or builtin:NAME: ${scripts}." default:"builtin:talk" placeholder:"FILE"`
	Audio         []string      `help:"Speech for turns without audio (default: built-in voice); repeatable." placeholder:"FILE" sep:"none"`
	Provider      string        `help:"Provider to request (default: the gateway's)." placeholder:"NAME"`
	ProviderDelay time.Duration `help:"Known delay of the provider's first audio; the report subtracts it." placeholder:"TIME"`
	Frame         time.Duration `help:"Audio per frame, from 10ms to 200ms (20ms)." default:"20ms" placeholder:"TIME"`
	InputRate     int           `help:"Sample rate to send in Hz (16000)." default:"16000" placeholder:"HZ"`
	OutputRate    int           `help:"Sample rate to receive in Hz (24000)." default:"24000" placeholder:"HZ"`
	Timeout       time.Duration `help:"Time limit for connecting, and for starting the session (20s)." default:"20s" placeholder:"TIME"`
	APIKey        string        `help:"API key, if required; prefer VOICEGW_API_KEY, since other users see flags." placeholder:"KEY"`

	DataDir string `key:"data_dir" help:"Data folder of a gateway on this machine, to read the key that it generated." placeholder:"DIR"`

	PID   int    `help:"Process id of the gateway on this machine, to measure its CPU and memory (Linux)." placeholder:"N" name:"pid"`
	Debug string `help:"Its --debug-listen, such as http://127.0.0.1:6060, to measure its heap and goroutines." placeholder:"URL"`
	Audit string `help:"Its audit file, to check that it has the callers' tool calls." placeholder:"FILE"`

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

// Run runs the calls and reports.
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
	ctx, stop := p.untilSignal(ctx)
	defer stop()
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

// loadOptions converts the flags.
func (p Process) loadOptions(flags loadRunFlags, parsed *kong.Context) (load.Options, []report.Threshold, error) {
	o := load.Options{
		URL: flags.URL, Anywhere: flags.YesReally,
		Plan: load.ScheduleOptions{
			Mode: load.Mode(flags.Mode), Sessions: flags.Sessions, Ramp: flags.Ramp, Duration: flags.Duration,
			Steps: flags.Steps, Call: flags.Call, Rest: flags.Rest,
		},
		Wait: flags.Wait, Warmup: flags.Warmup, Audio: flags.Audio, Provider: flags.Provider, ProviderDelay: flags.ProviderDelay,
		InputRate: flags.InputRate, OutputRate: flags.OutputRate, Frame: flags.Frame, ConnectTime: flags.Timeout,
		APIKey: cmp.Or(flags.APIKey, variable(p.Environ, "VOICEGW_API_KEY")), PID: flags.PID, Debug: flags.Debug, Audit: flags.Audit,
		Drop: flags.DropEvery, Reload: flags.ReloadEvery, Roam: flags.RoamEvery, Away: flags.Away,
		ScriptFile: flags.Script, Program: "voicegw " + versionOf(),
	}
	if o.APIKey == "" {
		cfg, _, err := p.loadFrom(config.Source{Environ: p.Environ, Client: true}, nil, parsed)
		if err != nil {
			return o, nil, err
		}
		if o.APIKey, err = p.localKey(flags.URL, cfg); err != nil {
			return o, nil, err
		}
	}
	thresholds := report.DefaultThresholds()
	if len(flags.FailIf) > 0 {
		thresholds = nil
	}
	var problems []error
	for _, text := range flags.FailIf {
		t, err := report.ParseThreshold(text)
		problems = append(problems, err)
		thresholds = append(thresholds, t)
	}
	var err error
	o.Script, o.ScriptDir, err = load.ReadScript(flags.Script)
	return o, thresholds, errors.Join(append(problems, err)...)
}

// Run compares two reports.
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
