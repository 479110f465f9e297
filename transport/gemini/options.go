package gemini

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"voicegw/internal/bounded"
)

// The hosts and defaults of the public services.
const (
	developerURL     = "https://generativelanguage.googleapis.com"
	developerVersion = "v1beta"
	tokenVersion     = "v1alpha" // the only version that knows ephemeral tokens
	vertexVersion    = "v1beta1"

	// The model that Google recommends (ai.google.dev/gemini-api/docs/models and
	// cloud.google.com's list, read 2026-11-23).
	defaultModel = "gemini-3.8-live"

	tokenPrefix = "auth_tokens/"
)

// Options configure how to reach the provider. With only APIKey set they mean the
// Developer API.
type Options struct {
	// Name is returned by Transport.Name and appears in errors. Empty means "gemini".
	Name string

	// APIKey is a Developer API key, an ephemeral token ("auth_tokens/…"), or for
	// Vertex an OAuth access token. Required unless Token is set.
	APIKey string

	// Token, if set, is called at each Connect for the credential and replaces APIKey:
	// for access tokens, which are valid for an hour. It may be called concurrently
	// and must honour ctx.
	Token func(ctx context.Context) (string, error)

	// BaseURL is http(s)://host or ws(s)://host, or the full URL of the service's
	// method. Empty means the public service.
	BaseURL string

	// APIVersion is a part of the method's path. Empty means v1beta, for ephemeral
	// tokens v1alpha, for Vertex v1beta1.
	APIVersion string

	// Vertex means that the service is Vertex AI. It is set automatically for a
	// BaseURL that contains aiplatform.
	Vertex bool
	// Project and Location complete the name of a Vertex model if Model is not a full name,
	// and determine the host if BaseURL is empty.
	Project  string
	Location string

	// Model is used for a Setup that names none, with or without the prefix "models/".
	// Empty means gemini-3.8-live.
	Model string
	// Voice is used for a Setup that names none. Empty means the provider's default.
	Voice string

	// Thinking is how much the model may think before it speaks: minimal, low, medium or
	// high, or a number of tokens, as its row allows. Empty means the provider's default.
	// New refuses a value that Model does not accept, Connect one that another model does not.
	Thinking string

	// NoInterrupt prevents transport.Interrupt from being sent, even to models that it
	// stops: the caller then only holds back the rest of an answer.
	NoInterrupt bool

	// HTTPClient makes the handshake. Its CheckRedirect is not used, because redirects
	// are refused: they would carry the key elsewhere. Nil means a client that honours the
	// usual proxy variables.
	HTTPClient *http.Client

	// Logger receives what an operator should know. Nil disables logging.
	Logger *slog.Logger
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

// New checks the options. Its errors wrap [ErrOptions], name the option and describe how
// to correct it; they never show a credential.
func New(opts Options) (*Transport, error) {
	opts.Name = cmp.Or(opts.Name, defaultName)
	opts.APIKey = strings.TrimSpace(opts.APIKey)
	if opts.APIKey == "" && opts.Token == nil {
		return nil, fmt.Errorf("%w: APIKey is empty: set a key from aistudio.google.com, or for Vertex an access token or Token", ErrOptions)
	}
	if strings.ContainsAny(opts.APIKey, "\r\n \t") {
		return nil, fmt.Errorf("%w: APIKey contains white space: copy the key alone", ErrOptions)
	}
	endpoint, err := opts.endpoint()
	if err != nil {
		return nil, err
	}
	if opts.Vertex && !strings.HasPrefix(opts.modelOr(""), "projects/") && (opts.Project == "" || opts.Location == "") {
		return nil, fmt.Errorf("%w: Project and Location are needed for Vertex unless Model is a full name (projects/…/locations/…/publishers/google/models/…)", ErrOptions)
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

// base returns BaseURL or the public service's URL.
func (o *Options) base() (string, error) {
	switch {
	case o.BaseURL != "":
		return o.BaseURL, nil
	case !o.Vertex:
		return developerURL, nil
	case o.Location == "":
		return "", fmt.Errorf("%w: Location is empty: Vertex needs one (us-central1) or a BaseURL", ErrOptions)
	case o.Location == "global":
		return "https://aiplatform.googleapis.com", nil
	default:
		return "https://" + o.Location + "-aiplatform.googleapis.com", nil
	}
}

// endpoint returns the URL of the service's method and decides whether it is Vertex.
func (o *Options) endpoint() (string, error) {
	base, err := o.base()
	if err != nil {
		return "", err
	}
	u, err := url.Parse(base)
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
		return "", fmt.Errorf("%w: BaseURL contains a user, query or fragment: leave only scheme and host; the key belongs in APIKey", ErrOptions)
	}
	o.Vertex = o.Vertex || strings.Contains(u.Host, "aiplatform") || strings.Contains(u.Path, "aiplatform")
	if strings.HasPrefix(u.Path, "/ws/google.") && strings.Contains(u.Path, "BidiGenerateContent") {
		return u.String(), nil
	}
	if u.Path != "" && u.Path != "/" {
		return "", fmt.Errorf("%w: BaseURL has the path %q: leave it out, it is added automatically", ErrOptions, u.Path)
	}
	u.Path, err = o.path()
	return u.String(), err
}

// path returns the path of the service's method
// (ai.google.dev/api/live; cloud.google.com Live API reference; read 2026-11-20).
func (o *Options) path() (string, error) {
	version, token := o.APIVersion, strings.HasPrefix(o.APIKey, tokenPrefix)
	if strings.ContainsAny(version, "/?#") {
		return "", fmt.Errorf("%w: APIVersion is %q: write it as v1beta", ErrOptions, version)
	}
	switch {
	case o.Vertex:
		version = cmp.Or(version, vertexVersion)
		return "/ws/google.cloud.aiplatform." + version + ".LlmBidiService/BidiGenerateContent", nil
	case token && version != "" && version != tokenVersion:
		return "", fmt.Errorf("%w: APIVersion is %q, but APIKey is an ephemeral token: leave APIVersion empty or set it to %s", ErrOptions, version, tokenVersion)
	case token:
		return "/ws/google.ai.generativelanguage." + tokenVersion + ".GenerativeService.BidiGenerateContentConstrained", nil
	case version == "":
		version = developerVersion
	}
	return "/ws/google.ai.generativelanguage." + version + ".GenerativeService.BidiGenerateContent", nil
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

// resource returns the model's name in the form that setup expects.
func (o *Options) resource(model string) string {
	if o.Vertex {
		if strings.HasPrefix(model, "projects/") {
			return model
		}
		return "projects/" + o.Project + "/locations/" + o.Location + "/publishers/google/models/" + strings.TrimPrefix(model, "models/")
	}
	if strings.HasPrefix(model, "models/") {
		return model
	}
	return "models/" + model
}

// header returns the header with the credential. The key is never part of a URL, because
// URLs end up in logs.
func (o *Options) header(key string) http.Header {
	h := http.Header{}
	switch {
	case o.Vertex:
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
