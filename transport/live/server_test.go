package live

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"go.uber.org/goleak"

	"voicegw/internal/livewire"
	"voicegw/internal/nonblock"
	"voicegw/internal/testutil"
	"voicegw/transport"
	"voicegw/transport/textmodel"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// server is a scripted provider. It acknowledges no append unless the test does.
type server struct {
	t        *testing.T
	tr       *Transport
	peers    chan *peer
	model    *scripted
	http     *http.Client
	discards bool // the provider reads without parsing, for tests that count allocations
}

// peer is the provider's end of one connection.
type peer struct {
	t      *testing.T
	ws     *websocket.Conn
	start  *livewire.Session
	frames chan livewire.ClientEvent // without silence; closed with the connection
}

func newServer(t *testing.T) *server {
	t.Helper()
	s := &server{t: t, peers: make(chan *peer, 4), model: &scripted{asked: make(chan asked)}, http: nonblock.Client(nil, &nonblock.Loops{})}
	var serving sync.WaitGroup
	over := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ws, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		_, frame, err := ws.Read(context.Background())
		e, bad := livewire.ParseClientEvent(frame)
		if err != nil || bad != nil {
			t.Errorf("the first message: %v, %v", err, bad)
			return
		}
		p := &peer{t: t, ws: ws, frames: make(chan livewire.ClientEvent, 256)}
		if p.start, bad = livewire.ParseStart(e.Session); bad != nil {
			t.Errorf("session.start: %v", bad)
			return
		}
		started := *p.start
		started.ID, started.ExpiresAt = "live_1", 4_000_000_000
		text, _ := json.Marshal(&started)
		p.send(`{"type":"session.started","session":%s}`, text)
		serving.Go(func() {
			defer close(p.frames)
			for buf := make([]byte, 64<<10); s.discards; {
				_, r, err := ws.Reader(context.Background())
				for err == nil {
					_, err = r.Read(buf)
				}
				if err != io.EOF { // the end of the connection wraps it
					return
				}
			}
			for {
				_, frame, err := ws.Read(context.Background())
				if err != nil {
					return
				}
				e, bad := livewire.ParseClientEvent(frame)
				switch {
				case bad != nil:
					t.Errorf("the client sent %.200s: %v", frame, bad)
				case e.Type == livewire.Close:
					p.send(`{"type":"session.closed","reason":"close_requested","usage":{"seconds":3}}`)
					_ = ws.CloseNow()
					return
				case e.Type != livewire.AudioAppend:
					select {
					case p.frames <- e:
					case <-over:
					}
				}
			}
		})
		s.peers <- p
	}))
	t.Cleanup(func() { close(over); serving.Wait(); srv.Close() })
	tr, err := New(transport.Provider{APIKey: "sk-secret", BaseURL: srv.URL, HTTPClient: s.http})
	if err != nil {
		t.Fatal(err)
	}
	tr.UseText(s.model, "words-1")
	s.tr = tr
	return s
}

func (s *server) connect(setup transport.Setup) (*transport.Listener, *peer) {
	s.t.Helper()
	conn, err := s.tr.Connect(context.Background(), setup)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = conn.Close() })
	return transport.Listen(conn), testutil.WaitNext(s.t, "the provider's end", s.peers)
}

func (p *peer) send(format string, args ...any) {
	if err := p.ws.Write(context.Background(), websocket.MessageText, fmt.Appendf(nil, format, args...)); err != nil {
		p.t.Log("the provider cannot write:", err)
	}
}

// delegate sends the user's words and a delegation.
func (p *peer) delegate(id, words string, at int64) {
	p.send(`{"type":"session.input_transcript.delta","delta":%q,"start_ms":%d,"end_ms":%d}`, words, at-200, at)
	p.send(`{"type":"session.delegation.created","offset_ms":%d,"delegation":{"id":%q,"target":"client"}}`, at, id)
}

// wants reads the client's next append and checks its kind and delegation.
func (p *peer) wants(kind, delegation string) livewire.ClientEvent {
	p.t.Helper()
	e := testutil.WaitNext(p.t, kind, p.frames)
	if e.Type != kind || e.Delegation != delegation {
		p.t.Errorf("the client sent %+v, want %s about %q", e, kind, delegation)
	}
	return e
}

// scripted is a text model. The test gives one answer for each prompt.
type scripted struct{ asked chan asked }

type asked struct {
	textmodel.Prompt
	reply chan textmodel.Reply
	fail  chan error
}

func (m *scripted) Complete(ctx context.Context, p textmodel.Prompt, _ func(string)) (textmodel.Reply, error) {
	a := asked{p, make(chan textmodel.Reply), make(chan error)}
	select {
	case m.asked <- a:
	case <-ctx.Done():
		return textmodel.Reply{}, ctx.Err()
	}
	select {
	case r := <-a.reply:
		return r, nil
	case err := <-a.fail:
		return textmodel.Reply{}, err
	case <-ctx.Done():
		return textmodel.Reply{}, ctx.Err()
	}
}

func (a asked) last() textmodel.Message { return a.Messages[len(a.Messages)-1] }

// awaited returns the next event of a type.
func awaited[T transport.Event](t *testing.T, c *transport.Listener) T {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for {
		ev, err := c.Recv(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if want, ok := ev.(T); ok {
			return want
		}
	}
}
