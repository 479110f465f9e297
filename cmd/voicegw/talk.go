package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"voicegw/audio"
	"voicegw/client/operator"
	"voicegw/client/talk"
	"voicegw/client/voice"
	"voicegw/internal/user"
)

type talkFlags struct {
	Audio []string `help:"WAV file to speak; - is standard input, raw at --rate; repeatable." placeholder:"FILE" sep:"none"`
	Text  []string `help:"Text to type; repeatable, mixed with --audio in the order given." sep:"none"`
	talk.Options
	CA      string        `help:"PEM file with authorities for the gateway's certificate (default: system's)." placeholder:"FILE"`
	Out     string        `help:"WAV file for the received audio." placeholder:"FILE"`
	JSON    bool          `help:"Write one JSON line for each event, and then a report." name:"json"`
	Approve bool          `help:"Approve every request (default: ask in the terminal, except with --json)." xor:"answer"`
	Deny    bool          `help:"Decline every approval request." xor:"answer"`
	Rate    int           `help:"Sample rate of raw PCM on standard input in Hz." default:"16000"`
	Input   int           `help:"Sample rate to send in Hz (default: the recording's, or 16000)." placeholder:"HZ" name:"input-rate"`
	Output  int           `help:"Sample rate to receive in Hz (default: 24000)." placeholder:"HZ" name:"output-rate"`
	Timeout time.Duration `help:"Give up after this much silence." default:"30s"`
}

func (flags talkFlags) Run(ctx context.Context, p Process, parsed *kong.Context) error {
	options, err := p.talkOptions(flags, parsed)
	if err != nil {
		return usage(err)
	}
	var keep io.WriteCloser
	if flags.Out != "" {
		// Created before the conversation, so that an unwritable file fails early.
		if keep, err = os.Create(flags.Out); err != nil {
			return usage(fmt.Errorf("--out: %w", err))
		}
	}
	if !flags.JSON && options.Approval == voice.ApprovalNobody {
		answers, done, ok := p.typed()
		defer done()
		if ok {
			options.Approval, options.Answers = voice.ApprovalAsk, answers
		}
	}
	err = talk.Show(ctx, options, talk.NewDisplay(p.Stdout, flags.JSON), keep)
	if errors.Is(err, talk.ErrOptions) {
		return usage(err)
	}
	return err
}

func (p Process) talkOptions(flags talkFlags, parsed *kong.Context) (talk.Options, error) {
	o := flags.Options
	o.APIKey, o.TimeZone = cmp.Or(o.APIKey, p.Variable("VOICEGW_API_KEY")), user.ZoneHere(p.Environ)
	o.InputRate, o.OutputRate, o.Patience, o.Approval = flags.Input, flags.Output, flags.Timeout, approval(flags.Approve, flags.Deny)
	if flags.Timeout <= 0 {
		return o, errors.New("--timeout must be positive")
	}
	if o.InterruptAfter < 0 {
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
			return audio.Clip{}, errors.New("- can be given only once")
		}
		stdinTaken = stdinTaken || name == "-"
		clip, err := talk.ReadClip(name, p.Stdin, flags.Rate)
		return clip, of(name, err)
	})
	if err != nil {
		return o, err
	}
	if o.Ticket == "-" {
		if stdinTaken {
			return o, errors.New("--ticket - and --audio - cannot both read standard input")
		}
		if o.Ticket, err = talk.ReadTicket(p.Stdin); err != nil {
			return o, err
		}
	}
	if o.Ticket == "" && len(o.Turns) == 0 {
		return o, errors.New("nothing to say: give --audio FILE or --text TEXT, or a --ticket")
	}
	return o, nil
}

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

func of(name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", name, err)
}

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

type chatFlags struct {
	operatorFlags
	Message      []string      `help:"Message to send; repeatable (default: lines from the terminal)." placeholder:"TEXT" sep:"none"`
	Conversation string        `help:"Conversation to continue (default: a new one)." placeholder:"ID"`
	Agent        string        `help:"Agent that answers from now on (default: the conversation's, or the default agent)." placeholder:"ID"`
	User         userName      `help:"Your user name (default: your address)." placeholder:"NAME"`
	Voice        bool          `help:"Switch to voice when a session is offered, and back to text when it ends."`
	Audio        []string      `help:"WAV file to speak in voice, after the pending request; repeatable." placeholder:"FILE" sep:"none"`
	Text         []string      `help:"Text to type in the voice session; repeatable, mixed with --audio." sep:"none"`
	JSON         bool          `help:"Write one JSON line for each event." name:"json"`
	Approve      bool          `help:"Approve every request (default: ask in the terminal, except with --json)." xor:"answer"`
	Deny         bool          `help:"Decline every approval request." xor:"answer"`
	Timeout      time.Duration `help:"End the voice session after this much silence." default:"30s"`
}

func (flags chatFlags) Run(ctx context.Context, p Process, o *operator.Client, parsed *kong.Context) error {
	voice, err := voiceOptions(flags, parsed)
	voice.TimeZone = user.ZoneHere(p.Environ)
	if err != nil {
		return usage(err)
	}
	voice.Client = clientWith(o.Trust)
	return talk.Chat(ctx, talk.ChatOptions{
		Client:       &talk.TextClient{BaseURL: o.Base, APIKey: o.Key, Client: voice.Client},
		Conversation: flags.Conversation, Agent: flags.Agent, TimeZone: voice.TimeZone, User: string(flags.User),
		Messages: flags.Message, Approval: approval(flags.Approve, flags.Deny), OnByVoice: flags.Voice, Voice: voice, JSON: flags.JSON,
		In: p.Stdin, Out: p.Stdout, Complain: func(err error) { p.complain("%v", err) },
	})
}

func voiceOptions(flags chatFlags, parsed *kong.Context) (o talk.Options, err error) {
	if flags.Timeout <= 0 {
		return o, errors.New("--timeout must be positive")
	}
	if !flags.Voice && len(flags.Audio)+len(flags.Text) > 0 {
		return o, errors.New("--audio and --text require --voice")
	}
	for _, m := range flags.Message {
		if strings.TrimSpace(m) == "" {
			return o, errors.New("--message is empty")
		}
	}
	o.Patience = flags.Timeout
	o.Turns, err = turns(parsed, flags.Audio, flags.Text, func(name string) (audio.Clip, error) {
		if name == "-" {
			return audio.Clip{}, errors.New("must be a file: standard input is for messages")
		}
		clip, err := audio.ReadFile(name)
		return clip, of(name, err)
	})
	return o, err
}
