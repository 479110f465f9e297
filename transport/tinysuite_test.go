package transport_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"
	"go.uber.org/goleak"

	"voicegw/config"
	"voicegw/gateway"
	"voicegw/internal/auth"
	"voicegw/protocol"
	"voicegw/session"
	"voicegw/transport"
)

func TestMain(m *testing.M) {
	// genai depends on opencensus, which starts a goroutine when it is imported.
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("go.opencensus.io/stats/view.(*worker).start"))
}

const secret = "tiny-secret-0123456789"

// tinyServer is the provider's end of the tiny wire, on a real socket.
type tinyServer struct {
	t      *testing.T
	http   *httptest.Server
	client *http.Client
	status atomic.Int64
	mute   atomic.Bool
	peers  chan *tinyPeer // from the handler; one for each connection, capacity 4, never closed
}

// tinyPeer is the provider's end of one connection.
type tinyPeer struct {
	t  *testing.T
	ws *websocket.Conn
}

func newTinyServer(t *testing.T) *tinyServer {
	t.Helper()
	s := &tinyServer{t: t, peers: make(chan *tinyPeer, 4), client: &http.Client{Transport: &http.Transport{}}}
	ended := make(chan struct{})
	s.http = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if status := s.status.Load(); status != 0 {
			http.Error(w, "no access for "+secret, int(status))
			return
		}
		conn, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		conn.SetReadLimit(-1)
		defer conn.CloseNow()
		p := &tinyPeer{t, conn}
		if !s.mute.Load() {
			if p.next().Kind != "setup" {
				return
			}
			p.send(message{Kind: "ready"})
			s.peers <- p
		}
		<-ended
	}))
	t.Cleanup(func() {
		close(ended)
		s.client.CloseIdleConnections()
		s.http.Close()
	})
	return s
}

// table returns all wires and the tiny one, which registers in one line.
func table() []transport.Wire { return append(config.Wires(), tinyWire()) }

// Transport returns the adapter of a provider, whose wire it finds in the table.
func (s *tinyServer) Transport(client *http.Client) transport.Transport {
	for _, w := range table() {
		if w.Name != "tiny" {
			continue
		}
		tr, err := w.New(transport.Provider{Name: "desk", APIKey: secret, BaseURL: s.http.URL, HTTPClient: client})
		if err != nil {
			s.t.Fatal(err)
		}
		return tr
	}
	s.t.Fatal("the table has no tiny wire")
	return nil
}

func (s *tinyServer) Refuse(status int) { s.status.Store(int64(status)) }
func (s *tinyServer) Remember(int)      {}
func (s *tinyServer) Mute(string)       { s.mute.Store(true) }
func (s *tinyServer) Accept() Peer      { return <-s.peers }

func (p *tinyPeer) write(b []byte) { _ = p.ws.Write(context.Background(), websocket.MessageText, b) }

func (p *tinyPeer) send(m message) {
	b, err := json.Marshal(m)
	if err != nil {
		p.t.Error(err)
	}
	p.write(b)
}

// next returns the gateway's next message; its kind is empty if there are no more.
func (p *tinyPeer) next() (m message) {
	_, b, err := p.ws.Read(context.Background())
	if err == nil && json.Unmarshal(b, &m) != nil {
		p.t.Errorf("not a message: %s", b)
	}
	return m
}

func (p *tinyPeer) until(kind string) message {
	for m := p.next(); m.Kind != ""; m = p.next() {
		if m.Kind == kind {
			return m
		}
	}
	p.t.Errorf("the gateway sent no %s", kind)
	return message{}
}

func (p *tinyPeer) Begin()                      { p.send(message{Kind: "begin"}) }
func (p *tinyPeer) Say(text string, pcm []byte) { p.send(message{Kind: "say", Text: text, PCM: pcm}) }
func (p *tinyPeer) Finish()                     { p.send(message{Kind: "done"}) }
func (p *tinyPeer) Interrupt()                  { p.send(message{Kind: "interrupted"}) }
func (p *tinyPeer) NextAudio() []byte           { return p.until("audio").PCM }
func (p *tinyPeer) History() []Remembered       { return nil } // the wire has none
func (p *tinyPeer) Unknown()                    { p.send(message{Kind: "surprise"}) }
func (p *tinyPeer) Garbage()                    { p.write([]byte("no JSON")) }

// The wire has neither, so the suite does not call them.
func (p *tinyPeer) NextReconfigure() (string, []string) { return "", nil }
func (p *tinyPeer) NextItem() Remembered                { return Remembered{} }

func (p *tinyPeer) UserSaid(pieces ...string) {
	for _, piece := range pieces {
		p.send(message{Kind: "heard", Text: piece})
	}
}

func (p *tinyPeer) CallTools(calls ...transport.ToolCall) {
	for _, c := range calls {
		p.send(message{Kind: "call", ID: c.ID, Name: c.Name, JSON: c.Args})
	}
}

func (p *tinyPeer) NextResult() (string, json.RawMessage) {
	m := p.until("result")
	return m.ID, m.JSON
}

// Close does not wait for the other side's answer, because the other side may not read.
func (p *tinyPeer) Close(code int, reason string) {
	closing := make(chan struct{})
	go func() {
		defer close(closing)
		_ = p.ws.Close(websocket.StatusCode(code), reason)
	}()
	p.t.Cleanup(func() { <-closing })
}

// TestTinyWire: the tiny wire passes the suite of all wires.
func TestTinyWire(t *testing.T) {
	Suite(t, Harness{
		Start:  func(t *testing.T) Provider { return newTinyServer(t) },
		Secret: secret,
		CloseKinds: map[int]transport.Kind{
			1000: transport.KindRetry, 1008: transport.KindAuth, 1011: transport.KindRetry, 4242: transport.KindRetry,
		},
		StatusKinds: map[int]transport.Kind{401: transport.KindInvalid, 404: transport.KindInvalid, 503: transport.KindRetry},
	})
}

// TestTinyWireTurn: a spoken turn works through the gateway and a session, which have no code for the wire.
func TestTinyWireTurn(t *testing.T) {
	provider := newTinyServer(t)
	m, err := session.NewManager(session.Options{
		Transports: map[string]transport.Transport{"desk": provider.Transport(provider.client)}, Provider: "desk", Limits: session.Limits{ExemptLoopback: true},
	})
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewUnstartedServer(gateway.New(gateway.Options{Sessions: m, Auth: auth.Operators("operators-0123456789")}))
	srv.Config.ConnContext = gateway.ConnContext
	srv.Start()
	t.Cleanup(func() { m.Close(); srv.Close() })
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	conn, err := protocol.Dial(ctx, srv.URL+"/v1/voice", protocol.DialOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Abort()
	start, err := protocol.EncodeClient(&protocol.Start{InputRate: 16000, OutputRate: 24000})
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.WriteText(start); err != nil {
		t.Fatal(err)
	}
	peer := <-provider.peers
	speech, answer := make([]byte, 640), make([]byte, 9600)
	for i := range speech {
		speech[i] = byte(i)
	}
	if err := conn.WriteAudio(speech); err != nil {
		t.Fatal(err)
	}
	if got := peer.NextAudio(); string(got) != string(speech) {
		t.Errorf("the provider got %d bytes that differ", len(got))
	}
	peer.send(message{Kind: "speech"})
	peer.UserSaid("Good ", "day")
	peer.send(message{Kind: "silence"})
	peer.Begin()
	peer.Say("And to you.", answer)
	peer.Finish()
	heard, said := 0, map[string]string{}
	for over := false; !over; {
		f, err := conn.Read()
		if err != nil {
			t.Fatal(err)
		}
		if f.Audio {
			heard += len(f.Data)
			continue
		}
		msg, err := protocol.ParseServer(f.Data)
		if err != nil {
			t.Fatal(err)
		}
		switch msg := msg.(type) {
		case *protocol.SessionStarted:
			if msg.Provider != "desk" || msg.Model != "tiny-1" {
				t.Errorf("the session is with %s, %s", msg.Provider, msg.Model)
			}
		case *protocol.Transcript:
			said[msg.Role] = msg.Text
		case *protocol.AudioEnd:
			text, err := protocol.EncodeClient(&protocol.Playback{ItemID: msg.ItemID, PlayedMS: msg.AudioMS, Done: true})
			if err != nil {
				t.Fatal(err)
			}
			if err := conn.WriteText(text); err != nil {
				t.Fatal(err)
			}
		case *protocol.TurnEnded:
			if over = true; msg.Status != "completed" {
				t.Errorf("the turn ended %s", msg.Status)
			}
		}
	}
	if heard != len(answer) || said["user"] != "Good day" || said["assistant"] != "And to you." {
		t.Errorf("the user heard %d bytes, want %d; the transcripts are %v", heard, len(answer), said)
	}
}
