package gemini

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"

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

// options are a provider's options with the wire's own settings decoded, and the service that BaseURL names.
type options struct {
	transport.Provider
	thinking      string // a level or a number of tokens, as the model's row allows; empty for the provider's default
	translateTo   string // the language of a translation model, in BCP 47
	translateEcho bool   // it repeats speech that is in translateTo already
	vertex        bool   // the service is Vertex AI; endpoint sets it
	google        bool   // the service is Google's or simulated; endpoint sets it
}

// Transport opens Gemini Live connections. Make one with [New].
type Transport struct {
	// Fixed after New.
	opts   options
	url    string
	client *http.Client
	log    *slog.Logger

	// frames holds *frame buffers that no connection needs now.
	frames sync.Pool
}

// New checks the options; see [Wire]. APIKey is a Developer API key, an ephemeral token ("auth_tokens/…"), or for Vertex
// an OAuth access token. BaseURL is http(s) or ws(s), a host or the method's full URL; aiplatform means Vertex, which
// needs the full name of Model. Its errors wrap [ErrOptions], name the option and its fix, and show no credential.
func New(p transport.Provider) (*Transport, error) {
	echo := p.Settings["translate_echo"]
	if echo != "" && echo != "true" && echo != "false" {
		return nil, fmt.Errorf("%w: translate_echo is %q: write true or false", ErrOptions, echo)
	}
	opts := options{Provider: p, thinking: p.Settings["thinking"], translateTo: p.Settings["translate_to"], translateEcho: echo == "true"}
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
	if r := opts.row(""); opts.thinking != "" {
		if _, err := r.thinkingConfig(opts.thinking); err != nil {
			return nil, err
		}
	}
	if err := opts.checkTranslation(); err != nil {
		return nil, err
	}
	t := &Transport{opts: opts, url: endpoint, client: noRedirects(opts.HTTPClient), log: opts.Logger}
	t.log = cmp.Or(t.log, slog.New(slog.DiscardHandler))
	t.frames.New = func() any { return &frame{} }
	return t, nil
}

var languageTag = regexp.MustCompile(`^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*$`)

func (o *options) checkTranslation() error {
	switch translates := o.row("").translates; {
	case translates && o.translateTo == "":
		return fmt.Errorf("%w: TranslateTo is missing: set the language that %s translates to, such as es", ErrOptions, o.modelOr(""))
	case !translates && (o.translateTo != "" || o.translateEcho):
		return fmt.Errorf("%w: TranslateTo is set, but %s does not translate: leave it out, or use gemini-3.5-live-translate-preview",
			ErrOptions, o.modelOr(""))
	case o.translateTo != "" && !languageTag.MatchString(o.translateTo):
		return fmt.Errorf("%w: TranslateTo is %q, which is not a language tag: write it as es or pt-BR", ErrOptions, o.translateTo)
	}
	return nil
}

func (o *options) endpoint() (string, error) {
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
func (o *options) path() string {
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
func (o *options) modelOr(name string) string {
	switch {
	case name != "":
		return name
	case o.Model != "":
		return o.Model
	default:
		return defaultModel
	}
}

func (o *options) resource(model string) string {
	if o.vertex || strings.HasPrefix(model, "models/") {
		return model
	}
	return "models/" + model
}

// header returns the header with the credential. The key is never part of a URL, because URLs end up in logs.
func (o *options) header() http.Header {
	h := http.Header{}
	switch {
	case o.vertex:
		h.Set("Authorization", "Bearer "+o.APIKey)
	case strings.HasPrefix(o.APIKey, tokenPrefix):
		h.Set("Authorization", "Token "+o.APIKey)
	default:
		h.Set("X-Goog-Api-Key", o.APIKey)
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

// Wire is this package's row in the table of wires. Its settings: thinking is minimal, low, medium, high or a number of
// tokens, as the model allows; translate_to is the language of a translation model, in BCP 47, and needed for it;
// translate_echo (true) makes such a model repeat speech that is in that language already, instead of being silent.
func Wire() transport.Wire {
	return transport.Wire{
		Name: defaultName,
		// Google's own clients prefer GOOGLE_API_KEY if both are set.
		KeyVariables: []string{"GEMINI_API_KEY", "GOOGLE_API_KEY"},
		Settings:     []string{"thinking", "translate_to", "translate_echo"},
		Simulated:    true,
		New:          func(p transport.Provider) (transport.Transport, error) { return New(p) },
	}
}

// defaultName is the name of a provider without one, and of the wire.
const defaultName = "gemini"

// ErrOptions is wrapped by every error of [New].
var ErrOptions = errors.New("gemini: invalid options")

// Causes for which the provider is responsible.
var (
	errSetupEnded = errors.New("the connection ended before setupComplete")
	errTooMany    = errors.New("a message from the provider contains too many events")
	errSetupLate  = errors.New("the provider sent too many messages before setupComplete")
	errAudio      = errors.New("the audio is not valid base64")
)

// sessionKinds are the close codes that mean something else here, once the setup is accepted, than in
// [transport.KindOfClose].
//
// Seen with 1007: "Request contains an invalid argument.", a schema that breaks the rules, an unknown field, later an
// exhausted context. With 1008: "models/X is not found", "session not found" (a bad handle), later "The operation was
// aborted." and, at random after tool answers, "Operation is not implemented, or supported, or enabled.". With 1011:
// "Internal error encountered.", "Deadline expired before operation could complete.".
var sessionKinds = map[websocket.StatusCode]transport.Kind{websocket.StatusProtocolError: transport.KindRetry}

// reasonKinds are the beginnings of close reasons whose code is that of other failures too (seen in
// reports up to 2026-11-20). The service has no error code in its close frames.
var reasonKinds = []struct {
	reason string
	kind   transport.Kind
}{
	{"You exceeded your current quota", transport.KindQuota},  // 1011
	{"Resource has been exhausted", transport.KindRateLimit},  // 1011
	{"API key not valid", transport.KindAuth},                 // 1007
	{"API key expired", transport.KindAuth},                   // 1007
	{"API Key not found", transport.KindAuth},                 // 1007
	{"User location is not supported", transport.KindInvalid}, // 1007
}

// expiryCodes are the close codes of a connection that ends after its goAway.
var expiryCodes = map[websocket.StatusCode]bool{1000: true, 1001: true, 1006: true, 1008: true, 1011: true}

// closeKind classifies a close frame. 1006 means an end without a close frame.
func closeKind(code websocket.StatusCode, reason string, ready, away bool) transport.Kind {
	for _, row := range reasonKinds {
		if strings.HasPrefix(reason, row.reason) {
			return row.kind
		}
	}
	if away && expiryCodes[code] {
		return transport.KindExpired
	}
	if kind, ok := sessionKinds[code]; ok && ready {
		return kind
	}
	return transport.KindOfClose(int(code), ready)
}

// scrub removes the credential.
func (t *Transport) scrub(text string) string {
	if t.opts.APIKey == "" {
		return text
	}
	return strings.ReplaceAll(text, t.opts.APIKey, "[key]")
}

// fail makes the package's error. It removes the credential from the cause, wherever it came from.
func (t *Transport) fail(op string, kind transport.Kind, code string, cause error) *transport.Error {
	if cause != nil {
		if text := t.scrub(cause.Error()); text != cause.Error() {
			cause = errors.New(text)
		}
	}
	return &transport.Error{Provider: t.opts.Name, Op: op, Kind: kind, Code: code, Err: cause}
}

// statusCode returns the number unless status is a google.rpc.Code name, which is safe for logs and metrics.
func statusCode(status string, number int) string {
	const upper = "ABCDEFGHIJKLMNOPQRSTUVWXYZ_"
	if status == "" || len(status) > 32 || strings.Trim(status, upper) != "" {
		return strconv.Itoa(number)
	}
	return status
}

// dialError classifies a failed handshake. resp is nil if there was no answer.
func (t *Transport) dialError(ctx context.Context, resp *http.Response, err error) *transport.Error {
	switch {
	case ctx.Err() != nil:
		return t.fail("dial", transport.KindOfContext(ctx.Err()),
			"no_handshake", fmt.Errorf("the provider did not answer the handshake in time: %w: %w", context.Cause(ctx), err))
	case resp != nil && resp.StatusCode != http.StatusSwitchingProtocols:
		out := t.fail("dial", transport.KindOfStatus(resp.StatusCode), strconv.Itoa(resp.StatusCode), err)
		out.RetryAfter = bounded.RetryAfter(resp.Header, time.Now())
		return out
	default:
		return t.fail("dial", transport.KindRetry, "", err)
	}
}
