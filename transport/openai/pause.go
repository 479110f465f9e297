package openai

// pauseMarginMS is what is added to the silence that ends a phrase, in ms; where the
// provider has not said how long that is, unknownSilenceMS stands for it.
const (
	pauseMarginMS    = 200
	unknownSilenceMS = 500
	maxPads          = 64
)

// pad is silence that this side has put into the audio, in ms on the provider's
// clock.
type pad struct{ at, length int64 }

// padList turns the provider's audio clock, which counts what this side has added,
// into the caller's, which does not. Send adds and Recv asks, with conn.mu held.
type padList struct {
	base int64 // ms added before the first of pads
	pads []pad
}

func (p *padList) add(at, length int64) {
	if len(p.pads) == maxPads {
		p.base += p.pads[0].length
		p.pads = append(p.pads[:0], p.pads[1:]...)
	}
	p.pads = append(p.pads, pad{at, length})
}

// caller returns ms without what was added before it.
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

// pause ends the phrase that the user may have been in the middle of: the provider
// listens on the audio clock, so it hears the end of a phrase only in the silence
// after it, which a muted microphone does not send.
func (c *conn) pause() error {
	if c.manual || c.sincePause == 0 {
		return nil
	}
	silence := c.silenceMS
	if silence == 0 {
		silence = unknownSilenceMS
	}
	silence += pauseMarginMS
	at := c.sentBytes / bytesPerMS
	c.mu.Lock()
	c.pads.add(at, silence)
	c.mu.Unlock()
	err := c.sendAudio(make([]byte, silence*bytesPerMS))
	c.sincePause = 0
	return err
}
