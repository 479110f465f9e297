package openai

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/google/go-cmp/cmp"

	"voicegw/transport"
)

func TestNewOptions(t *testing.T) {
	tests := []struct {
		name string
		opts transport.Provider
		url  string // with the model m
		want error
		says string // part of the error
	}{
		{name: "the public service", opts: transport.Provider{APIKey: secret}, url: "wss://api.openai.com/v1/realtime?model=m"},
		{name: "http with a path", opts: transport.Provider{BaseURL: "http://127.0.0.1:8080/v1/"}, url: "ws://127.0.0.1:8080/v1/realtime?model=m"},
		{name: "ws", opts: transport.Provider{BaseURL: "ws://localhost/v1"}, url: "ws://localhost/v1/realtime?model=m"},
		{name: "wss without a path", opts: transport.Provider{BaseURL: "wss://host"}, url: "wss://host/realtime?model=m"},
		{name: "realtime already there", opts: transport.Provider{BaseURL: "https://host/v1/realtime"}, url: "wss://host/v1/realtime?model=m"},
		{name: "Azure host alone", opts: transport.Provider{APIKey: secret, BaseURL: "https://me.openai.azure.com"}, url: "wss://me.openai.azure.com/openai/v1/realtime?model=m"},
		{name: "no key", opts: transport.Provider{}, want: ErrNoKey, says: "Options.APIKey"},
		{name: "key with a line end", opts: transport.Provider{APIKey: secret + "\n"}, want: ErrBadKey, says: "Options.APIKey"},
		{name: "no scheme", opts: transport.Provider{APIKey: secret, BaseURL: "api.openai.com/v1"}, want: ErrBadURL, says: "https://host/v1"},
		{name: "another scheme", opts: transport.Provider{BaseURL: "ftp://host"}, want: ErrBadURL, says: "ftp"},
		{name: "no host", opts: transport.Provider{BaseURL: "https:///v1"}, want: ErrBadURL, says: "no host"},
		{name: "no URL", opts: transport.Provider{BaseURL: "https://" + secret + "@ho st/%zz"}, want: ErrBadURL, says: "BaseURL"},
		{name: "a password in it", opts: transport.Provider{BaseURL: "https://me:" + secret + "@host/v1"}, want: ErrBadURL, says: "APIKey"},
		{name: "a key in the query", opts: transport.Provider{BaseURL: "https://host/v1?api-key=" + secret}, want: ErrBadURL, says: "query"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tr, err := New(tt.opts)
			if !errors.Is(err, tt.want) || (err == nil) != (tt.want == nil) {
				t.Fatalf("New returned %v, want %v", err, tt.want)
			}
			if err != nil {
				if !strings.Contains(err.Error(), tt.says) || strings.Contains(err.Error(), secret) {
					t.Errorf("the error %q must name %q and not the key", err, tt.says)
				}
				return
			}
			if got := tr.ep.address("m"); got != tt.url {
				t.Errorf("address %s, want %s", got, tt.url)
			}
			if tr.Name() != "openai" {
				t.Errorf("name %q", tr.Name())
			}
		})
	}
}

func TestHeaders(t *testing.T) {
	opts := transport.Provider{APIKey: secret}
	tr, err := New(opts)
	if err != nil {
		t.Fatal(err)
	}
	h := tr.header(tr.ep.dialect.keyHeader)
	if h.Get("Authorization") != "Bearer "+secret {
		t.Errorf("headers for the public service: %v", h)
	}
	if h.Get("OpenAI-Beta") != "" {
		t.Error("OpenAI-Beta closes the connection with 4000")
	}
	for _, base := range []string{"https://me.openai.azure.com/openai/v1", "http://127.0.0.1:1/openai/v1/"} {
		opts.BaseURL = base
		if tr, err = New(opts); err != nil {
			t.Fatal(err)
		}
		h = tr.header(tr.ep.dialect.keyHeader)
		if h.Get("api-key") != secret || h.Get("Authorization") != "" {
			t.Errorf("headers for %s: %v", base, h)
		}
	}
}

func TestPlainTextWarning(t *testing.T) {
	for base, want := range map[string]bool{
		"http://example.test/v1": true, "http://127.0.0.1:1/v1": false, "http://localhost/v1": false,
		"http://[::1]/v1": false, "https://example.test/v1": false, "http://10.0.0.1/v1": true,
	} {
		var log strings.Builder
		_, err := New(transport.Provider{APIKey: secret, BaseURL: base, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(log.String(), "provider_not_encrypted"); got != want {
			t.Errorf("%s: warned %v, want %v", base, got, want)
		}
		if strings.Contains(log.String(), secret) {
			t.Error("the log holds the key")
		}
	}
}

func TestCapabilities(t *testing.T) {
	tr, err := New(transport.Provider{APIKey: secret})
	if err != nil {
		t.Fatal(err)
	}
	for model, prefix := range map[string]string{
		"gpt-realtime": "gpt-realtime", "gpt-realtime-2025-08-28": "gpt-realtime",
		"gpt-realtime-mini-2025-12-15": "gpt-realtime-mini", "gpt-realtime-1.5": "gpt-realtime-1.5",
		"gpt-realtime-2": "gpt-realtime-2", "gpt-realtime-2.1": "gpt-realtime-2.1",
		"gpt-realtime-2.1-mini": "gpt-realtime-2.1-mini", "gpt-realtime-3": "gpt-realtime",
		"my-deployment": DefaultModel,
	} {
		if row := tr.ep.dialect.rowOf(model); row.prefix != prefix {
			t.Errorf("%s meets the row of %q, want %q", model, row.prefix, prefix)
		}
	}
	want := transport.Capabilities{
		SpeechEvents: true, Truncate: true, Cancel: true, RespondNeeded: true, ToolsOff: true,
		Tools: transport.ToolsBlock, History: transport.HistoryItems, Reconfigure: transport.ReconfigureLive, AddItem: transport.AddItemLive,
		ConnectionLife: time.Hour, Images: true, AudioClock: true, TranscriptLagMS: 150,
		Source: tr.ep.dialect.rowOf(DefaultModel).source,
	}
	if diff := cmp.Diff(want, tr.Capabilities("")); diff != "" {
		t.Error(diff)
	}
}

func TestCloseKindByReason(t *testing.T) {
	tests := []struct {
		code   websocket.StatusCode
		reason string
		kind   transport.Kind
		want   string
	}{
		{3000, "invalid_request_error.invalid_api_key", transport.KindAuth, "invalid_api_key"},
		{3000, "invalid_request_error.insufficient_quota", transport.KindQuota, "insufficient_quota"},
		{4000, "invalid_request_error.beta_api_shape_disabled", transport.KindInvalid, "beta_api_shape_disabled"},
		{4000, "invalid_request_error.session_expired", transport.KindExpired, "session_expired"},
		{1001, "Your session hit the maximum duration of 60 minutes.", transport.KindExpired, "1001"},
		{1000, "because of x.insufficient_quota", transport.KindRetry, "1000"}, // prose does not decide
		{4711, "", transport.KindRetry, "4711"},
	}
	for _, tt := range tests {
		if kind, code := closeKind(tt.code, tt.reason, true); kind != tt.kind || code != tt.want {
			t.Errorf("close %d %q is %s %q, want %s %q", tt.code, tt.reason, kind, code, tt.kind, tt.want)
		}
	}
}

func TestPads(t *testing.T) {
	var p padList
	p.add(1000, 700)
	p.add(3000, 700)
	for provider, want := range map[int64]int64{0: 0, 900: 900, 1000: 1000, 1400: 1000, 1700: 1000, 1800: 1100, 3000: 2300, 3700: 2300, 4000: 2600} {
		if got := p.caller(provider); got != want {
			t.Errorf("%d ms on the provider's clock is %d on the caller's, want %d", provider, got, want)
		}
	}
	for i := range int64(2 * maxPads) {
		p.add(10000+1000*i, 100)
	}
	if len(p.pads) != maxPads {
		t.Errorf("%d pads are stored", len(p.pads))
	}
	if got, want := p.caller(1_000_000), int64(1_000_000-2*700-2*maxPads*100); got != want {
		t.Errorf("far later: %d, want %d", got, want)
	}
}

func TestBounds(t *testing.T) {
	c := bareConn(t)
	for i := range 3 * maxTexts {
		handler{c}.transcribe(strings.Repeat("i", i+1), transport.RoleUser, 0, strings.Repeat("ö", maxTextBytes), false)
		handler{c}.transcribe(strings.Repeat("i", i+1), transport.RoleUser, 0, "more", false)
	}
	if len(c.texts.by) != maxTexts || len(c.texts.order) != maxTexts {
		t.Errorf("%d texts are stored", len(c.texts.by))
	}
	all := c.events.Pending()
	last, _ := all[len(all)-1].(transport.Transcript)
	if len(last.Text) != maxTextBytes {
		t.Errorf("a text of %d bytes is stored", len(last.Text))
	}
	for i := range 3 * maxSpoken {
		c.newSpoken(strings.Repeat("i", i+1), "r")
	}
	if len(c.items.by) != maxSpoken || len(c.items.order) != maxSpoken {
		t.Errorf("%d spoken items are stored", len(c.items.by))
	}
	for i := range 2 * maxCalls {
		handler{c}.giveCall(finishedCall{item: "i", id: strings.Repeat("c", i+1), name: "n"})
	}
	if len(c.seenCalls.seen.by) != maxCalls || len(c.calls.by) != maxCalls {
		t.Errorf("%d and %d calls are stored", len(c.seenCalls.seen.by), len(c.calls.by))
	}
	handler{c}.transcribe("i", transport.RoleUser, -1, "x", false)
	handler{c}.transcribe("i", transport.RoleUser, maxParts, "x", true)
	if n := c.Stats().MalformedEvents; n != 2 {
		t.Errorf("content parts that no item has: %d counted", n)
	}
}

func TestOpenAudioIsBounded(t *testing.T) {
	c := bareConn(t)
	for i := range 3 * maxSpoken {
		c.newSpoken(strings.Repeat("i", i+1), "r")
	}
	if len(c.openAudio) > maxSpoken {
		t.Errorf("%d items wait for their end", len(c.openAudio))
	}
}

func TestTextOfSeveralParts(t *testing.T) {
	var x texts
	x.update("i", 1, " two", false)
	x.update("i", 0, "o", false)
	if got, ok := x.update("i", 0, "one", true); got != "one two" || !ok {
		t.Errorf("the parts make %q", got)
	}
	if x.get("j") != "" {
		t.Error("an unknown item has a text")
	}
}

func TestRedactor(t *testing.T) {
	r := Redactor(secret)
	inner := errors.New("dial " + secret)
	err := r.Err(inner)
	if strings.Contains(err.Error(), secret) || errors.Is(err, inner) {
		t.Errorf("%v still contains the key", err)
	}
	plain := errors.New("plain")
	if r.Err(plain) != plain {
		t.Error("an error without the key is changed")
	}
	if got := clip("aö", 2); got != "a" {
		t.Errorf("clip cuts a character: %q", got)
	}
}

// TestReasoning: the effort is sent to models that reason, and refused for others before anything is sent.
func TestReasoning(t *testing.T) {
	for _, test := range []struct{ model, effort, refused string }{
		{"", "high", ""}, {"gpt-realtime-2", "minimal", ""}, {"gpt-realtime-2.1-mini", "xhigh", ""}, {"gpt-realtime", "", ""},
		{"gpt-realtime", "low", "does not reason"}, {"gpt-realtime-1.5", "low", "does not reason"}, {"", "none", "one of minimal, low"}, {"", "HIGH", "one of minimal, low"},
	} {
		tr, err := New(transport.Provider{APIKey: secret, Model: test.model, Settings: map[string]string{"reasoning": test.effort}})
		if test.refused != "" {
			if !errors.Is(err, ErrBadOption) || !strings.Contains(err.Error(), test.refused) {
				t.Errorf("%q with %q: %v, want %q", test.model, test.effort, err, test.refused)
			}
			continue
		}
		if err != nil {
			t.Errorf("%q with %q: %v", test.model, test.effort, err)
		} else if tr.opts.reasoning != test.effort {
			t.Errorf("%+v", tr.opts)
		}
	}
	for model, want := range map[string]any{"": "high", "gpt-realtime-2": "high", "gpt-realtime-1.5": nil} {
		s := newServer(t)
		s.opts.Settings = map[string]string{"reasoning": "high"}
		_, p := s.connect(transport.Setup{Model: model})
		reasoning, _ := p.setup["reasoning"].(map[string]any)
		if reasoning["effort"] != want {
			t.Errorf("%q is sent %v, want %v", model, p.setup["reasoning"], want)
		}
	}
}

// TestUnknownsAreLoggedOnce: each unknown type is counted each time, and logged once, up to a limit.
func TestUnknownsAreLoggedOnce(t *testing.T) {
	var log bytes.Buffer
	s := NewService("p", "k", &url.URL{}, nil, slog.New(slog.NewTextHandler(&log, nil)))
	var u Unknowns
	for i := range maxUnknownLogged + 10 {
		u.Saw(&s, fmt.Sprint("type", i))
		u.Saw(&s, fmt.Sprint("type", i))
	}
	if lines := strings.Count(log.String(), "event_unknown"); lines != maxUnknownLogged || u.Load() != 2*(maxUnknownLogged+10) {
		t.Errorf("%d logged, %d counted", lines, u.Load())
	}
}
