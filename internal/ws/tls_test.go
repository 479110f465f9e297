package ws

import (
	"bufio"
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/tls"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/coder/websocket"

	"voicegw/internal/nonblock"
)

// small makes the kernel buffer few bytes for each connection, so that writes soon block.
type small struct{ net.Listener }

func (s small) Accept() (net.Conn, error) {
	c, err := s.Listener.Accept()
	if err == nil {
		err = errors.Join(c.(*net.TCPConn).SetWriteBuffer(4<<10), c.(*net.TCPConn).SetReadBuffer(4<<10))
	}
	return c, err
}

// secureServer accepts connections over TLS that one loop watches.
func secureServer(t *testing.T, opts Options) (srv *httptest.Server, accepted chan *Conn) {
	t.Helper()
	accepted = make(chan *Conn, 1)
	srv = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := Accept(w, r, nil, opts)
		if err != nil {
			t.Error(err)
			return
		}
		accepted <- c
	}))
	srv.Listener = nonblock.Listener{Listener: small{srv.Listener}, Loops: &nonblock.Loops{Most: 1}}
	srv.StartTLS()
	t.Cleanup(srv.Close)
	return srv, accepted
}

// upgrade dials a server and makes the WebSocket handshake over TLS by hand, with change's settings and on a connection
// wrapped by wrap. It returns the TCP connection, too.
func upgrade(t *testing.T, srv *httptest.Server, change func(*tls.Config), wrap func(net.Conn) net.Conn) (*net.TCPConn, *tls.Conn) {
	t.Helper()
	under, err := net.Dial("tcp", srv.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	tcp := under.(*net.TCPConn)
	t.Cleanup(func() { tcp.Close() })
	if err := tcp.SetReadBuffer(4 << 10); err != nil {
		t.Fatal(err)
	}
	config := srv.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	config.ServerName, config.NextProtos = "example.com", nil
	if change != nil {
		change(config)
	}
	if wrap != nil {
		under = wrap(under)
	}
	c := tls.Client(under, config)
	if err := c.Handshake(); err != nil {
		t.Fatal(err)
	}
	return tcp, c
}

const upgradeRequest = "GET / HTTP/1.1\r\nHost: example.com\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"

// readAnswer reads the head of the answer to it.
func readAnswer(t *testing.T, c io.Reader) {
	t.Helper()
	one := []byte{0}
	for head := ""; !strings.HasSuffix(head, "\r\n\r\n"); head += string(one) {
		if _, err := io.ReadFull(c, one); err != nil {
			t.Fatal(err)
		}
	}
}

// sealer writes TLS 1.3 records itself (RFC 8446, sections 5.2 and 7), with the suite TLS_AES_128_GCM_SHA256, because
// crypto/tls sends no KeyUpdate.
type sealer struct {
	secret []byte
	aead   cipher.AEAD
	iv     []byte
	seq    uint64
}

func expand(t *testing.T, secret []byte, label string, n int) []byte {
	t.Helper()
	label = "tls13 " + label
	info := append([]byte{byte(n >> 8), byte(n), byte(len(label))}, label...)
	out, err := hkdf.Expand(sha256.New, secret, string(append(info, 0)), n)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func (s *sealer) use(t *testing.T, secret []byte) {
	t.Helper()
	block, err := aes.NewCipher(expand(t, secret, "key", 16))
	if err != nil {
		t.Fatal(err)
	}
	if s.aead, err = cipher.NewGCM(block); err != nil {
		t.Fatal(err)
	}
	s.secret, s.iv, s.seq = secret, expand(t, secret, "iv", 12), 0
}

const (
	typeHandshake = 22
	typeData      = 23
)

// record appends a record.
func (s *sealer) record(dst []byte, typ byte, payload []byte) []byte {
	inner := append(bytes.Clone(payload), typ)
	nonce := bytes.Clone(s.iv)
	for i := range 8 {
		nonce[4+i] ^= byte(s.seq >> (56 - 8*i))
	}
	s.seq++
	head := binary.BigEndian.AppendUint16([]byte{typeData, 3, 3}, uint16(len(inner)+s.aead.Overhead()))
	return s.aead.Seal(append(dst, head...), nonce, inner, head)
}

// keyUpdate appends a KeyUpdate that requests one of the other side.
func (s *sealer) keyUpdate(t *testing.T, dst []byte) []byte {
	t.Helper()
	dst = s.record(dst, typeHandshake, []byte{24, 0, 0, 1, 1})
	s.use(t, expand(t, s.secret, "traffic upd", 32))
	return dst
}

// TestKeyUpdatesDelayNoOther: a client repeatedly requests new keys and reads no answer. Neither the answers nor a write
// that waits for this client delay the loop's other connections, and the pending bytes are limited.
func TestKeyUpdatesDelayNoOther(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("there are no loops here")
	}
	srv, accepted := secureServer(t, Options{})
	var log bytes.Buffer
	tcp, c := upgrade(t, srv, func(c *tls.Config) { c.MinVersion, c.KeyLogWriter = tls.VersionTLS13, &log }, nil)
	if suite := c.ConnectionState().CipherSuite; suite != tls.TLS_AES_128_GCM_SHA256 {
		t.Skipf("the suite is %s here", tls.CipherSuiteName(suite))
	}
	var s sealer
	for lines := bufio.NewScanner(&log); lines.Scan(); {
		if f := strings.Fields(lines.Text()); f[0] == "CLIENT_TRAFFIC_SECRET_0" {
			secret, err := hex.DecodeString(f[2])
			if err != nil {
				t.Fatal(err)
			}
			s.use(t, secret)
		}
	}
	if _, err := tcp.Write(s.record(nil, typeData, []byte(upgradeRequest))); err != nil {
		t.Fatal(err)
	}
	readAnswer(t, c)
	attacked := <-accepted
	t.Cleanup(func() { attacked.CloseNow() })
	hear(attacked)
	var writer, asker sync.WaitGroup
	writer.Go(func() { // it waits when much is pending
		for attacked.Write(websocket.MessageText, make([]byte, 10_000)) == nil {
		}
	})
	frame := maskedFrame(finBit, opBinary, make([]byte, 1))
	var asked atomic.Bool
	asker.Go(func() {
		defer asked.Store(true)
		for range 40_000 {
			// Without data now and then, crypto/tls itself ends the connection.
			if _, err := tcp.Write(s.record(s.keyUpdate(t, nil), typeData, frame)); err != nil {
				return
			}
		}
	})
	victimOver := setting{ourClient: true, tls: true}.client(srv.Client(), nil)
	defer victimOver.CloseIdleConnections()
	far, _, err := Dial(t.Context(), srv.URL, &websocket.DialOptions{HTTPClient: victimOver}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer far.CloseNow()
	near := hear(<-accepted)
	defer near.now()
	for i := 0; !asked.Load(); i++ {
		if err := far.Write(websocket.MessageText, []byte{byte(i)}); err != nil {
			t.Fatal(err)
		}
		if _, p, err := near.read(); err != nil || p[0] != byte(i) {
			t.Fatalf("message %d: %q, %v", i, p, err)
		}
	}
	asker.Wait()
	attacked.CloseNow()
	writer.Wait()
}

// pieces is a connection that splits its writes at random places.
type pieces struct {
	net.Conn
	at *rand.Rand
}

func (p pieces) Write(b []byte) (int, error) {
	for done := 0; done < len(b); {
		n := min(1+p.at.IntN(1+p.at.IntN(700)), len(b)-done)
		if _, err := p.Conn.Write(b[done : done+n]); err != nil {
			return done, err
		}
		done += n
	}
	return len(b), nil
}

// TestRecordsInPieces: any division of frames into records, and of records into arriving pieces, gives the same messages,
// with TLS 1.2 and 1.3.
func TestRecordsInPieces(t *testing.T) {
	srv, accepted := secureServer(t, Options{Limit: testLimit})
	for seed := range uint64(6) {
		version := uint16(tls.VersionTLS12 + seed%2)
		at := rand.New(rand.NewPCG(seed, 1))
		_, c := upgrade(t, srv, func(c *tls.Config) { c.MaxVersion = version }, func(c net.Conn) net.Conn { return pieces{c, at} })
		var stream []byte
		var sizes []int
		for range 40 {
			sizes = append(sizes, at.IntN(1<<at.IntN(16)))
			stream = append(stream, maskedFrame(finBit, opBinary, pattern(sizes[len(sizes)-1]))...)
		}
		if _, err := io.WriteString(c, upgradeRequest); err != nil {
			t.Fatal(err)
		}
		readAnswer(t, c)
		near := hear(<-accepted)
		var sending sync.WaitGroup
		sending.Go(func() {
			for len(stream) > 0 {
				n := min(1+at.IntN(1<<at.IntN(16)), len(stream))
				if _, err := c.Write(stream[:n]); err != nil {
					t.Error(err)
					return
				}
				stream = stream[n:]
			}
		})
		for i, n := range sizes {
			if _, p, err := near.read(); err != nil || !bytes.Equal(p, pattern(n)) {
				t.Fatalf("seed %d, message %d: %d of %d bytes, %v", seed, i, len(p), n, err)
			}
		}
		sending.Wait()
		near.now()
	}
}

// TestEndsOfTLS: any end of the client's TLS without a close frame ends the reading.
func TestEndsOfTLS(t *testing.T) {
	for name, end := range map[string]func(*net.TCPConn, *tls.Conn){
		"close_notify":     func(_ *net.TCPConn, c *tls.Conn) { c.CloseWrite() },
		"a reset":          func(tcp *net.TCPConn, _ *tls.Conn) { tcp.SetLinger(0); tcp.Close() },
		"the end of TCP":   func(tcp *net.TCPConn, _ *tls.Conn) { tcp.Close() },
		"half a record":    func(tcp *net.TCPConn, _ *tls.Conn) { tcp.Write([]byte{23, 3, 3, 0, 100, 1}); tcp.CloseWrite() },
		"a broken record":  func(tcp *net.TCPConn, _ *tls.Conn) { tcp.Write(append([]byte{23, 3, 3, 0, 40}, make([]byte, 40)...)) },
		"a record too big": func(tcp *net.TCPConn, _ *tls.Conn) { tcp.Write([]byte{23, 3, 3, 255, 255}) },
		"no TLS":           func(tcp *net.TCPConn, _ *tls.Conn) { io.WriteString(tcp, "GET / HTTP/1.1\r\n\r\n") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv, accepted := secureServer(t, Options{})
			tcp, c := upgrade(t, srv, nil, nil)
			if _, err := io.WriteString(c, upgradeRequest); err != nil {
				t.Fatal(err)
			}
			readAnswer(t, c)
			near := hear(<-accepted)
			if _, err := c.Write(maskedFrame(finBit, opText, []byte("hi"))); err != nil {
				t.Fatal(err)
			}
			if _, p, err := near.read(); err != nil || string(p) != "hi" {
				t.Fatal(string(p), err)
			}
			end(tcp, c)
			if _, _, err := near.read(); err == nil {
				t.Error("something was read")
			}
			near.now()
		})
	}
}
