package main

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"voicegw/audio"
	"voicegw/client/operator"
	"voicegw/client/talk"
	"voicegw/internal/user"
)

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

func (flags chatFlags) Run(ctx context.Context, p Process, parsed *kong.Context) error {
	voice, err := voiceOptions(flags, parsed)
	voice.TimeZone = user.ZoneHere(p.Environ)
	if err != nil {
		return usage(err)
	}
	return p.ask(ctx, flags.operatorFlags, parsed, func(ctx context.Context, o *operator.Client) error {
		voice.Client = clientWith(o.Trust)
		return talk.Chat(ctx, talk.ChatOptions{
			Client:       &talk.TextClient{BaseURL: o.Base, APIKey: o.Key, Client: clientWith(o.Trust)},
			Conversation: flags.Conversation, Agent: flags.Agent, TimeZone: voice.TimeZone, User: string(flags.User),
			Messages: flags.Message, Approval: approval(flags.Approve, flags.Deny), OnByVoice: flags.Voice, Voice: voice, JSON: flags.JSON,
			In: p.Stdin, Out: p.Stdout, Complain: func(err error) { p.complain("%v", err) },
		})
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
