package openai

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"voicegw/transport"
)

// The defaults of empty options.
const (
	// DefaultBaseURL is the URL of the public service.
	DefaultBaseURL = "https://api.openai.com/v1"
	// DefaultModel is used if neither Options nor Setup names a model.
	DefaultModel = "gpt-realtime-2.1"
	// DefaultTranscriptionModel transcribes the user's speech.
	DefaultTranscriptionModel = "gpt-realtime-whisper"
	// NoTranscription as Options.TranscriptionModel turns transcription off.
	NoTranscription = "none"
)

const (
	defaultName  = "openai"
	pingInterval = 20 * time.Second
	// pongsMissed is after how many intervals a connection ends that has received nothing while it was being read.
	pongsMissed = 3
)

// Options configure the connection to a provider. The public service needs only APIKey.
type Options struct {
	// Name is returned by Transport.Name. Empty means "openai".
	Name string

	// APIKey is sent as `Authorization: Bearer`, or as `api-key` to Azure. It may be empty for a private server.
	APIKey string

	// BaseURL has the SDK's form, http(s)://host/v1; ws(s) is accepted too. Empty means DefaultBaseURL. Host or path
	// select the service; see dialects. A known host needs no path; Azure accepts the parameter api-version.
	BaseURL string

	// Dialect is empty, for what BaseURL says, or Local, which needs a BaseURL.
	Dialect string
	// LoadTime is how long a local server may load its model. Zero means DefaultLoadTime; only for Local.
	LoadTime time.Duration

	// Model and Voice are for a Setup without them. On Azure Model is the deployment and has no default.
	Model string
	Voice string

	// TranscriptionModel transcribes the user's speech. Empty is the default; NoTranscription turns it off.
	TranscriptionModel string

	// Reasoning is the effort before the model speaks: minimal, low, medium, high or xhigh; empty is the provider's
	// default. New refuses it for a Model that does not reason; for a Setup with such a model it is left out.
	Reasoning string

	// NoInterrupt drops transport.Interrupt, and sends no cancel before typed turns, for servers without response.cancel.
	NoInterrupt bool

	// Simulated means that BaseURL is the simulator's.
	Simulated bool

	// HTTPClient makes the handshake, without redirects, which would send the key elsewhere. May be nil.
	HTTPClient *http.Client

	// Logger gets warnings about unknown events, dropped results and plain-text URLs, and absorbed errors. May be nil.
	Logger *slog.Logger
}

// endpoint is the service's address. It never changes.
type endpoint struct {
	url     url.URL // .../realtime without the model
	dialect *dialect
	version string // api-version; empty if the address has no version
}

func (o Options) withDefaults(ep endpoint) (Options, error) {
	o.Name = cmp.Or(o.Name, defaultName)
	if ep.dialect.local {
		// Its own model transcribes.
		o.TranscriptionModel, o.LoadTime = cmp.Or(o.TranscriptionModel, NoTranscription), cmp.Or(o.LoadTime, DefaultLoadTime)
	}
	o.TranscriptionModel = cmp.Or(o.TranscriptionModel, DefaultTranscriptionModel)
	o.Model = cmp.Or(o.Model, ep.dialect.ownModel)
	if err := errors.Join(o.checkReasoning(ep.dialect), o.checkLocal()); err != nil {
		return o, err
	}
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	if o.APIKey == "" && o.BaseURL == "" {
		return o, fmt.Errorf("openai: Options.APIKey: %w: set the provider's key (it begins with sk-), or BaseURL to a "+
			"server that needs none", ErrNoKey)
	}
	return o, CheckKey(defaultName, o.APIKey)
}

// efforts are the values of session.reasoning.effort.
var efforts = []string{"minimal", "low", "medium", "high", "xhigh"}

func (o Options) checkReasoning(d *dialect) error {
	switch {
	case o.Reasoning == "":
		return nil
	case !slices.Contains(efforts, o.Reasoning):
		return fmt.Errorf("openai: Options.Reasoning %q: %w: use one of %s", clip(o.Reasoning, 40), ErrBadOption,
			strings.Join(efforts, ", "))
	case !d.local && !d.rowOf(o.Model).reasons:
		return fmt.Errorf("openai: Options.Reasoning: %w: the model %s does not reason: leave it out, or use a model that does, such as %s",
			ErrBadOption, clip(o.Model, 80), DefaultModel)
	}
	return nil
}

func (o Options) checkLocal() error {
	switch {
	case o.Dialect != "" && o.Dialect != Local:
		return fmt.Errorf("openai: Options.Dialect %q: %w: use %s, or leave it out", clip(o.Dialect, 40), ErrBadOption, Local)
	case o.Dialect == Local && o.BaseURL == "":
		return fmt.Errorf("openai: Options.Dialect %s: %w: it needs the server's address: set BaseURL, such as "+
			"http://127.0.0.1:8080/v1", Local, ErrBadOption)
	case o.Dialect == "" && o.LoadTime != 0:
		return fmt.Errorf("openai: Options.LoadTime: %w: only the dialect %s has it", ErrBadOption, Local)
	case o.LoadTime < 0 || o.LoadTime > MaxLoadTime:
		return fmt.Errorf("openai: Options.LoadTime: %w: it must be from 1s to %s", ErrBadOption, MaxLoadTime)
	case o.Dialect == Local && o.Reasoning != "":
		return fmt.Errorf("openai: Options.Reasoning: %w: the dialect %s has no such setting: leave it out", ErrBadOption, Local)
	}
	return nil
}

// CheckKey checks that a wire's key can be sent in a header. The error does not repeat it.
func CheckKey(wire, key string) error {
	for i := range len(key) {
		if key[i] <= ' ' || key[i] >= 0x7F {
			return fmt.Errorf("%s: Options.APIKey: %w: byte %d of %d is a blank, a line end or not ASCII: was a whole "+
				"line of a file used as its value?",
				wire, ErrBadKey, i+1, len(key))
		}
	}
	return nil
}

// ServiceURL checks a wire's base URL, which has the SDK's form, and returns it with the scheme ws or wss, without a
// query and without a slash at its end, and the value of its parameter api-version, which may be empty.
func ServiceURL(wire, base string) (u *url.URL, version string, err error) {
	fail := func(format string, args ...any) (*url.URL, string, error) {
		return nil, "", fmt.Errorf("%s: Options.BaseURL: %w: %s", wire, ErrBadURL, fmt.Sprintf(format, args...))
	}
	if u, err = url.Parse(strings.TrimSpace(base)); err != nil {
		// The error text of url.Parse repeats the URL, which may contain a credential.
		return fail("it is not a valid URL: write https://host/v1")
	}
	switch u.Scheme {
	case "http", "ws":
		u.Scheme = "ws"
	case "https", "wss":
		u.Scheme = "wss"
	default:
		return fail("scheme %q is not http, https, ws or wss: write https://host/v1", clip(u.Scheme, 20))
	}
	if u.Host == "" {
		return fail("it has no host: write https://host/v1")
	}
	if u.User != nil {
		return fail("it contains a user name or password: put the key in APIKey")
	}
	version = u.Query().Get("api-version")
	if version != "" && len(u.Query()) == 1 {
		u.RawQuery = ""
	}
	if u.RawQuery != "" || u.Fragment != "" {
		return fail("it has a query or a fragment: remove everything after the path (the key belongs in APIKey, the model in Model)")
	}
	u.Path, u.RawPath = strings.TrimRight(u.Path, "/"), ""
	return u, version, nil
}

func parseBaseURL(base, dialect string) (endpoint, error) {
	u, version, err := ServiceURL(defaultName, cmp.Or(base, DefaultBaseURL))
	if err != nil {
		return endpoint{}, err
	}
	ep := endpoint{url: *u}
	path := strings.TrimSuffix(u.Path, "/realtime")
	ep.dialect = dialectOf(dialect, u.Hostname(), path)
	path = cmp.Or(path, ep.dialect.path)
	ep.version = cmp.Or(version, ep.dialect.apiVersion)
	ep.url.Path = path + "/realtime"
	return ep, nil
}

func (ep endpoint) address(model string) string {
	u := ep.url
	query := url.Values{}
	if model != "" { // a local server may have only one
		query.Set(ep.dialect.modelParam, model)
	}
	if ep.version != "" {
		query.Set("api-version", ep.version)
	}
	u.RawQuery = query.Encode()
	return u.String()
}

// Wire is this package's row in the table of wires, with the settings transcription_model, reasoning, dialect and
// load_time.
func Wire() transport.Wire {
	return transport.Wire{
		Name:         defaultName,
		KeyVariables: []string{"OPENAI_API_KEY"},
		Settings:     []string{"transcription_model", "reasoning", "dialect", "load_time"},
		Simulated:    true,
		New: func(p transport.Provider) (transport.Transport, error) {
			load, err := loadTime(p.Settings["load_time"])
			if err != nil {
				return nil, err
			}
			return New(Options{
				Dialect: p.Settings["dialect"], LoadTime: load,
				Name: p.Name, APIKey: p.APIKey, BaseURL: p.BaseURL, Model: p.Model, Voice: p.Voice,
				TranscriptionModel: p.Settings["transcription_model"], Reasoning: p.Settings["reasoning"],
				NoInterrupt: p.NoInterrupt, Simulated: p.Simulated, HTTPClient: p.HTTPClient, Logger: p.Logger,
			})
		},
	}
}

func loadTime(setting string) (time.Duration, error) {
	if setting == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(setting)
	if err != nil || d < time.Second {
		return 0, fmt.Errorf("openai: load_time %q: %w: write a duration from 1s to %s, such as 5m", clip(setting, 40),
			ErrBadOption, MaxLoadTime)
	}
	return d, nil
}

// ServesREST reports whether the base URL's server also has the chat and image APIs. Voice Live has not.
func ServesREST(baseURL string) bool { return !strings.Contains(baseURL, voiceLivePath) }

// voiceLivePath is part of the path of Azure's Voice Live.
const voiceLivePath = "/voice-live"

// The errors of New. The returned error wraps one of them, names the option and describes how to correct it.
var (
	// ErrNoKey: the public service needs a key.
	ErrNoKey = errors.New("no API key")
	// ErrBadKey: the key cannot be sent in a header.
	ErrBadKey = errors.New("API key cannot be sent")
	// ErrBadURL: the base URL cannot be used.
	ErrBadURL = errors.New("base URL cannot be used")
	// ErrBadOption: another option has a value that cannot be used.
	ErrBadOption = errors.New("option cannot be used")
)

// Causes that the adapter finds itself. They are wrapped in a [transport.Error].
var (
	errFormat  = errors.New("the server announces audio that the gateway cannot use")
	errCommand = errors.New("not a command of package transport")
	errEncode  = errors.New("cannot be encoded")
)

// clip shortens s to at most n bytes without splitting a character.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "")
}

// Codes that the adapter acts on by name.
const (
	codeActiveResponse = "conversation_already_has_active_response"
	codeCancelLate     = "response_cancel_not_active"
)

// harmless are the codes of `error` events that came too late or are the sequencer's.
var harmless = map[string]bool{codeCancelLate: true, "input_audio_buffer_commit_empty": true, codeActiveResponse: true}

// noSession are the codes of `error` events after which the provider serves no session with this setup.
var noSession = map[string]bool{"beta_api_shape_disabled": true, "invalid_intent": true, "invalid_model": true, "model_not_found": true}

// kindOfError returns the kind of an `error` event about a client event of purpose op (may be empty). A fatal one ends
// the connection; others are Problems, hidden from the user if they refuse what the user did not ask for.
func kindOfError(e *errorValue, op string) (kind transport.Kind, fatal bool) {
	if harmless[e.Code] {
		return transport.KindIgnore, false
	}
	switch kind = transport.KindOfCode(e.Code); kind {
	case transport.KindAuth, transport.KindQuota, transport.KindExpired:
		return kind, true
	case transport.KindInvalid:
		if noSession[e.Code] {
			return kind, true
		}
	}
	switch op {
	case opTruncate, opCancel, opBuffer, opResult, opAdded, opPast:
		return transport.KindIgnore, false
	}
	if kind != 0 && kind != transport.KindInvalid {
		return kind, false
	}
	if transport.KindOfCode(e.Type) == transport.KindServer {
		return transport.KindServer, false
	}
	return transport.KindRefused, false
}
