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

// chatFlags are the flags of chat.
type chatFlags struct {
	operatorFlags
	Message      []string      `help:"Message to send; may be given several times. Without, messages are read line by line from the terminal or standard input." placeholder:"TEXT" sep:"none"`
	Conversation string        `help:"Conversation to go on with; a new one without." placeholder:"ID"`
	Agent        string        `help:"Agent that answers, and goes on with the conversation; without, the conversation's own or the gateway's default." placeholder:"ID"`
	User         userName      `help:"Who speaks; the gateway takes your address without." placeholder:"NAME"`
	Voice        bool          `help:"When a voice session is offered, go on in it at once, and come back to text at its end."`
	Audio        []string      `help:"WAV file to speak in the voice session, after what was asked in writing has been answered; may be given several times." placeholder:"FILE" sep:"none"`
	Text         []string      `help:"Text to type in the voice session; may be given several times, between --audio." placeholder:"TEXT" sep:"none"`
	JSON         bool          `help:"Write one JSON line for each event." name:"json"`
	Approve      bool          `help:"Approve whatever a tool asks for. Without this or --deny the person at the terminal is asked; with --json nobody is." xor:"answer"`
	Deny         bool          `help:"Decline whatever a tool asks for." xor:"answer"`
	Timeout      time.Duration `help:"In the voice session, give up after hearing nothing for this long." default:"30s"`
}

// Run holds a conversation in text with a running gateway.
func (flags chatFlags) Run(ctx context.Context, p Process, parsed *kong.Context) error {
	voice, err := voiceOptions(flags, parsed)
	voice.TimeZone = user.ZoneHere(p.Environ)
	if err != nil {
		return usage(err)
	}
	return p.ask(ctx, flags.operatorFlags, parsed, func(ctx context.Context, o *operator.Client) error {
		voice.Client = clientWith(o.Trust)
		return talk.Chat(ctx, talk.ChatOptions{
			Client: &talk.TextClient{BaseURL: o.Base, APIKey: o.Key, Client: clientWith(o.Trust)}, Conversation: flags.Conversation, Agent: flags.Agent, TimeZone: voice.TimeZone, User: string(flags.User),
			Messages: flags.Message, Approval: approval(flags.Approve, flags.Deny), OnByVoice: flags.Voice, Voice: voice, JSON: flags.JSON,
			In: p.Stdin, Out: p.Stdout, Complain: func(err error) { p.complain("%v", err) },
		})
	})
}

// voiceOptions returns the options of the voice session that --voice continues in.
func voiceOptions(flags chatFlags, parsed *kong.Context) (o talk.Options, err error) {
	if flags.Timeout <= 0 {
		return o, errors.New("--timeout must be longer than nothing")
	}
	if !flags.Voice && len(flags.Audio)+len(flags.Text) > 0 {
		return o, errors.New("--audio and --text are said in the voice session; they need --voice")
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
