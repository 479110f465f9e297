package openai

import (
	"context"
	"io"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"voicegw/internal/nonblock"
	"voicegw/internal/testutil"
	"voicegw/transport"
)

// TestDownAllocatesNothing counts allocations of both ends of the socket during audio from the provider, including those
// of the scripted provider, which sends prepared frames.
func TestDownAllocatesNothing(t *testing.T) {
	if testutil.RaceEnabled {
		t.Skip("the race detector allocates")
	}
	for _, n := range []int{960, 4800, 12000} {
		s := newServer(t)
		s.opts.HTTPClient = nonblock.Client(s.client, &nonblock.Loops{})
		conn, p := s.dial(transport.Setup{})
		first, second := audioFrame(benchItem, n), audioFrame("item_other", n)
		second = []byte(strings.Replace(string(second), "event_E6U0x5", "event_AAAAA", 1))
		stopped := make(chan struct{})
		go func() {
			defer close(stopped)
			for i := 0; ; i++ {
				frame := first
				if i/100%2 == 1 {
					frame = second
				}
				if p.ws.Write(context.Background(), websocket.MessageText, frame) != nil {
					return
				}
			}
		}()
		pieces, over := make(chan int), make(chan struct{}) // bytes of each piece; closed at the end
		conn.Notify(func() {
			for {
				ev, err := conn.Recv()
				if ev == nil || err != nil {
					return
				}
				size := -1
				if out, ok := ev.(*transport.AudioOut); ok {
					size = len(out.PCM)
				}
				select {
				case pieces <- size:
				case <-over:
				}
			}
		})
		receive := func() {
			if got := <-pieces; got != n {
				t.Fatalf("a piece has %d bytes, want %d", got, n)
			}
		}
		for range 300 {
			receive() // both items are known, the buffers have grown
		}
		if got := testing.AllocsPerRun(1000, receive); got != 0 {
			t.Errorf("%d bytes of audio cost %v allocations", n, got)
		}
		if st := conn.Stats(); st != (transport.Stats{}) {
			t.Errorf("stats %+v", st)
		}
		close(over)
		_ = conn.Close()
		_ = p.ws.CloseNow()
		<-stopped
	}
}

// TestUpAllocatesNothing is the same for the user's audio.
func TestUpAllocatesNothing(t *testing.T) {
	if testutil.RaceEnabled {
		t.Skip("the race detector allocates")
	}
	for _, n := range []int{960, 4800} {
		s := newServer(t)
		conn, p := s.connect(transport.Setup{})
		stopped := make(chan struct{})
		go func() {
			defer close(stopped)
			buf := make([]byte, 64<<10)
			for {
				_, r, err := p.ws.Reader(context.Background())
				for err == nil {
					_, err = r.Read(buf)
				}
				if err != io.EOF {
					return
				}
			}
		}()
		in := &transport.AudioIn{PCM: make([]byte, n)}
		transmit := func() {
			if err := conn.Send(context.Background(), in); err != nil {
				t.Fatal(err)
			}
		}
		for range 100 {
			transmit()
		}
		if got := testing.AllocsPerRun(1000, transmit); got != 0 {
			t.Errorf("%d bytes of audio cost %v allocations", n, got)
		}
		_ = conn.Close()
		<-stopped
	}
}
