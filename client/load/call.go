package load

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"time"

	"voicegw/audio"
	"voicegw/client/load/report"
	"voicegw/client/voice"
	"voicegw/client/wire"
	"voicegw/protocol"
)

// Outcome is the result of a call.
type Outcome int

// The outcomes.
const (
	// Done: the script is complete, the time is up, or the model hung up.
	Done Outcome = iota
	// Broken: the session failed to start or ended unexpectedly.
	Broken
	Stopped
)

// Limit says when a call ends.
type Limit struct {
	// Until is the time after which no turn begins. Zero means one pass through the script.
	Until time.Time
	// HangUp ends the call at Until, even during speech.
	HangUp bool
}

// Call holds one conversation. When ctx ends it hangs up, which takes a few seconds at most.
func (k *Caller) Call(ctx context.Context, limit Limit) Outcome {
	k.calls++
	k.set.Collector.Add(report.Calls, 1)
	t, err := k.begin(ctx)
	if err != nil {
		return k.refused(ctx, err)
	}
	conn, err := k.dial(ctx, false)
	if err != nil {
		return k.refused(ctx, err)
	}
	c := k.converse(ctx, conn, limit, t)
	switch {
	case c.Done():
		return Done
	case ctx.Err() != nil:
		return Stopped
	default:
		return Broken
	}
}

func (k *Caller) converse(ctx context.Context, conn voice.Conn, limit Limit, t ticket) *call {
	c := &call{set: k.set, Collector: k.set.Collector, session: k.session, number: k.calls, ticketAt: t.at,
		began: time.Now(), open: map[string]openCall{}, notes: map[*voice.Exchange]notes{}}
	c.Conversation = voice.New(k.options(limit, t), c, c.began)
	c.Live(1)
	defer c.Live(-1)
	c.Run(ctx, voice.Link{Conn: conn, Dial: func(ctx context.Context) (voice.Conn, error) { return k.dial(ctx, true) }, Sent: c.sent})
	c.finish(time.Now())
	return c
}

// The caller's waits that no script sets.
const (
	pendingTime = 5 * time.Second
	goodbyeTime = 10 * time.Second
	// thinkTime is how long a user takes to answer an approval request.
	thinkTime = 300 * time.Millisecond
)

func (k *Caller) options(limit Limit, t ticket) voice.Options {
	s := k.set.Script
	o := voice.Options{
		Start: protocol.Start{
			Provider: cmp.Or(k.set.Provider, s.Provider), Agent: s.Agent, Voice: s.Voice, Ticket: t.secret,
			InputRate: k.set.InputRate, OutputRate: k.set.OutputRate,
			Client: &protocol.ClientInfo{Name: "voicegw-load", ID: k.fill(s.User, 1)},
		},
		Turns: k.turns, Words: k.words, Microphone: !s.NoMicrophone, Frame: k.set.Frame, Silence: k.silence, PushToTalk: s.PushToTalk,
		Until: limit.Until, HangUp: limit.HangUp,
		ConnectTime: k.set.ConnectTime, PendingTime: pendingTime, GoodbyeTime: goodbyeTime, Patience: DefaultPatience, ThinkTime: thinkTime,
		Reporting: reportingBuffer,
		Resume:    voice.ResumeOptions{Within: voice.ResumeTime, Random: k.random.Float64}, Outages: k.outages(),
	}
	for _, ms := range report.Buffers() {
		o.Buffers = append(o.Buffers, time.Duration(ms)*time.Millisecond)
	}
	if s.PushToTalk {
		o.Start.TurnDetection = protocol.TurnDetectionClient
	}
	if s.Begin != nil {
		o.Pending = &voice.Turn{Act: voice.Type, WaitFor: voice.ForAnswer, Patience: DefaultPatience,
			Error: s.Begin.Expect.Error, KeepText: s.Begin.Expect.NeedsText()}
	}
	return o
}

// outages returns the configured outages. Each caller starts them at its own time, the same in each run.
func (k *Caller) outages() []voice.Outage {
	list := k.set.outages()
	for i, o := range list {
		// Multiples of the golden ratio spread evenly over any number of callers.
		_, part := math.Modf(float64(k.session+i) * math.Phi)
		list[i].First = time.Duration(part * float64(o.Every))
	}
	return list
}

func (k *Caller) words(index, count, pass int) voice.Words {
	t := &k.set.Script.Turns[index]
	switch {
	case t.Act != voice.Say:
		return voice.Words{Text: k.fill(t.Text, pass)}
	case t.Recording == "":
		return voice.Words{Recording: k.set.Speech.Line(t.Text)}
	case t.Recording == AnyRecording:
		return voice.Words{Recording: k.set.Speech.Any(k.session + k.calls + count)}
	default:
		return voice.Words{Recording: k.set.Speech.Named(t.Recording)}
	}
}

// fill replaces the variables in a text.
func (k *Caller) fill(text string, pass int) string {
	return Variables{Session: k.session, Call: k.calls, Pass: pass}.Fill(text)
}

// ticket admits to an existing session; the zero value is not a ticket.
type ticket struct {
	secret string
	at     time.Time // when it arrived
}

// dial connects; back means to resume a session.
func (k *Caller) dial(ctx context.Context, back bool) (voice.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, k.set.ConnectTime)
	defer cancel()
	began := time.Now()
	conn, err := k.open(ctx, back)
	if err == nil {
		k.set.Collector.Record(report.Connect, time.Since(began))
	}
	return conn, err
}

func (k *Caller) open(ctx context.Context, back bool) (voice.Conn, error) {
	s := k.set
	switch {
	case s.Dial != nil:
		return s.Dial(ctx, s.URL)
	case s.Carrier != nil:
		return s.Carrier.Call(ctx, fmt.Sprintf("+1555%07d", k.session))
	case s.Wire == wire.NameRealtime:
		return wire.DialRealtime(ctx, s.URL, wire.RealtimeOptions{
			APIKey: s.APIKey, Client: s.HTTP, Tools: s.Script.SeesTools(), Model: s.model(),
			User: k.fill(s.Script.User, 1),
		})
	}
	return protocol.Dial(ctx, s.URL, protocol.DialOptions{Client: s.HTTP, Back: back, Header: protocol.Bearer(s.APIKey)})
}

func (k *Caller) refused(ctx context.Context, err error) Outcome {
	if ctx.Err() != nil {
		return Stopped
	}
	c := k.set.Collector
	c.Add(report.Refused, 1)
	c.Error("refused")
	c.Problem(report.Problem{
		Session: k.session, Call: k.calls, AtMS: time.Since(k.set.Began).Milliseconds(), Kind: report.KindRefused, What: err.Error(),
	})
	return Broken
}

// Settings are shared by all callers of a run. Nothing changes after New.
type Settings struct {
	Options // with their defaults
	// Carrier makes the calls of the wire of phones; nil on any other.
	Carrier   *wire.Carrier
	Speech    *voice.Library
	HTTP      *http.Client
	Collector *report.Collector
	Began     time.Time
	// SawCall, if set, is called for every tool.ended with the ids of its session and call.
	SawCall func(session, call string)
}

// model is the model that a client of the OpenAI Realtime protocol asks for: an agent or a provider of the gateway.
func (s *Settings) model() string {
	if s.Script.Agent != "" {
		return "agent:" + s.Script.Agent
	}
	return cmp.Or(s.Provider, s.Script.Provider)
}

// Caller is one caller. It is not safe for concurrent use.
type Caller struct {
	// Fixed after New.
	set     *Settings
	session int
	silence []byte
	turns   []voice.Turn
	random  *rand.Rand // for the pauses between attempts to resume

	calls int
}

// New returns caller number session, from 1.
func New(set *Settings, session int) *Caller {
	k := &Caller{
		set: set, session: session, silence: make([]byte, audio.Bytes(set.InputRate, set.Frame)),
		random: rand.New(rand.NewPCG(uint64(session), 1)),
	}
	for _, t := range set.Script.Turns {
		k.turns = append(k.turns, t.Turn)
	}
	return k
}
