package openai

import (
	"slices"
	"sync"

	"github.com/coder/websocket"

	"voicegw/audio"
	"voicegw/internal/ws"
	"voicegw/transport"
)

// The append event is built by hand: base64 needs no escaping in JSON.
const (
	appendPrefix = `{"type":"input_audio_buffer.append","audio":"`
	appendSuffix = `"}`
	// maxAppend bounds the PCM of one event, in bytes. The provider accepts 15 MiB; ours keep the buffer small.
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

// sendAudio sends a piece of the user's speech. It allocates nothing.
func (c *conn) sendAudio(pcm []byte) error {
	for len(pcm) > 0 {
		n := min(len(pcm), maxAppend)
		m := ws.NewMessage()
		m.B = appendAudio(m.B, pcm[:n])
		if err := c.ws.Send(websocket.MessageText, m); err != nil {
			return err
		}
		c.sent.total += int64(n)
		c.sent.buffered += int64(n)
		c.sent.sincePause += int64(n)
		pcm = pcm[n:]
	}
	return nil
}

// fastAudio decodes the usual form of an audio event. The event may be nil. Without ok the frame is for the typed path.
func (c *conn) fastAudio(frame []byte) (ev transport.Event, ok bool) {
	if delta, ok := c.like.match(frame); ok {
		return c.speech.decode(c.like.it, delta)
	}
	s, ok := scanFrame(frame)
	if !ok {
		return nil, false
	}
	it := c.items.by[string(s.item)]
	if it == nil {
		it = c.newSpoken(string(s.item), string(s.response))
	}
	c.like.learn(it, frame, &s)
	return c.speech.decode(it, s.delta)
}

func (c *conn) newSpoken(id, response string) *spokenItem {
	it := &spokenItem{id: id, response: response}
	c.mu.Lock()
	c.items.put(maxSpoken, id, it)
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
	c.openAudio = slices.DeleteFunc(c.openAudio, func(open *spokenItem) bool { return open == it })
	c.events.Add(transport.AudioDone{Item: it.id})
}

func (c *conn) endAudioOf(responses ...string) {
	for _, it := range slices.Backward(c.openAudio) {
		if slices.Contains(responses, it.response) {
			c.endAudio(it)
		}
	}
}

// pcmDecoder decodes the model's speech. It is owned by Recv.
type pcmDecoder struct {
	rate      int     // of the speech, in Hz
	announced int     // transport.Info.OutputRate
	buf       *pcmBuf // the audio of the current frame; nil for a frame without audio
	event     transport.AudioOut
	carry     oddByte
}

type oddByte struct {
	of   *spokenItem // nil between items
	half byte
}

type pcmBuf struct{ b []byte }

const pcmBufKeep = 256 << 10 // larger buffers are not kept, in bytes

// pcmPool is shared by all connections: a buffer is taken only for a frame with audio.
var pcmPool = sync.Pool{New: func() any { return &pcmBuf{} }}

func (d *pcmDecoder) release() {
	if d.buf == nil {
		return
	}
	if cap(d.buf.b) <= pcmBufKeep {
		pcmPool.Put(d.buf)
	}
	d.buf = nil
}

// decode decodes delta into a buffer of its own, so that the frame is unchanged if delta is not base64 (ok is then
// false). The event is nil if there is nothing to play: no whole sample, or an item that has ended.
func (d *pcmDecoder) decode(it *spokenItem, delta []byte) (ev transport.Event, ok bool) {
	if d.buf == nil {
		d.buf = pcmPool.Get().(*pcmBuf)
	}
	dst := d.buf.b[:0]
	if d.carry.of == it {
		dst = append(dst, d.carry.half)
	}
	pcm, err := audio.AppendFromBase64(dst, delta)
	if err != nil {
		return nil, false
	}
	d.buf.b = pcm
	if it.closed {
		return nil, true
	}
	d.carry.of = nil
	if len(pcm)%2 != 0 {
		d.carry = oddByte{it, pcm[len(pcm)-1]}
		pcm = pcm[:len(pcm)-1]
	}
	if len(pcm) == 0 {
		return nil, true
	}
	it.bytes.Add(int64(len(pcm)) * sampleRate / int64(d.rate))
	d.event = transport.AudioOut{Item: it.id, PCM: pcm}
	if d.rate != d.announced {
		d.event.Rate = d.rate
	}
	return &d.event, true
}
