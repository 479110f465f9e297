package transport_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"

	"voicegw/internal/livewire"
	"voicegw/transport"
	"voicegw/transport/live"
	"voicegw/transport/textmodel"
)

func TestLive(t *testing.T) {
	Suite(t, Harness{
		Start:  func(t *testing.T) Provider { return newLive(t) },
		Secret: secret,
		Quiet:  true,
		CloseKinds: map[int]transport.Kind{
			1000: transport.KindRetry, 1001: transport.KindExpired, 1002: transport.KindInvalid,
			1007: transport.KindInvalid, 1008: transport.KindRetry, 1011: transport.KindRetry, 3000: transport.KindAuth,
		},
		StatusKinds: map[int]transport.Kind{
			400: transport.KindInvalid, 401: transport.KindAuth, 402: transport.KindQuota, 403: transport.KindAuth,
			404: transport.KindInvalid, 429: transport.KindRateLimit, 500: transport.KindServer, 301: transport.KindInvalid,
		},
	})
}

// liveServer is a scripted provider on a real socket, with the text model of its adapters.
type liveServer struct {
	t       *testing.T
	http    *httptest.Server
	status  atomic.Int64
	mute    atomic.Pointer[string]
	peers   chan *livePeer // from the handler to Accept
	serving sync.WaitGroup
	over    chan struct{} // closed at the end

	mu    sync.Mutex // guards the following fields
	open  []*livePeer
	calls []textmodel.ToolCall // of the next delegation

	results chan textmodel.Message // the tools' results, in the order of the calls
}

// livePeer is the provider's end of one connection. A goroutine reads, because session.close is confirmed at once.
type livePeer struct {
	t      *testing.T
	s      *liveServer
	ws     *websocket.Conn
	input  []livewire.Message
	frames chan livewire.ClientEvent // closed with the connection
	at     int64                     // the timeline, ms
	n      int
}

func newLive(t *testing.T) *liveServer {
	t.Helper()
	s := &liveServer{t: t, peers: make(chan *livePeer, 16), results: make(chan textmodel.Message, 16), over: make(chan struct{})}
	s.http = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(func() {
		close(s.over)
		s.mu.Lock()
		for _, p := range s.open {
			_ = p.ws.CloseNow()
		}
		s.mu.Unlock()
		s.serving.Wait()
		s.http.Close()
	})
	return s
}

func (s *liveServer) serve(w http.ResponseWriter, r *http.Request) {
	if status := s.status.Load(); status != 0 {
		w.WriteHeader(int(status))
		_, _ = w.Write([]byte(`{"error":{"message":"no access for ` + secret + `","code":"some_code"}}`))
		return
	}
	if r.URL.Path != livewire.Path || r.URL.RawQuery != "" || r.Header.Get("Authorization") != "Bearer "+secret {
		s.t.Errorf("the handshake is %s with %v", r.URL, r.Header)
	}
	ws, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	ws.SetReadLimit(32 << 20)
	p := &livePeer{t: s.t, s: s, ws: ws, frames: make(chan livewire.ClientEvent, 64)}
	s.mu.Lock()
	s.open = append(s.open, p)
	s.mu.Unlock()
	if first := s.mute.Load(); first != nil {
		return
	}
	_, frame, err := ws.Read(context.Background())
	if err != nil {
		return
	}
	start, bad := livewire.ParseClientEvent(frame)
	if bad != nil || start.Type != livewire.Start {
		s.t.Errorf("the first message is %s: %v", frame, bad)
		return
	}
	session, bad := livewire.ParseStart(start.Session)
	if bad != nil {
		s.t.Errorf("the session is refused: %v", bad)
		return
	}
	p.input = session.Input
	session.ID, session.ExpiresAt, session.Status = "live_1", time.Now().Add(2*time.Hour).Unix(), "active"
	p.send(`{"type":"error","error":{"type":"invalid_request_error","code":"missing_scope","message":"harmless"}}`)
	text, _ := json.Marshal(session)
	p.send(`{"type":"session.started","event_id":"e","session":%s}`, text)
	s.serving.Go(p.read)
	s.peers <- p
}

// read parses the client's messages strictly and confirms session.close.
func (p *livePeer) read() {
	defer close(p.frames)
	for {
		_, frame, err := p.ws.Read(context.Background())
		if err != nil {
			return
		}
		e, bad := livewire.ParseClientEvent(frame)
		if bad != nil {
			p.t.Errorf("the client sent %.200s: %v", frame, bad)
		}
		if e.Type == livewire.Close {
			_ = p.ws.Write(context.Background(), websocket.MessageText, []byte(`{"type":"session.closed","reason":"close_requested","usage":{"seconds":1}}`))
			_ = p.ws.CloseNow()
			return
		}
		select {
		case p.frames <- e:
		case <-p.s.over: // the test has read enough
			return
		}
	}
}

func (p *livePeer) send(format string, args ...any) {
	p.t.Helper()
	if err := p.ws.Write(context.Background(), websocket.MessageText, fmt.Appendf(nil, format, args...)); err != nil {
		p.t.Errorf("the provider cannot write: %v", err)
	}
}

// next returns the client's next message that want accepts.
func (p *livePeer) next(want func(livewire.ClientEvent) bool) livewire.ClientEvent {
	p.t.Helper()
	for {
		select {
		case e, ok := <-p.frames:
			if !ok || want(e) {
				return e
			}
		case <-time.After(suitePatience):
			p.t.Fatal("the client did not send the expected message")
		}
	}
}

func pcmOf(e livewire.ClientEvent) []byte {
	pcm, _ := base64.StdEncoding.DecodeString(string(e.Audio))
	return pcm
}

func (s *liveServer) Transport(client *http.Client) transport.Transport {
	s.t.Helper()
	tr, err := live.New(transport.Provider{APIKey: secret, BaseURL: s.http.URL, HTTPClient: client})
	if err != nil {
		s.t.Fatal(err)
	}
	tr.UseText(s, "scripted")
	return tr
}

// Complete implements textmodel.Model: it calls the tools that CallTools has set.
func (s *liveServer) Complete(ctx context.Context, p textmodel.Prompt, _ func(string)) (textmodel.Reply, error) {
	for _, m := range p.Messages {
		if m.Role == textmodel.RoleTool {
			s.results <- m
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	calls := s.calls
	s.calls = nil
	return textmodel.Reply{Text: "Done.", Calls: calls}, ctx.Err()
}

func (s *liveServer) Refuse(status int) { s.status.Store(int64(status)) }
func (s *liveServer) Remember(int)      {}
func (s *liveServer) Mute(first string) { s.mute.Store(&first) }

func (s *liveServer) Accept() Peer {
	s.t.Helper()
	select {
	case p := <-s.peers:
		return p
	case <-time.After(suitePatience):
		s.t.Fatal("no adapter connected")
		return nil
	}
}

func (p *livePeer) Begin() {}

func (p *livePeer) Say(text string, pcm []byte) {
	p.t.Helper()
	ms := int64(len(pcm)) / 48
	if text != "" {
		p.send(`{"type":"session.output_transcript.delta","event_id":"e","delta":%q,"start_ms":%d,"end_ms":%d}`, text, p.at, p.at+ms)
	}
	p.send(`{"type":"session.output_audio.delta","delta":%q}`, base64.StdEncoding.EncodeToString(pcm))
	p.at += ms
}

func (p *livePeer) Finish() {
	p.t.Helper()
	for range 9 {
		p.send(`{"type":"session.output_audio.delta","delta":%q}`, base64.StdEncoding.EncodeToString(make([]byte, 4800)))
		p.at += 100
	}
}

func (p *livePeer) Interrupt() { p.t.Helper(); p.Finish() }

func (p *livePeer) UserSaid(pieces ...string) {
	p.t.Helper()
	for _, piece := range pieces {
		p.send(`{"type":"session.input_transcript.delta","event_id":"e","delta":%q,"start_ms":%d,"end_ms":%d}`, piece, p.at, p.at)
	}
}

func (p *livePeer) CallTools(calls ...transport.ToolCall) {
	p.t.Helper()
	p.s.mu.Lock()
	for _, c := range calls {
		p.s.calls = append(p.s.calls, textmodel.ToolCall{ID: c.ID, Name: c.Name, Args: c.Args})
	}
	p.s.mu.Unlock()
	p.n++
	p.send(`{"type":"session.delegation.created","event_id":"e","offset_ms":%d,"delegation":{"id":"item_%d","type":"delegation","target":"client"}}`, p.at, p.n)
	p.Finish() // the timeline continues
}

func (p *livePeer) History() (got []Remembered) {
	for _, m := range p.input {
		role := m.Role
		if role == "developer" {
			role = "user" // as the suite expects for turns of text
		}
		got = append(got, Remembered{role, m.Text()})
	}
	return got
}

func (p *livePeer) NextReconfigure() (string, []string) { return "", nil }

func (p *livePeer) NextItem() Remembered {
	p.t.Helper()
	e := p.next(func(e livewire.ClientEvent) bool { return e.Type == livewire.ThinkingAppend })
	role := "user"
	if strings.Contains(e.Content, "(you)") {
		role = "assistant"
	}
	return Remembered{role, e.Content}
}

func (p *livePeer) NextAudio() []byte {
	p.t.Helper()
	return pcmOf(p.next(func(e livewire.ClientEvent) bool {
		return e.Type == livewire.AudioAppend && strings.Trim(string(pcmOf(e)), "\x00") != ""
	}))
}

// NextResult returns the next result that the text model has received, in the order of the calls.
func (p *livePeer) NextResult() (string, json.RawMessage) {
	p.t.Helper()
	select {
	case m := <-p.s.results:
		return m.CallID, json.RawMessage(m.Text)
	case <-time.After(suitePatience):
		p.t.Fatal("the text model gets no result")
		return "", nil
	}
}

func (p *livePeer) Unknown() {
	p.t.Helper()
	p.send(`{"type":"session.telepathy","event_id":"e","x":1}`)
}

func (p *livePeer) Garbage() { p.t.Helper(); p.send(`{"type":"session.closed","rea`) }

func (p *livePeer) Close(code int, reason string) {
	closing := make(chan struct{})
	go func() {
		defer close(closing)
		_ = p.ws.Close(websocket.StatusCode(code), reason)
	}()
	p.t.Cleanup(func() { <-closing })
}
