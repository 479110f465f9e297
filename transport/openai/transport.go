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
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coder/websocket"

	"voicegw/internal/bounded"
	"voicegw/internal/logging"
	"voicegw/internal/ws"
	"voicegw/transport"
)

// readLimit bounds one frame from the provider, in bytes.
const readLimit = 4 << 20

// Transport opens Realtime connections. It is immutable after New and may be used concurrently.
type Transport struct {
	opts   Options
	ep     endpoint
	client *http.Client
	redact Redactor
	seldom *logging.Throttle
}

var _ transport.Transport = (*Transport)(nil)

// New checks the options. An error wraps ErrNoKey, ErrBadKey, ErrBadURL or ErrBadOption, and shows no key.
func New(opts Options) (*Transport, error) {
	ep, err := parseBaseURL(opts.BaseURL, opts.Dialect)
	if err != nil {
		return nil, err
	}
	opts, err = opts.withDefaults(ep)
	if err != nil {
		return nil, err
	}
	client := &http.Client{}
	if opts.HTTPClient != nil {
		*client = *opts.HTTPClient
	}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	if opts.APIKey != "" && PlainText(&ep.url) {
		opts.Logger.Warn("provider_not_encrypted", "provider", opts.Name, "host", ep.url.Host,
			"fix", "use https in the base URL: the API key crosses the network readable")
	}
	return &Transport{opts: opts, ep: ep, client: client, redact: Redactor(opts.APIKey), seldom: logging.NewThrottle(opts.Logger)}, nil
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
		return nil, t.fault("setup", transport.KindInvalid, "",
			fmt.Errorf("Options.Model: %w: with Azure it is the name of your deployment and has no default", ErrBadOption))
	}
	update, err := t.ep.dialect.update(opUpdate+"_1", setup, &t.opts)
	if err != nil {
		return nil, t.fault("setup", transport.KindInvalid, "", fmt.Errorf("encode session.update: %w", err))
	}
	past, err := t.ep.dialect.history(setup)
	if err != nil {
		return nil, t.fault(transport.OpHistory, transport.KindInvalid, "", fmt.Errorf("encode the history: %w", err))
	}
	c := newConn(t, setup)
	if err := c.dial(ctx, t); err != nil {
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

func (t *Transport) fault(op string, kind transport.Kind, code string, err error) *transport.Error {
	return t.redact.Fault(t.opts.Name, op, kind, code, err)
}

func (c *conn) dial(ctx context.Context, t *Transport) *transport.Error {
	limit := int64(readLimit)
	if c.local { // its handshake is bounded more tightly than its first message
		limit = localReadLimit
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, handshakePatience)
		defer stop()
	}
	socket, resp, err := ws.Dial(ctx, t.ep.address(c.info.Model), &websocket.DialOptions{
		HTTPClient:      t.client,
		HTTPHeader:      t.ep.header(t.opts),
		CompressionMode: websocket.CompressionDisabled,
	}, ws.Options{Limit: limit, Budget: ws.Budget{PerSecond: transport.FramesPerSecond, Burst: transport.FrameBurst}})
	if err == nil {
		c.ws, c.info.LocalAddr = socket, socket.LocalAddr()
		return nil
	}
	if resp != nil && resp.StatusCode != http.StatusSwitchingProtocols {
		return t.redact.RefusedHandshake(t.opts.Name, resp)
	}
	if ctx.Err() != nil {
		return t.fault("dial", transport.KindOfContext(ctx.Err()),
			"no_handshake", fmt.Errorf("the provider did not answer the handshake in time: %w: %w", ctx.Err(), err))
	}
	return t.fault("dial", transport.KindRetry, "", err)
}

// RefusedHandshake returns the error for an answer other than 101 to a WebSocket handshake. It reads the body.
func (r Redactor) RefusedHandshake(provider string, resp *http.Response) *transport.Error {
	var body struct {
		Error struct{ Code, Message string }
	}
	// The body has at most 1024 bytes; invalid JSON adds nothing.
	text, readErr := io.ReadAll(io.LimitReader(resp.Body, 1024))
	if readErr == nil {
		_ = json.Unmarshal(text, &body) // then only the status decides
	}
	kind, code := transport.KindOfCode(body.Error.Code), body.Error.Code
	if kind == 0 {
		kind, code = transport.KindOfStatus(resp.StatusCode), strconv.Itoa(resp.StatusCode)
	}
	advice := ""
	switch {
	case kind == transport.KindAuth:
		advice = ": check the API key and what it may use"
	case resp.StatusCode == http.StatusNotFound:
		advice = ": check the path of the base URL and the model or deployment"
	case resp.StatusCode >= 300 && resp.StatusCode < 400:
		advice = ": redirects are not followed: put the final address in the base URL"
	}
	err := r.Fault(provider, "dial", kind, code, fmt.Errorf("the handshake was answered with HTTP %d %s%s", resp.StatusCode,
		r.Text(body.Error.Message), advice))
	err.RetryAfter = max(bounded.RetryAfter(resp.Header, time.Now()), transport.WaitIn(body.Error.Message))
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
