package caller

import (
	"cmp"
	"context"
	"math"
	"net/http"
	"time"

	"voicegw/client/load/report"
	"voicegw/client/voice"
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
	// Stopped: the context ended.
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
	c.Run(ctx, voice.Link{Conn: conn, Dial: k.redial, Sent: c.sent})
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
	v := Variables{Session: k.session, Call: k.calls, Pass: 1}
	o := voice.Options{
		Start: protocol.Start{
			Provider: cmp.Or(k.set.Provider, s.Provider), Agent: s.Agent, Voice: s.Voice, Ticket: t.secret,
			InputRate: k.set.InputRate, OutputRate: k.set.OutputRate,
			Client: &protocol.ClientInfo{Name: "voicegw-load", ID: v.Fill(s.User)},
		},
		Turns: k.turns, Words: k.words, Microphone: !s.NoMicrophone, Frame: k.set.Frame, Silence: k.silence, PushToTalk: s.PushToTalk,
		Until: limit.Until, HangUp: limit.HangUp,
		ConnectTime: k.set.ConnectTime, PendingTime: pendingTime, GoodbyeTime: goodbyeTime, Patience: DefaultPatience, ThinkTime: thinkTime,
		Buffers: buffers(), Reporting: reportingBuffer,
		Resume: voice.ResumeOptions{Within: resumeTime, Random: k.random.Float64}, Outages: k.outages(),
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
	var list []voice.Outage
	for i, o := range k.set.Outages {
		// Multiples of the golden ratio spread evenly over any number of callers.
		_, part := math.Modf(float64(k.session+i) * math.Phi)
		o.First = time.Duration(part * float64(o.Every))
		list = append(list, o)
	}
	return list
}

// buffers are the jitter buffers for which underruns are counted.
func buffers() []time.Duration {
	var list []time.Duration
	for _, ms := range report.Buffers() {
		list = append(list, time.Duration(ms)*time.Millisecond)
	}
	return list
}

// words returns the speech or text of a turn.
func (k *Caller) words(index, count, pass int) voice.Words {
	t := &k.set.Script.Turns[index]
	switch {
	case t.Act != voice.Say:
		return voice.Words{Text: Variables{Session: k.session, Call: k.calls, Pass: pass}.Fill(t.Text)}
	case t.Recording == "":
		return voice.Words{Recording: k.set.Speech.Line(t.Text)}
	case t.Recording == AnyRecording:
		return voice.Words{Recording: k.set.Speech.Any(k.session + k.calls + count)}
	default:
		return voice.Words{Recording: k.set.Speech.Named(t.Recording)}
	}
}

// turns converts a script's turns for the conversation.
func turns(s *Script) []voice.Turn {
	var list []voice.Turn
	for _, t := range s.Turns {
		list = append(list, t.Turn)
	}
	return list
}

// ticket admits to an existing session; the zero value is no ticket.
type ticket struct {
	secret string
	at     time.Time // when it arrived
}

func (k *Caller) redial(ctx context.Context) (voice.Conn, error) { return k.dial(ctx, true) }

// dial connects; back means to resume a session.
func (k *Caller) dial(ctx context.Context, back bool) (voice.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, k.set.ConnectTime)
	defer cancel()
	began := time.Now()
	var conn voice.Conn
	var err error
	if k.set.Dial != nil {
		conn, err = k.set.Dial(ctx, k.set.URL)
	} else {
		o := protocol.DialOptions{Client: k.set.HTTP, Back: back}
		if k.set.APIKey != "" {
			o.Header = http.Header{"Authorization": {"Bearer " + k.set.APIKey}}
		}
		conn, err = protocol.Dial(ctx, k.set.URL, o)
	}
	if err == nil {
		k.set.Collector.Record(report.Connect, time.Since(began))
	}
	return conn, err
}

// refused records a call without a connection.
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
