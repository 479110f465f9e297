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
	"voicegw/client/wire"
	"voicegw/config"
	simvoice "voicegw/sim/voice"
)

type simPhoneFlags struct {
	Say   []string `help:"Text that the caller says; repeatable, mixed with --audio and --keys in the order given." sep:"none"`
	Audio []string `help:"WAV file that the caller says; repeatable." placeholder:"FILE" sep:"none"`
	Keys  []string `help:"Keys that the caller presses, such as 12#; repeatable." sep:"none"`

	Answer         bool          `help:"Wait for a call that the gateway orders, and answer it, instead of calling."`
	InterruptAfter time.Duration `help:"Delay from an answer's first audio to the caller's next words." placeholder:"TIME"`
	From           string        `help:"Caller's number." default:"+15557654321" placeholder:"NUMBER"`
	URL            string        `help:"Address of the gateway." default:"http://127.0.0.1:8080" placeholder:"URL" name:"url"`
	wire.CarrierOptions
	Out     string        `help:"WAV file for what the caller heard." placeholder:"FILE"`
	JSON    bool          `help:"Write one JSON line for each event, and then a report." name:"json"`
	Timeout time.Duration `help:"Give up after this much silence." default:"30s" placeholder:"TIME"`
}

// phoneTokenVariable is that of the gateway's setting phone.twilio.auth_token.
const phoneTokenVariable = "VOICEGW_PHONE_TWILIO_AUTH_TOKEN"

// phoneWords are the caller's words without any of its own.
const phoneWords = "Good morning. What are the opening hours today?"

func (flags simPhoneFlags) Run(ctx context.Context, p Process, parsed *kong.Context) error {
	turns, err := flags.turns(parsed)
	if err != nil {
		return usage(err)
	}
	if flags.Timeout <= 0 || flags.InterruptAfter < 0 {
		return usage(errors.New("--timeout must be positive, and --interrupt-after not negative"))
	}
	flags.Listen = cmp.Or(flags.Listen, "127.0.0.1:8091")
	if !config.Loopback(flags.Listen) {
		return usage(fmt.Errorf("--listen: other machines can reach %s; use 127.0.0.1", flags.Listen))
	}
	var keep io.WriteCloser
	if flags.Out != "" {
		if keep, err = os.Create(flags.Out); err != nil {
			return usage(fmt.Errorf("--out: %w", err))
		}
	}
	display := talk.NewDisplay(p.Stdout, flags.JSON)
	o := flags.CarrierOptions
	o.Gateway, o.Note = flags.URL, display.Note
	o.Token = cmp.Or(o.Token, p.Variable(phoneTokenVariable))
	carrier := wire.NewCarrier(o)
	stopServing, err := carrier.Serve(ctx)
	if err != nil {
		return err
	}
	err = talk.Show(ctx, talk.Options{
		URL: flags.URL, Turns: turns, InterruptAfter: flags.InterruptAfter, Patience: flags.Timeout,
		InputRate: phoneRate, OutputRate: phoneRate, Microphone: true, Listen: time.Second,
		Dial: func(dialing context.Context) (voice.Conn, error) {
			if flags.Answer {
				return carrier.Await(ctx) // an ordered call may take any time
			}
			return carrier.Call(dialing, flags.From)
		},
	}, display, keep)
	err = errors.Join(err, stopServing())
	if errors.Is(err, talk.ErrOptions) {
		return usage(err)
	}
	return err
}

// phoneRate is the sample rate of phones in Hz.
const phoneRate = 8000

func (flags simPhoneFlags) turns(parsed *kong.Context) ([]talk.Turn, error) {
	var list []talk.Turn
	texts, recordings, keys := flags.Say, flags.Audio, flags.Keys
	say := func(text string) {
		clip := audio.Clip{Rate: phoneRate, PCM: simvoice.New(simvoice.Options{Rate: phoneRate}).Speak(text).PCM}
		list = append(list, talk.Turn{Name: text, Audio: clip})
	}
	for _, at := range parsed.Path {
		switch {
		case at.Flag == nil:
		case at.Flag.Name == "say":
			say(texts[0])
			texts = texts[1:]
		case at.Flag.Name == "audio":
			clip, err := audio.ReadFile(recordings[0])
			if err != nil {
				return nil, fmt.Errorf("--audio %s: %w", recordings[0], err)
			}
			list = append(list, talk.Turn{Name: filepath.Base(recordings[0]), Audio: clip})
			recordings = recordings[1:]
		case at.Flag.Name == "keys":
			if err := wire.CheckKeys(keys[0]); err != nil {
				return nil, fmt.Errorf("--keys: %w", err)
			}
			list = append(list, talk.Turn{Name: "keys " + keys[0], Text: keys[0]})
			keys = keys[1:]
		}
	}
	if len(list) == 0 {
		say(phoneWords)
	}
	return list, nil
}
