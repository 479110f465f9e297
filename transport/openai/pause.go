package openai

import (
	"cmp"
	"time"

	"voicegw/audio"
)

// pauseMarginMS is added to the silence that ends a phrase, in ms. unknownSilenceMS is used
// if the provider has not reported how long that silence is.
const (
	pauseMarginMS    = 200
	unknownSilenceMS = 500
	maxPads          = 64
)

// pad is silence that this adapter has added to the audio, in ms on the provider's clock.
type pad struct{ at, length int64 }

// padList converts the provider's audio clock, which counts the added silence,
// to the caller's, which does not. Send adds and Recv converts, with conn.mu held.
type padList struct {
	base int64 // ms of silence added before the first of pads
	pads []pad
}

func (p *padList) add(at, length int64) {
	if len(p.pads) == maxPads {
		p.base += p.pads[0].length
		p.pads = append(p.pads[:0], p.pads[1:]...)
	}
	p.pads = append(p.pads, pad{at, length})
}

// caller returns ms without the silence added before it.
func (p *padList) caller(ms int64) int64 {
	added := p.base
	for _, pad := range p.pads {
		if ms <= pad.at {
			break
		}
		added += min(ms-pad.at, pad.length)
	}
	return max(ms-added, 0)
}

// pause ends a phrase that the user may have begun. The provider works on the audio clock, so it detects the end of a
// phrase only in the silence after it, which a muted microphone does not send.
func (c *conn) pause() error {
	if c.manual || c.sent.sincePause == 0 {
		return nil
	}
	silence := c.silenceMS
	silence = cmp.Or(silence, unknownSilenceMS)
	silence += pauseMarginMS
	at := audio.MS(c.info.InputRate, int(c.sent.total))
	c.mu.Lock()
	c.pads.add(at, silence)
	c.mu.Unlock()
	err := c.sendAudio(make([]byte, audio.Bytes(c.info.InputRate, time.Duration(silence)*time.Millisecond)))
	c.sent.sincePause = 0
	return err
}
