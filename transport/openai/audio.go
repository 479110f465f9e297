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

// appendAudio appends the append event for pcm to dst.
func appendAudio(dst, pcm []byte) []byte {
	dst = append(dst, appendPrefix...)
	dst = audio.AppendBase64(dst, pcm)
	return append(dst, appendSuffix...)
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
		c.upBytes += int64(n)
		c.sentBytes += int64(n)
		c.sincePause += int64(n)
		pcm = pcm[n:]
	}
	return nil
}

// oddByte is the half sample at the end of a piece of audio: it belongs to the next
// piece of the same item.
type oddByte struct {
	of   *spokenItem // nil between items
	half byte
}

// fastAudio decodes a frame into c.audio if v and s show that it is plainly an audio event.
// Otherwise the frame is unchanged and the typed path must decode it. The
// event is nil if there is nothing to play.
func (c *conn) fastAudio(frame []byte) (ev transport.Event, s scanned, v verdict) {
	if delta, ok := c.like.match(frame); ok {
		if ev, ok := c.takeAudio(c.like.it, delta); ok {
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
	ev, ok := c.takeAudio(it, s.delta)
	if !ok {
		v = scanUnsure
	}
	return ev, s, v
}

// newSpoken notes the first audio of an item.
func (c *conn) newSpoken(id, response string) *spokenItem {
	c.mu.Lock()
	it := c.items.add(id, response)
	c.mu.Unlock()
	if c.isMuted(response) {
		it.closed = true
		return it
	}
	if len(c.openAudio) == maxSpoken {
		c.endAudio(c.openAudio[0]) // for a server that ends neither items nor responses
	}
	c.openAudio = append(c.openAudio, it)
	return it
}

// takeAudio decodes delta into a buffer of its own, so that the frame is unchanged if delta
// is not base64 (ok is then false). The event is nil if there is nothing to play: no whole
// sample, or an item that has ended.
func (c *conn) takeAudio(it *spokenItem, delta []byte) (ev transport.Event, ok bool) {
	if c.decoded == nil {
		c.decoded = pcmPool.Get().(*pcmBuf)
	}
	dst := c.decoded.b[:0]
	if c.carry.of == it {
		dst = append(dst, c.carry.half)
	}
	pcm, err := audio.AppendFromBase64(dst, delta)
	if err != nil {
		return nil, false
	}
	c.decoded.b = pcm
	if it.closed {
		return nil, true
	}
	c.carry.of = nil
	if len(pcm)%2 != 0 {
		c.carry = oddByte{it, pcm[len(pcm)-1]}
		pcm = pcm[:len(pcm)-1]
	}
	if len(pcm) == 0 {
		return nil, true
	}
	it.bytes.Add(int64(len(pcm)) * sampleRate / int64(c.outRate))
	c.audio = transport.AudioOut{Item: it.id, PCM: pcm}
	if c.outRate != c.info.OutputRate {
		c.audio.Rate = c.outRate
	}
	return &c.audio, true
}

// endAudio emits the AudioDone of an item, once.
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
	c.give(transport.AudioDone{Item: it.id})
}
