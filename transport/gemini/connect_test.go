package gemini

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"voicegw/transport"
)

// A Vertex service and a model there, by its full name.
const (
	vertexURL   = "https://us-central1-aiplatform.googleapis.com"
	vertexModel = "projects/p/locations/l/publishers/google/models/gemini-3.8-live"
)

func TestOptionErrors(t *testing.T) {
	for _, test := range []struct {
		name string
		opts transport.Provider
		want string // a part of the error
	}{
		{"no key", transport.Provider{}, "APIKey is empty"},
		{"key with a line break", transport.Provider{APIKey: secret + "\n" + secret}, "APIKey contains white space"},
		{"no URL", transport.Provider{APIKey: secret, BaseURL: "generativelanguage.googleapis.com"}, "write it as https://host"},
		{"scheme", transport.Provider{APIKey: secret, BaseURL: "ftp://host"}, "use https, http, wss or ws"},
		{"key in the URL", transport.Provider{APIKey: secret, BaseURL: "https://host?key=" + secret}, "the key belongs in APIKey"},
		{"user in the URL", transport.Provider{APIKey: secret, BaseURL: "https://" + secret + "@host"}, "leave only scheme and host"},
		{"path", transport.Provider{APIKey: secret, BaseURL: "https://host/v1beta"}, "leave it out"},
		{"Vertex with a short name", transport.Provider{APIKey: secret, BaseURL: vertexURL, Model: "gemini-3.8-live"}, "full name"},
		{"Vertex with the default model", transport.Provider{APIKey: secret, BaseURL: vertexURL}, "full name"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := New(test.opts)
			if !errors.Is(err, ErrOptions) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
			if err != nil && strings.Contains(err.Error(), secret) {
				t.Errorf("the error shows the key: %v", err)
			}
		})
	}
}

func TestEndpoints(t *testing.T) {
	for _, test := range []struct {
		name   string
		opts   transport.Provider
		url    string
		header http.Header
	}{
		{
			"public", transport.Provider{APIKey: secret},
			"wss://generativelanguage.googleapis.com/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent",
			http.Header{"X-Goog-Api-Key": {secret}},
		},
		{
			"ws with a slash", transport.Provider{APIKey: secret, BaseURL: "ws://127.0.0.1:1/"},
			"ws://127.0.0.1:1/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent",
			http.Header{"X-Goog-Api-Key": {secret}},
		},
		{
			"ephemeral token", transport.Provider{APIKey: "auth_tokens/t", BaseURL: "http://127.0.0.1:1"},
			"ws://127.0.0.1:1/ws/google.ai.generativelanguage.v1alpha.GenerativeService.BidiGenerateContentConstrained",
			http.Header{"Authorization": {"Token auth_tokens/t"}},
		},
		{
			"Vertex by its host", transport.Provider{APIKey: secret, BaseURL: vertexURL, Model: vertexModel},
			"wss://us-central1-aiplatform.googleapis.com/ws/google.cloud.aiplatform.v1beta1.LlmBidiService/BidiGenerateContent",
			http.Header{"Authorization": {"Bearer " + secret}},
		},
		{
			"Vertex by its path", transport.Provider{APIKey: secret, Model: vertexModel, BaseURL: "http://127.0.0.1:1/ws/google.cloud.aiplatform.v1beta1.LlmBidiService/BidiGenerateContent"},
			"ws://127.0.0.1:1/ws/google.cloud.aiplatform.v1beta1.LlmBidiService/BidiGenerateContent",
			http.Header{"Authorization": {"Bearer " + secret}},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			tr, err := New(test.opts)
			if err != nil {
				t.Fatal(err)
			}
			if tr.url != test.url {
				t.Errorf("URL %s\nwant %s", tr.url, test.url)
			}
			if diff := cmp.Diff(test.header, tr.opts.header()); diff != "" {
				t.Errorf("header differs (-want +got):\n%s", diff)
			}
		})
	}
}

// TestSetupFrames compares the first message with the provider's documents, for models with different requirements.
func TestSetupFrames(t *testing.T) {
	schema := json.RawMessage(`{"type":"OBJECT","properties":{"n":{"type":"INTEGER","x-kept":9007199254740993}}}`)
	full := transport.Setup{
		Voice: "Aoede", Language: "en-US", Instructions: "Be brief.", SilenceMS: 500, PrefixMS: 300, ResumeHandle: "h",
		Tools: []transport.Tool{
			{Name: "a", Description: "A.", Parameters: schema, NonBlocking: true}, {Name: "b"},
		},
	}
	const always = `"inputAudioTranscription":{},"outputAudioTranscription":{},"contextWindowCompression":{"slidingWindow":{}}`
	const speech = `"generationConfig":{"responseModalities":["AUDIO"],"speechConfig":{"languageCode":"en-US","voiceConfig":{"prebuiltVoiceConfig":{"voiceName":"Aoede"}}}}`
	const rest = `"systemInstruction":{"parts":[{"text":"Be brief."}],"role":"user"},"sessionResumption":{"handle":"h"},
		"realtimeInputConfig":{"automaticActivityDetection":{"silenceDurationMs":500}}`
	withBehavior := `"tools":[{"functionDeclarations":[{"name":"a","description":"A.","parameters":` + string(schema) + `,"behavior":"NON_BLOCKING"},{"name":"b","behavior":"BLOCKING"}]}]`
	without := `"tools":[{"functionDeclarations":[{"name":"a","description":"A.","parameters":` + string(schema) + `},{"name":"b"}]}]`
	vertex := transport.Provider{APIKey: secret, BaseURL: vertexURL, Model: vertexModel}
	for _, test := range []struct {
		name  string
		opts  transport.Provider
		setup transport.Setup
		want  string
	}{
		{"no options", transport.Provider{APIKey: secret}, transport.Setup{}, `{"setup":{"model":"models/gemini-3.8-live","generationConfig":{"responseModalities":["AUDIO"]},"sessionResumption":{},` + always + `}}`},
		{"2.5", transport.Provider{APIKey: secret, Model: model25}, full, `{"setup":{"model":"models/` + model25 + `",` + speech + `,` + rest + `,` + withBehavior + `,` + always + `}}`},
		{"3.1", transport.Provider{APIKey: secret, Model: "models/" + model31}, full, `{"setup":{"model":"models/` + model31 + `",` + speech + `,` + rest + `,` + without + `,` + always + `}}`},
		{"3.8", transport.Provider{APIKey: secret, Model: "gemini-3.8-live", Voice: "Aoede"}, full, `{"setup":{"model":"models/gemini-3.8-live",` + speech + `,` + rest + `,` + withBehavior + `,` + always + `}}`},
		{"Vertex", vertex, full, `{"setup":{"model":"projects/p/locations/l/publishers/google/models/gemini-3.8-live",` + speech + `,` + rest + `,` + withBehavior + `,` + always + `}}`},
		{
			"push to talk", transport.Provider{APIKey: secret}, transport.Setup{ManualActivity: true, SilenceMS: 500},
			`{"setup":{"model":"models/gemini-3.8-live","generationConfig":{"responseModalities":["AUDIO"]},"sessionResumption":{},
			"realtimeInputConfig":{"automaticActivityDetection":{"disabled":true}},` + always + `}}`,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			tr, err := New(test.opts)
			if err != nil {
				t.Fatal(err)
			}
			model := tr.opts.modelOr(test.setup.Model)
			r := rowFor(model, tr.opts.vertex)
			got, err := tr.setupFrame(model, r, test.setup)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(canonical(t, []byte(test.want)), canonical(t, got)); diff != "" {
				t.Errorf("setup differs (-want +got):\n%s", diff)
			}
		})
	}
}

// canonical decodes JSON with its numbers as written.
func canonical(t *testing.T, raw []byte) any {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		t.Fatalf("%v in %s", err, raw)
	}
	return v
}

func TestSetupThatCannotBeSentIsInvalid(t *testing.T) {
	p := newProvider(t)
	tr, err := New(p.options())
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range []transport.Tool{{}, {Name: "x", Parameters: json.RawMessage(`{`)}} {
		_, err := tr.Connect(context.Background(), transport.Setup{Tools: []transport.Tool{tool}})
		if transport.KindOf(err) != transport.KindInvalid {
			t.Errorf("%+v: %v", tool, err)
		}
	}
}

func TestKeyIsOnlyInAHeader(t *testing.T) {
	p := newProvider(t)
	_, peer := p.connect(transport.Setup{})
	if peer.header.Get("X-Goog-Api-Key") != secret {
		t.Errorf("header %v", peer.header)
	}
	if strings.Contains(peer.url, secret) || strings.Contains(peer.url, "key") {
		t.Errorf("URL %s", peer.url)
	}
	if !strings.HasSuffix(peer.url, "/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent") {
		t.Errorf("URL %s", peer.url)
	}
}

// TestNoErrorOrLogShowsTheKey: the provider sends the key in every possible place.
func TestNoErrorOrLogShowsTheKey(t *testing.T) {
	var log bytes.Buffer
	check := func(what string, err error) {
		t.Helper()
		for e := err; e != nil; e = errors.Unwrap(e) {
			if strings.Contains(e.Error(), secret) {
				t.Errorf("%s shows the key: %v", what, e)
			}
		}
		if err == nil {
			t.Errorf("%s: no error", what)
		}
	}
	for _, first := range []string{
		`{"error":{"code":401,"message":"` + secret + `","status":"` + secret + `"}}`,
		`{"` + secret + `":"` + secret + `"}`,
	} {
		p := newProvider(t)
		p.first = first
		opts := p.options()
		opts.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		tr, err := New(opts)
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1) // from Connect, once
		go func() {
			_, err := tr.Connect(context.Background(), transport.Setup{})
			done <- err
		}()
		peer := p.accept()
		peer.send(`garbage ` + secret)
		peer.close(1007, "API key not valid: "+secret)
		check("Connect", <-done)
	}
	if strings.Contains(log.String(), secret) {
		t.Errorf("the log shows the key: %s", log.String())
	}
}

// TestRedirectsAreNotFollowed: they would send the key to another server.
func TestRedirectsAreNotFollowed(t *testing.T) {
	other := newProvider(t)
	p := newProvider(t)
	p.redirect = other.srv.URL
	tr, err := New(p.options())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if _, err := tr.Connect(ctx, transport.Setup{}); transport.KindOf(err) != transport.KindInvalid {
		t.Errorf("Connect: %v", err)
	}
}

func TestClosingBeforeSetupCompleteHasItsOwnKinds(t *testing.T) {
	for code, want := range map[int]transport.Kind{
		1007: transport.KindInvalid, 1008: transport.KindInvalid, 1011: transport.KindRetry, 1000: transport.KindRetry,
	} {
		p := newProvider(t)
		p.first = "-"
		tr, err := New(p.options())
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1) // from Connect, once
		go func() {
			_, err := tr.Connect(context.Background(), transport.Setup{})
			done <- err
		}()
		p.accept().close(code, "")
		if err := <-done; transport.KindOf(err) != want {
			t.Errorf("close %d before setupComplete: %v, want %s", code, err, want)
		}
	}
}

// TestAfterGoAwayTheEndIsExpiry: errors of the connection then mean that it has expired.
func TestAfterGoAwayTheEndIsExpiry(t *testing.T) {
	for _, code := range []int{1008, 1011, 1001, 0} {
		p := newProvider(t)
		c, peer := p.connect(transport.Setup{})
		peer.send(`{"goAway":{"timeLeft":"50s"}}`)
		if code == 0 {
			_ = peer.ws.CloseNow()
		} else {
			peer.close(code, "")
		}
		recv(t, c, 1)
		if _, err := c.Recv(context.Background()); transport.KindOf(err) != transport.KindExpired {
			t.Errorf("code %d: %v", code, err)
		}
		// A failing Send then reports the same as Recv.
		if err := c.Send(context.Background(), transport.UserText{Text: "x"}); transport.KindOf(err) != transport.KindExpired {
			t.Errorf("Send after code %d: %v", code, err)
		}
	}
}

func TestEndWithoutGoodbyeIsRetried(t *testing.T) {
	p := newProvider(t)
	c, peer := p.connect(transport.Setup{})
	_ = peer.ws.CloseNow()
	_, err := c.Recv(context.Background())
	var e *transport.Error
	if !errors.As(err, &e) || e.Kind != transport.KindRetry || e.Code != "1006" {
		t.Errorf("Recv: %v", err)
	}
}

func TestSessionIDOfVertexIsKept(t *testing.T) {
	p := newProvider(t)
	p.first = `{"setupComplete":{"sessionId":"abc"}}`
	c, _ := p.connect(transport.Setup{})
	if got := c.Info().SessionID; got != "abc" {
		t.Errorf("session id %q", got)
	}
}

func TestRowsOfModels(t *testing.T) {
	for model, want := range map[string]string{
		"":      live38.family,
		model25: native25.family, "models/" + model25: native25.family,
		"gemini-2.5-flash-live-preview": flash25.family, "gemini-2.0-flash-live-001": flash25.family,
		model31: flash31.family, "gemini-3.8-live": live38.family, "gemini-9-live": live38.family,
		"gemini-3.8-live-extended-thinking": extended38.family, "models/gemini-3.5-live-translate-preview": translate35.family,
	} {
		tr, err := New(transport.Provider{APIKey: secret})
		if err != nil {
			t.Fatal(err)
		}
		if got := rowFor(tr.opts.modelOr(model), false); got.family != want || got.caps.Source == "" {
			t.Errorf("%q has the row %q, want %q", model, got.family, want)
		}
	}
	if got := rowFor("projects/p/locations/l/publishers/google/models/gemini-live-2.5-flash-native-audio", true); got.family != vertex25.family {
		t.Errorf("Vertex has the row %q", got.family)
	}
}

// TestThinkingSettings: each row has its own thinking setting, and an invalid value is refused before anything is sent.
func TestThinkingSettings(t *testing.T) {
	const extended = "gemini-3.8-live-extended-thinking"
	for _, test := range []struct{ model, choice, want string }{
		{model25, "", ""}, {model25, "0", `{"thinkingBudget":0}`}, {model25, "-1", `{"thinkingBudget":-1}`}, {model25, "low", "accepts a number of tokens"},
		{"gemini-2.5-flash-live-preview", "100", "leave it out"},
		{model31, "", ""}, {model31, "minimal", `{"thinkingLevel":"MINIMAL"}`}, {model31, "512", "accepts minimal, low, medium, high"},
		{"gemini-3.8-live", "", ""}, {"gemini-3.8-live", "low", "leave it out"},
		{extended, "", `{"thinkingLevel":"LOW"}`}, {extended, "high", `{"thinkingLevel":"HIGH"}`}, {extended, "2048", `{"thinkingBudget":2048}`},
		{extended, "minimal", "accepts low, medium, high"}, {extended, "-2", "accepts low"}, {extended, "99999999999", "accepts low"},
	} {
		tr, err := New(transport.Provider{APIKey: secret, Model: test.model, Settings: map[string]string{"thinking": test.choice}})
		if err != nil {
			if !errors.Is(err, ErrOptions) || !strings.Contains(err.Error(), test.want) || strings.HasPrefix(test.want, "{") || test.want == "" {
				t.Errorf("%s with %q: %v, want %q", test.model, test.choice, err, test.want)
			}
			continue
		}
		r := tr.opts.row("")
		frame, err := tr.setupFrame(test.model, r, transport.Setup{})
		if err != nil {
			t.Fatal(err)
		}
		var sent struct {
			Setup struct {
				GenerationConfig struct {
					ThinkingConfig json.RawMessage `json:"thinkingConfig"`
				} `json:"generationConfig"`
			} `json:"setup"`
		}
		if err := json.Unmarshal(frame, &sent); err != nil {
			t.Fatal(err)
		}
		if got := string(sent.Setup.GenerationConfig.ThinkingConfig); got != test.want {
			t.Errorf("%s with %q sends %s, want %s", test.model, test.choice, got, test.want)
		}
	}
	tr, err := New(transport.Provider{APIKey: secret, Model: model31, Settings: map[string]string{"thinking": "minimal"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tr.Connect(t.Context(), transport.Setup{Model: "gemini-3.8-live"}); transport.KindOf(err) != transport.KindInvalid {
		t.Errorf("a Setup with a model that has no choice: %v", err)
	}
}

// TestExtendedThinkingTakesNoBlockingTool: the model closes the connection on a blocking tool.
func TestExtendedThinkingTakesNoBlockingTool(t *testing.T) {
	tools, err := declareTools(extended38, []transport.Tool{{Name: "a"}, {Name: "b", NonBlocking: true}})
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range tools[0].FunctionDeclarations {
		if d.Behavior != "NON_BLOCKING" {
			t.Errorf("%s is declared %s", d.Name, d.Behavior)
		}
	}
}
