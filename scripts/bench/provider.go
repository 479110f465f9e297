//go:build linux

package main

import (
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/coder/websocket"

	"voicegw/internal/nonblock"
	"voicegw/internal/ws"
)

// smallestAudio distinguishes a message with audio from others, in bytes: the shortest
// frame of a bench is 20 ms.
const smallestAudio = 500

// answers are the provider's messages on one of the wires.
type answers struct {
	hello []string // at once
	setup []string // to the first message
	begin []string // before the first audio: until then a session is idle
	audio []byte   // to each message with audio
}

// The wires of the provider.
const (
	wireGemini = "gemini"
	wireOpenAI = "openai"
)

// The paths at which the wires are served.
const (
	pathGemini = "/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent"
	pathOpenAI = "/v1/realtime"
)

// answersOn returns the answers of one wire, with frameBytes of audio in each.
func answersOn(wire string, frameBytes int) answers {
	pcm := base64.StdEncoding.EncodeToString(hum(frameBytes))
	if wire == wireGemini {
		return answers{
			setup: []string{`{"setupComplete":{}}`},
			audio: []byte(`{"serverContent":{"modelTurn":{"parts":[{"inlineData":{"mimeType":"audio/pcm;rate=24000","data":"` + pcm + `"}}]}}}`),
		}
	}
	session := `{"type":"session.%s","event_id":"e","session":{"type":"realtime","id":"sess_1","model":"gpt-realtime","audio":{"input":{},"output":{}}}}`
	return answers{
		hello: []string{fmt.Sprintf(session, "created")},
		setup: []string{fmt.Sprintf(session, "updated")},
		begin: []string{`{"type":"response.created","event_id":"e","response":{"id":"resp_1","status":"in_progress"}}`},
		audio: []byte(`{"type":"response.output_audio.delta","event_id":"event_1","response_id":"resp_1","item_id":"item_1","output_index":0,"content_index":0,"delta":"` + pcm + `"}`),
	}
}

// hum returns PCM16 that is not silence and that no detector takes for speech.
func hum(n int) []byte {
	pcm := make([]byte, n)
	seed := uint32(1)
	for i := 0; i+1 < n; i += 2 {
		seed = seed*1664525 + 1013904223
		pcm[i] = byte(seed >> 26) // 0 to 63 of 32768
	}
	return pcm
}

// provider answers each frame of audio with one of the same length, on either wire. Its own
// CPU time is not measured, but takes processor time away from the relay: loops read its
// connections.
type provider struct{ gemini, openai answers }

// serveProvider prints its address on out and answers until in ends. If a file's path is given
// it speaks TLS, and writes the certificate to trust to that file.
func serveProvider(in io.Reader, out io.Writer, frameBytes int, certFile string) error {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	ln = nonblock.Listener{Listener: ln, Loops: &nonblock.Loops{}}
	if certFile != "" {
		if ln, err = overTLS(ln, certFile); err != nil {
			return err
		}
	}
	say(out, "%s\n", ln.Addr())
	server := &http.Server{
		Handler:           provider{answersOn(wireGemini, frameBytes), answersOn(wireOpenAI, frameBytes)},
		ReadHeaderTimeout: handshakeTime,
	}
	failed := make(chan error, 2) // one for each goroutine; never closed
	go func() { failed <- server.Serve(ln) }()
	go func() {
		_, err := io.Copy(io.Discard, in)
		failed <- err
	}()
	return <-failed
}

// handshakeTime bounds what opening one connection takes.
const handshakeTime = 30 * time.Second

// ServeHTTP accepts a connection. If one ends early, the load reports missing frames.
func (p provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	conn, err := ws.Accept(w, r, nil, ws.Options{})
	if err != nil {
		return
	}
	c := &providerConn{Conn: conn, answers: p.openai}
	if strings.Contains(r.URL.Path, "BidiGenerateContent") {
		c.answers = p.gemini
	}
	if c.text(c.answers.hello) != nil {
		_ = c.CloseNow()
		return
	}
	c.Notify(c.readable)
}

// providerConn is one connection of the provider.
type providerConn struct {
	*ws.Conn
	answers answers
	begun   bool // the first message has arrived
	speaks  bool // audio has arrived
}

// readable answers the messages that have arrived.
func (c *providerConn) readable() {
	for {
		_, message, ok, err := c.TryRead()
		if err == nil && !ok {
			return
		}
		if err == nil {
			err = c.take(message)
		}
		if err != nil {
			_ = c.CloseNow()
			return
		}
	}
}

// take answers one message.
func (c *providerConn) take(message []byte) error {
	if !c.begun {
		c.begun = true
		return c.text(c.answers.setup)
	}
	if len(message) < smallestAudio {
		return nil
	}
	if !c.speaks {
		c.speaks = true
		if err := c.text(c.answers.begin); err != nil {
			return err
		}
	}
	return c.Write(websocket.MessageText, c.answers.audio)
}

func (c *providerConn) text(messages []string) error {
	for _, m := range messages {
		if err := c.Write(websocket.MessageText, []byte(m)); err != nil {
			return err
		}
	}
	return nil
}
