// Package live speaks OpenAI Live (gpt-live-1), at OpenAI and Azure. The model hears and speaks at the same time on one
// endless track and has no turns, items or tools. This package derives them, so that a session need not know:
//
//   - dialog makes answers, items and transcripts of the track and its timed transcripts. It drops silent output.
//   - feed sends silence while the client sends no audio, because the model's time is its input.
//   - delegations does each delegation with a text model. Its calls are [transport.ToolCall] events, so the caller's
//     policy applies to them; its answer goes back to the voice.
//
// The capabilities show the limits of the wire: no answer can be stopped, truncated or requested without words, and
// instructions cannot change. An interruption is only the caller's flush; the model decides alone when it stops, and its answer ends
// when it is quiet.
//
// The events and limits are those of package livewire, which names the sources.
package live

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"voicegw/internal/livewire"
	"voicegw/transport"
	"voicegw/transport/openai"
	"voicegw/transport/textmodel"
)

const defaultName = "live"

// Transport opens Live connections. It may be used concurrently.
type Transport struct {
	openai.Service

	opts transport.Provider
	url  string
	own  bool // OpenAI's service or the simulator, whose models have known names
	text atomic.Pointer[text]
}

// text is the model that answers delegations.
type text struct {
	model textmodel.Model
	name  string
}

var _ transport.Transport = (*Transport)(nil)

// New checks the options. An error wraps one of package openai's, and shows no key. The public service needs only APIKey.
// BaseURL has the SDK's form, https://host/v1; of Azure, https://name.openai.azure.com is enough, and Model is the
// deployment there.
func New(opts transport.Provider) (*Transport, error) {
	opts.Name = cmp.Or(opts.Name, defaultName)
	opts.Model = cmp.Or(opts.Model, livewire.Model)
	opts.Logger = cmp.Or(opts.Logger, slog.New(slog.DiscardHandler))
	u, version, err := openai.ServiceURL(defaultName, cmp.Or(opts.BaseURL, openai.DefaultBaseURL))
	if err != nil {
		return nil, err
	}
	if version != "" {
		return nil, fmt.Errorf("live: Options.BaseURL: %w: Live has no api-version: remove it", openai.ErrBadURL)
	}
	if opts.APIKey == "" && opts.BaseURL == "" {
		return nil, fmt.Errorf("live: Options.APIKey: %w: set the provider's key", openai.ErrNoKey)
	}
	if err := openai.CheckKey(defaultName, opts.APIKey); err != nil {
		return nil, err
	}
	path := strings.TrimSuffix(strings.TrimSuffix(u.Path, livewire.Path), "/v1")
	if path == "" && strings.HasSuffix(u.Hostname(), ".openai.azure.com") {
		path = "/openai"
	}
	u.Path = path + livewire.Path
	return &Transport{Service: openai.NewService(opts.Name, opts.APIKey, u, opts.HTTPClient, opts.Logger), opts: opts,
		url: u.String(), own: opts.Simulated || u.Hostname() == "api.openai.com"}, nil
}

// UseText sets the model that answers delegations of later connections, and its name for prices.
func (t *Transport) UseText(model textmodel.Model, name string) { t.text.Store(&text{model, name}) }

// Name implements transport.Transport.
func (t *Transport) Name() string { return t.opts.Name }

// Model implements transport.Transport.
func (t *Transport) Model() string { return t.opts.Model }

// Models implements transport.Transport. There is one model (developers.openai.com/api/docs/models, read 2026-11-28).
func (t *Transport) Models() []string {
	if !t.own {
		return nil
	}
	return []string{livewire.Model}
}

// Refuses implements transport.Transport: the service has no other family.
func (t *Transport) Refuses(model string) bool {
	return t.own && !strings.HasPrefix(strings.ToLower(model), "gpt-live-1") || strings.Contains(strings.ToLower(model), "realtime")
}

// Voices implements transport.Transport.
func (t *Transport) Voices(string) []string {
	list := slices.DeleteFunc(slices.Clone(livewire.Voices), func(v string) bool { return v == livewire.DefaultVoice })
	return append([]string{livewire.DefaultVoice}, list...)
}

// Capabilities implements transport.Transport. There is one row.
func (t *Transport) Capabilities(string) transport.Capabilities {
	return transport.Capabilities{
		// No event says where the user speaks, and none ends an answer: see package livewire's sources.
		Tools: transport.ToolsAsync, ToolCancelNotice: true, // a delegation outlives an interruption, and so do its calls
		AddItem: transport.AddItemLive, History: transport.HistoryContent,
		UsageCumulative: true, ConnectionLife: livewire.Life, PlaysExact: uint8(livewire.MaxFixture / time.Second),
		TranscriptLagMS: 900, // reported; 14 in the recording
		Source: "developers.openai.com/api/docs/guides/live and api/reference/resources/live, and one recorded session, read 2026-11-28; " +
			"two hours measured by others (aplisay/llm-agent#306)",
	}
}

func (t *Transport) reported(op string, kind transport.Kind, e *livewire.Failure) *transport.Error {
	return t.Reported(op, kind, e.Type, e.Code, e.Message, e.Param)
}

// Connect implements transport.Transport: it dials, sends session.start and waits for session.started.
func (t *Transport) Connect(ctx context.Context, setup transport.Setup) (transport.Conn, error) {
	setup.Model, setup.Voice = cmp.Or(setup.Model, t.opts.Model), cmp.Or(setup.Voice, t.opts.Voice)
	text := t.text.Load()
	if text == nil {
		return nil, t.Fault("setup", transport.KindInvalid, "", errors.New("no text model answers its delegations: set "+
			"chat.base_url, or give an openai or gemini provider its api_key"))
	}
	start, err := startFrame(setup)
	if err != nil {
		return nil, t.Fault("setup", transport.KindInvalid, "", err)
	}
	c := newConn(t, setup)
	if err := c.dial(ctx); err != nil {
		return nil, err
	}
	if err := c.setUp(ctx, start); err != nil {
		c.end(err)
		return nil, err
	}
	c.delegations = delegationsFor(t, setup, text)
	c.delegations.attach(c)
	c.feed.start(c)
	return c, nil
}

// Wire is this package's row in the table of wires. It has no settings of its own.
func Wire() transport.Wire {
	return transport.Wire{
		Name: defaultName, Simulated: true, New: func(p transport.Provider) (transport.Transport, error) { return New(p) },
	}
}
