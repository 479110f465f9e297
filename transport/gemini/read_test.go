package gemini

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/coder/websocket"

	"voicegw/transport"
)

// TestFramesOfAnySizeAndTypeAreRead: the service sends binary frames, other servers text.
func TestFramesOfAnySizeAndTypeAreRead(t *testing.T) {
	p := newProvider(t)
	c, peer := p.connect(transport.Setup{})
	for i, size := range []int{2, 9600, 40 << 10, 1 << 20, 9600} {
		pcm := benchPCM(size)
		typ := websocket.MessageBinary
		if i%2 == 1 {
			typ = websocket.MessageText
		}
		sent := make(chan error, 1) // from the writer, once
		go func() { sent <- peer.ws.Write(context.Background(), typ, []byte(audioMessage(pcm, ""))) }()
		for {
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			ev, err := c.Recv(ctx)
			cancel()
			if err != nil {
				t.Fatal(err)
			}
			if out, ok := ev.(*transport.AudioOut); ok {
				if !bytes.Equal(out.PCM, pcm) {
					t.Errorf("%d bytes arrived as %d others", size, len(out.PCM))
				}
				break
			}
		}
		if err := <-sent; err != nil {
			t.Fatal(err)
		}
	}
	if s := c.Stats(); s != (transport.Stats{}) {
		t.Errorf("stats %+v", s)
	}
}

func TestMessagesBeyondTheLimitEndTheConnection(t *testing.T) {
	p := newProvider(t)
	c, peer := p.connect(transport.Setup{})
	sent := make(chan struct{}) // closed when the write has ended in any way
	go func() {
		defer close(sent)
		_ = peer.ws.Write(context.Background(), websocket.MessageBinary, make([]byte, readLimit+1))
	}()
	_, err := c.Recv(context.Background())
	var e *transport.Error
	if !errors.As(err, &e) || e.Kind != transport.KindRetry || e.Code != "message_too_big" {
		t.Errorf("Recv: %v", err)
	}
	_ = c.Close()
	<-sent
}

// TestBuffersOfConversations: an event of Recv is valid until the next Recv, whatever other conversations of the same
// transport read at the same time.
func TestBuffersOfConversations(t *testing.T) {
	p := newProvider(t)
	tr, err := New(p.options())
	if err != nil {
		t.Fatal(err)
	}
	connect := func() (*transport.Listener, *peer) {
		c, err := tr.Connect(context.Background(), transport.Setup{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return transport.Listen(c), p.accept()
	}
	audioOf := func(c *transport.Listener) []byte {
		for {
			ev, err := c.Recv(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			if out, ok := ev.(*transport.AudioOut); ok {
				return out.PCM
			}
		}
	}
	one, onePeer := connect()
	two, twoPeer := connect()
	for i := range 50 {
		mine, other := make([]byte, 4800), make([]byte, 4800)
		mine[0], other[0] = byte(i), 0xFF
		onePeer.send(audioMessage(mine, "words"))
		got := audioOf(one)
		twoPeer.send(audioMessage(other, ""))
		audioOf(two)
		if !bytes.Equal(got, mine) {
			t.Fatalf("round %d: another conversation's audio", i)
		}
	}
}
