package openai

import (
	"github.com/coder/websocket"

	"voicegw/audio"
	"voicegw/internal/ws"
	"voicegw/transport"
)

// The append event is built by hand: base64 needs no escaping in JSON.
const (
	appendPrefix = `{"type":"input_audio_buffer.append","audio":"`
	appendSuffix = `"}`
	// maxAppend is the largest amount of PCM in one event, in bytes. The provider accepts
	// 15 MiB; smaller events keep our buffer small.
	maxAppend = 1 << 20
)

func appendAudio(dst, pcm []byte) []byte {
	dst = append(dst, appendPrefix...)
	dst = audio.AppendBase64(dst, pcm)
	return append(dst, appendSuffix...)
}

// sentAudio counts bytes of the user's speech.
type sentAudio struct {
	total      int64
	buffered   int64 // since the provider's buffer was last emptied
	sincePause int64
}

func (s *sentAudio) add(n int) {
	s.total += int64(n)
	s.buffered += int64(n)
	s.sincePause += int64(n)
}

// sendAudio sends a piece of the user's speech. It allocates nothing.
func (c *conn) sendAudio(pcm []byte) error {
	for len(pcm) > 0 {
		n := min(len(pcm), maxAppend)
		m := ws.NewMessage()
		m.B = appendAudio(m.B, pcm[:n])
		if err := c.ws.Send(websocket.MessageText, m); err != nil {
			return err
		}
		c.sent.add(n)
		pcm = pcm[n:]
	}
	return nil
}

// fastAudio decodes a frame if v and s show that it is plainly an audio event. Otherwise the frame is unchanged and the
// typed path must decode it. The event is nil if there is nothing to play.
func (c *conn) fastAudio(frame []byte) (ev transport.Event, s scanned, v verdict) {
	if delta, ok := c.like.match(frame); ok {
		if ev, ok := c.speech.decode(c.like.it, delta); ok {
			return ev, s, scanAudio
		}
		return nil, s, scanUnsure
	}
	if s, v = scanFrame(frame); v != scanAudio {
		return nil, s, v
	}
	it := c.items.byID[string(s.item)]
	if it == nil {
		it = c.newSpoken(string(s.item), string(s.response))
	}
	c.like.learn(it, frame, &s)
	ev, ok := c.speech.decode(it, s.delta)
	if !ok {
		v = scanUnsure
	}
	return ev, s, v
}

func (c *conn) newSpoken(id, response string) *spokenItem {
	c.mu.Lock()
	it := c.items.add(id, response)
	c.mu.Unlock()
	if c.response.isMuted(response) {
		it.closed = true
		return it
	}
	if len(c.openAudio) == maxSpoken {
		c.endAudio(c.openAudio[0]) // for a server that ends neither items nor responses
	}
	c.openAudio = append(c.openAudio, it)
	return it
}

func (c *conn) endAudio(it *spokenItem) {
	if it.closed {
		return
	}
	it.closed = true
	for i, open := range c.openAudio {
		if open == it {
			c.openAudio = append(c.openAudio[:i], c.openAudio[i+1:]...)
			break
		}
	}
	c.events.add(transport.AudioDone{Item: it.id})
}
