package openai

import (
	"sync"

	"voicegw/audio"
	"voicegw/transport"
)

// pcmDecoder decodes the model's speech. It is owned by Recv.
type pcmDecoder struct {
	rate      int     // of the speech, in Hz
	announced int     // transport.Info.OutputRate
	buf       *pcmBuf // the audio of the current frame; nil for a frame without audio
	event     transport.AudioOut
	carry     oddByte
}

// oddByte is the half sample at the end of a piece of audio: it belongs to the next piece of the same item.
type oddByte struct {
	of   *spokenItem // nil between items
	half byte
}

// pcmBuf holds the audio of one frame.
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
