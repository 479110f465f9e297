package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/alecthomas/kong"

	"voicegw/audio"
	"voicegw/client/talk"
	"voicegw/client/voice"
	"voicegw/internal/textutil"
	"voicegw/internal/user"
)

// talkFlags are the flags of talk.
type talkFlags struct {
	Audio          []string      `help:"WAV file to speak, or - for standard input (WAV, or raw PCM16 mono at --rate); may be given several times." placeholder:"FILE" sep:"none"`
	Text           []string      `help:"Text to type; may be given several times, between --audio, in the order of the conversation." placeholder:"TEXT" sep:"none"`
	Ticket         string        `help:"Ticket of a voice session that was made for you (voice_session_start, POST /v1/sessions); - reads it from standard input. What was asked in writing is answered first." placeholder:"TICKET" xor:"agent"`
	APIKey         string        `help:"API key or token to show, where the gateway lets nobody in without. Others on this machine can see a flag: better leave it to VOICEGW_API_KEY." placeholder:"KEY" name:"api-key"`
	InterruptAfter time.Duration `help:"Begin the next turn this long after the first audio of an answer; with one turn, say it again." placeholder:"TIME"`
	Provider       string        `help:"Provider to ask for; the gateway's default without." placeholder:"NAME"`
	Agent          string        `help:"Agent to talk to; the gateway's default without. A --ticket names its own." placeholder:"ID" xor:"agent"`
	Voice          string        `help:"Voice to ask for." placeholder:"NAME"`
	URL            string        `help:"Voice endpoint of the gateway." default:"ws://127.0.0.1:8080/v1/voice" placeholder:"URL" name:"url"`
	CA             string        `help:"PEM file with the authorities that may vouch for the gateway's certificate; those of the system without." placeholder:"FILE" name:"ca"`
	Out            string        `help:"WAV file to write what was heard to." placeholder:"FILE"`
	JSON           bool          `help:"Write one JSON line for each event, and a report as the last." name:"json"`
	Approve        bool          `help:"Approve whatever a tool asks for. Without this or --deny the person at the terminal is asked; with --json nobody is." xor:"answer"`
	Deny           bool          `help:"Decline whatever a tool asks for." xor:"answer"`
	Rate           int           `help:"Rate of raw PCM on standard input in Hz." default:"16000"`
	InputRate      int           `help:"Rate to send in Hz; the recording's own, or 16000, without." placeholder:"HZ"`
	OutputRate     int           `help:"Rate to receive in Hz; 24000 without." placeholder:"HZ"`
	Timeout        time.Duration `help:"Give up after hearing nothing for this long." default:"30s"`
}

// Run holds a conversation and shows it.
func (flags talkFlags) Run(ctx context.Context, p Process, parsed *kong.Context) error {
	options, err := p.talkOptions(flags, parsed)
	if err != nil {
		return usage(err)
	}
	var keep io.WriteCloser
	if flags.Out != "" {
		// The file is made before the conversation, so that nobody learns only afterwards that the
		// recording cannot be written.
		if keep, err = os.Create(flags.Out); err != nil {
			return usage(fmt.Errorf("--out: %w", err))
		}
	}
	ctx, stop := p.untilSignal(ctx)
	defer stop()
	if _, isTerminal := textutil.Width(p.Stdin); isTerminal && !flags.JSON && options.Approval == voice.ApprovalNobody {
		if answers, done, err := textutil.OpenTyped(); err == nil {
			defer done()
			options.Approval, options.Answers = voice.ApprovalAsk, answers
		}
	}
	err = talk.Show(ctx, options, talk.NewDisplay(p.Stdout, flags.JSON), keep)
	if errors.Is(err, talk.ErrOptions) {
		return usage(err)
	}
	return err
}

// talkOptions returns the options that the flags describe.
func (p Process) talkOptions(flags talkFlags, parsed *kong.Context) (talk.Options, error) {
	o := talk.Options{
		URL: flags.URL, APIKey: cmp.Or(flags.APIKey, variable(p.Environ, "VOICEGW_API_KEY")), Provider: flags.Provider, Agent: flags.Agent, TimeZone: user.ZoneHere(p.Environ), Voice: flags.Voice, InterruptAfter: flags.InterruptAfter,
		InputRate: flags.InputRate, OutputRate: flags.OutputRate, Patience: flags.Timeout, Approval: approval(flags.Approve, flags.Deny),
	}
	if flags.Timeout <= 0 {
		return o, errors.New("--timeout must be longer than nothing")
	}
	if flags.InterruptAfter < 0 {
		return o, errors.New("--interrupt-after must not be negative")
	}
	stdinTaken := false
	trusted, err := trust(flags.CA)
	if err != nil {
		return o, err
	}
	o.Client = clientWith(trusted)
	o.Turns, err = turns(parsed, flags.Audio, flags.Text, func(name string) (audio.Clip, error) {
		if name == "-" && stdinTaken {
			return audio.Clip{}, errors.New("- can be given once: standard input is over after it")
		}
		stdinTaken = stdinTaken || name == "-"
		clip, err := talk.ReadClip(name, p.Stdin, flags.Rate)
		return clip, of(name, err)
	})
	if err != nil {
		return o, err
	}
	if flags.Ticket == "-" {
		if stdinTaken {
			return o, errors.New("--ticket - and --audio - cannot both read standard input")
		}
		if flags.Ticket, err = talk.ReadTicket(p.Stdin); err != nil {
			return o, err
		}
	}
	if o.Ticket = flags.Ticket; o.Ticket == "" && len(o.Turns) == 0 {
		return o, errors.New("there is nothing to say: give --audio FILE or --text TEXT, or a --ticket")
	}
	return o, nil
}

// approval returns who answers a tool's question, by the flags.
func approval(approve, deny bool) voice.Approval {
	switch {
	case approve:
		return voice.ApprovalYes
	case deny:
		return voice.ApprovalNo
	default:
		return voice.ApprovalNobody
	}
}

// of names the recording that an error is about.
func of(name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", name, err)
}

// turns returns the turns of --audio and --text, in the order in which they were given.
func turns(parsed *kong.Context, recordings, texts []string, read func(name string) (audio.Clip, error)) ([]talk.Turn, error) {
	var list []talk.Turn
	for _, at := range parsed.Path {
		switch {
		case at.Flag == nil:
		case at.Flag.Name == "audio":
			clip, err := read(recordings[0])
			if err != nil {
				return nil, fmt.Errorf("--audio %w", err)
			}
			list = append(list, talk.Turn{Name: filepath.Base(recordings[0]), Audio: clip})
			recordings = recordings[1:]
		case at.Flag.Name == "text":
			if texts[0] == "" {
				return nil, errors.New("--text is empty")
			}
			list = append(list, talk.Turn{Text: texts[0]})
			texts = texts[1:]
		}
	}
	return list, nil
}
