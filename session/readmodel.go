package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"voicegw/audio"
	"voicegw/orchestrator"
	"voicegw/transport"
)

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
			l.lost("recv", err)
			l.finish()
			l.markOver()
			l.s.readers.Done()
		case ev == nil:
			return
		case !l.s.isOver():
			l.event(ev)
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

// event handles one event. Positions on a later link's audio clock are moved by offsetMS to the session's clock.
func (l *link) event(ev transport.Event) {
	s := l.s
	if out, ok := ev.(*transport.AudioOut); ok {
		l.audio(l.audioItem(out.Item), out.PCM, cmp.Or(out.Rate, l.ownRate))
		return
	}
	switch ev := l.name(ev).(type) {
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
		l.used(ev.Tokens)
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

// soundsAt sets the rate of the model's audio, in Hz.
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
