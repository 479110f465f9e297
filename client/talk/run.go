// Package talk holds a conversation with a gateway as a program with a microphone and a loudspeaker would: it speaks
// recordings in real time, plays the answers on a clock instead of a loudspeaker, interrupts if asked to, and
// measures the response times. [Run] does this for voice, [Chat] for text.
package talk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"voicegw/audio"
	"voicegw/client/voice"
	"voicegw/protocol"
)

// Run holds one conversation. When ctx ends, it hangs up and returns the context's cause within about 3 s.
//
// The error wraps ErrOptions, ErrConnect, ErrLost, ErrUnanswered or ErrProtocol, or is the context's. The report is
// valid in every case. Run is safe for concurrent use.
func Run(ctx context.Context, options Options) (Report, error) {
	o, err := options.withDefaults()
	if err != nil {
		return Report{}, err
	}
	turns, err := o.words()
	if err != nil {
		return Report{}, err
	}
	began := time.Now()
	conn, err := o.connect(ctx, false)
	if err != nil {
		silent := Report{InputRate: o.InputRate, OutputRate: o.OutputRate}
		if cause := context.Cause(ctx); cause != nil {
			return silent, cause
		}
		return silent, fmt.Errorf("%w at %s: %w", ErrConnect, o.URL, err)
	}
	again := func(ctx context.Context) (voice.Conn, error) { return o.connect(ctx, true) }
	return converse(ctx, o, turns, voice.Link{Conn: conn, Dial: again}, began)
}

// connect opens a connection; back means to resume a session.
func (o Options) connect(ctx context.Context, back bool) (voice.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, o.Patience)
	defer cancel()
	if o.Dial != nil {
		return o.Dial(ctx)
	}
	return protocol.Dial(ctx, o.URL, protocol.DialOptions{Client: o.Client, Back: back, Header: protocol.Bearer(o.APIKey)})
}

// The waits of a conversation, in addition to Options.Patience.
const (
	// pendingTime is the time to begin answering a ticket's pending request; afterwards there was none.
	pendingTime = 2 * time.Second
	goodbyeTime = 3 * time.Second
	frameLength = 20 * time.Millisecond
)

func (o Options) words() ([]voice.Words, error) {
	var list []voice.Words
	for i, t := range o.Turns {
		w := voice.Words{Text: t.Text}
		if t.spoken() {
			r, err := voice.NewRecording(t.Name, t.Audio, o.InputRate)
			if err != nil {
				return nil, fmt.Errorf("%w: turn %d (%s): %w", ErrOptions, i+1, t.Name, err)
			}
			w.Recording = r
		}
		list = append(list, w)
	}
	return list, nil
}

func converse(ctx context.Context, o Options, words []voice.Words, link voice.Link, began time.Time) (Report, error) {
	next := voice.Turn{WaitFor: voice.ForAnswer, Pause: voice.DefaultPause, Approval: o.Approval, Patience: o.Patience, KeepText: true}
	pending := next
	pending.Act = voice.Type
	v := voice.Options{
		Start: protocol.Start{
			TimeZone: o.TimeZone,
			Ticket:   o.Ticket, Provider: o.Provider, Agent: o.Agent, Voice: o.Voice, InputRate: o.InputRate, OutputRate: o.OutputRate,
			Client: &protocol.ClientInfo{Name: "voicegw-talk"},
		},
		Pending: &pending, Goodbye: true, Words: func(index, _, _ int) voice.Words { return words[index] },
		Microphone: o.Microphone, Frame: frameLength, Silence: make([]byte, audio.Bytes(o.InputRate, frameLength)),
		ConnectTime: o.Patience, PendingTime: pendingTime, GoodbyeTime: goodbyeTime, Patience: o.Patience,
		Buffers: make([]time.Duration, 1), // plays all received audio at once
		Resume:  voice.ResumeOptions{Within: voice.ResumeTime, Random: rand.Float64},
	}
	for i, w := range words {
		next.Act, next.Interrupts, next.InterruptAfter = voice.Type, i > 0 && o.InterruptAfter > 0, o.InterruptAfter
		if next.Pause = voice.DefaultPause; i == 0 {
			next.Pause = cmp.Or(o.Listen, voice.DefaultPause)
		}
		if w.Recording != nil {
			next.Act, v.Microphone = voice.Say, true
		}
		v.Turns = append(v.Turns, next)
	}
	t := &talker{o: o, began: began, pcm: map[*voice.Item][]byte{}, reasons: map[*voice.Exchange]string{}}
	t.Conversation = voice.New(v, t, began)
	link.Answers = o.Answers
	t.Run(ctx, link)
	if ctx.Err() != nil {
		t.err = context.Cause(ctx)
	}
	return t.result()
}

// The errors of this package. The errors that wrap them have the details.
var (
	// ErrOptions means that the options are invalid.
	ErrOptions = errors.New("wrong options")
	// ErrConnect means that the gateway was unreachable or refused the conversation.
	ErrConnect = errors.New("no conversation with the gateway")
	// ErrLost means that the connection broke during the conversation.
	ErrLost = errors.New("the conversation broke off")
	// ErrUnanswered means that a turn was not answered.
	ErrUnanswered = errors.New("not every turn was answered")
	// ErrProtocol means that the gateway violated the protocol.
	ErrProtocol = errors.New("the gateway broke the protocol")
)
