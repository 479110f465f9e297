package gemini

import (
	"cmp"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"voicegw/internal/bounded"
	"voicegw/transport"
)

// The hosts and defaults of the public services.
const (
	developerURL = "https://generativelanguage.googleapis.com"

	// The model that Google recommends (ai.google.dev/gemini-api/docs/models and
	// cloud.google.com's list, read 2026-11-23).
	defaultModel = "gemini-3.8-live"

	tokenPrefix = "auth_tokens/"
)

// Options configure how to reach the provider. With only APIKey set they mean the Developer API.
type Options struct {
	// Name is returned by Transport.Name and appears in errors. Empty means "gemini".
	Name string

	// APIKey is a Developer API key, an ephemeral token ("auth_tokens/…"), or for Vertex an OAuth access token.
	APIKey string

	// BaseURL is http(s) or ws(s), a host or the method's full URL; empty for the public service. aiplatform means Vertex.
	BaseURL string

	// Model is for a Setup without one, with or without "models/"; a full name for Vertex. Empty means gemini-3.8-live.
	Model string
	// Voice is used for a Setup that names none. Empty means the provider's default.
	Voice string

	// Thinking is how much the model may think before it speaks: minimal, low, medium or
	// high, or a number of tokens, as its row allows. Empty means the provider's default.
	// New refuses a value that Model does not accept, Connect one that another model does not.
	Thinking string

	// NoInterrupt drops transport.Interrupt, even for models that it stops.
	NoInterrupt bool

	// Simulated means that BaseURL is the simulator's.
	Simulated bool

	// HTTPClient makes the handshake, without redirects, which would carry the key elsewhere. May be nil.
	HTTPClient *http.Client

	// Logger receives what an operator should know. Nil disables logging.
	Logger *slog.Logger

	vertex bool // the service is Vertex AI; endpoint sets it
	google bool // the service is Google's or simulated; endpoint sets it
}

// Transport opens Gemini Live connections. Make one with [New].
type Transport struct {
	// Fixed after New.
	opts   Options
	url    string
	client *http.Client
	log    *slog.Logger

	// frames holds *frame buffers that no connection needs now.
	frames sync.Pool
}

// New checks the options. Its errors wrap [ErrOptions], name the option and its fix, and show no credential.
func New(opts Options) (*Transport, error) {
	opts.Name = cmp.Or(opts.Name, defaultName)
	opts.APIKey = strings.TrimSpace(opts.APIKey)
	if opts.APIKey == "" {
		return nil, fmt.Errorf("%w: APIKey is empty: set a key from aistudio.google.com, or for Vertex an access token", ErrOptions)
	}
	if strings.ContainsAny(opts.APIKey, "\r\n \t") {
		return nil, fmt.Errorf("%w: APIKey contains white space: copy the key alone", ErrOptions)
	}
	endpoint, err := opts.endpoint()
	if err != nil {
		return nil, err
	}
	if opts.vertex && !strings.HasPrefix(opts.modelOr(""), "projects/") {
		return nil, fmt.Errorf("%w: Vertex needs a Model with its full name "+
			"(projects/…/locations/…/publishers/google/models/…)", ErrOptions)
	}
	if r := opts.row(""); opts.Thinking != "" {
		if _, err := r.thinkingConfig(opts.Thinking); err != nil {
			return nil, err
		}
	}
	t := &Transport{opts: opts, url: endpoint, client: noRedirects(opts.HTTPClient), log: opts.Logger}
	t.log = cmp.Or(t.log, slog.New(slog.DiscardHandler))
	t.frames.New = func() any { return &frame{} }
	return t, nil
}

func (o *Options) endpoint() (string, error) {
	u, err := url.Parse(cmp.Or(o.BaseURL, developerURL))
	if err != nil || u.Host == "" || u.Opaque != "" {
		return "", fmt.Errorf("%w: BaseURL is not a URL: write it as https://host", ErrOptions)
	}
	switch u.Scheme {
	case "http", "ws":
		u.Scheme = "ws"
	case "https", "wss":
		u.Scheme = "wss"
	default:
		return "", fmt.Errorf("%w: BaseURL begins with %q: use https, http, wss or ws", ErrOptions, u.Scheme)
	}
	if u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return "", fmt.Errorf("%w: BaseURL contains a user, query or fragment: leave only scheme and host; the key "+
			"belongs in APIKey", ErrOptions)
	}
	o.google = o.Simulated || strings.HasSuffix(u.Hostname(), ".googleapis.com")
	o.vertex = strings.Contains(u.Host, "aiplatform") || strings.Contains(u.Path, "aiplatform")
	if strings.HasPrefix(u.Path, "/ws/google.") && strings.Contains(u.Path, "BidiGenerateContent") {
		return u.String(), nil
	}
	if u.Path != "" && u.Path != "/" {
		return "", fmt.Errorf("%w: BaseURL has the path %q: leave it out, it is added automatically", ErrOptions, u.Path)
	}
	u.Path = o.path()
	return u.String(), nil
}

// The paths are from ai.google.dev/api/live and cloud.google.com's Live API reference, read 2026-11-20.
func (o *Options) path() string {
	switch {
	case o.vertex:
		return "/ws/google.cloud.aiplatform.v1beta1.LlmBidiService/BidiGenerateContent"
	case strings.HasPrefix(o.APIKey, tokenPrefix): // only v1alpha knows ephemeral tokens
		return "/ws/google.ai.generativelanguage.v1alpha.GenerativeService.BidiGenerateContentConstrained"
	default:
		return "/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent"
	}
}

// modelOr returns the model for a name that may be empty.
func (o *Options) modelOr(name string) string {
	switch {
	case name != "":
		return name
	case o.Model != "":
		return o.Model
	default:
		return defaultModel
	}
}

func (o *Options) resource(model string) string {
	if o.vertex || strings.HasPrefix(model, "models/") {
		return model
	}
	return "models/" + model
}

// header returns the header with the credential. The key is never part of a URL, because URLs end up in logs.
func (o *Options) header(key string) http.Header {
	h := http.Header{}
	switch {
	case o.vertex:
		h.Set("Authorization", "Bearer "+key)
	case strings.HasPrefix(key, tokenPrefix):
		h.Set("Authorization", "Token "+key)
	default:
		h.Set("X-Goog-Api-Key", key)
	}
	return h
}

// noRedirects returns a client like c (or the package's own) that follows no redirects.
func noRedirects(c *http.Client) *http.Client {
	own := http.Client{Transport: bounded.NewTransport()}
	if c != nil {
		own = *c
	}
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &own
}

// Wire is this package's row in the table of wires. Its only own setting is thinking: [Options.Thinking].
func Wire() transport.Wire {
	return transport.Wire{
		Name: defaultName,
		// Google's own clients prefer GOOGLE_API_KEY if both are set.
		KeyVariables: []string{"GEMINI_API_KEY", "GOOGLE_API_KEY"},
		Settings:     []string{"thinking"},
		Simulated:    true,
		New: func(p transport.Provider) (transport.Transport, error) {
			return New(Options{
				Name: p.Name, APIKey: p.APIKey, BaseURL: p.BaseURL, Model: p.Model, Voice: p.Voice,
				Thinking: p.Settings["thinking"], NoInterrupt: p.NoInterrupt, Simulated: p.Simulated,
				HTTPClient: p.HTTPClient, Logger: p.Logger,
			})
		},
	}
}
