package openai

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
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
	// DefaultModel is used if neither Provider nor Setup names a model.
	DefaultModel = "gpt-realtime-2.1"
	// DefaultTranscriptionModel transcribes the user's speech.
	DefaultTranscriptionModel = "gpt-realtime-whisper"
	// NoTranscription as transcription_model turns transcription off.
	NoTranscription = "none"
)

const (
	defaultName  = "openai"
	pingInterval = 20 * time.Second
	// pongsMissed is after how many intervals a connection ends that has received nothing while it was being read.
	pongsMissed = 3
)

// options are a provider's options with the wire's own settings decoded.
type options struct {
	transport.Provider
	dialect            string        // for a server that BaseURL does not name: empty or Local
	loadTime           time.Duration // for Local: how long the server may load its model
	transcriptionModel string        // NoTranscription turns it off
	reasoning          string        // the effort before the model speaks, left out for a Setup with a model that does not reason
}

// endpoint is the service's address. It never changes.
type endpoint struct {
	url     url.URL // .../realtime without the model
	dialect *dialect
	version string // api-version; empty if the address has no version
}

func (o *options) setDefaults(ep endpoint) error {
	o.Name = cmp.Or(o.Name, defaultName)
	if ep.dialect.local {
		// Its own model transcribes.
		o.transcriptionModel, o.loadTime = cmp.Or(o.transcriptionModel, NoTranscription), cmp.Or(o.loadTime, DefaultLoadTime)
	}
	o.transcriptionModel = cmp.Or(o.transcriptionModel, DefaultTranscriptionModel)
	o.Model = cmp.Or(o.Model, ep.dialect.ownModel)
	if err := errors.Join(o.checkReasoning(ep.dialect), o.checkLocal()); err != nil {
		return err
	}
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	if o.APIKey == "" && o.BaseURL == "" {
		return fmt.Errorf("openai: Options.APIKey: %w: set the provider's key (it begins with sk-), or BaseURL to a "+
			"server that needs none", ErrNoKey)
	}
	return CheckKey(defaultName, o.APIKey)
}

// efforts are the values of session.reasoning.effort.
var efforts = []string{"minimal", "low", "medium", "high", "xhigh"}

func (o *options) checkReasoning(d *dialect) error {
	switch {
	case o.reasoning == "":
		return nil
	case !slices.Contains(efforts, o.reasoning):
		return fmt.Errorf("openai: Options.Reasoning %q: %w: use one of %s", clip(o.reasoning, 40), ErrBadOption,
			strings.Join(efforts, ", "))
	case !d.local && !d.rowOf(o.Model).reasons:
		return fmt.Errorf("openai: Options.Reasoning: %w: the model %s does not reason: leave it out, or use a model that does, such as %s",
			ErrBadOption, clip(o.Model, 80), DefaultModel)
	}
	return nil
}

func (o *options) checkLocal() error {
	switch {
	case o.dialect != "" && o.dialect != Local:
		return fmt.Errorf("openai: Options.Dialect %q: %w: use %s, or leave it out", clip(o.dialect, 40), ErrBadOption, Local)
	case o.dialect == Local && o.BaseURL == "":
		return fmt.Errorf("openai: Options.Dialect %s: %w: it needs the server's address: set BaseURL, such as "+
			"http://127.0.0.1:8080/v1", Local, ErrBadOption)
	case o.dialect == "" && o.loadTime != 0:
		return fmt.Errorf("openai: Options.LoadTime: %w: only the dialect %s has it", ErrBadOption, Local)
	case o.loadTime > MaxLoadTime:
		return fmt.Errorf("openai: Options.LoadTime: %w: it must be from 1s to %s", ErrBadOption, MaxLoadTime)
	case o.dialect == Local && o.reasoning != "":
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

// Wire is this package's row in the table of wires. Its settings: transcription_model transcribes the user's speech, with
// a default, and NoTranscription for none; reasoning is the effort before the model speaks, for models that reason;
// dialect is Local for a server on one's own machine, which may take load_time to load its model.
func Wire() transport.Wire {
	return transport.Wire{
		Name:         defaultName,
		KeyVariables: []string{"OPENAI_API_KEY"},
		Settings:     []string{"transcription_model", "reasoning", "dialect", "load_time"},
		Simulated:    true,
		New:          func(p transport.Provider) (transport.Transport, error) { return New(p) },
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
