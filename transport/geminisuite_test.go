package transport_test

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"voicegw/audio"
	"voicegw/transport"
	"voicegw/transport/gemini"
)

func TestGemini(t *testing.T) {
	for _, model := range []string{"gemini-2.5-flash-native-audio-preview-09-2025", "gemini-3.1-flash-live-preview", "gemini-3.8-live"} {
		t.Run(model, func(t *testing.T) {
			Suite(t, Harness{
				Start: func(t *testing.T) Provider {
					return &suiteProvider{newGemini(t), model}
				},
				Secret: secret,
				First:  `{"usageMetadata":{"totalTokenCount":1}}`,
				CloseKinds: map[int]transport.Kind{
					1000: transport.KindRetry, 1007: transport.KindInvalid, 1008: transport.KindRetry,
					1011: transport.KindRetry, 1012: transport.KindRetry, 4242: transport.KindRetry,
				},
				StatusKinds: map[int]transport.Kind{
					400: transport.KindInvalid, 401: transport.KindAuth, 403: transport.KindAuth,
					404: transport.KindInvalid, 429: transport.KindRateLimit, 500: transport.KindServer,
					503: transport.KindServer, 302: transport.KindInvalid,
				},
			})
		})
	}
}

// suiteProvider is a geminiServer for the suite.
type suiteProvider struct {
	*geminiServer
	model string
}

func (p *suiteProvider) Transport(client *http.Client) transport.Transport {
	opts := transport.Provider{APIKey: secret, BaseURL: p.srv.URL}
	opts.HTTPClient = client
	opts.Model = p.model
	tr, err := gemini.New(opts)
	if err != nil {
		p.t.Fatal(err)
	}
	return tr
}

func (p *suiteProvider) Refuse(status int) { p.status = status }
func (p *suiteProvider) Remember(int)      {} // the provider does not confirm a history
func (p *suiteProvider) Accept() Peer      { return suitePeer{p.accept()} }

func (p *suiteProvider) Mute(first string) {
	p.first = cmp.Or(first, "-")
	p.t.Cleanup(func() { p.accept() })
}

type suitePeer struct{ *geminiPeer }

func quote(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func audioMessage(pcm []byte, text string) string {
	said := ""
	if text != "" {
		said = `,"outputTranscription":{"text":` + quote(text) + `}`
	}
	return `{"serverContent":{"modelTurn":{"parts":[{"inlineData":{"mimeType":"audio/pcm;rate=24000","data":"` +
		base64.StdEncoding.EncodeToString(pcm) + `"}}]}` + said + `}}`
}

func (p suitePeer) Begin()                      { p.send(`{"serverContent":{}}`) }
func (p suitePeer) Say(text string, pcm []byte) { p.send(audioMessage(pcm, text)) }
func (p suitePeer) Finish() {
	p.send(`{"serverContent":{"generationComplete":true}}`)
	p.send(`{"serverContent":{"turnComplete":true},"usageMetadata":{"promptTokenCount":3}}`)
}

func (p suitePeer) Interrupt() {
	p.send(`{"serverContent":{"interrupted":true}}`)
	p.send(`{"serverContent":{"turnComplete":true}}`)
}

func (p suitePeer) UserSaid(pieces ...string) {
	for _, piece := range pieces {
		p.send(`{"serverContent":{"inputTranscription":{"text":` + quote(piece) + `}}}`)
	}
}

func (p suitePeer) CallTools(calls ...transport.ToolCall) {
	var list []string
	for _, c := range calls {
		list = append(list, `{"id":`+quote(c.ID)+`,"name":`+quote(c.Name)+`,"args":`+string(c.Args)+`}`)
	}
	p.send(`{"toolCall":{"functionCalls":[` + strings.Join(list, ",") + `]}}`)
}

func (p suitePeer) NextAudio() []byte {
	for {
		var m struct {
			RealtimeInput struct {
				Audio *struct{ MIMEType, Data string }
			}
		}
		if err := json.Unmarshal([]byte(p.next()), &m); err != nil {
			p.t.Fatal(err)
		}
		if a := m.RealtimeInput.Audio; a != nil {
			pcm, err := audio.AppendFromBase64(nil, []byte(a.Data))
			if err != nil || a.MIMEType != "audio/pcm;rate=16000" {
				p.t.Errorf("audio of type %q: %v", a.MIMEType, err)
			}
			return pcm
		}
	}
}

func (p suitePeer) NextResult() (string, json.RawMessage) {
	for {
		var m struct {
			ToolResponse *struct {
				FunctionResponses []struct {
					ID, Name string
					Response json.RawMessage
				}
			}
		}
		if err := json.Unmarshal([]byte(p.next()), &m); err != nil {
			p.t.Fatal(err)
		}
		if m.ToolResponse != nil {
			r := m.ToolResponse.FunctionResponses[0]
			if r.Name == "" {
				p.t.Error("a functionResponse without a name")
			}
			return r.ID, r.Response
		}
	}
}

// History reads the message with the history. If the setup announces a history, turnComplete must mark its end; for any
// other model turnComplete would request an answer.
func (p suitePeer) History() (got []Remembered) {
	var m struct {
		ClientContent struct {
			Turns []struct {
				Role  string
				Parts []struct{ Text string }
			}
			TurnComplete bool
		}
	}
	if err := json.Unmarshal([]byte(p.next()), &m); err != nil {
		p.t.Fatal(err)
	}
	if announced := strings.Contains(string(p.setup), `"historyConfig":{"initialHistoryInClientContent":true}`); announced != m.ClientContent.TurnComplete {
		p.t.Errorf("the setup announces a history: %v; turnComplete at its end: %v", announced, m.ClientContent.TurnComplete)
	}
	for _, turn := range m.ClientContent.Turns {
		role := map[string]string{"user": "user", "model": "assistant"}[turn.Role]
		for _, part := range turn.Parts {
			got = append(got, Remembered{Role: role, Text: part.Text})
		}
	}
	return got
}

// NextReconfigure reads the update. The provider does not confirm it.
func (p suitePeer) NextReconfigure() (string, []string) {
	var m struct {
		ContextUpdate struct {
			SystemInstruction *struct{ Parts []struct{ Text string } }
			Tools             *struct {
				Tools []struct {
					FunctionDeclarations []struct{ Name, Behavior string }
				}
			}
		}
	}
	if err := json.Unmarshal([]byte(p.next()), &m); err != nil {
		p.t.Fatal(err)
	}
	said, tools := m.ContextUpdate.SystemInstruction, m.ContextUpdate.Tools
	if said == nil || tools == nil {
		p.t.Fatal("the update has no instructions or no tools")
	}
	var text strings.Builder
	for _, part := range said.Parts {
		text.WriteString(part.Text)
	}
	var names []string
	for _, group := range tools.Tools {
		for _, d := range group.FunctionDeclarations {
			names = append(names, d.Name)
			if d.Behavior == "" {
				p.t.Errorf("%s is declared without its behaviour", d.Name)
			}
		}
	}
	return text.String(), names
}

// NextItem reads a turn that requests no answer.
func (p suitePeer) NextItem() Remembered {
	message := p.next()
	if !strings.Contains(message, `"turnComplete":false`) {
		p.t.Errorf("%s requests an answer", message)
	}
	var m struct {
		ClientContent struct {
			Turns []struct {
				Role  string
				Parts []struct{ Text string }
			}
		}
	}
	if err := json.Unmarshal([]byte(message), &m); err != nil || len(m.ClientContent.Turns) != 1 {
		p.t.Fatalf("%s is not one turn: %v", message, err)
	}
	turn := m.ClientContent.Turns[0]
	return Remembered{Role: map[string]string{"user": "user", "model": "assistant"}[turn.Role], Text: turn.Parts[0].Text}
}

func (p suitePeer) Unknown()                      { p.send(`{"newThing":{"serverContent":{"turnComplete":true}}}`) }
func (p suitePeer) Garbage()                      { p.send(`{"serverContent":{"turnComplete":tr`) }
func (p suitePeer) Close(code int, reason string) { p.close(code, reason) }

// geminiServer is a scripted Gemini server.
type geminiServer struct {
	t   *testing.T
	srv *httptest.Server
	// Set before the connections that they affect.
	status int    // refuses the handshake, if not zero
	first  string // sent instead of setupComplete; "-" sends nothing
	// redirect sends the handshake to another server.
	redirect string

	peers chan *geminiPeer // from the handler to accept, one for each connection
}

// geminiPeer is the server's end of one connection.
type geminiPeer struct {
	t      *testing.T
	ws     *websocket.Conn
	url    string
	header http.Header
	setup  json.RawMessage
	done   chan struct{} // closed when the test ends
}

func newGemini(t *testing.T) *geminiServer {
	t.Helper()
	p := &geminiServer{t: t, peers: make(chan *geminiPeer, 16)}
	p.srv = httptest.NewServer(http.HandlerFunc(p.serve))
	t.Cleanup(p.srv.Close)
	return p
}

func (p *geminiServer) serve(w http.ResponseWriter, r *http.Request) {
	if p.status != 0 {
		http.Error(w, "refused, "+r.Header.Get("X-Goog-Api-Key"), p.status)
		return
	}
	if p.redirect != "" {
		http.Redirect(w, r, p.redirect+r.URL.Path, http.StatusTemporaryRedirect)
		return
	}
	ws, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	defer func() { _ = ws.CloseNow() }()
	ws.SetReadLimit(1 << 20)
	ctx, cancel := context.WithTimeout(context.Background(), suitePatience)
	defer cancel()
	_, setup, err := ws.Read(ctx)
	if err != nil {
		return
	}
	c := &geminiPeer{t: p.t, ws: ws, url: r.URL.String(), header: r.Header, setup: setup, done: make(chan struct{})}
	switch p.first {
	case "":
		c.send("{\n  \"setupComplete\": {}\n}\n")
	case "-":
	default:
		c.send(p.first)
	}
	p.peers <- c
	<-c.done
}

// accept returns the next connection's end.
func (p *geminiServer) accept() *geminiPeer {
	p.t.Helper()
	select {
	case c := <-p.peers:
		p.t.Cleanup(func() { close(c.done) })
		return c
	case <-time.After(suitePatience):
		p.t.Fatal("no adapter connected")
		return nil
	}
}

// send writes one message as the service does: JSON in a binary frame.
func (c *geminiPeer) send(msg string) {
	ctx, cancel := context.WithTimeout(context.Background(), suitePatience)
	defer cancel()
	if err := c.ws.Write(ctx, websocket.MessageBinary, []byte(msg)); err != nil {
		c.t.Errorf("provider: %v", err)
	}
}

// next reads one message from the adapter.
func (c *geminiPeer) next() string {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), suitePatience)
	defer cancel()
	_, msg, err := c.ws.Read(ctx)
	if err != nil {
		c.t.Fatalf("the adapter sent nothing: %v", err)
	}
	return string(msg)
}

// close sends a close frame. The adapter answers when it reads the frame, so close does not
// wait for the answer.
func (c *geminiPeer) close(code int, reason string) {
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		_ = c.ws.Close(websocket.StatusCode(code), reason)
	}()
	c.t.Cleanup(func() { <-closed })
}
