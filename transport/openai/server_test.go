package openai

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"
	"go.uber.org/goleak"

	"voicegw/transport"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// secret is the credential of every test: no error may show it.
const secret = "sk-secret-0123456789"

// patience is the time that a test waits for an expected event.
const patience = 3 * time.Minute

// server is a scripted provider on a real socket.
type server struct {
	t      *testing.T
	http   *httptest.Server
	client *http.Client
	opts   transport.Provider // the base of transport.Options

	status   atomic.Int64           // the status of every handshake, if not zero
	body     atomic.Value           // its body, a string
	mute     atomic.Pointer[string] // the only frame that it sends
	remember atomic.Int64           // number of items of a history that the usual greeting accepts
	// greet is the provider's side of the opening; nil means the usual one.
	greet func(*peer)

	peers chan *peer // from the handler to Accept, one for each connection

	mu   sync.Mutex // guards the following field
	open []*peer
}

// peer is the provider's end of one connection. Its methods are called by one goroutine at a time.
type peer struct {
	t      *testing.T
	ws     *websocket.Conn
	path   string
	query  string
	header http.Header
	setup  map[string]any   // the session of session.update
	past   []map[string]any // the items of the history

	n        int // numbers ids
	response string
	item     string
	ended    bool // the response was ended by CallTools
}

func newServer(t *testing.T) *server {
	t.Helper()
	s := &server{t: t, peers: make(chan *peer, 16)}
	s.http = httptest.NewServer(http.HandlerFunc(s.serve))
	s.client = &http.Client{Transport: &http.Transport{}}
	s.opts = transport.Provider{APIKey: secret, BaseURL: s.http.URL + "/v1", HTTPClient: s.client}
	t.Cleanup(func() {
		s.mu.Lock()
		for _, p := range s.open {
			_ = p.ws.CloseNow()
		}
		s.mu.Unlock()
		s.client.CloseIdleConnections()
		s.http.Close()
	})
	return s
}

func (s *server) serve(w http.ResponseWriter, r *http.Request) {
	if status := s.status.Load(); status != 0 {
		w.WriteHeader(int(status))
		body, _ := s.body.Load().(string)
		_, _ = w.Write([]byte(body))
		return
	}
	ws, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	ws.SetReadLimit(32 << 20)
	p := &peer{t: s.t, ws: ws, path: r.URL.Path, query: r.URL.RawQuery, header: r.Header.Clone()}
	s.mu.Lock()
	s.open = append(s.open, p)
	s.mu.Unlock()
	if first := s.mute.Load(); first != nil {
		if *first != "" {
			p.send("%s", *first)
		}
		return
	}
	if s.greet != nil {
		s.greet(p)
	} else {
		p.usualGreeting()
		p.remember(int(s.remember.Load()))
	}
	s.peers <- p
}

const created = `{"type":"session.created","event_id":"event_0","session":{"type":"realtime","object":"realtime.session","id":"sess_1","model":"gpt-realtime-2.1","expires_at":1785460927,"audio":{"input":{"format":{"type":"audio/pcm","rate":24000},"transcription":null,"turn_detection":{"type":"server_vad","threshold":0.5,"prefix_padding_ms":300,"silence_duration_ms":500,"create_response":true,"interrupt_response":true}}}}}`

func (p *peer) usualGreeting() {
	p.send(created)
	update := p.next()
	p.setup, _ = update["session"].(map[string]any)
	p.send(`{"type":"session.updated","event_id":"event_1","session":{"type":"realtime","id":"sess_1","model":"gpt-realtime-2.1","expires_at":1785460927,"audio":{"input":{"turn_detection":{"type":"server_vad","silence_duration_ms":400}}}}}`)
}

// remember reads and confirms items of a history, like the provider.
func (p *peer) remember(count int) {
	for previous := any(nil); count > 0; count-- {
		m := p.expect("conversation.item.create")
		item, _ := m["item"].(map[string]any)
		if m["previous_item_id"] != previous {
			p.t.Errorf("the item %v comes after %v, not after %v", item["id"], m["previous_item_id"], previous)
		}
		previous = item["id"]
		p.past = append(p.past, item)
		p.send(`{"type":"conversation.item.added","event_id":"e","previous_item_id":null,"item":{"id":%q}}`, item["id"])
		p.send(`{"type":"conversation.item.done","event_id":"e","previous_item_id":null,"item":{"id":%q}}`, item["id"])
	}
}

func (s *server) Remember(items int) { s.remember.Store(int64(items)) }

func (s *server) Transport(client *http.Client) transport.Transport {
	s.t.Helper()
	opts := s.opts
	opts.HTTPClient = client
	tr, err := New(opts)
	if err != nil {
		s.t.Fatalf("New: %v", err)
	}
	return tr
}

func (s *server) accept() *peer {
	s.t.Helper()
	select {
	case p := <-s.peers:
		return p
	case <-time.After(patience):
		s.t.Fatal("no client connected")
		return nil
	}
}

// connect opens a connection, calls Notify and returns both its ends.
func (s *server) connect(setup transport.Setup) (*transport.Listener, *peer) {
	s.t.Helper()
	conn, p := s.dial(setup)
	return transport.Listen(conn), p
}

// dial opens a connection without calling Notify.
func (s *server) dial(setup transport.Setup) (transport.Conn, *peer) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, err := s.Transport(s.opts.HTTPClient).Connect(ctx, setup)
	if err != nil {
		s.t.Fatalf("Connect: %v", err)
	}
	s.t.Cleanup(func() { _ = conn.Close() })
	return conn, s.accept()
}

// send writes one frame, made with fmt if there are arguments.
func (p *peer) send(format string, args ...any) {
	p.t.Helper()
	text := format
	if len(args) > 0 {
		text = fmt.Sprintf(format, args...)
	}
	p.write(websocket.MessageText, []byte(text))
}

func (p *peer) write(typ websocket.MessageType, b []byte) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := p.ws.Write(ctx, typ, b); err != nil {
		p.t.Errorf("the provider cannot write: %v", err)
	}
}

// next returns the next frame of the client.
func (p *peer) next() map[string]any {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	typ, b, err := p.ws.Read(ctx)
	if err != nil {
		p.t.Errorf("the provider cannot read: %v", err)
		return nil
	}
	var m map[string]any
	if err := json.Unmarshal(b, &m); err != nil || typ != websocket.MessageText {
		p.t.Errorf("frame of type %v is not a JSON object: %v", typ, err)
	}
	return m
}

// expect returns the next frame, which must be of the type given.
func (p *peer) expect(eventType string) map[string]any {
	p.t.Helper()
	m := p.next()
	if m["type"] != eventType {
		p.t.Fatalf("the client sent %v, want %s", m, eventType)
	}
	return m
}

// quiet checks that the client has sent nothing: the next frame is the audio that quiet lets it send.
func (p *peer) quiet(conn *transport.Listener) {
	p.t.Helper()
	send(p.t, conn, &transport.AudioIn{PCM: []byte{1, 2}})
	p.expect("input_audio_buffer.append")
}

func (p *peer) id(kind string) string {
	p.n++
	return fmt.Sprintf("%s_%021d", kind, p.n)
}

func (p *peer) Begin() {
	p.t.Helper()
	p.response, p.item, p.ended = p.id("resp"), "", false
	p.send(`{"type":"response.created","event_id":"event_2","response":{"object":"realtime.response","id":%q,"status":"in_progress","output":[],"usage":null}}`, p.response)
}

func (p *peer) Say(text string, pcm []byte) {
	p.t.Helper()
	if p.item == "" {
		p.item = p.id("item")
	}
	if text != "" {
		p.send(`{"type":"response.output_audio_transcript.delta","event_id":"e","response_id":%q,"item_id":%q,"output_index":0,"content_index":0,"delta":%q,"obfuscation":"xyz"}`, p.response, p.item, text)
	}
	p.send(`{"type":"response.output_audio.delta","event_id":%q,"response_id":%q,"item_id":%q,"output_index":0,"content_index":0,"delta":%q}`,
		p.id("event"), p.response, p.item, base64.StdEncoding.EncodeToString(pcm))
	p.setup["said"] = fmt.Sprint(p.setup["said"], text)
}

func (p *peer) Finish() { p.t.Helper(); p.finish("completed", "null") }

func (p *peer) finish(status, details string) {
	p.t.Helper()
	if p.item != "" {
		p.send(`{"type":"response.output_audio.done","event_id":"e","response_id":%q,"item_id":%q,"output_index":0,"content_index":0}`, p.response, p.item)
		said, _ := p.setup["said"].(string)
		p.send(`{"type":"response.output_audio_transcript.done","event_id":"e","response_id":%q,"item_id":%q,"output_index":0,"content_index":0,"transcript":%q}`,
			p.response, p.item, trimNil(said))
		delete(p.setup, "said")
	}
	p.send(`{"type":"response.done","event_id":"e","response":{"object":"realtime.response","id":%q,"status":%q,"status_details":%s,"output":[],"usage":{"total_tokens":30,"input_tokens":20,"output_tokens":10,"input_token_details":{"text_tokens":15,"audio_tokens":5,"image_tokens":0,"cached_tokens":8,"cached_tokens_details":{"text_tokens":6,"audio_tokens":2,"image_tokens":0}},"output_token_details":{"text_tokens":4,"audio_tokens":6}}}}`,
		p.response, status, details)
	p.send(`{"type":"rate_limits.updated","event_id":"e","rate_limits":[{"name":"tokens","limit":1,"remaining":1,"reset_seconds":0.004}]}`)
}

// trimNil removes the text of fmt.Sprint for a missing first value.
func trimNil(s string) string {
	const none = "<nil>"
	if len(s) >= len(none) && s[:len(none)] == none {
		return s[len(none):]
	}
	return s
}

// call sends all events of one call.
func (p *peer) call(item string, index int, call transport.ToolCall) {
	p.t.Helper()
	p.send(`{"type":"response.output_item.added","event_id":"e","response_id":%q,"output_index":%d,"item":{"id":%q,"type":"function_call","status":"in_progress","name":%q,"call_id":%q,"arguments":""}}`,
		p.response, index, item, call.Name, call.ID)
	p.send(`{"type":"response.function_call_arguments.delta","event_id":"e","response_id":%q,"item_id":%q,"output_index":%d,"call_id":%q,"delta":"{","obfuscation":"x"}`,
		p.response, item, index, call.ID)
	p.send(`{"type":"response.function_call_arguments.done","event_id":"e","response_id":%q,"item_id":%q,"output_index":%d,"call_id":%q,"name":%q,"arguments":%q}`,
		p.response, item, index, call.ID, call.Name, call.Args)
	p.callDone(item, index, "completed", call)
}

func (p *peer) callDone(item string, index int, status string, call transport.ToolCall) {
	p.t.Helper()
	p.send(`{"type":"response.output_item.done","event_id":"e","response_id":%q,"output_index":%d,"item":{"id":%q,"type":"function_call","status":%q,"name":%q,"call_id":%q,"arguments":%q}}`,
		p.response, index, item, status, call.Name, call.ID, call.Args)
}

func (p *peer) NextAudio() []byte {
	p.t.Helper()
	for {
		m := p.next()
		if m == nil {
			return nil
		}
		if m["type"] == "input_audio_buffer.append" {
			pcm, err := base64.StdEncoding.DecodeString(m["audio"].(string))
			if err != nil {
				p.t.Errorf("audio: %v", err)
			}
			return pcm
		}
	}
}

func (p *peer) Close(code int, reason string) {
	// The closing handshake needs a reader, and there may be none.
	closing := make(chan struct{})
	go func() {
		defer close(closing)
		_ = p.ws.Close(websocket.StatusCode(code), reason)
	}()
	p.t.Cleanup(func() { <-closing })
}

// send passes a command to the connection.
func send(t *testing.T, conn *transport.Listener, cmd transport.Command) {
	t.Helper()
	if err := conn.Send(context.Background(), cmd); err != nil {
		t.Fatalf("Send %T: %v", cmd, err)
	}
}

// recv returns the next event.
func recv(t *testing.T, conn *transport.Listener) transport.Event {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	ev, err := conn.Recv(ctx)
	if err != nil {
		t.Fatalf("Recv: %v", err)
	}
	return ev
}

// recvAs returns the next event of type T and skips others before it.
func recvAs[T transport.Event](t *testing.T, conn *transport.Listener) T {
	t.Helper()
	for {
		if ev, ok := recv(t, conn).(T); ok {
			return ev
		}
	}
}

// recvError returns the error that Recv ends with.
func recvError(t *testing.T, conn *transport.Listener) *transport.Error {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for {
		_, err := conn.Recv(ctx)
		if err == nil {
			continue
		}
		e, ok := err.(*transport.Error)
		if !ok {
			t.Fatalf("Recv: %T %v, want *transport.Error", err, err)
		}
		return e
	}
}
