//go:build linux

package main

import (
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// smallestAudio distinguishes a message with audio from others, in bytes: the shortest
// frame of a bench is 20 ms.
const smallestAudio = 500

// answers are the provider's messages on one of the wires.
type answers struct {
	hello []byte // at once
	setup []byte // to the first message
	audio []byte // to each message with audio
}

// The wires of the provider.
const (
	wireGemini = "gemini"
	wireOpenAI = "openai"
)

// answersOn returns the answers of one wire, with frameBytes of audio in each.
func answersOn(wire string, frameBytes int) answers {
	text := func(parts ...string) (frames []byte) {
		for _, s := range parts {
			frames = appendFrame(frames, opText, []byte(s), false)
		}
		return frames
	}
	pcm := base64.StdEncoding.EncodeToString(hum(frameBytes))
	if wire == wireGemini {
		return answers{
			setup: text(`{"setupComplete":{}}`),
			audio: text(`{"serverContent":{"modelTurn":{"parts":[{"inlineData":{"mimeType":"audio/pcm;rate=24000","data":"` + pcm + `"}}]}}}`),
		}
	}
	session := `{"type":"session.%s","event_id":"e","session":{"type":"realtime","id":"sess_1","model":"gpt-realtime","audio":{"input":{},"output":{}}}}`
	return answers{
		hello: text(fmt.Sprintf(session, "created")),
		setup: text(fmt.Sprintf(session, "updated"), `{"type":"response.created","event_id":"e","response":{"id":"resp_1","status":"in_progress"}}`),
		audio: text(`{"type":"response.output_audio.delta","event_id":"event_1","response_id":"resp_1","item_id":"item_1","output_index":0,"content_index":0,"delta":"` + pcm + `"}`),
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
// CPU time is not measured.
type provider struct {
	poll   *poll
	gemini answers
	openai answers

	mu    sync.Mutex // guards conns
	conns []*providerConn
}

type providerConn struct {
	fd      int // without TLS
	write   func([]byte) error
	answers *answers
	frames  frameReader
	begun   bool // the first message has arrived
}

// serveProvider prints its address on out and answers until in ends. If a file's path is given
// it speaks TLS, and writes the certificate to trust to that file.
func serveProvider(in io.Reader, out io.Writer, frameBytes int, certFile string) error {
	p := &provider{gemini: answersOn(wireGemini, frameBytes), openai: answersOn(wireOpenAI, frameBytes)}
	var err error
	if p.poll, err = newPoll(); err != nil {
		return err
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	if certFile != "" {
		if ln, err = overTLS(ln, certFile); err != nil {
			return err
		}
	}
	say(out, "%s\n", ln.Addr())
	failed := make(chan error, 3) // one for each goroutine; never closed
	server := &http.Server{Handler: p, ReadHeaderTimeout: handshakeTime}
	go func() { failed <- server.Serve(ln) }()
	go func() { failed <- p.answer() }()
	go func() {
		_, err := io.Copy(io.Discard, in)
		failed <- err
	}()
	return <-failed
}

// ServeHTTP accepts a connection and passes it to answer.
func (p *provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	conn, err := acceptWS(w, r)
	if err != nil {
		return // the load reports missing frames
	}
	if p.open(conn, r.URL.Path) != nil {
		_ = conn.Close() // likewise
	}
}

func (p *provider) open(conn net.Conn, path string) (err error) {
	c := &providerConn{answers: &p.openai}
	if strings.Contains(path, "BidiGenerateContent") {
		c.answers = &p.gemini
	}
	if _, ok := conn.(*tls.Conn); ok {
		return c.overTLS(conn)
	}
	if c.fd, err = detach(conn); err != nil {
		return err
	}
	c.write = func(b []byte) error { return writeAll(c.fd, b) }
	if err := c.write(c.answers.hello); err != nil {
		return err
	}
	p.mu.Lock()
	id := int32(len(p.conns))
	p.conns = append(p.conns, c)
	p.mu.Unlock()
	return p.poll.add(c.fd, id)
}

// answer answers incoming frames.
func (p *provider) answer() error {
	for {
		if err := p.poll.wait(-1, p.readable); err != nil {
			return err
		}
	}
}

func (p *provider) readable(id int32) {
	p.mu.Lock()
	c := p.conns[id]
	p.mu.Unlock()
	b, err := p.poll.read(c.fd)
	if err == nil {
		err = c.feed(b)
	}
	if err != nil {
		_ = unix.Close(c.fd) // the load reports missing frames
	}
}

// feed answers the frames that b completes.
func (c *providerConn) feed(b []byte) (err error) {
	c.frames.feed(b, func(f frame) { err = errors.Join(err, c.take(f)) })
	return err
}

// overTLS answers frames until the connection ends, on the connection's goroutine: a TLS
// connection has state that poll does not know.
func (c *providerConn) overTLS(conn net.Conn) error {
	c.write = func(b []byte) error {
		_, err := conn.Write(b)
		return err
	}
	if err := c.write(c.answers.hello); err != nil {
		return err
	}
	for buf := make([]byte, tlsRoom); ; {
		n, err := conn.Read(buf)
		if err == nil {
			err = c.feed(buf[:n])
		}
		if err != nil {
			return err
		}
	}
}

// take answers one frame.
func (c *providerConn) take(f frame) error {
	switch {
	case f.opcode == opClose:
		return errClosed
	case f.opcode == opPing:
		return c.write(appendFrame(nil, opPong, f.head, false))
	case f.opcode == opPong:
		return nil
	case !c.begun:
		c.begun = true
		return c.write(c.answers.setup)
	case f.length >= smallestAudio:
		return c.write(c.answers.audio)
	}
	return nil
}
