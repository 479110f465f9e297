package gemini

import (
	"context"
	"encoding/base64"
	"net"
	"net/http"
	"strconv"
	"testing"

	"github.com/coder/websocket"

	"voicegw/audio"
	"voicegw/internal/testutil"
	"voicegw/transport"
)

// frameSizes are the bytes of PCM in one message: 20 ms and 100 ms at 24 kHz.
var frameSizes = []int{960, 4800}

// BenchmarkAudioDown measures one message of speech from the wire's text to the event. At 4800 bytes the adapter may take
// 1.5 times as long as base64 alone, without allocations.
func BenchmarkAudioDown(b *testing.B) {
	for _, size := range frameSizes {
		pcm := benchPCM(size)
		encoded := []byte(base64.StdEncoding.EncodeToString(pcm))
		msg := []byte(audioMessage(pcm, ""))
		dst := make([]byte, 0, len(msg))
		b.Run(strconv.Itoa(size)+"/memcpy", func(b *testing.B) {
			for b.Loop() {
				dst = append(dst[:0], msg...)
			}
		})
		b.Run(strconv.Itoa(size)+"/base64", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				var err error
				if dst, err = audio.AppendFromBase64(dst[:0], encoded); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(strconv.Itoa(size)+"/adapter", func(b *testing.B) {
			c, f := offline(b, model25), &frame{raw: msg}
			b.ReportAllocs()
			for b.Loop() {
				down(b, c, f)
			}
		})
	}
}

// down handles one message like Recv after reading it.
func down(tb testing.TB, c *conn, f *frame) {
	if err := c.decode(f); err != nil {
		tb.Fatal(err)
	}
	c.watch(true)
	n := 0
	for ev := c.dialog.Next(); ev != nil; ev = c.dialog.Next() {
		n++
	}
	if n == 0 {
		tb.Fatal("no event")
	}
}

// BenchmarkAudioUp measures one piece of the user's speech from PCM to the wire's text.
func BenchmarkAudioUp(b *testing.B) {
	for _, size := range frameSizes {
		pcm := benchPCM(size)
		dst := make([]byte, 0, 2*size)
		b.Run(strconv.Itoa(size)+"/memcpy", func(b *testing.B) {
			for b.Loop() {
				dst = append(dst[:0], pcm...)
			}
		})
		b.Run(strconv.Itoa(size)+"/base64", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				dst = audio.AppendBase64(dst[:0], pcm)
			}
		})
		b.Run(strconv.Itoa(size)+"/adapter", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				dst = appendAudio(dst[:0], pcm)
			}
		})
	}
}

func benchPCM(size int) []byte {
	pcm := make([]byte, size)
	for i := range pcm {
		pcm[i] = byte(i * 31)
	}
	return pcm
}

func TestDecodingAndEncodingAudioAllocatesNothing(t *testing.T) {
	pcm := benchPCM(4800)
	c, f := offline(t, model25), &frame{raw: []byte(audioMessage(pcm, ""))}
	if n := testing.AllocsPerRun(100, func() { down(t, c, f) }); n != 0 {
		t.Errorf("%v allocations for each message down", n)
	}
	var dst []byte
	if n := testing.AllocsPerRun(100, func() { dst = appendAudio(dst[:0], pcm) }); n != 0 {
		t.Errorf("%v allocations for each message up", n)
	}
}

// TestRelayingAudioAllocatesNothing: through a socket, reading, decoding, encoding and writing allocate nothing. The
// server sends one fixed message for each that it gets.
func TestRelayingAudioAllocatesNothing(t *testing.T) {
	if testutil.RaceEnabled {
		t.Skip("the race detector makes sync.Pool drop buffers")
	}
	c := echoConn(t, []byte(audioMessage(benchPCM(4800), "")))
	in := &transport.AudioIn{PCM: benchPCM(3200)}
	heard := make(chan error, 1) // for each piece of speech, and at the end
	c.Notify(func() {
		for {
			ev, err := c.Recv()
			if _, ok := ev.(*transport.AudioOut); ok || err != nil {
				heard <- err
			}
			if ev == nil {
				return
			}
		}
	})
	round := func() {
		if err := c.Send(context.Background(), in); err != nil {
			t.Fatal(err)
		}
		if err := <-heard; err != nil {
			t.Fatal(err)
		}
	}
	round()
	// The server's side of the process counts too, and must not allocate either.
	if n := testing.AllocsPerRun(200, round); n >= 1 {
		t.Errorf("%v allocations for each round", n)
	}
}

// echoConn returns a connection to a server that answers every message with msg.
func echoConn(t *testing.T, msg []byte) transport.Conn {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{}) // closed when the handler has returned
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer close(done)
		ws, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer func() { _ = ws.CloseNow() }()
		ctx, buf, first := context.Background(), make([]byte, 16<<10), []byte(`{"setupComplete":{}}`)
		for answer := first; ; answer = msg {
			_, rd, err := ws.Reader(ctx)
			if err != nil {
				return
			}
			for err == nil {
				_, err = rd.Read(buf)
			}
			if ws.Write(ctx, websocket.MessageBinary, answer) != nil {
				return
			}
		}
	})}
	served := make(chan struct{}) // closed when Serve has returned
	go func() { defer close(served); _ = srv.Serve(ln) }()
	tr, err := New(transport.Provider{APIKey: secret, BaseURL: "http://" + ln.Addr().String(), Model: model25})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c, err := tr.Connect(ctx, transport.Setup{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(); <-done; _ = srv.Close(); <-served })
	return c
}
