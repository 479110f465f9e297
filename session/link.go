package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"voicegw/audio"
	"voicegw/internal/checks"
	"voicegw/orchestrator"
	"voicegw/transport"
)

// modelSide is the session's state that concerns its model and outlives each connection.
type modelSide struct {
	linked   atomic.Pointer[link] // stored under mu, and while nothing sends to the model
	lookback lookback             // keeps nothing if the session ends with its first connection
	// redial opens connections for the current agent; nil for a session that only ends here. It is stored under mu.
	redial atomic.Pointer[redialer]
	first  redialer // the first value of redial

	// Guarded by mu.
	relink   *relink   // nil while the session keeps its link
	handover *handover // nil unless the session is being handed over
}

// link is a session's connection to a model. A session has at most one at a time, which its field linked names; each
// has a higher gen than the previous one. Events of an older link are dropped under mu.
//
// An adapter's ids are unique within one connection only. The link makes them unique within the session: it alone adds
// prefix to each id from the model, and removes it from each id to the model.
type link struct {
	// Fixed after begin.
	s        *session
	gen      int // counts the session's links from 1
	conn     transport.Conn
	prefix   string // empty for the first link, then l2., l3. and so on
	offsetMS int64  // where its audio begins on the client's audio clock
	observe  func(Event)
	ownRate  int // of the model's audio that states no rate, in Hz

	// Guarded by mu.
	replaced bool  // it is no longer the session's
	failed   error // the first error of the connection

	// over is done, and isOver set, when hear has seen the connection's end.
	over   sync.WaitGroup
	isOver atomic.Bool

	skipped sync.Once // reports the skipped messages

	gate  *checks.Gate[held] // nil without checks
	holds bool               // the gate holds audio back

	reports atomic.Bool // the model has reported usage, on this link or an earlier one

	// Owned by hear or, if the gate holds audio, by the functions that it calls, one at a time. modelDraft is always the gate's.
	ended       bool
	outRate     int              // of the model's latest audio, in Hz
	resampleOut *audio.Resampler // from outRate; nil if the rates are equal
	downBuf     []byte
	spoken      named  // the item of the last audio
	item        string // the item that the model is speaking; empty between items
	userDraft   draft
	modelDraft  draft
}

type named struct{ theirs, ours string }

// begin must be called first. It does not make l the session's link.
func (l *link) begin(s *session, gen int, conn transport.Conn) error {
	l.s, l.gen, l.conn = s, gen, conn
	l.over.Add(1)
	info := l.info()
	l.observe = s.opts.Observe(info.Provider, info.Model)
	if before := s.model.link(); before != nil && before.info().Model == info.Model {
		l.reports.Store(before.reports.Load())
	}
	if gen > 1 {
		l.prefix = "l" + strconv.Itoa(gen) + "."
	}
	l.ownRate = info.OutputRate
	if set := s.opts.Checks; set != nil {
		l.holds = set.HoldBack > 0
		about := checks.Text{SessionID: s.id, ConversationID: s.start.ConversationID}
		l.gate = checks.NewGate(set, about, false, gated{l}, s.readers.Go)
	}
	return l.soundsAt(l.ownRate)
}

func (l *link) info() transport.Info { return l.conn.Info() }

// The caller must hold mu; the result is valid while it does.
func (l *link) current() bool { return l.s.model.link() == l && !l.replaced }

// The first link keeps the model's ids, except one that looks like another link's.
func (l *link) ours(id string) string {
	switch {
	case id == "":
		return id
	case l.prefix == "" && looksNamed(id):
		return "l1." + id
	}
	return l.prefix + id
}

// audioItem is ours for the item of a piece of audio, without an allocation per piece.
func (l *link) audioItem(id string) string {
	if l.spoken.theirs != id {
		l.spoken = named{id, l.ours(id)}
	}
	return l.spoken.ours
}

// name adds the link's prefix to the ids of an event. Audio uses audioItem.
func (l *link) name(ev transport.Event) transport.Event {
	switch e := ev.(type) {
	case transport.AudioDone:
		e.Item = l.ours(e.Item)
		return e
	case transport.ResponseStarted:
		e.ID = l.ours(e.ID)
		return e
	case transport.ResponseDone:
		e.ID = l.ours(e.ID)
		return e
	case transport.Transcript:
		e.Item = l.ours(e.Item)
		return e
	case transport.SpeechStarted:
		e.Item = l.ours(e.Item)
		return e
	case transport.SpeechStopped:
		e.Item = l.ours(e.Item)
		return e
	case transport.InputCommitted:
		e.Item = l.ours(e.Item)
		return e
	case transport.Truncated:
		e.Item = l.ours(e.Item)
		return e
	case transport.TranscriptFailed:
		e.Item = l.ours(e.Item)
		return e
	case transport.ToolCall:
		// The provider's own id stays: it identifies a call that a resumed conversation repeats.
		e.Call = l.ours(e.Call)
		return e
	case transport.ToolCancelled:
		calls := make([]string, len(e.Calls))
		for i, c := range e.Calls {
			calls[i] = l.ours(c)
		}
		return transport.ToolCancelled{Calls: calls}
	}
	return ev // it has no ids
}

// theirs reports false for a command about an item or a call of another link.
func (l *link) theirs(cmd transport.Command) (transport.Command, bool) {
	ok := true
	switch c := cmd.(type) {
	case transport.Truncate:
		c.Item, ok = l.own(c.Item)
		cmd = c
	case transport.ToolResult:
		c.Call, ok = l.own(c.Call)
		cmd = c
	case transport.UserText:
		call, mine := l.own(c.Overtakes)
		if !mine {
			call = ""
		}
		c.Overtakes = call
		cmd = c
	}
	return cmd, ok
}

// own returns the model's id for the session's; ok is false if it belongs to another link.
func (l *link) own(id string) (theirs string, ok bool) {
	gen, rest := splitID(id)
	return rest, gen == l.gen
}

func splitID(id string) (gen int, theirs string) {
	head, rest, ok := strings.Cut(id, ".")
	if !ok || len(head) < 2 || len(head) > 10 || head[0] != 'l' {
		return 1, id
	}
	gen, err := strconv.Atoi(head[1:])
	if err != nil || gen < 1 {
		return 1, id
	}
	return gen, rest
}

func looksNamed(id string) bool {
	_, theirs := splitID(id)
	return len(theirs) < len(id)
}

func (m *modelSide) link() *link { return m.linked.Load() }

// currentHandover returns the handover; nil if the session stays. The caller must hold the session's mu.
func (m *modelSide) currentHandover() *handover { return m.handover }

// noDeadline: a cancellable context costs a dozen allocations per frame. Close ends operations that wait on it.
var noDeadline = context.Background()

// start lets the connection call hear. The caller must have added it to readers.
func (l *link) start() { l.conn.Notify(l.hear) }

// hear reads the model's events; the model's connection calls it.
func (l *link) hear() {
	for !l.ended {
		ev, err := l.conn.Recv()
		switch {
		case err != nil:
			l.ended = true
			if l.gate != nil {
				l.gate.Close() // the user hears nothing that has not passed
			}
			l.lost("recv", err)
			l.finish()
			l.markOver()
			l.s.readers.Done()
		case ev == nil:
			l.s.byClient.reportWaiting()
			return
		case !l.s.isOver():
			if ev = l.take(ev); ev != nil {
				l.event(ev)
			}
		default:
			if u, ok := ev.(transport.Usage); ok { // the last seconds are charged, too
				l.used(u)
			}
		}
	}
}

func (l *link) markOver() {
	l.isOver.Store(true)
	l.over.Done()
}

func (l *link) reportSkipped() {
	l.skipped.Do(func() { l.observe(Skipped{l.conn.Stats()}) })
}

func (l *link) finish() {
	l.s.mu.Lock()
	gone := l.replaced && !l.s.isOver()
	l.s.mu.Unlock()
	if gone {
		l.audioDone(l.item)
	}
}

// take handles audio, and with checks gives answers to the gate. It returns another event with the session's ids.
func (l *link) take(ev transport.Event) transport.Event {
	if out, ok := ev.(*transport.AudioOut); ok {
		item, rate := l.audioItem(out.Item), cmp.Or(out.Rate, l.ownRate)
		if l.holds {
			l.gate.Audio(item, audio.Duration(rate, len(out.PCM)), held{item: item, pcm: slices.Clone(out.PCM), rate: rate})
			return nil
		}
		l.audio(item, out.PCM, rate)
		return nil
	}
	if ev = l.name(ev); l.gate != nil && l.check(ev) {
		return nil
	}
	return ev
}

// held is an event, or audio of an item, that waits for the checks.
type held struct {
	ev   transport.Event
	item string
	pcm  []byte
	rate int
}

// check gives the gate an event that must not overtake the model's words. It returns false for other events.
func (l *link) check(ev transport.Event) bool {
	switch e := ev.(type) {
	case transport.Transcript:
		if e.Role != transport.RoleAssistant {
			return false
		}
		l.gate.Words(e.Item, e.Text, e.Final, held{ev: e})
	case transport.ResponseStarted:
		l.gate.Other(true, held{ev: e})
	case transport.AudioDone, transport.ResponseDone, transport.NothingSaid, transport.Interaction, transport.ToolCall,
		transport.ToolCancelled:
		l.gate.Other(false, held{ev: e})
	default:
		return false
	}
	return true
}

// gated gets what the link's gate lets through.
type gated struct{ l *link }

func (g gated) Release(r checks.Released[held]) {
	switch ev := r.Value.ev.(type) {
	case nil:
		g.l.audio(r.Value.item, r.Value.pcm, r.Value.rate)
	case transport.Transcript:
		ev.Text, ev.Final = r.Text, r.Final
		if c, ok := g.l.conn.(transport.CheckedConn); ok {
			item, _ := g.l.own(ev.Item)
			c.Passed(item, ev.Text, false)
		}
		g.l.event(ev)
	default:
		g.l.event(ev)
	}
}

func (g gated) Unmatched(item, text string, from int) bool {
	return locked(g.l.s, func() bool { return g.l.current() && g.l.s.state.Unmatched(item, text, from) })
}

func (g gated) Stopped(stop checks.Stop) {
	if c, ok := g.l.conn.(transport.CheckedConn); ok {
		item, _ := g.l.own(stop.Item)
		c.Passed(item, "", true)
	}
	g.l.s.dispatchFrom(g.l, orchestrator.AnswerStopped{Stop: stop})
}

// event handles an event other than audio. Positions on a later link's audio clock are moved by offsetMS to the session's clock.
func (l *link) event(ev transport.Event) {
	s := l.s
	switch ev := ev.(type) {
	case transport.AudioDone:
		l.audioDone(ev.Item)
	case transport.SpeechStarted:
		at := s.ear.speechStart(l.offsetMS, ev)
		s.dispatchFrom(l, orchestrator.UserSpeechStarted{Item: ev.Item, AudioMS: at, At: s.mic.clock.when(at, time.Now())})
	case transport.SpeechStopped:
		s.dispatchFrom(l, s.ear.speechEnd(l.offsetMS, ev, &s.mic.clock))
	case transport.Transcript:
		if l.worthTelling(ev) {
			s.dispatchFrom(l, orchestrator.FromModel{Event: ev})
		}
	case transport.ToolCall:
		if len(ev.Args) > maxArgs {
			l.lost("recv", fmt.Errorf("%w: it has %d bytes of arguments, more than %d", errHugeCall, len(ev.Args), maxArgs))
			return
		}
		s.dispatchFrom(l, orchestrator.FromModel{Event: ev})
	case transport.Usage:
		l.used(ev)
	default:
		switch ev := ev.(type) {
		case transport.Problem:
			s.log().Log(context.Background(), ev.Err.Kind.Failure().Level, "the model reported a problem", "op", ev.Err.Op,
				"kind", ev.Err.Kind.String(), "code", ev.Err.Code, "error", ev.Err.Err)
			l.observe(Reported{ev.Err.Kind})
		case transport.ResponseDone:
			if ev.Err != nil {
				s.log().Log(context.Background(), ev.Err.Kind.Failure().Level, "the model's answer failed", "status", string(ev.Status),
					"provider", l.info().Provider, "kind", ev.Err.Kind.String(), "code", ev.Err.Code, "error", ev.Err)
				l.observe(AnswerFailed{ev.Err.Kind})
			}
		case transport.TranscriptFailed:
			s.log().Info("the provider could not transcribe the user's speech", "code", ev.Err.Code)
		}
		s.dispatchFrom(l, orchestrator.FromModel{Event: ev})
	}
}

// maxArgs bounds a tool call's arguments in bytes, because they are stored, compared, audited and shown.
const maxArgs = 256 << 10

var errHugeCall = errors.New("the model's tool call is too large")

// draft is the length of an item's transcript when it was last passed on.
type draft struct {
	item string
	size int
}

// At least 1/draftStep of a transcript must be new: it is sent whole, so passing on each word would be quadratic.
const draftStep = 128

func (l *link) worthTelling(ev transport.Transcript) bool {
	d := &l.userDraft
	if ev.Role == transport.RoleAssistant {
		d = &l.modelDraft
	}
	size := len(ev.Text)
	if grown := size - d.size; !ev.Final && ev.Item == d.item && grown >= 0 && grown < size/draftStep {
		return false
	}
	*d = draft{ev.Item, size}
	return true
}

// audio handles a piece of the model's speech, at rate Hz.
func (l *link) audio(item string, pcm []byte, rate int) {
	if item != l.item && !l.nextItem(item) {
		l.s.down.PushAudio(item, pcm) // counts it only
		return
	}
	if rate != l.outRate {
		l.flushResampler()
		if err := l.soundsAt(rate); err != nil {
			l.lost("recv", err)
			return
		}
	}
	if l.resampleOut != nil {
		l.downBuf = l.resampleOut.Process(l.downBuf[:0], pcm)
		pcm = l.downBuf
	}
	l.queueAudio(item, pcm)
}

// nextItem ends the current item and begins another one. It reports false for an earlier item: each plays once.
func (l *link) nextItem(item string) bool {
	if locked(l.s, func() bool { return l.s.state.Spoken(item) }) { // an earlier item
		return false
	}
	l.audioDone(l.item)
	l.item = item
	if l.resampleOut != nil {
		l.resampleOut.Reset()
	}
	l.s.dispatchFrom(l, orchestrator.AudioBegan{Item: item})
	return true
}

// The user hears the audio that arrived, so its end counts even if the link was replaced.
func (l *link) audioDone(item string) {
	if item != l.item || item == "" {
		return
	}
	s := l.s
	l.flushResampler()
	l.item = ""
	ms := audio.MS(s.start.OutputRate, int(s.down.ItemBytes(item)))
	s.dispatch(orchestrator.AudioEnded{Item: item, AudioMS: ms})
}

func (l *link) soundsAt(rate int) (err error) {
	l.outRate = rate
	l.resampleOut, err = resampler(rate, l.s.start.OutputRate)
	return err
}

func (l *link) flushResampler() {
	if l.resampleOut == nil || l.item == "" {
		return
	}
	l.downBuf = l.resampleOut.Flush(l.downBuf[:0])
	l.queueAudio(l.item, l.downBuf)
}

// queueAudio queues audio in frames of 50 to 100 ms, or one shorter frame.
func (l *link) queueAudio(item string, pcm []byte) {
	s := l.s
	longest := audio.Bytes(s.start.OutputRate, maxDownFrame)
	for len(pcm) > 0 {
		n := len(pcm)
		if n > longest {
			parts := (n + longest - 1) / longest
			n = (n/parts + 1) / audio.BytesPerSample * audio.BytesPerSample
		}
		if !s.client.attachment().writeDirect(item, pcm[:n]) && !s.down.PushAudio(item, pcm[:n]) {
			if a := s.client.attachment(); a != nil {
				a.lost(causeSlow)
			}
			if s.isOver() {
				return
			}
		}
		if s.client.attachment() == nil {
			s.down.Crowd()
		}
		pcm = pcm[n:]
	}
}

// maxDownFrame is the longest frame sent to a client: short enough for a quick flush, long enough to keep frames few.
const maxDownFrame = 100 * time.Millisecond
