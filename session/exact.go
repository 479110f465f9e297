package session

import (
	"context"
	"errors"
	"time"

	"voicegw/audio"
	"voicegw/orchestrator"
	"voicegw/transport"
)

// Speech gives the audio of exact sentences; *speech.Speaker implements it. It may be called concurrently.
type Speech interface {
	Speak(ctx context.Context, text string) (audio.Clip, error)
}

// exactClip is a prepared sentence.
type exactClip struct {
	text     string
	pcm      []byte // at the client's rate
	provider []byte // at the model's rate; nil unless the provider can play it
}

var errNoSpeech = errors.New("no speech endpoint and no recordings are configured (exact)")

// speechTime bounds the wait for the audio of a sentence. The orchestrator's own limit is longer.
const speechTime = 15 * time.Second

// exactAudio says a session's exact sentences.
type exactAudio struct{ *session }

// carryOut performs an action about an exact sentence, or about who listens to the user. The caller must hold mu.
func (s exactAudio) carryOut(a orchestrator.Action) {
	switch a := a.(type) {
	case orchestrator.PrepareExact:
		s.visitors.Go(func() { s.prepare(a.ID, a.Text) })
	case orchestrator.PlayExact:
		s.play(a.Item, a.Audio.(*exactClip).pcm)
	case orchestrator.SendExact:
		clip := a.Audio.(*exactClip)
		s.command(transport.PlayExact{Text: clip.text, PCM: clip.provider}, nil)
	case orchestrator.HoldUser:
		if from, to := int32(0), int32(hushed); a.On {
			s.mic.deaf.CompareAndSwap(from, to)
		} else {
			s.mic.deaf.CompareAndSwap(to, from) // a session that ends stays muted
		}
	case orchestrator.MuteUser:
		s.mic.deaf.Store(muted)
	}
}

func (s exactAudio) prepare(id, text string) {
	ctx, cancel := context.WithTimeout(s.context(), speechTime)
	defer cancel()
	clip, err := s.speak(ctx, text)
	if err == nil {
		s.dispatch(orchestrator.ExactReady{ID: id, AudioMS: audio.MS(s.start.OutputRate, len(clip.pcm)), Audio: clip})
		return
	}
	if !s.isOver() {
		s.log().Error("an exact sentence has no audio", "error", err)
	}
	s.dispatch(orchestrator.ExactFailed{ID: id})
}

func (s exactAudio) speak(ctx context.Context, text string) (*exactClip, error) {
	if s.opts.Speech == nil {
		return nil, errNoSpeech
	}
	clip, err := s.opts.Speech.Speak(ctx, text)
	if err != nil {
		return nil, err //nolint:wrapcheck // it says which step failed
	}
	c := &exactClip{text: text}
	info := s.model.link().info()
	if clip.Duration() <= time.Duration(info.Capabilities.PlaysExact)*time.Second {
		own, err := clip.Resample(info.OutputRate)
		if err != nil {
			return nil, err //nolint:wrapcheck // it names the rates
		}
		c.provider = own.PCM
	}
	own, err := clip.Resample(s.start.OutputRate)
	c.pcm = own.PCM
	return c, err //nolint:wrapcheck // it names the rates
}

// play queues a whole sentence. The caller must hold mu.
func (s exactAudio) play(item string, pcm []byte) {
	for longest := audio.Bytes(s.start.OutputRate, maxDownFrame); len(pcm) > 0; {
		n := min(len(pcm), longest)
		s.checkQueue(s.down.PushAudio(item, pcm[:n]), nil)
		pcm = pcm[n:]
	}
}
