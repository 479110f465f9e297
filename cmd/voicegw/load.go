package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"voicegw/client/load"
	"voicegw/client/load/examples"
	"voicegw/client/load/plan"
	"voicegw/client/load/report"
	"voicegw/client/load/script"
	"voicegw/client/load/speech"
	"voicegw/config"
)

// loadFlags are the commands of the load generator.
type loadFlags struct {
	Run     loadRunFlags     `cmd:"" default:"withargs" help:"Call a gateway with many callers at once, and report what they had to wait for (voicegw load alone does the same; voicegw help load run tells the flags)."`
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

	Script        string        `help:"YAML file of what is said and expected, or builtin:NAME: ${scripts}." default:"builtin:talk" placeholder:"FILE"`
	Audio         []string      `help:"WAV file, or folder of them, to speak where the script does not care; may be given several times. NAME.json beside it tells where somebody speaks. Without any, a built-in voice speaks." placeholder:"FILE" sep:"none"`
	Provider      string        `help:"Provider to ask for; the gateway's default without." placeholder:"NAME"`
	ProviderDelay time.Duration `help:"How long the provider is known to wait before it speaks (sim.first_audio_ms): the report then tells what is added to it." placeholder:"TIME"`
	Frame         time.Duration `help:"How much audio a frame has, from 10ms to 200ms (20ms)." default:"20ms" placeholder:"TIME"`
	InputRate     int           `help:"Rate to send in Hz (16000)." default:"16000" placeholder:"HZ"`
	OutputRate    int           `help:"Rate to receive in Hz (24000)." default:"24000" placeholder:"HZ"`
	Timeout       time.Duration `help:"How long a connection, and a session after it, may take (20s)." default:"20s" placeholder:"TIME"`
	APIKey        string        `help:"The gateway's api_key, for scripts that begin with a ticket. Others on this machine can see a flag: better leave it to VOICEGW_API_KEY." placeholder:"KEY" name:"api-key"`

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

// exitInvalid says that a run has measured nothing that can be trusted.
const exitInvalid = 3

// loadTest runs a command of the load generator.
func (p Process) loadTest(ctx context.Context, flags loadFlags, parsed *kong.Context) int {
	if strings.HasPrefix(parsed.Command(), "load compare") {
		return p.loadCompare(flags.Compare)
	}
	return p.loadRun(ctx, flags.Run, parsed)
}

// loadRun calls a gateway and reports.
func (p Process) loadRun(ctx context.Context, flags loadRunFlags, parsed *kong.Context) int {
	options, thresholds, err := p.loadOptions(flags, parsed)
	if err != nil {
		p.complain("%v", err)
		return exitUsage
	}
	files, err := createAll(flags.JSON, flags.HTML)
	if err != nil {
		p.complain("%v", err)
		return exitUsage
	}
	progress := newLoadProgress(p.Stderr, flags.Quiet)
	options.Progress = progress.show
	ctx, stop := p.untilSignal(ctx)
	defer stop()
	rep, err := load.Run(ctx, options)
	progress.end()
	switch {
	case errors.Is(err, load.ErrOptions), errors.Is(err, plan.ErrOptions), errors.Is(err, speech.ErrSpeech):
		p.complain("%v", err)
		return exitUsage
	case err != nil:
		p.complain("%v", err)
		return exitFailure
	}
	rep.LagIgnored = flags.AnyLag
	rep.Judge(thresholds)
	if err := p.tellLoad(rep, flags.JSON == "-", files); err != nil {
		p.complain("%v", err)
		return exitFailure
	}
	switch {
	case !rep.Valid():
		return exitInvalid
	case !rep.Passed:
		return exitFailure
	default:
		return exitOK
	}
}

// tellLoad shows a report and writes its files.
func (p Process) tellLoad(rep *report.Report, jsonOut bool, files [2]*os.File) error {
	text := p.Stdout
	var problems []error
	if jsonOut {
		text = p.Stderr
		problems = append(problems, rep.Write(p.Stdout))
	}
	_, colour := terminal(text)
	problems = append(problems, rep.Text(text, colour))
	for i, write := range []func(io.Writer) error{rep.Write, rep.HTML} {
		if files[i] != nil {
			problems = append(problems, keepText(files[i], write))
		}
	}
	return errors.Join(problems...)
}

// createAll makes the files of a report, before the run: nobody wants to learn afterwards
// that it cannot be kept. An empty name, or -, is no file.
func createAll(names ...string) (files [2]*os.File, err error) {
	for i, name := range names {
		if name == "" || name == "-" {
			continue
		}
		if files[i], err = os.Create(name); err != nil {
			return files, err
		}
	}
	return files, nil
}

// keepText writes a file and closes it.
func keepText(f *os.File, write func(io.Writer) error) error {
	w := bufio.NewWriter(f)
	return errors.Join(write(w), w.Flush(), f.Close())
}

// loadOptions reads what the flags name.
func (p Process) loadOptions(flags loadRunFlags, parsed *kong.Context) (load.Options, []report.Threshold, error) {
	o := load.Options{
		URL: flags.URL, Anywhere: flags.YesReally,
		Plan: plan.Options{
			Mode: plan.Mode(flags.Mode), Sessions: flags.Sessions, Ramp: flags.Ramp, Duration: flags.Duration,
			Steps: flags.Steps, Call: flags.Call, Rest: flags.Rest,
		},
		Wait: flags.Wait, Warmup: flags.Warmup, Audio: flags.Audio, Provider: flags.Provider, ProviderDelay: flags.ProviderDelay,
		InputRate: flags.InputRate, OutputRate: flags.OutputRate, Frame: flags.Frame, ConnectTime: flags.Timeout,
		APIKey: flags.APIKey, PID: flags.PID, Debug: flags.Debug, Audit: flags.Audit,
		ScriptFile: flags.Script, Program: "voicegw " + versionOf(),
	}
	if o.APIKey == "" {
		o.APIKey = variable(p.Environ, "VOICEGW_API_KEY")
	}
	if o.APIKey == "" {
		cfg, _, err := p.loadFrom(config.Source{Environ: p.Environ, Client: true}, nil, parsed)
		if err != nil {
			return o, nil, err
		}
		key, err := p.localKey(flags.URL, cfg)
		if err != nil {
			return o, nil, err
		}
		o.APIKey = key.Reveal()
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
	o.Script, o.ScriptDir, err = readScript(flags.Script)
	return o, thresholds, errors.Join(append(problems, err)...)
}

// builtinScript begins the name of a script that is in the program.
const builtinScript = "builtin:"

// maxScript bounds a script, in bytes; what is larger is refused when it is parsed.
const maxScript = 2 << 20

// readScript reads a script, and says where recordings that it names are.
func readScript(name string) (s *script.Script, dir string, err error) {
	var data []byte
	if own, ok := strings.CutPrefix(name, builtinScript); ok {
		data, err = examples.Read(own)
	} else {
		dir = filepath.Dir(name)
		data, err = readAtMost(name, maxScript)
	}
	if err != nil {
		return nil, "", fmt.Errorf("--script: %w", err)
	}
	s, err = script.Parse(name, data)
	return s, dir, err
}

// readAtMost reads the first bytes of a file.
func readAtMost(name string, n int64) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	return io.ReadAll(io.LimitReader(f, n))
}

// loadCompare compares two reports.
func (p Process) loadCompare(flags loadCompareFlags) int {
	a, errA := readReport(flags.A)
	b, errB := readReport(flags.B)
	if err := errors.Join(errA, errB); err != nil {
		p.complain("%v", err)
		return exitUsage
	}
	files, err := createAll(flags.HTML)
	if err != nil {
		p.complain("%v", err)
		return exitUsage
	}
	c := report.Compare(filepath.Base(flags.A), a, filepath.Base(flags.B), b)
	_, colour := terminal(p.Stdout)
	err = c.Text(p.Stdout, colour)
	if files[0] != nil {
		err = errors.Join(err, keepText(files[0], c.HTML))
	}
	if err != nil {
		p.complain("%v", err)
		return exitFailure
	}
	return exitOK
}

func readReport(name string) (*report.Report, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	r, err := report.Read(bufio.NewReader(f))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return r, nil
}
