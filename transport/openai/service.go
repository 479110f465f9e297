package openai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"voicegw/internal/bounded"
	"voicegw/internal/ws"
	"voicegw/transport"
)

// ReadLimit bounds one frame from the provider, in bytes.
const ReadLimit = 4 << 20

// Service is a provider's API behind a WebSocket; this package and Live reach theirs in the same way. It never changes,
// and may be used concurrently.
type Service struct {
	Redactor // of the API key

	name   string // the provider's, for errors
	client *http.Client
	log    *slog.Logger
}

// NewService returns the service at an address. client may be nil. Redirects are not followed: they would send the key
// elsewhere.
func NewService(name, key string, address *url.URL, client *http.Client, log *slog.Logger) Service {
	s := Service{Redactor: Redactor(key), name: name, client: &http.Client{}, log: log}
	if client != nil {
		*s.client = *client
	}
	s.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	if key != "" && plainText(address) {
		log.Warn("provider_not_encrypted", "provider", name, "host", address.Host,
			"fix", "use https in the base URL: the API key crosses the network readable")
	}
	return s
}

// plainText reports whether a key would cross a network unencrypted to this address.
func plainText(u *url.URL) bool {
	if u.Scheme != "ws" || u.Hostname() == "localhost" {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return ip == nil || !ip.IsLoopback()
}

// header returns the header of a handshake. keyHeader carries the key; empty means that it is the bearer token.
// OpenAI-Beta is never sent: the service would close with 4000 beta_api_shape_disabled.
func (s *Service) header(keyHeader string) http.Header {
	h := http.Header{"User-Agent": {"voicegw"}}
	switch {
	case s.Redactor == "":
	case keyHeader != "":
		h.Set(keyHeader, string(s.Redactor))
	default:
		h.Set("Authorization", "Bearer "+string(s.Redactor))
	}
	return h
}

// Dial opens a connection, whose frames have at most limit bytes. keyHeader carries the key; empty means that it is the
// bearer token.
func (s *Service) Dial(ctx context.Context, address, keyHeader string, limit int64) (*ws.Conn, *transport.Error) {
	socket, resp, err := ws.Dial(ctx, address, &websocket.DialOptions{
		HTTPClient: s.client, HTTPHeader: s.header(keyHeader), CompressionMode: websocket.CompressionDisabled,
	}, ws.Options{Limit: limit, Budget: ws.Budget{PerSecond: transport.FramesPerSecond, Burst: transport.FrameBurst}})
	switch {
	case err == nil:
		return socket, nil
	case resp != nil && resp.StatusCode != http.StatusSwitchingProtocols:
		return nil, s.refusedHandshake(resp)
	case ctx.Err() != nil:
		return nil, s.Fault("dial", transport.KindOfContext(ctx.Err()), "no_handshake",
			fmt.Errorf("the provider did not answer the handshake in time: %w: %w", ctx.Err(), err))
	}
	return nil, s.Fault("dial", transport.KindRetry, "", err)
}

// refusedHandshake returns the error for an answer other than 101 to a WebSocket handshake. It reads the body.
func (s *Service) refusedHandshake(resp *http.Response) *transport.Error {
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
		advice = ": check the API key and its permissions"
	case resp.StatusCode == http.StatusNotFound:
		advice = ": check the path of the base URL and the model or deployment"
	case resp.StatusCode >= 300 && resp.StatusCode < 400:
		advice = ": redirects are not followed: put the final address in the base URL"
	}
	err := s.Fault("dial", kind, code, fmt.Errorf("the handshake was answered with HTTP %d %s%s", resp.StatusCode,
		s.Text(body.Error.Message), advice))
	err.RetryAfter = max(bounded.RetryAfter(resp.Header, time.Now()), transport.WaitIn(body.Error.Message))
	return err
}

// Fault returns an error of a connection, without the key.
func (s *Service) Fault(op string, kind transport.Kind, code string, err error) *transport.Error {
	return &transport.Error{Provider: s.name, Op: op, Kind: kind, Code: s.Text(code), Err: s.Err(err)}
}

// Reported returns an error that the provider reported. name is its type, param may be empty.
func (s *Service) Reported(op string, kind transport.Kind, name, code, message, param string) *transport.Error {
	text := name + ": " + message
	if param != "" {
		text += " (" + param + ")"
	}
	err := s.Fault(op, kind, code, errors.New(s.Text(text)))
	err.RetryAfter = transport.WaitIn(message)
	return err
}

// EndOf classifies a failed read, and returns its text for the log. ready means that the provider had accepted the setup.
func EndOf(err error, ready bool) (kind transport.Kind, code string, cause error) {
	kind, code = transport.KindRetry, strconv.Itoa(int(websocket.StatusAbnormalClosure))
	var closed websocket.CloseError
	switch {
	case errors.As(err, &closed):
		kind, code = closeKind(closed.Code, closed.Reason, ready)
	case errors.Is(err, websocket.ErrMessageTooBig):
		code, err = "frame_too_big", errors.New("the provider sent a frame larger than the read limit")
	case errors.Is(err, ws.ErrFlood):
		code = "flood"
	}
	return kind, code, err
}

// closeKinds are the close codes that mean something else here than in [transport.KindOfClose].
var closeKinds = map[websocket.StatusCode]transport.Kind{
	// Going away: the 60 minutes are over, or the server is leaving. A new connection works.
	websocket.StatusGoingAway: transport.KindExpired,
	3000:                      transport.KindAuth,    // invalid_request_error.invalid_api_key
	4000:                      transport.KindInvalid, // invalid_request_error.<code>
}

// closeKind returns the kind and the code of a close frame. A reason of the form `<error.type>.<error.code>` takes
// precedence over the number.
func closeKind(code websocket.StatusCode, reason string, ready bool) (transport.Kind, string) {
	if at := strings.LastIndexByte(reason, '.'); at >= 0 && !strings.Contains(reason, " ") {
		if kind := transport.KindOfCode(reason[at+1:]); kind != 0 {
			return kind, reason[at+1:]
		}
	}
	if kind, ok := closeKinds[code]; ok {
		return kind, strconv.Itoa(int(code))
	}
	return transport.KindOfClose(int(code), ready), strconv.Itoa(int(code))
}

// maxEvents bounds the events of one frame, since they are handled all at once.
const maxEvents = 256

// TooManyEvents is the error for a frame with more events than allowed; nil if there are fewer.
func (s *Service) TooManyEvents(events int) *transport.Error {
	if events <= maxEvents {
		return nil
	}
	return s.Fault("recv", transport.KindRetry, "too_many_events", errors.New("a frame from the provider contains too many events"))
}

// maxErrorText bounds the kept part of a provider's message, in bytes.
const maxErrorText = 300

// Redactor removes a credential from the text of errors; an empty one removes nothing.
type Redactor string

// Text returns s without the credential and at most 300 bytes long.
func (r Redactor) Text(s string) string {
	if r != "" {
		s = strings.ReplaceAll(s, string(r), "[redacted]")
	}
	return clip(s, maxErrorText)
}

// Err returns an error without the credential: err itself if its text does not contain it, otherwise a plain error,
// because unwrapping would reveal the credential again.
func (r Redactor) Err(err error) error {
	if err == nil || r == "" || !strings.Contains(err.Error(), string(r)) {
		return err
	}
	return errors.New(r.Text(err.Error()))
}

// Unknowns counts the events of unknown types, and logs each type once. Only the goroutine that reads may call Saw.
type Unknowns struct {
	atomic.Int64
	seen map[string]bool
}

const maxUnknownLogged = 32

// Saw counts an event.
func (u *Unknowns) Saw(s *Service, kind string) {
	u.Add(1)
	if u.seen[kind] || len(u.seen) >= maxUnknownLogged {
		return
	}
	if u.seen == nil {
		u.seen = make(map[string]bool)
	}
	u.seen[kind] = true
	s.log.Warn("event_unknown", "provider", s.name, "type", clip(s.Text(kind), 80))
}
