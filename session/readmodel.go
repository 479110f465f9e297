package session

import (
	"context"
	"errors"
	"fmt"
	"time"

	"voicegw/audio"
	"voicegw/orchestrator"
	"voicegw/transport"
)

// noDeadline is the context of the audio path: a cancellable one would cost a dozen allocations a
// frame. Close ends operations that wait on it.
var noDeadline = context.Background()

// hearModel is the pump from the model to the downlink; the model's connection calls it.
func (s *session) hearModel() {
	for !s.modelOver {
		ev, err := s.model.Recv()
		switch {
		case err != nil:
			s.modelOver = true
			s.modelLost("recv", err)
			s.readers.Done()
		case ev == nil:
			return
		default:
			s.modelEvent(ev)
		}
	}
}

// modelEvent takes one event.
func (s *session) modelEvent(ev transport.Event) {
	if s.isOver() {
		return
	}
	switch ev := ev.(type) {
	case *transport.AudioOut:
		s.modelAudio(ev)
	case transport.AudioDone:
		s.modelAudioDone(ev.Item)
	case transport.SpeechStarted:
		s.modelHears.Store(true)
		s.userSpeaks.Store(!s.manual())
		s.dispatch(orchestrator.UserSpeechStarted{Item: ev.Item, AudioMS: ev.AudioMS, At: s.clock.when(ev.AudioMS, time.Now())})
	case transport.SpeechStopped:
		s.userSpeaks.Store(false)
		s.dispatch(orchestrator.UserSpeechStopped{Item: ev.Item, AudioMS: ev.AudioMS, EndAt: s.clock.when(ev.EndMS, time.Now())})
	case transport.Transcript:
		if s.worthTelling(ev) {
			s.dispatch(orchestrator.FromModel{Event: ev})
		}
	case transport.ToolCall:
		if len(ev.Args) > maxArgs {
			s.modelLost("recv", fmt.Errorf("%w: it has %d bytes of arguments, more than %d", errHugeCall, len(ev.Args), maxArgs))
			return
		}
		s.dispatch(orchestrator.FromModel{Event: ev})
	default:
		switch ev := ev.(type) {
		case transport.Problem:
			s.logger.Info("the model reported a problem", "kind", ev.Err.Kind.String(), "code", ev.Err.Code)
		case transport.TranscriptFailed:
			s.logger.Info("the provider could not write down what the user said", "code", ev.Err.Code)
		}
		s.dispatch(orchestrator.FromModel{Event: ev})
	}
}

// maxArgs bounds the arguments of a tool call, in bytes, because they are stored, compared,
// audited and shown.
const maxArgs = 256 << 10

var errHugeCall = errors.New("the model's tool call is too large")

// draft is how far an item's transcript had come when it was last passed on.
type draft struct {
	item string
	size int
}

// draftStep is the fraction of a transcript that must be new. A transcript is always sent whole,
// so passing on each word would cost the square of its length.
const draftStep = 128

// worthTelling reports whether a transcript should be passed on: if it is final or short, or if
// enough of it is new.
func (s *session) worthTelling(ev transport.Transcript) bool {
	d := &s.userDraft
	if ev.Role == transport.RoleAssistant {
		d = &s.modelDraft
	}
	size := len(ev.Text)
	if grown := size - d.size; !ev.Final && ev.Item == d.item && grown >= 0 && grown < size/draftStep {
		return false
	}
	*d = draft{ev.Item, size}
	return true
}

// modelAudio takes one piece of the model's speech.
func (s *session) modelAudio(ev *transport.AudioOut) {
	if ev.Item != s.item && !s.nextItem(ev.Item) {
		s.down.pushAudio(ev.Item, ev.PCM) // only counted
		return
	}
	pcm := ev.PCM
	if s.resampleOut != nil {
		s.downBuf = s.resampleOut.Process(s.downBuf[:0], pcm)
		pcm = s.downBuf
	}
	s.queueAudio(ev.Item, pcm)
}

// nextItem ends the item that the model spoke before, and begins another one. It reports false for
// an item that was spoken before: items play one after another, each once.
func (s *session) nextItem(item string) bool {
	if s.spoken(item) {
		return false
	}
	s.modelAudioDone(s.item)
	s.item = item
	if s.resampleOut != nil {
		s.resampleOut.Reset()
	}
	s.dispatch(orchestrator.AudioBegan{Item: item})
	return true
}

// spoken reports whether the model has begun an item before. The orchestrator knows it.
func (s *session) spoken(item string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state.Spoken(item)
}

// modelAudioDone takes the end of the item that the model is speaking.
func (s *session) modelAudioDone(item string) {
	if item != s.item || item == "" {
		return
	}
	if s.resampleOut != nil {
		s.downBuf = s.resampleOut.Flush(s.downBuf[:0])
		s.queueAudio(item, s.downBuf)
	}
	s.item = ""
	ms := audio.MS(s.start.OutputRate, int(s.down.itemBytes(item)))
	s.dispatch(orchestrator.AudioEnded{Item: item, AudioMS: ms})
}

// queueAudio cuts audio into frames of 50 to 100 ms, or one shorter frame, and queues them.
func (s *session) queueAudio(item string, pcm []byte) {
	longest := audio.Bytes(s.start.OutputRate, maxDownFrame)
	for len(pcm) > 0 {
		n := len(pcm)
		if n > longest {
			parts := (n + longest - 1) / longest
			n = (n/parts + 1) / audio.BytesPerSample * audio.BytesPerSample
		}
		if !s.writeDirect(item, pcm[:n]) && !s.down.pushAudio(item, pcm[:n]) {
			s.end(causeSlow)
			return
		}
		pcm = pcm[n:]
	}
}

// maxDownFrame is the longest frame sent to a client: short enough for a flush to take effect soon,
// long enough to keep the number of frames low.
const maxDownFrame = 100 * time.Millisecond
