package openai

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"voicegw/transport"
)

func TestSessionUpdate(t *testing.T) {
	s := newServer(t)
	s.opts.Voice = "cedar"
	conn, p := s.connect(transport.Setup{
		Instructions: "Be brief.", Language: "de-AT", SilenceMS: 700, PrefixMS: 200,
		Tools: []transport.Tool{{Name: "look_up", Description: "Looks up.", Parameters: json.RawMessage(`{"type":"object","additionalProperties":false}`)}},
	})
	var want map[string]any
	err := json.Unmarshal([]byte(`{"type":"realtime","instructions":"Be brief.","output_modalities":["audio"],"tool_choice":"auto",
		"tools":[{"type":"function","name":"look_up","description":"Looks up.","parameters":{"type":"object","additionalProperties":false}}],
		"audio":{"output":{"format":{"type":"audio/pcm","rate":24000},"voice":"cedar"},
			"input":{"format":{"type":"audio/pcm","rate":24000},"transcription":{"model":"gpt-realtime-whisper","language":"de"},
				"turn_detection":{"type":"server_vad","silence_duration_ms":700,"prefix_padding_ms":200,"create_response":true,"interrupt_response":true}}}}`), &want)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, p.setup); diff != "" {
		t.Errorf("session.update (-want +got):\n%s", diff)
	}
	if p.path != "/v1/realtime" || p.query != "model=gpt-realtime-2.1" || p.header.Get("Authorization") != "Bearer "+secret || p.header.Get("OpenAI-Beta") != "" {
		t.Errorf("handshake %s?%s %v", p.path, p.query, p.header)
	}
	info := conn.Info()
	if info.SessionID != "sess_1" || !info.ExpiresAt.Equal(time.Unix(1785460927, 0)) || info.InputRate != 24000 || info.OutputRate != 24000 {
		t.Errorf("info %+v", info)
	}
}

func TestSessionUpdateManual(t *testing.T) {
	s := newServer(t)
	s.opts.Settings = map[string]string{"transcription_model": NoTranscription}
	s.opts.BaseURL = s.http.URL + "/openai/v1"
	s.opts.Model = "my-deployment"
	_, p := s.connect(transport.Setup{ManualActivity: true, Voice: "marin"})
	input, _ := p.setup["audio"].(map[string]any)["input"].(map[string]any)
	if vad, there := input["turn_detection"]; !there || vad != nil {
		t.Errorf("turn_detection is %v, want null", vad)
	}
	if _, there := input["transcription"]; there {
		t.Error("transcription was asked for")
	}
	if p.path != "/openai/v1/realtime" || p.query != "model=my-deployment" || p.header.Get("api-key") != secret || p.header.Get("Authorization") != "" {
		t.Errorf("handshake with Azure: %s?%s %v", p.path, p.query, p.header)
	}
}

// connectError is the error of Connect; it must not show the key.
func (s *server) connectError(setup transport.Setup) *transport.Error {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, err := s.Transport(s.opts.HTTPClient).Connect(ctx, setup)
	if err == nil {
		_ = conn.Close()
		s.t.Fatal("Connect succeeds")
	}
	e, ok := err.(*transport.Error)
	if !ok {
		s.t.Fatalf("%T is no *transport.Error", err)
	}
	if strings.Contains(fmt.Sprintf("%+v %#v %v", err, e.Err, e.Code), secret) {
		s.t.Errorf("the error shows the key: %v", err)
	}
	return e
}

func TestConnectRefused(t *testing.T) {
	type refusal struct {
		name  string
		greet func(*peer)
		kind  transport.Kind
		code  string
	}
	fails := func(before, code, kind string) func(*peer) {
		return func(p *peer) {
			if before != "" {
				p.send("%s", before)
				p.next()
			}
			p.send(`{"type":"error","event_id":"e","error":{"type":%q,"code":%q,"message":"no: `+secret+`","param":null,"event_id":null}}`, kind, code)
		}
	}
	for _, tt := range []refusal{
		{"the key, before the session", fails("", "invalid_api_key", "invalid_request_error"), transport.KindAuth, "invalid_api_key"},
		{"the quota", fails("", "insufficient_quota", "insufficient_quota"), transport.KindQuota, "insufficient_quota"},
		{"the model", fails("", "invalid_model", "invalid_request_error"), transport.KindInvalid, "invalid_model"},
		{"the setup", fails(created, "unknown_parameter", "invalid_request_error"), transport.KindInvalid, "unknown_parameter"},
		{"a server's fault", fails(created, "", "server_error"), transport.KindServer, ""},
		{"the rate", fails(created, "rate_limit_exceeded", "rate_limit_error"), transport.KindRateLimit, "rate_limit_exceeded"},
		{"closed for the key", func(p *peer) { p.Close(3000, "invalid_request_error.invalid_api_key") }, transport.KindAuth, "invalid_api_key"},
		{"closed in the middle", func(p *peer) { p.send(created); p.next(); p.Close(1011, "") }, transport.KindRetry, "1011"},
		{"dropped", func(p *peer) { _ = p.ws.CloseNow() }, transport.KindRetry, "1006"},
		{"chatter without end", func(p *peer) {
			for range maxSetupEvents {
				p.send(`{"type":"conversation.created"}`)
			}
		}, transport.KindTimeout, "no_session_created"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newServer(t)
			s.greet = tt.greet
			err := s.connectError(transport.Setup{})
			if err.Kind != tt.kind || err.Code != tt.code || err.Op != "setup" || err.Provider != "openai" {
				t.Errorf("%+v (%v), want %s %q", err, err, tt.kind, tt.code)
			}
		})
	}
}

func TestConnectSkipsUnknownEvents(t *testing.T) {
	s := newServer(t)
	s.greet = func(p *peer) {
		p.send(`{"type":"conversation.created","conversation":{"id":"c"}}`)
		p.send(`no JSON`)
		p.send(`{"type":"session.created","session":5}`)
		p.usualGreeting()
	}
	conn, _ := s.connect(transport.Setup{})
	if st := conn.Stats(); st.MalformedEvents != 1 { // the content of a session that is a number is unknown
		t.Errorf("stats %+v, want one malformed event", st)
	}
}

func TestHandshakeRefused(t *testing.T) {
	s := newServer(t)
	for _, tt := range []struct {
		status int
		body   string
		kind   transport.Kind
		code   string
		says   string
	}{
		{429, `{"error":{"code":"insufficient_quota","message":"no ` + secret + `"}}`, transport.KindQuota, "insufficient_quota", "429"},
		{429, `{"error":{"code":"rate_limit_exceeded"}}`, transport.KindRateLimit, "rate_limit_exceeded", "429"},
		{401, `not JSON ` + secret, transport.KindAuth, "401", "API key"},
		{404, ``, transport.KindInvalid, "404", "deployment"},
		{307, ``, transport.KindInvalid, "307", "redirects"},
		{502, strings.Repeat("x", 100_000), transport.KindServer, "502", "502"},
	} {
		s.body.Store(tt.body)
		s.status.Store(int64(tt.status))
		err := s.connectError(transport.Setup{})
		if err.Kind != tt.kind || err.Code != tt.code || err.Op != "dial" || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%d: %v, want %s (%s) with %q", tt.status, err, tt.kind, tt.code, tt.says)
		}
	}
}

// TestRedirect: a followed redirect would send the key to another server.
func TestRedirect(t *testing.T) {
	elsewhere := 0
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere++ }))
	defer other.Close()
	first := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	defer first.Close()
	s := newServer(t)
	s.opts.BaseURL = first.URL + "/openai/v1"
	s.opts.Model = "m"
	if err := s.connectError(transport.Setup{}); err.Code != "307" || elsewhere != 0 {
		t.Errorf("%v, and %d requests to another server", err, elsewhere)
	}
}

func TestNoListener(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := newServer(t)
	s.opts.BaseURL = "http://" + l.Addr().String() + "/v1"
	_ = l.Close()
	if err := s.connectError(transport.Setup{}); err.Kind != transport.KindRetry || err.Op != "dial" {
		t.Errorf("%v", err)
	}
}

func TestAzureNeedsADeployment(t *testing.T) {
	s := newServer(t)
	s.opts.BaseURL = s.http.URL + "/openai/v1"
	err := s.connectError(transport.Setup{})
	if err.Kind != transport.KindInvalid || !strings.Contains(err.Error(), "Options.Model") {
		t.Errorf("%v", err)
	}
}
