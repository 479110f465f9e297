// Package openai speaks the OpenAI Realtime protocol (GA) to OpenAI, to Azure OpenAI and to any compatible server.
//
// The wire code is our own, based on github.com/coder/websocket: one JSON event in each text frame, read 2026-11-20 at
// developers.openai.com/api/docs/guides/realtime-websocket and checked against recorded sessions. Events other than audio
// are decoded into small types. Audio takes a separate path in both directions (scan.go, audio.go) that allocates nothing.
//
// # Guarantees beyond package transport
//
//   - Usage comes before the ResponseDone of its response, and so do
//     AudioDone and every ToolCall of that response.
//   - A ToolCall is emitted only for a call that the provider has finished: a call that an
//     interruption cut off is never run.
//   - Interrupt, UserText and ActivityStart withdraw a Respond that still waits for
//     its turn, and so does a response that ended because the user began to speak:
//     with speech detection the provider answers the user's turn automatically.
//   - A Truncate beyond the audio that has arrived is reduced to that audio; a Truncate of
//     an item without audio is dropped.
//   - There is no GoAway: the provider announces Info.ExpiresAt and ends the connection
//     then (KindExpired). The caller decides whether to leave earlier.
//   - AudioPause sends the silence that ends the user's phrase, once per pause; the
//     offsets of SpeechStarted and SpeechStopped do not count it.
//   - Close sends no close frame: the provider only sees the connection end.
//   - Usage does not include the tokens that a transcription model reports for the user's
//     speech: that is another model with another price, and the audio is already counted
//     as the input of the response.
package openai

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"voicegw/internal/logging"
	"voicegw/transport"
)

// Transport opens Realtime connections. It is immutable after New and may be used concurrently.
type Transport struct {
	Service

	opts   options
	ep     endpoint
	seldom *logging.Throttle
}

var _ transport.Transport = (*Transport)(nil)

// New checks the options; see [Wire]. The public service needs only APIKey, a private server may need none. BaseURL has
// the SDK's form, http(s)://host/v1; ws(s) is accepted too, and its host or path select the service; see dialects. On
// Azure Model is the deployment and has no default. An error wraps ErrNoKey, ErrBadKey, ErrBadURL or ErrBadOption, and
// shows no key.
func New(p transport.Provider) (*Transport, error) {
	load, err := loadTime(p.Settings["load_time"])
	if err != nil {
		return nil, err
	}
	opts := options{Provider: p, dialect: p.Settings["dialect"], loadTime: load,
		transcriptionModel: p.Settings["transcription_model"], reasoning: p.Settings["reasoning"]}
	ep, err := parseBaseURL(opts.BaseURL, opts.dialect)
	if err != nil {
		return nil, err
	}
	if err := opts.setDefaults(ep); err != nil {
		return nil, err
	}
	return &Transport{Service: NewService(opts.Name, opts.APIKey, &ep.url, opts.HTTPClient, opts.Logger), opts: opts, ep: ep,
		seldom: logging.NewThrottle(opts.Logger)}, nil
}

// Name implements transport.Transport.
func (t *Transport) Name() string { return t.opts.Name }

// Capabilities implements transport.Transport.
func (t *Transport) Capabilities(model string) transport.Capabilities {
	model = cmp.Or(model, t.opts.Model)
	return t.capabilities(t.ep.dialect.rowOf(model))
}

// Connect dials, waits for session.created, sends the setup and waits for session.updated, and does the same with the
// history. An error event is returned as the error.
func (t *Transport) Connect(ctx context.Context, setup transport.Setup) (transport.Conn, error) {
	setup.Model = cmp.Or(setup.Model, t.opts.Model)
	setup.Voice = cmp.Or(setup.Voice, t.opts.Voice)
	if setup.Model == "" && !t.ep.dialect.local {
		return nil, t.Fault("setup", transport.KindInvalid, "",
			fmt.Errorf("Options.Model: %w: with Azure it is the name of your deployment and has no default", ErrBadOption))
	}
	update, err := t.ep.dialect.update(opUpdate+"_1", setup, &t.opts)
	if err != nil {
		return nil, t.Fault("setup", transport.KindInvalid, "", fmt.Errorf("encode session.update: %w", err))
	}
	past, err := t.ep.dialect.history(setup)
	if err != nil {
		return nil, t.Fault(transport.OpHistory, transport.KindInvalid, "", fmt.Errorf("encode the history: %w", err))
	}
	c := newConn(t, setup)
	if err := c.dial(ctx); err != nil {
		return nil, err
	}
	if err := c.setUp(ctx, update); err != nil {
		c.end(err)
		return nil, err
	}
	c.ready.Store(true)
	if err := c.remember(ctx, past); err != nil {
		c.end(err)
		return nil, err
	}
	c.mu.Lock()
	c.ping = time.AfterFunc(pingInterval, c.keepAlive)
	c.mu.Unlock()
	return c, nil
}

func (c *conn) dial(ctx context.Context) *transport.Error {
	limit := int64(ReadLimit)
	if c.local { // its handshake is bounded more tightly than its first message
		limit = localReadLimit
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, handshakePatience)
		defer stop()
	}
	socket, err := c.t.Dial(ctx, c.t.ep.address(c.info.Model), c.t.ep.dialect.keyHeader, limit)
	if err == nil {
		c.ws, c.info.LocalAddr = socket, socket.LocalAddr()
	}
	return err
}

// otherModels matches models of OpenAI's other APIs (developers.openai.com/api/docs/models, read 2026-11-23).
var otherModels = regexp.MustCompile(`^(gpt-[0-9].*|gpt-(live|image|audio).*|o[0-9].*|chatgpt-.*|whisper-.*|tts-.*|text-.*|dall-e-.*)$`)

// own reports whether the service is OpenAI's or the simulator, whose models have known names.
func (t *Transport) own() bool { return t.opts.Simulated || t.ep.url.Hostname() == "api.openai.com" }

// Models implements transport.Transport.
func (t *Transport) Models() []string {
	if !t.own() {
		return nil
	}
	models := []string{DefaultModel}
	for _, row := range modelRows {
		if row.prefix != DefaultModel {
			models = append(models, row.prefix)
		}
	}
	return append(models, "gpt-4o-realtime-preview", "gpt-4o-mini-realtime-preview")
}

// Refuses implements transport.Transport.
func (t *Transport) Refuses(model string) bool {
	model = strings.ToLower(model)
	return t.own() && otherModels.MatchString(model) && !strings.Contains(model, "realtime")
}

// voices are the built-in voices of the Realtime API (openai-go v3.95, type RealtimeAudioConfigOutputVoiceString2, read
// 2026-11-20), the default one first. A custom voice is named by its own id.
var voices = []string{"alloy", "ash", "ballad", "coral", "echo", "sage", "shimmer", "verse", "marin", "cedar"}

// secondVoice is the default of the second generation, according to its session.created.
const secondVoice = "marin"

// Model is the model used for a Setup that names none; empty on Azure, which has no default.
func (t *Transport) Model() string { return t.opts.Model }

// Voices lists the documented voices, the default first; nil without any. An empty model means the default.
func (t *Transport) Voices(model string) []string {
	model = cmp.Or(model, t.opts.Model)
	row := t.ep.dialect.rowOf(model)
	if row.voices == nil || !inFamily(model, row.prefix) {
		return nil // rowOf has returned the nearest family
	}
	list := slices.Clone(row.voices)
	if strings.HasPrefix(row.prefix, "gpt-realtime-2") {
		i := slices.Index(list, secondVoice)
		list = slices.Insert(slices.Delete(list, i, i+1), 0, secondVoice)
	}
	return list
}
