// Package wire connects the conversation engine of package voice to a gateway over wires other than voicegw.v1: the
// OpenAI Realtime protocol, and Twilio's Media Streams with this program as the carrier. The engine writes and reads
// voicegw.v1 on every wire; a connection of this package translates it, as the gateway does on its side.
package wire

import (
	"fmt"
	"sync"

	"voicegw/internal/textutil"
	"voicegw/protocol"
)

// inbox has the frames for the engine, which a connection's reader and writer add. It is safe for concurrent use.
type inbox struct {
	mu     sync.Mutex // guards the following fields
	seq    int64
	frames []protocol.Frame
	err    error // the first message that cannot be encoded
}

func (b *inbox) say(all ...protocol.ServerMessage) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, m := range all {
		b.seq++
		data, err := protocol.EncodeServer(b.seq, m)
		if err != nil {
			b.err = err
			return
		}
		b.frames = append(b.frames, protocol.Frame{Data: data})
	}
}

// sound adds audio and keeps the slice.
func (b *inbox) sound(pcm []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.frames = append(b.frames, protocol.Frame{Audio: true, Data: pcm})
}

func (b *inbox) next() (f protocol.Frame, ok bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.frames) == 0 {
		return f, false, b.err
	}
	f = b.frames[0]
	b.frames[0] = protocol.Frame{}
	b.frames = b.frames[1:]
	return f, true, nil
}

func inTurn(turn int) protocol.Header { return protocol.Header{Turn: turn} }

// wrong is the error of a message that breaks a wire's rules, with its beginning.
func wrong(data []byte, format string, args ...any) error {
	return fmt.Errorf("the gateway sent %s: %w", textutil.Shorten(string(data), maxShown), fmt.Errorf(format, args...))
}

// maxShown bounds the part of a message in an error, in bytes.
const maxShown = 120

func (b *inbox) empty() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.frames) == 0
}
