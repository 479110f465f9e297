package ws

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	"go.uber.org/goleak"

	"voicegw/internal/nonblock"
	"voicegw/internal/testutil"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// peer is the interface of both implementations in these tests.
type peer interface {
	read() (websocket.MessageType, []byte, error)
	write(typ websocket.MessageType, p []byte) error
	close(code websocket.StatusCode, reason string) error
	now()
}

type ours struct{ *Conn }

func (o ours) read() (websocket.MessageType, []byte, error)         { return o.Read() }
func (o ours) write(typ websocket.MessageType, p []byte) error      { return o.Write(typ, p) }
func (o ours) close(code websocket.StatusCode, reason string) error { return o.Close(code, reason) }
func (o ours) now()                                                 { o.CloseNow() }

type theirs struct{ *websocket.Conn }

func (o theirs) read() (websocket.MessageType, []byte, error) { return o.Read(context.Background()) }
func (o theirs) write(typ websocket.MessageType, p []byte) error {
	return o.Write(context.Background(), typ, p)
}
func (o theirs) close(code websocket.StatusCode, reason string) error { return o.Close(code, reason) }
func (o theirs) now()                                                 { o.CloseNow() }

// hearing is a connection of ours that is read in turns.
type hearing struct {
	*Conn
	mu    sync.Mutex
	more  sync.Cond
	heard []message
}

type message struct {
	typ websocket.MessageType
	p   []byte
	err error
}

// hear starts reading c in turns.
func hear(c *Conn) peer {
	w := &hearing{Conn: c}
	w.more.L = &w.mu
	c.Notify(w.listen)
	return w
}

func (w *hearing) listen() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for {
		typ, p, ok, err := w.TryRead()
		if !ok && err == nil {
			return
		}
		w.heard = append(w.heard, message{typ, bytes.Clone(p), err})
		w.more.Signal()
		if err != nil {
			return
		}
	}
}

func (w *hearing) read() (websocket.MessageType, []byte, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.heard) == 0 {
		w.more.Wait()
	}
	m := w.heard[0]
	if m.err == nil {
		w.heard = w.heard[1:]
	}
	return m.typ, m.p, m.err
}

func (w *hearing) write(typ websocket.MessageType, p []byte) error      { return w.Write(typ, p) }
func (w *hearing) close(code websocket.StatusCode, reason string) error { return w.Close(code, reason) }
func (w *hearing) now()                                                 { w.CloseNow() }

// testLimit is the longest message in these tests.
const testLimit = 1 << 20

// setting selects the implementation of each side and the network.
type setting struct {
	name                 string
	ourServer, ourClient bool
	tls                  bool
	heard                bool // ours are read in turns; otherwise by calls
	goroutine            bool // without a loop: there are none
	hides                bool // without a loop: the connections hide that they are sockets
}

var settings = []setting{
	{name: "ours", ourServer: true, ourClient: true},
	{name: "ours, TLS", ourServer: true, ourClient: true, tls: true},
	{name: "ours, wrapped", ourServer: true, ourClient: true, hides: true},
	{name: "our server", ourServer: true},
	{name: "our client", ourClient: true},
	{name: "heard by a loop", ourServer: true, ourClient: true, heard: true},
	{name: "heard by a loop, TLS", ourServer: true, ourClient: true, heard: true, tls: true},
	{name: "heard by a goroutine", ourServer: true, ourClient: true, heard: true, goroutine: true},
	{name: "heard by a goroutine, TLS", ourServer: true, ourClient: true, heard: true, goroutine: true, tls: true},
	{name: "heard, wrapped", ourServer: true, ourClient: true, heard: true, hides: true},
	{name: "heard, wrapped, TLS", ourServer: true, ourClient: true, heard: true, hides: true, tls: true},
	ourServerHeard,
	{name: "our server, TLS", ourServer: true, tls: true},
	ourServerHeardTLS,
	{name: "our server, heard by a goroutine, TLS", ourServer: true, heard: true, goroutine: true, tls: true},
	{name: "our server, heard by a goroutine", ourServer: true, heard: true, goroutine: true},
	{name: "our client, heard by a loop", ourClient: true, heard: true},
	{name: "our client, heard by a goroutine", ourClient: true, heard: true, goroutine: true},
}

var (
	ourServerHeard    = setting{name: "our server, heard by a loop", ourServer: true, heard: true}
	ourServerHeardTLS = setting{name: "our server, heard by a loop, TLS", ourServer: true, heard: true, tls: true}
)

// loops returns new loops, if the platform has any.
func (s setting) loops() *nonblock.Loops {
	if s.goroutine {
		return nil
	}
	return &nonblock.Loops{}
}

// hidden is a connection that hides that it is a socket.
type hidden struct{ net.Conn }

// hiding is a listener of them.
type hiding struct{ net.Listener }

func (h hiding) Accept() (net.Conn, error) {
	c, err := h.Listener.Accept()
	return hidden{c}, err
}

// client returns c with connections of this setting.
func (s setting) client(c *http.Client, loops *nonblock.Loops) *http.Client {
	if s.hides {
		own := c.Transport.(*http.Transport).Clone()
		own.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, network, addr)
			return hidden{conn}, err
		}
		c = &http.Client{Transport: own}
	}
	return nonblock.Client(c, loops)
}

// connect returns both ends of a connection.
func (s setting) connect(t testing.TB, opts Options) (client, server peer) {
	t.Helper()
	opts.Limit = testLimit
	accepted := make(chan peer, 1)
	loops := s.loops()
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.ourServer {
			c, err := Accept(w, r, nil, opts)
			if err != nil {
				t.Error(err)
				return
			}
			if s.heard {
				accepted <- hear(c)
				return
			}
			accepted <- ours{c}
			return
		}
		c, err := websocket.Accept(w, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		c.SetReadLimit(testLimit)
		accepted <- theirs{c}
	}))
	if s.hides {
		srv.Listener = hiding{srv.Listener}
	}
	srv.Listener = nonblock.Listener{Listener: srv.Listener, Loops: loops}
	if s.tls {
		srv.StartTLS()
	} else {
		srv.Start()
	}
	t.Cleanup(srv.Close)
	http := s.client(srv.Client(), loops)
	t.Cleanup(http.CloseIdleConnections)
	shake := &websocket.DialOptions{HTTPClient: http}
	if s.ourClient {
		c, _, err := Dial(t.Context(), srv.URL, shake, opts)
		if err != nil {
			t.Fatal(err)
		}
		client = ours{c}
		if s.heard {
			client = hear(c)
		}
	} else {
		c, _, err := websocket.Dial(t.Context(), srv.URL, shake)
		if err != nil {
			t.Fatal(err)
		}
		c.SetReadLimit(testLimit)
		client = theirs{c}
	}
	server = <-accepted
	t.Cleanup(client.now)
	t.Cleanup(server.now)
	return client, server
}

// over returns a connection that writes to stream at once.
func over(stream io.ReadWriteCloser, client bool, opts Options) *Conn {
	return newConn(stream, nonblock.Wrap(stream), client, opts)
}

// pattern is n bytes in which every mistake shows.
func pattern(n int) []byte {
	p := make([]byte, n)
	for i := range p {
		p[i] = byte(i*7 + i>>8)
	}
	return p
}

// TestMessages: messages of any size and both types arrive in both directions, between ours and the library.
func TestMessages(t *testing.T) {
	sizes := []int{0, 1, 7, 125, 126, 640, 4096, blockSize - headroom, blockSize - headroom + 1, blockSize, 65535, 65536, testLimit}
	for _, s := range settings {
		t.Run(s.name, func(t *testing.T) {
			client, server := s.connect(t, Options{})
			for _, pair := range [][2]peer{{client, server}, {server, client}} {
				from, to := pair[0], pair[1]
				sent := make(chan error, 1)
				go func() {
					for i, n := range sizes {
						if err := from.write(websocket.MessageType(1+i%2), pattern(n)); err != nil {
							sent <- err
							return
						}
					}
					sent <- nil
				}()
				for i, n := range sizes {
					typ, p, err := to.read()
					if err != nil || typ != websocket.MessageType(1+i%2) || !bytes.Equal(p, pattern(n)) {
						t.Fatalf("message %d: type %v, %d of %d bytes, %v", i, typ, len(p), n, err)
					}
				}
				if err := <-sent; err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// TestFragmentsAreOneMessage: fragments are one message, and a ping between them is answered.
func TestFragmentsAreOneMessage(t *testing.T) {
	for _, n := range []int{3, 20000} {
		near, far := net.Pipe()
		c := over(near, false, Options{Limit: testLimit})
		whole := pattern(3 * n)
		go func() {
			far.Write(maskedFrame(0, opText, whole[:n]))
			far.Write(maskedFrame(finBit, opPing, []byte("are you there")))
			far.Write(maskedFrame(0, opContinuation, whole[n:2*n]))
			far.Write(maskedFrame(finBit, opContinuation, whole[2*n:]))
		}()
		pong := make(chan []byte, 1)
		go func() {
			p := make([]byte, 2+len("are you there"))
			io.ReadFull(far, p)
			pong <- p
		}()
		typ, p, err := c.Read()
		if err != nil || typ != websocket.MessageText || !bytes.Equal(p, whole) {
			t.Errorf("read type %v, %d bytes, %v", typ, len(p), err)
		}
		if p := <-pong; p[0] != finBit|opPong || string(p[2:]) != "are you there" {
			t.Errorf("the ping was answered with %q", p)
		}
		c.CloseNow()
		far.Close()
	}
}

// maskedFrame is a masked frame of a client.
func maskedFrame(first, opcode byte, payload []byte) []byte {
	m := NewMessage()
	m.B = append(m.B, payload...)
	b := bytes.Clone((&Conn{client: true}).seal(opcode, m))
	b[0] = first | opcode
	return b
}

// TestPings: the library answers our pings, and we answer its pings.
func TestPings(t *testing.T) {
	client, server := setting{ourClient: true}.connect(t, Options{})
	go server.read()
	go client.read()
	if err := client.(ours).Probe(7); err != nil {
		t.Fatal(err)
	}
	testutil.WaitUntil(t, "the pong", func() bool { return client.(ours).Proven() == 7 })
	if err := server.(theirs).Ping(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestGoodbye: the code and the reason arrive on the other side, whichever side sends them, and whether or not it is
// reading; Close waits for the answer, and a waiting reader gets the end.
func TestGoodbye(t *testing.T) {
	for _, s := range settings {
		for _, reading := range []bool{true, false} {
			for _, byServer := range []bool{true, false} {
				client, server := s.connect(t, Options{})
				from, to := client, server
				if byServer {
					from, to = server, client
				}
				ended := make(chan error, 1)
				if reading {
					go func() {
						_, _, err := from.read()
						ended <- err
					}()
				}
				closed := make(chan error, 1)
				go func() { closed <- from.close(4003, "that is all") }()
				_, _, err := to.read()
				if websocket.CloseStatus(err) != 4003 || !strings.Contains(err.Error(), "that is all") {
					t.Errorf("%s, reading %t, server %t: the other side read %v", s.name, reading, byServer, err)
				}
				if err := <-closed; err != nil {
					t.Errorf("%s, reading %t, server %t: closing: %v", s.name, reading, byServer, err)
				}
				if reading && <-ended == nil {
					t.Errorf("%s, server %t: the read that waited was not ended", s.name, byServer)
				}
				if from.write(websocket.MessageText, []byte("x")) == nil {
					t.Errorf("%s: a closed connection accepts a message", s.name)
				}
			}
		}
	}
}

// TestSilentPeerIsNotWaitedForLong: Close waits 5 s for a silent peer.
func TestSilentPeerIsNotWaitedForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		go io.Copy(io.Discard, far)
		c := over(near, false, Options{})
		began := time.Now()
		if err := c.Close(websocket.StatusNormalClosure, ""); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took != closeTime {
			t.Errorf("Close took %s, want %s", took, closeTime)
		}
		far.Close()
	})
}

// TestMessageStaysWhileClosing: a Close on another goroutine does not change a message that Read has returned, whatever
// arrives.
func TestMessageStaysWhileClosing(t *testing.T) {
	for _, n := range []int{640, 20000} {
		client, server := settings[0].connect(t, Options{})
		first, second := pattern(n), bytes.Repeat([]byte{0xee}, n)
		for _, p := range [][]byte{first, second, second, second} {
			if err := server.write(websocket.MessageBinary, p); err != nil {
				t.Fatal(err)
			}
		}
		_, got, err := client.read()
		if err != nil {
			t.Fatal(err)
		}
		go server.read() // it answers the close frame
		if err := client.close(websocket.StatusNormalClosure, ""); err != nil {
			t.Error(err)
		}
		if !bytes.Equal(got, first) {
			t.Error("the message has changed")
		}
	}
}

// TestTooBig: a message over the limit, whole or in fragments and of any announced length, ends the connection with the
// right code.
func TestTooBig(t *testing.T) {
	for name, stream := range map[string][]byte{
		"short":     maskedFrame(finBit, opBinary, pattern(1001)),
		"long":      maskedFrame(finBit, opBinary, pattern(50000)),
		"claims":    {finBit | opBinary, maskBit | 127, 0, 0, 0, 255, 255, 255, 255, 255, 0, 0, 0, 0},
		"fragments": append(maskedFrame(0, opBinary, pattern(600)), maskedFrame(finBit, opContinuation, pattern(401))...),
	} {
		_, said, err := exchange(stream, 1000)
		if !errors.Is(err, websocket.ErrMessageTooBig) || said != websocket.StatusMessageTooBig {
			t.Errorf("%s: read %v and closed with %d", name, err, said)
		}
	}
	if n, _, err := exchange(append(maskedFrame(0, opBinary, pattern(600)), maskedFrame(finBit, opContinuation, pattern(400))...), 1000); n != 1 {
		t.Errorf("a message as long as the limit: %v", err)
	}
}

// exchange gives a server of ours a client's bytes, and returns the number of messages that it read, its close code (-1
// if it sent no code), and the error that ended the reading.
func exchange(stream []byte, limit int64) (messages int, said websocket.StatusCode, err error) {
	var answer bytes.Buffer
	c := over(&scripted{Reader: bytes.NewReader(stream), Writer: &answer}, false, Options{Limit: limit})
	for err == nil {
		if _, _, err = c.Read(); err == nil {
			messages++
		}
	}
	said = -1
	client := over(&scripted{Reader: &answer, Writer: io.Discard}, true, Options{})
	for said == -1 {
		if _, _, err := client.Read(); err != nil {
			return messages, websocket.CloseStatus(err), c.failed
		}
	}
	return messages, said, c.failed
}

// scripted is a stream with given input.
type scripted struct {
	io.Reader
	io.Writer
}

func (*scripted) Close() error { return nil }

// TestViolations: violations of the protocol end the connection with 1002.
func TestViolations(t *testing.T) {
	unmasked := (&Conn{}).seal(opText, &Message{B: append(make([]byte, headroom), "hi"...)})
	for name, stream := range map[string][]byte{
		"reserved bits":                  maskedFrame(finBit|0x40, opText, nil),
		"not masked":                     unmasked,
		"unknown opcode":                 maskedFrame(finBit, 3, nil),
		"unknown control":                maskedFrame(finBit, 11, nil),
		"long control":                   maskedFrame(finBit, opPing, pattern(126)),
		"control in fragments":           maskedFrame(0, opPing, nil),
		"continuation without a message": maskedFrame(finBit, opContinuation, nil),
		"message within another":         append(maskedFrame(0, opText, nil), maskedFrame(finBit, opText, nil)...),
		"negative length":                {finBit | opText, maskBit | 127, 255, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
		"half a close code":              maskedFrame(finBit, opClose, []byte{3}),
		"unspeakable close code":         maskedFrame(finBit, opClose, []byte{3, 0xed}), // 1005
		"close reason, no UTF-8":         maskedFrame(finBit, opClose, []byte{3, 0xe8, 0xff}),
	} {
		if n, said, err := exchange(stream, 1000); n != 0 || said != websocket.StatusProtocolError || !strings.Contains(err.Error(), "protocol violation") {
			t.Errorf("%s: read %d messages, then %v, and closed with %d", name, n, err, said)
		}
	}
	server := over(&scripted{Reader: bytes.NewReader(maskedFrame(finBit, opText, nil)), Writer: io.Discard}, true, Options{})
	if _, _, err := server.Read(); err == nil {
		t.Error("a client accepts a masked frame")
	}
}

// TestEndWithoutGoodbye: an end without a close frame is an error without a close code.
func TestEndWithoutGoodbye(t *testing.T) {
	for _, stream := range [][]byte{nil, {finBit | opText}, maskedFrame(finBit, opText, pattern(100))[:50], maskedFrame(finBit, opText, pattern(50000))[:40000]} {
		_, _, err := exchange(stream, testLimit)
		if !errors.Is(err, io.ErrUnexpectedEOF) || websocket.CloseStatus(err) != -1 {
			t.Errorf("%d bytes: %v", len(stream), err)
		}
	}
}

// TestEarlyMessage: data that a server sends in one packet with its answer to the handshake is not lost, though net/http
// has read it.
func TestEarlyMessage(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	early := (&Conn{}).seal(opText, &Message{B: append(make([]byte, headroom), "at once"...)})
	late := (&Conn{}).seal(opText, &Message{B: append(make([]byte, headroom), "later"...)})
	go func() {
		conn, err := ln.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		var key string
		for key == "" {
			buf := make([]byte, 4096)
			n, err := conn.Read(buf)
			if err != nil {
				return
			}
			_, rest, _ := strings.Cut(string(buf[:n]), "Sec-Websocket-Key: ")
			if rest == "" {
				_, rest, _ = strings.Cut(string(buf[:n]), "Sec-WebSocket-Key: ")
			}
			key, _, _ = strings.Cut(rest, "\r\n")
		}
		answer := "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: " + acceptKey(key) + "\r\n\r\n"
		conn.Write(append([]byte(answer), early...))
		conn.Write(late)
		io.Copy(io.Discard, conn)
	}()
	client := nonblock.Client(nil, nil)
	defer client.CloseIdleConnections()
	c, _, err := Dial(t.Context(), "ws://"+ln.Addr().String(), &websocket.DialOptions{HTTPClient: client}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.CloseNow()
	for _, want := range []string{"at once", "later"} {
		if _, p, err := c.Read(); err != nil || string(p) != want {
			t.Errorf("read %q, %v, want %q", p, err, want)
		}
	}
	if !c.direct {
		t.Error("the connection is read through net/http")
	}
}

// TestSilentConnectionHoldsNoBuffer: a connection without unread messages holds no buffer.
func TestSilentConnectionHoldsNoBuffer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		c := over(near, false, Options{Limit: testLimit})
		var reader sync.WaitGroup
		reader.Go(func() {
			for {
				if _, _, err := c.Read(); err != nil {
					return
				}
			}
		})
		for _, n := range []int{-1, 640, 50000} {
			if n >= 0 {
				far.Write(maskedFrame(finBit, opBinary, pattern(n)))
			}
			synctest.Wait()
			if c.in.block != nil || c.long != nil {
				t.Errorf("after %d bytes a buffer is held", n)
			}
		}
		c.CloseNow()
		reader.Wait()
		far.Close()
	})
}

// TestStuckWriterDelaysNoReader: while a writer waits for a peer that reads nothing, pings are not answered, but the loop
// continues reading; when the peer reads again, they are.
func TestStuckWriterDelaysNoReader(t *testing.T) {
	for _, s := range []setting{ourServerHeard, ourServerHeardTLS} {
		t.Run(s.name, func(t *testing.T) { stuckWriter(t, s) })
	}
}

func stuckWriter(t *testing.T, s setting) {
	client, server := s.connect(t, Options{})
	w := server.(*hearing)
	var writer, pinger sync.WaitGroup
	var enough atomic.Bool
	writer.Go(func() {
		for !enough.Load() {
			if err := w.write(websocket.MessageBinary, make([]byte, 100_000)); err != nil {
				t.Error(err)
				return
			}
		}
	})
	for !w.under.Full() {
		runtime.Gosched()
	}
	ctx, giveUp := context.WithCancel(t.Context())
	pinger.Go(func() { client.(theirs).Ping(ctx) })
	for _, msg := range []string{"one", "two"} {
		if err := client.write(websocket.MessageText, []byte(msg)); err != nil {
			t.Fatal(err)
		}
		if _, p, err := w.read(); err != nil || string(p) != msg {
			t.Fatalf("read %q, %v", p, err)
		}
	}
	enough.Store(true)
	pinger.Go(func() {
		for {
			if _, _, err := client.read(); err != nil {
				return
			}
		}
	})
	writer.Wait()
	for !w.Ready() {
		runtime.Gosched()
	}
	if err := client.(theirs).Ping(t.Context()); err != nil {
		t.Error(err)
	}
	giveUp()
	w.now()
	pinger.Wait()
}

// TestCloseDuringAWrite: a close frame that arrives while another goroutine writes is answered after its frame.
func TestCloseDuringAWrite(t *testing.T) {
	for _, s := range []setting{ourServerHeard, ourServerHeardTLS} {
		t.Run(s.name, func(t *testing.T) {
			client, server := s.connect(t, Options{})
			w := server.(*hearing)
			w.writing.Lock()
			closed := make(chan error, 1)
			go func() { closed <- client.close(websocket.StatusNormalClosure, "") }()
			if _, _, err := w.read(); websocket.CloseStatus(err) != websocket.StatusNormalClosure {
				t.Errorf("the server read %v", err)
			}
			w.writing.Unlock()
			w.settle()
			if err := <-closed; err != nil {
				t.Error("the client got no answer:", err)
			}
		})
	}
}

// TestManyWriters: frames of concurrent writers are not mixed.
func TestManyWriters(t *testing.T) {
	client, server := settings[0].connect(t, Options{})
	const writers, each = 8, 50
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() {
			for range each {
				if err := client.write(websocket.MessageBinary, bytes.Repeat([]byte{byte(i)}, 100*i+1)); err != nil {
					t.Error(err)
				}
				if err := client.(ours).Probe(1); err != nil {
					t.Error(err)
				}
			}
		})
	}
	go client.read() // the pongs
	for range writers * each {
		_, p, err := server.read()
		if err != nil || len(p) != 100*int(p[0])+1 || len(bytes.Trim(p, string(p[:1]))) != 0 {
			t.Fatalf("%d bytes, %v", len(p), err)
		}
	}
	wg.Wait()
}

// TestReadyFollowsTheNetwork: Ready reports a peer that reads nothing.
func TestReadyFollowsTheNetwork(t *testing.T) {
	for _, s := range settings[:3] {
		client, server := s.connect(t, Options{})
		for _, p := range []peer{client, server} {
			c := p.(ours)
			for !c.Ready() {
				runtime.Gosched() // until the handshake's bytes are sent
			}
			for c.Ready() {
				if err := c.Write(websocket.MessageBinary, make([]byte, 60000)); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// TestAudioAllocatesNothing: in the steady state neither side allocates.
func TestAudioAllocatesNothing(t *testing.T) {
	if testutil.RaceEnabled {
		t.Skip("the race detector makes sync.Pool drop values")
	}
	client, server := settings[0].connect(t, Options{})
	p := pattern(1000)
	around := func() {
		for _, pair := range [][2]peer{{client, server}, {server, client}} {
			if err := pair[0].write(websocket.MessageBinary, p); err != nil {
				t.Fatal(err)
			}
			if _, got, err := pair[1].read(); err != nil || len(got) != len(p) {
				t.Fatal(len(got), err)
			}
		}
	}
	around()
	if n := testing.AllocsPerRun(200, around); n != 0 {
		t.Errorf("%v allocations for a message there and back", n)
	}
}
