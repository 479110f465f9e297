package cluster

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"voicegw/internal/bounded"
	"voicegw/internal/nonblock"
	"voicegw/session"
)

// Options configure Peers. Secret is required.
type Options struct {
	// Secret is shared by all nodes: at least MinSecret bytes.
	Secret []byte
	// Accept gets each client that another node relays and owns c. It must not block. Nil refuses all clients.
	Accept func(h Hello, c *Client)
	// End ends a session of this node and reports whether this node runs it. Nil means this node runs none.
	End func(id string) bool
	// Switch hands a session of this node to another agent; see session.Manager.SwitchAgent. Nil means this node runs no
	// session.
	Switch func(id, agent, reason string) error
	// Prompt returns the prompt of a session of this node; see session.Manager.Prompt. Nil means this node runs no
	// session.
	Prompt func(id string) (session.Prompt, error)
	// Session returns a session of this node; see session.Manager.Session. Nil means this node runs no session.
	Session func(id string) (session.Running, bool)
	// Holds reports whether this node runs a session or is taking it over. Clients of other sessions are refused before
	// their bytes are relayed, so that the relaying node can still try another owner. Nil accepts all.
	Holds func(id string) bool
	// TLS is for nodes with https addresses; nil means the system's roots.
	TLS *tls.Config
	// MaxMessageBytes bounds a client's message in bytes; zero means protocol.MaxMessageBytes.
	MaxMessageBytes int
}

// Peers talks to the other nodes. It may be used concurrently.
type Peers struct {
	// Immutable.
	opts   Options
	signer *signer
	dialer *net.Dialer
	client *http.Client
	// prompts is client with a larger answer limit.
	prompts *http.Client
}

// New returns Peers, or an error if the secret is too short.
func New(opts Options) (*Peers, error) {
	if len(opts.Secret) < MinSecret {
		return nil, fmt.Errorf("cluster: the secret has %d bytes, want at least %d", len(opts.Secret), MinSecret)
	}
	dialer := &net.Dialer{
		Timeout: dialTime,
		// Detects a dead machine quickly, so that the client can continue elsewhere.
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 4 * time.Second, Interval: 2 * time.Second, Count: 3},
	}
	transport := bounded.NewTransport()
	// Gateways share a network, so no proxy is used; Relay dials without one too.
	transport.Proxy = nil
	transport.DialContext, transport.TLSClientConfig, transport.DisableKeepAlives = dialer.DialContext, opts.TLS, true
	client := bounded.Over(transport, bounded.Limits{Service: "another gateway", Bytes: maxHello, Whole: answerTime})
	prompts := bounded.Over(transport, bounded.Limits{Service: "another gateway", Bytes: maxPrompt, Whole: answerTime})
	return &Peers{opts: opts, signer: newSigner(opts.Secret), dialer: dialer, client: client, prompts: prompts}, nil
}

const (
	dialTime   = 2 * time.Second // connecting to another node
	answerTime = 5 * time.Second // waiting for its answer
	closeTime  = 2 * time.Second // draining one side after the other has ended
)

// The errors of Dial. No client data has been relayed yet.
var (
	// ErrUnreachable: the node doesn't answer; it may be dead.
	ErrUnreachable = errors.New("cluster: the node that runs the session cannot be reached")
	// ErrRefused: the node answered and refused.
	ErrRefused = errors.New("cluster: the node that runs the session refuses the client")
)

// Dial asks the node at address (its URL without a path) to accept a client. That node informs the session when Run
// starts. The error wraps ErrUnreachable or ErrRefused and leaves the client's connection untouched. On success the
// caller must call Relay.Run or Relay.Close.
func (p *Peers) Dial(ctx context.Context, address string, h Hello) (*Relay, error) {
	base, err := url.Parse(address)
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" {
		return nil, fmt.Errorf("%w: its address %q is not an http or https URL", ErrUnreachable, address)
	}
	hello, err := h.encode()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRefused, err)
	}
	conn, err := p.dial(ctx, base)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	relay, err := p.ask(ctx, conn, base, hello)
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return relay, nil
}

func (p *Peers) dial(ctx context.Context, base *url.URL) (net.Conn, error) {
	port := base.Port()
	if port == "" {
		port = base.Scheme
	}
	addr := net.JoinHostPort(base.Hostname(), port)
	if base.Scheme == "http" {
		return p.dialer.DialContext(ctx, "tcp", addr) //nolint:wrapcheck // Dial wraps it
	}
	d := tls.Dialer{NetDialer: p.dialer, Config: p.opts.TLS}
	return d.DialContext(ctx, "tcp", addr) //nolint:wrapcheck // Dial wraps it
}

func (p *Peers) ask(ctx context.Context, conn net.Conn, base *url.URL, hello string) (*Relay, error) {
	r := (&http.Request{
		Method: http.MethodPost, URL: &url.URL{Scheme: base.Scheme, Host: base.Host, Path: attachPath}, Host: base.Host,
		Header: http.Header{"Connection": {"Upgrade"}, "Upgrade": {upgradeTo}, helloHeader: {hello}, confirmHeader: {"yes"}},
	}).WithContext(ctx)
	p.signer.sign(r, time.Now())
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) }) // interrupts a read or write
	defer stop()
	if err := r.Write(conn); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	in := bufio.NewReaderSize(conn, 4<<10)
	answer, err := http.ReadResponse(in, r)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	if answer.StatusCode != http.StatusSwitchingProtocols {
		words, _ := io.ReadAll(io.LimitReader(answer.Body, 512)) // the status is enough
		return nil, errors.Join(fmt.Errorf("%w: %s %s", ErrRefused, answer.Status, words), answer.Body.Close())
	}
	if !stop() {
		return nil, fmt.Errorf("%w: %w", ErrUnreachable, context.Cause(ctx))
	}
	early := make([]byte, in.Buffered())
	if _, err := io.ReadFull(in, early); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	return &Relay{owner: conn, early: early, waits: answer.Header.Get(confirmHeader) != ""}, nil
}

// Relay is a connection to the node that runs a client's session.
type Relay struct {
	node  string // its ID, for the log
	owner net.Conn
	early []byte // data the owner already sent
	waits bool   // whether the owner waits for the confirmation byte
}

// Close abandons the relay before Run.
func (r *Relay) Close() error { return r.owner.Close() } //nolint:wrapcheck // the caller has the context

// Run relays a client that its protocol.Conn has released, with the data read after session.start, until one side has
// ended and the other has received the rest, or until ctx ends. It closes both sides and returns the number of bytes
// sent to the owner and to the client. While idle it holds two goroutines and no buffer.
func (r *Relay) Run(ctx context.Context, client io.ReadWriteCloser, unread []byte) (up, down int64) {
	closeBoth := sync.OnceFunc(func() {
		_ = r.owner.Close()
		_ = client.Close()
	})
	defer closeBoth()
	defer context.AfterFunc(ctx, closeBoth)()
	var late *time.Timer
	var once sync.Once
	half := func() { once.Do(func() { late = time.AfterFunc(closeTime, closeBoth) }) }
	var each sync.WaitGroup
	each.Go(func() {
		if r.waits {
			_, _ = r.owner.Write([]byte{confirmation}) // if the owner is gone, the other direction ends and Run with it
		}
		up = carry(r.owner, client, unread)
		closeWrite(r.owner)
		half()
	})
	each.Go(func() {
		down = carry(waiting(client), r.owner, r.early)
		closeWrite(client)
		half()
	})
	each.Wait()
	late.Stop()
	return up, down
}

// waiting returns a writer with backpressure: data the client hasn't accepted stays with the owner, which can still drop
// it.
func waiting(client io.ReadWriteCloser) io.Writer {
	if under, ok := client.(*nonblock.Conn); ok {
		return under.Conn
	}
	if under := underTLS(client); under != nil {
		return flushing{client, under}
	}
	return client
}

func underTLS(client any) *nonblock.Conn {
	c, _ := client.(net.Conn)
	return nonblock.Under(c)
}

// flushing is a writer over TLS that waits until the underlying connection has sent everything.
type flushing struct {
	io.Writer
	under *nonblock.Conn
}

func (f flushing) Write(p []byte) (int, error) {
	n, err := f.Writer.Write(p)
	f.under.Flush()
	return n, err //nolint:wrapcheck // this is the same writer
}

// tlsBlock is the read buffer for a TLS client, which is held even while idle because the TLS library reads into it
// directly. It holds 60 ms of audio.
const tlsBlock = 2 << 10

// carry writes first and then everything from src to dst, and returns the number of bytes written.
func carry(dst io.Writer, src io.Reader, first []byte) int64 {
	var done int64
	if len(first) > 0 {
		n, err := dst.Write(first)
		if done += int64(n); err != nil {
			return done
		}
	}
	wait, ok := src.(interface {
		ReadInto(room nonblock.Room) (int, error)
	})
	if !ok {
		conn, isConn := src.(net.Conn)
		if underTLS(src) != nil {
			n, _ := io.CopyBuffer(struct{ io.Writer }{dst}, struct{ io.Reader }{src}, make([]byte, tlsBlock))
			return done + n
		}
		if !isConn {
			n, _ := io.Copy(dst, src) // the end of either side ends the relay, whatever the error
			return done + n
		}
		wait = nonblock.Wrap(conn)
	}
	var b nonblock.Borrowed
	for {
		n, err := wait.ReadInto(&b)
		if n > 0 {
			m, failed := dst.Write(b.Room()[:n])
			done += int64(m)
			err = errors.Join(err, failed)
		}
		b.GiveBack()
		if n <= 0 || err != nil {
			return done
		}
	}
}

// closeWrite closes the sending direction, so that everything sent before still arrives.
func closeWrite(c any) {
	if under, ok := c.(*nonblock.Conn); ok {
		c = under.Conn
	}
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite() // the other side may be gone
	}
}
