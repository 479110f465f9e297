package main

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/alecthomas/kong"

	"voicegw/client/load"
	"voicegw/client/load/report"
	"voicegw/client/speech"
	"voicegw/config"
)

// loadFlags are the commands of the load generator.
type loadFlags struct {
	Run     loadRunFlags     `cmd:"" default:"withargs" help:"Call a gateway with many callers at once, and report what they had to wait for (voicegw load alone does the same; voicegw help load run lists the flags)."`
	Compare loadCompareFlags `cmd:"" help:"Compare two reports."`
}

type loadRunFlags struct {
	URL       string        `help:"Voice endpoint of the gateway (ws://127.0.0.1:8080/v1/voice)." default:"ws://127.0.0.1:8080/v1/voice" placeholder:"URL" name:"url"`
	YesReally bool          `help:"Allow an address that is not this machine." name:"yes-really"`
	Sessions  int           `help:"How many sessions at once (10)." default:"10" placeholder:"N" short:"n"`
	Mode      string        `help:"Shape of the run: steady, ramp, step or soak (steady)." default:"steady" enum:"steady,ramp,step,soak"`
	Duration  time.Duration `help:"How long; without it each session goes once through the script (steady only)." placeholder:"TIME" short:"d"`
	Ramp      time.Duration `help:"How long the sessions take to begin, one after another; 50 ms for each without." placeholder:"TIME"`
	Steps     int           `help:"Steps of --mode step (5)." default:"5" placeholder:"N"`
	Call      time.Duration `help:"How long a call of --mode soak lasts (30s)." default:"30s" placeholder:"TIME"`
	Rest      time.Duration `help:"How long a caller of --mode soak rests between calls (2s)." default:"2s" placeholder:"TIME"`
	Wait      time.Duration `help:"Wait so long for the gateway to be ready." placeholder:"TIME"`
	Warmup    time.Duration `help:"Call so long before what counts." placeholder:"TIME"`

	DropEvery   time.Duration `help:"Cut each caller's connection so often, without a word." placeholder:"TIME" name:"drop-every"`
	ReloadEvery time.Duration `help:"Leave so often as a page does that is loaded again: what was to be played is lost." placeholder:"TIME" name:"reload-every"`
	RoamEvery   time.Duration `help:"Replace each caller's connection so often while it is open." placeholder:"TIME" name:"roam-every"`
	Away        time.Duration `help:"Stay so long without a connection, after --drop-every and --reload-every." placeholder:"TIME"`

	Script        string        `help:"YAML file of what is said and expected, or builtin:NAME: ${scripts}." default:"builtin:talk" placeholder:"FILE"`
	Audio         []string      `help:"WAV file, or folder of them, to speak where the script does not care; may be given several times. NAME.json beside it tells where somebody speaks. Without any, a built-in voice speaks." placeholder:"FILE" sep:"none"`
	Provider      string        `help:"Provider to ask for; the gateway's default without." placeholder:"NAME"`
	ProviderDelay time.Duration `help:"How long the provider is known to wait before it speaks (sim.first_audio_ms): the report then tells what is added to it." placeholder:"TIME"`
	Frame         time.Duration `help:"How much audio a frame has, from 10ms to 200ms (20ms)." default:"20ms" placeholder:"TIME"`
	InputRate     int           `help:"Rate to send in Hz (16000)." default:"16000" placeholder:"HZ"`
	OutputRate    int           `help:"Rate to receive in Hz (24000)." default:"24000" placeholder:"HZ"`
	Timeout       time.Duration `help:"How long a connection, and a session after it, may take (20s)." default:"20s" placeholder:"TIME"`
	APIKey        string        `help:"A key of the gateway, for scripts that begin with a ticket and where everybody needs one. Others on this machine can see a flag: better leave it to VOICEGW_API_KEY." placeholder:"KEY" name:"api-key"`

	DataDir string `key:"data_dir" help:"The gateway's data folder, in which the key is that it has made itself; it is read for a gateway on this machine." placeholder:"DIR"`

	PID   int    `help:"Process of the gateway on this machine, to see what it takes (Linux)." placeholder:"N" name:"pid"`
	Debug string `help:"Address of its --debug-listen, such as http://127.0.0.1:6060, to see its heap and goroutines." placeholder:"URL"`
	Audit string `help:"Its audit file, to look for the calls that the callers saw." placeholder:"FILE"`

	FailIf []string `help:"Exit with 1 if this is true of the run, such as 'first_audio_p95>1200ms'; may be given several times, and replaces the default: nothing lost, nothing failed." placeholder:"EXPR" sep:"none"`
	AnyLag bool     `help:"Judge the run although this machine was too slow for it to measure times: for runs about memory or correctness." name:"any-lag"`
	JSON   string   `help:"File to write the report to as JSON; - is standard output." placeholder:"FILE" name:"json"`
	HTML   string   `help:"File to write the report to as one page of HTML." placeholder:"FILE" name:"html"`
	Quiet  bool     `help:"Show no progress." short:"q"`
}

type loadCompareFlags struct {
	A    string `arg:"" help:"JSON report of the first run." placeholder:"A.json"`
	B    string `arg:"" help:"JSON report of the second run." placeholder:"B.json"`
	HTML string `help:"File to write the comparison to as one page of HTML." placeholder:"FILE" name:"html"`
}

// Run calls a gateway and reports.
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
	case errors.Is(err, load.ErrOptions), errors.Is(err, load.ErrSchedule), errors.Is(err, speech.ErrSpeech):
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
		return told(exitInvalid)
	case !rep.Passed:
		return told(exitFailure)
	default:
		return nil
	}
}

// loadOptions reads what the flags describe.
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
