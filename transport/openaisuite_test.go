package transport_test

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

	"voicegw/transport"
	"voicegw/transport/openai"
)

func TestOpenAI(t *testing.T) {
	Suite(t, Harness{
		Start:  func(t *testing.T) Provider { return newOpenAI(t) },
		Secret: secret,
		First:  openaiCreated,
		CloseKinds: map[int]transport.Kind{
			1000: transport.KindRetry, 1001: transport.KindExpired, 1002: transport.KindInvalid,
			1007: transport.KindInvalid, 1008: transport.KindRetry, 1009: transport.KindInvalid,
			1011: transport.KindRetry, 1012: transport.KindRetry, 1013: transport.KindRetry,
			3000: transport.KindAuth, 4000: transport.KindInvalid, 4999: transport.KindRetry,
		},
		StatusKinds: map[int]transport.Kind{
			400: transport.KindInvalid, 401: transport.KindAuth, 402: transport.KindQuota,
			403: transport.KindAuth, 404: transport.KindInvalid, 429: transport.KindRateLimit,
			500: transport.KindServer, 503: transport.KindServer, 301: transport.KindInvalid, 200: transport.KindInvalid,
		},
	})
}

// openaiServer is a scripted provider on a real socket.
type openaiServer struct {
	t      *testing.T
	http   *httptest.Server
	client *http.Client
	opts   transport.Provider // for the adapters

	status   atomic.Int64           // if not zero, the answer to every handshake
	body     atomic.Value           // the body of that answer, a string
	mute     atomic.Pointer[string] // the only frame that is sent
	remember atomic.Int64           // the number of history items that the usual greeting reads
	// greet is the opening exchange from the provider's side; nil means the usual one.
	greet func(*openaiPeer)

	peers chan *openaiPeer // from the handler to Accept, one for each connection

	mu   sync.Mutex // guards the following field
	open []*openaiPeer
}

// openaiPeer is the provider's end of one connection. Its methods are called by one
// goroutine at a time.
type openaiPeer struct {
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
	ended    bool // CallTools has ended the response
}

func newOpenAI(t *testing.T) *openaiServer {
	t.Helper()
	s := &openaiServer{t: t, peers: make(chan *openaiPeer, 16)}
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

func (s *openaiServer) serve(w http.ResponseWriter, r *http.Request) {
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
	p := &openaiPeer{t: s.t, ws: ws, path: r.URL.Path, query: r.URL.RawQuery, header: r.Header.Clone()}
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

const openaiCreated = `{"type":"session.created","event_id":"event_0","session":{"type":"realtime","object":"realtime.session","id":"sess_1","model":"gpt-realtime-2.1","expires_at":1785460927,"audio":{"input":{"format":{"type":"audio/pcm","rate":24000},"transcription":null,"turn_detection":{"type":"server_vad","threshold":0.5,"prefix_padding_ms":300,"silence_duration_ms":500,"create_response":true,"interrupt_response":true}}}}}`

func (p *openaiPeer) usualGreeting() {
	p.send(openaiCreated)
	update := p.next()
	p.setup, _ = update["session"].(map[string]any)
	p.send(`{"type":"session.updated","event_id":"event_1","session":{"type":"realtime","id":"sess_1","model":"gpt-realtime-2.1","expires_at":1785460927,"audio":{"input":{"turn_detection":{"type":"server_vad","silence_duration_ms":400}}}}}`)
}

// remember reads and confirms items of a history, as the provider does.
func (p *openaiPeer) remember(count int) {
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

// History checks the rules of the provider: each role has one kind of content, and an output follows its call.
func (p *openaiPeer) History() (got []Remembered) {
	kinds := map[any]any{"user": "input_text", "system": "input_text", "assistant": "output_text"}
	var open any
	for _, item := range p.past {
		switch role := item["role"]; item["type"] {
		case "message":
			content := item["content"].([]any)[0].(map[string]any)
			if content["type"] != kinds[role] {
				p.t.Errorf("a message of the %v has the content %v", role, content)
			}
			got = append(got, Remembered{Role: role.(string), Text: content["text"].(string)})
		case "function_call":
			open = item["call_id"]
			got = append(got, Remembered{Role: "tool", Text: fmt.Sprint(item["name"], item["arguments"])})
		case "function_call_output":
			if item["call_id"] != open || open == nil {
				p.t.Errorf("an output of %v follows the call %v", item["call_id"], open)
			}
			got = append(got, Remembered{Role: "tool", Text: item["output"].(string)})
		default:
			p.t.Errorf("not a history item: %v", item)
		}
	}
	return got
}

// NextReconfigure checks that the update has no member that the provider refuses in an open session.
func (p *openaiPeer) NextReconfigure() (string, []string) {
	p.t.Helper()
	session, _ := p.expect("session.update")["session"].(map[string]any)
	for key := range session {
		if key != "type" && key != "instructions" && key != "tools" {
			p.t.Errorf("an update of an open session has %s", key)
		}
	}
	list, ok := session["tools"].([]any)
	if session["type"] != "realtime" || !ok {
		p.t.Errorf("the update %v has no type or no list of tools", session)
	}
	var names []string
	for _, tool := range list {
		names = append(names, tool.(map[string]any)["name"].(string))
	}
	p.send(`{"type":"session.updated","event_id":"e","session":{"type":"realtime","id":"sess_1"}}`)
	return session["instructions"].(string), names
}

func (p *openaiPeer) NextItem() Remembered {
	p.t.Helper()
	item, _ := p.expect("conversation.item.create")["item"].(map[string]any)
	p.past = []map[string]any{item}
	return p.History()[0]
}

func (s *openaiServer) Remember(items int) { s.remember.Store(int64(items)) }

func (s *openaiServer) Transport(client *http.Client) transport.Transport {
	s.t.Helper()
	opts := s.opts
	opts.HTTPClient = client
	tr, err := openai.New(opts)
	if err != nil {
		s.t.Fatalf("New: %v", err)
	}
	return tr
}

func (s *openaiServer) Refuse(status int) {
	s.body.Store(`{"error":{"message":"no access for ` + secret + `","code":"some_code"}}`)
	s.status.Store(int64(status))
}

func (s *openaiServer) Mute(first string) { s.mute.Store(&first) }

func (s *openaiServer) Accept() Peer { return s.accept() }

func (s *openaiServer) accept() *openaiPeer {
	s.t.Helper()
	select {
	case p := <-s.peers:
		return p
	case <-time.After(suitePatience):
		s.t.Fatal("no adapter connected")
		return nil
	}
}

// send writes one frame, formatted if there are arguments.
func (p *openaiPeer) send(format string, args ...any) {
	p.t.Helper()
	text := format
	if len(args) > 0 {
		text = fmt.Sprintf(format, args...)
	}
	p.write(websocket.MessageText, []byte(text))
}

func (p *openaiPeer) write(typ websocket.MessageType, b []byte) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), suitePatience)
	defer cancel()
	if err := p.ws.Write(ctx, typ, b); err != nil {
		p.t.Errorf("the provider cannot write: %v", err)
	}
}

// next returns the next frame of the client.
func (p *openaiPeer) next() map[string]any {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), suitePatience)
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
func (p *openaiPeer) expect(eventType string) map[string]any {
	p.t.Helper()
	m := p.next()
	if m["type"] != eventType {
		p.t.Fatalf("the client sent %v, want %s", m, eventType)
	}
	return m
}

func (p *openaiPeer) id(kind string) string {
	p.n++
	return fmt.Sprintf("%s_%021d", kind, p.n)
}

func (p *openaiPeer) Begin() {
	p.t.Helper()
	p.response, p.item, p.ended = p.id("resp"), "", false
	p.send(`{"type":"response.created","event_id":"event_2","response":{"object":"realtime.response","id":%q,"status":"in_progress","output":[],"usage":null}}`, p.response)
}

func (p *openaiPeer) Say(text string, pcm []byte) {
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

func (p *openaiPeer) Finish() { p.t.Helper(); p.finish("completed", "null") }

func (p *openaiPeer) Interrupt() {
	p.t.Helper()
	p.send(`{"type":"input_audio_buffer.speech_started","event_id":"e","audio_start_ms":100,"item_id":%q}`, p.id("item"))
	p.finish("cancelled", `{"type":"cancelled","reason":"turn_detected"}`)
}

func (p *openaiPeer) finish(status, details string) {
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

// trimNil removes the text that fmt.Sprint writes for a missing value.
func trimNil(s string) string {
	const none = "<nil>"
	if len(s) >= len(none) && s[:len(none)] == none {
		return s[len(none):]
	}
	return s
}

func (p *openaiPeer) UserSaid(pieces ...string) {
	p.t.Helper()
	item, whole := p.id("item"), ""
	for _, piece := range pieces {
		whole += piece
		p.send(`{"type":"conversation.item.input_audio_transcription.delta","event_id":"e","item_id":%q,"content_index":0,"delta":%q,"obfuscation":"x"}`, item, piece)
	}
	p.send(`{"type":"conversation.item.input_audio_transcription.completed","event_id":"e","item_id":%q,"content_index":0,"transcript":%q,"usage":{"type":"duration","seconds":3}}`, item, whole)
}

func (p *openaiPeer) CallTools(calls ...transport.ToolCall) {
	p.t.Helper()
	for i, call := range calls {
		p.call(p.id("item"), i, call)
	}
	p.finish("completed", "null")
}

// call sends all events of one call.
func (p *openaiPeer) call(item string, index int, call transport.ToolCall) {
	p.t.Helper()
	p.send(`{"type":"response.output_item.added","event_id":"e","response_id":%q,"output_index":%d,"item":{"id":%q,"type":"function_call","status":"in_progress","name":%q,"call_id":%q,"arguments":""}}`,
		p.response, index, item, call.Name, call.ID)
	p.send(`{"type":"response.function_call_arguments.delta","event_id":"e","response_id":%q,"item_id":%q,"output_index":%d,"call_id":%q,"delta":"{","obfuscation":"x"}`,
		p.response, item, index, call.ID)
	p.send(`{"type":"response.function_call_arguments.done","event_id":"e","response_id":%q,"item_id":%q,"output_index":%d,"call_id":%q,"name":%q,"arguments":%q}`,
		p.response, item, index, call.ID, call.Name, call.Args)
	p.callDone(item, index, "completed", call)
}

func (p *openaiPeer) callDone(item string, index int, status string, call transport.ToolCall) {
	p.t.Helper()
	p.send(`{"type":"response.output_item.done","event_id":"e","response_id":%q,"output_index":%d,"item":{"id":%q,"type":"function_call","status":%q,"name":%q,"call_id":%q,"arguments":%q}}`,
		p.response, index, item, status, call.Name, call.ID, call.Args)
}

func (p *openaiPeer) NextAudio() []byte {
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

func (p *openaiPeer) NextResult() (string, json.RawMessage) {
	p.t.Helper()
	for {
		m := p.next()
		if m == nil {
			return "", nil
		}
		item, _ := m["item"].(map[string]any)
		if item["type"] == "function_call_output" {
			return item["call_id"].(string), json.RawMessage(item["output"].(string))
		}
	}
}

func (p *openaiPeer) Unknown() {
	p.t.Helper()
	p.send(`{"type":"response.telepathy.delta","event_id":"e","x":{"y":[1]}}`)
}

func (p *openaiPeer) Garbage() { p.t.Helper(); p.send(`{"type":"response.done","respon`) }

func (p *openaiPeer) Close(code int, reason string) {
	// The closing handshake needs a reader, and there may be none.
	closing := make(chan struct{})
	go func() {
		defer close(closing)
		_ = p.ws.Close(websocket.StatusCode(code), reason)
	}()
	p.t.Cleanup(func() { <-closing })
}
