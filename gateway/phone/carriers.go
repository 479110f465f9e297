package phone

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"voicegw/internal/auth"
)

// carrier is a carrier's form of the webhook, the upgrade and the REST interface.
type carrier interface {
	// incoming verifies a webhook and returns its call.
	incoming(r *http.Request, body []byte) (call, error)
	// upgrade verifies the upgrade to a media stream.
	upgrade(r *http.Request) error
	// answer returns the instructions for a call, with their content type: to open a stream with parameters. Without
	// parameters, the call is not taken.
	answer(set *Settings, c call, parameters map[string]string) (form, text string)
	// connect returns the instructions to connect a call with a number.
	connect(number string) string
	hangUp(ctx context.Context, c call) (*http.Request, error)
	// follow gives a running call other instructions, which end its stream.
	follow(ctx context.Context, c call, instructions string) (*http.Request, error)
	// dial begins a call; the carrier asks at webhook what to do with it.
	dial(ctx context.Context, from, to, webhook string) (*http.Request, error)
}

// Account is an account at a carrier.
type Account struct {
	ID          string          // the account's; at Vonage, the application's
	Secret      string          // Twilio's auth token, Telnyx's API key, Vonage's signature secret
	PublicKey   string          // at Telnyx: verifies its webhooks, Ed25519 in base64
	Application string          // at Telnyx: the id of the TeXML application
	PrivateKey  *rsa.PrivateKey // at Vonage: signs requests to it
	API         string          // the address of its REST interface
}

// line is the gateway's account at a carrier, and its own public address.
type line struct {
	Account
	name, public string
}

// socket is the public address for WebSockets, and stream that of media streams.
func (l line) socket() string { return strings.Replace(l.public, "http", "ws", 1) }
func (l line) stream() string { return l.socket() + StreamPath(l.name) }

func carrierOf(name string, set *Settings) carrier {
	l := line{set.Accounts[name], name, set.PublicURL}
	if name == Vonage {
		return vonage{l}
	}
	return texml{l}
}

var errSignature = errors.New("its signature is wrong; check the secret and phone.public_url")

// signedFor is how old a signature with a time may be.
const signedFor = 5 * time.Minute

// texml is Twilio (https://www.twilio.com/docs/voice/twiml/stream and https://www.twilio.com/docs/voice/api/call-resource), and
// Telnyx, whose TeXML is TwiML with other signatures and REST addresses
// (https://developers.telnyx.com/docs/voice/programmable-voice/texml-verbs/stream and
// https://developers.telnyx.com/docs/development/api-fundamentals/webhooks), read 2026-11-30.
type texml struct{ line }

func (t texml) telnyx() bool { return t.name == Telnyx }

func (t texml) incoming(r *http.Request, body []byte) (call, error) {
	form, err := url.ParseQuery(string(body))
	if t.telnyx() {
		if wrong := t.stamped(r, body); wrong != nil {
			return call{}, wrong
		}
	}
	switch {
	case err != nil:
		return call{}, fmt.Errorf("its form cannot be read: %w", err)
	case t.telnyx():
	case !t.signed(r, t.public, form):
		return call{}, errSignature
	case form.Get("AccountSid") != t.ID:
		return call{}, errors.New("it belongs to another account; see phone.twilio.account_sid")
	}
	return callOf(t.name, form)
}

// signed verifies Twilio's signature of a request to the public address; its path and query are signed, too. Twilio may add
// the default port or leave out another one: its own libraries accept both.
func (t texml) signed(r *http.Request, public string, form url.Values) bool {
	other := public + ":443"
	if u, err := url.Parse(public); err == nil && u.Port() != "" {
		other = strings.TrimSuffix(public, ":"+u.Port())
	}
	sign, at := r.Header.Get("X-Twilio-Signature"), r.URL.RequestURI()
	return Signed(sign, t.Secret, public+at, form) || Signed(sign, t.Secret, other+at, form) ||
		form == nil && Signed(sign, t.Secret, public+at+"/", nil) // some edges add a slash to a stream's address
}

// stamped verifies Telnyx's signature of a webhook and its time.
func (t texml) stamped(r *http.Request, body []byte) error {
	key, err := base64.StdEncoding.DecodeString(t.PublicKey)
	sign, wrong := base64.StdEncoding.DecodeString(r.Header.Get("Telnyx-Signature-Ed25519"))
	at := r.Header.Get("Telnyx-Timestamp")
	if err != nil || wrong != nil || len(key) != ed25519.PublicKeySize || !ed25519.Verify(key, append([]byte(at+"|"), body...), sign) {
		return errSignature
	}
	seconds, err := strconv.ParseInt(at, 10, 64)
	if age := time.Since(time.Unix(seconds, 0)); err != nil || age.Abs() > signedFor {
		return errors.New("its signature is older than 5 minutes")
	}
	return nil
}

func callOf(carrier string, form url.Values) (call, error) {
	c := call{carrier: carrier, id: form.Get("CallSid"), account: form.Get("AccountSid"), from: form.Get("From"), to: form.Get("To")}
	if c.id == "" || len(c.id) > MaxName || len(c.from) > MaxName || len(c.to) > MaxName {
		return c, errors.New("it names no call, or one with a name that is too long")
	}
	return c, nil
}

// upgrade verifies Twilio's signature of the address as TwiML gave it. Telnyx does not sign upgrades: only the ticket opens a
// session there.
func (t texml) upgrade(r *http.Request) error {
	switch {
	case t.telnyx() && t.Secret == "":
		return errors.New("this carrier is not configured")
	case !t.telnyx() && !t.signed(r, t.socket(), nil):
		return errSignature
	}
	return nil
}

// A moved call opens its next stream once more after a pause if that is refused, because a balancer may need seconds to
// notice that a gateway drains.
const (
	moveTries = 4
	movePause = `<Pause length="2"/>`
)

func (t texml) answer(set *Settings, _ call, parameters map[string]string) (form, text string) {
	attributes := ""
	if t.telnyx() {
		attributes = ` bidirectionalMode="rtp" codec="PCMU" bidirectionalCodec="PCMU"`
	}
	var b strings.Builder
	if len(parameters) > 0 {
		fmt.Fprintf(&b, `<Connect><Stream url="%s"%s>`, escaped(t.stream()), attributes)
		for _, name := range slices.Sorted(maps.Keys(parameters)) {
			fmt.Fprintf(&b, `<Parameter name="%s" value="%s"/>`, name, escaped(parameters[name]))
		}
		b.WriteString(`</Stream></Connect>`)
	}
	if stream := b.String(); parameters[sessionParameter] != "" {
		b.WriteString(strings.Repeat(movePause+stream, moveTries-1))
	}
	say(&b, set.Sorry) // after a stream only if no session ran in it, because the gateway hangs up before the stream closes
	return "text/xml; charset=utf-8", response(b.String() + `<Hangup/>`)
}

func response(verbs string) string {
	return `<?xml version="1.0" encoding="UTF-8"?><Response>` + verbs + `</Response>`
}

func say(b *strings.Builder, text string) {
	if text != "" {
		b.WriteString("<Say>" + escaped(text) + "</Say>")
	}
}

func escaped(text string) string {
	var b bytes.Buffer
	_ = xml.EscapeText(&b, []byte(text)) // a Buffer takes everything
	return b.String()
}

func (t texml) post(ctx context.Context, path string, form url.Values) (*http.Request, error) {
	root, end := "/2010-04-01", ".json"
	if t.telnyx() {
		root, end = "/v2/texml", ""
	}
	at := t.API + root + "/Accounts/" + url.PathEscape(t.ID) + "/Calls" + path + end
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, at, strings.NewReader(form.Encode()))
	if err != nil {
		return nil, fmt.Errorf("request to a carrier: %w", err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if t.telnyx() {
		req.Header.Set("Authorization", "Bearer "+t.Secret)
	} else {
		req.SetBasicAuth(t.ID, t.Secret)
	}
	return req, nil
}

func (t texml) hangUp(ctx context.Context, c call) (*http.Request, error) {
	return t.post(ctx, "/"+url.PathEscape(c.id), url.Values{"Status": {"completed"}})
}

func (t texml) connect(number string) string { return response(`<Dial>` + escaped(number) + `</Dial>`) }

func (t texml) follow(ctx context.Context, c call, instructions string) (*http.Request, error) {
	document := map[bool]string{false: "Twiml", true: "Texml"}[t.telnyx()]
	return t.post(ctx, "/"+url.PathEscape(c.id), url.Values{document: {instructions}})
}

func (t texml) dial(ctx context.Context, from, to, webhook string) (*http.Request, error) {
	form := url.Values{"From": {from}, "To": {to}, "Url": {webhook}}
	if t.telnyx() {
		form.Set("ApplicationSid", t.Application)
	} else {
		form.Set("Method", http.MethodPost)
	}
	return t.post(ctx, "", form)
}

// vonage is documented at https://developer.vonage.com/voice/voice-api/webhook-reference and
// https://developer.vonage.com/voice/voice-api/ncco-reference, read 2026-11-30. Its numbers have no +.
type vonage struct{ line }

// signed verifies the JWT of a request; body is nil for an upgrade.
func (v vonage) signed(r *http.Request, body []byte) error {
	token, err := auth.ParseBearer(r.Header.Values("Authorization"))
	if err != nil || v.Secret == "" {
		return errSignature
	}
	claims, err := auth.SharedClaims(token, []byte(v.Secret), signedFor)
	if err != nil {
		return errSignature
	}
	if app, ok := claims["application_id"].(string); ok && app != v.ID {
		return errors.New("it belongs to another application; see phone.vonage.application")
	}
	sum := sha256.Sum256(body)
	if hash, _ := claims["payload_hash"].(string); body != nil && !strings.EqualFold(hash, hex.EncodeToString(sum[:])) {
		return errSignature
	}
	return nil
}

func (v vonage) incoming(r *http.Request, body []byte) (call, error) {
	if err := v.signed(r, body); err != nil {
		return call{}, err
	}
	var in struct{ From, To, UUID string }
	if err := json.Unmarshal(body, &in); err != nil {
		return call{}, fmt.Errorf("its JSON cannot be read (the answer method must be POST): %w", err)
	}
	return callOf(Vonage, url.Values{"CallSid": {in.UUID}, "From": {plus(in.From)}, "To": {plus(in.To)}})
}

func plus(number string) string {
	if number != "" && strings.Trim(number, "0123456789") == "" {
		return "+" + number
	}
	return number
}

func (v vonage) upgrade(r *http.Request) error { return v.signed(r, nil) }

type object map[string]any

func talk(text string) []object {
	if text == "" {
		return nil
	}
	return []object{{"action": "talk", "text": text}}
}

func (v vonage) answer(set *Settings, c call, parameters map[string]string) (form, text string) {
	var actions []object
	if len(parameters) > 0 {
		headers := object{"call": c.id}
		for name, value := range parameters {
			headers[name] = value
		}
		actions = append(actions, object{"action": "connect", "endpoint": []object{{
			"type": "websocket", "uri": v.stream(),
			"content-type": "audio/l16;rate=8000", "headers": headers, "authorization": object{"type": "vonage"},
		}}})
	}
	return "application/json", controls(append(actions, talk(set.Sorry)...))
}

// controls returns actions as Vonage's call control object.
func controls(actions []object) string {
	out, err := json.Marshal(append([]object{}, actions...))
	if err != nil {
		return err.Error() // text always has a JSON form
	}
	return string(out)
}

func (v vonage) connect(number string) string {
	return controls([]object{{"action": "connect", "endpoint": phoneEndpoint(number)}})
}

func (v vonage) send(ctx context.Context, method, path string, body object) (*http.Request, error) {
	data, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("request to a carrier: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, method, v.API+"/v1/calls"+path, bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("request to a carrier: %w", err)
	}
	token, err := auth.SignRS256(map[string]any{"application_id": v.ID}, v.PrivateKey, time.Minute)
	if err != nil {
		return nil, fmt.Errorf("sign a request to Vonage: %w", err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	return req, nil
}

func phoneEndpoint(number string) []object {
	return []object{{"type": "phone", "number": strings.TrimPrefix(number, "+")}}
}

func (v vonage) hangUp(ctx context.Context, c call) (*http.Request, error) {
	return v.send(ctx, http.MethodPut, "/"+url.PathEscape(c.id), object{"action": "hangup"})
}

func (v vonage) follow(ctx context.Context, c call, instructions string) (*http.Request, error) {
	return v.send(ctx, http.MethodPut, "/"+url.PathEscape(c.id), object{"action": "transfer", "destination": object{"type": "ncco",
		"ncco": json.RawMessage(instructions)}})
}

func (v vonage) dial(ctx context.Context, from, to, webhook string) (*http.Request, error) {
	return v.send(ctx, http.MethodPost, "", object{"to": phoneEndpoint(to), "from": phoneEndpoint(from)[0],
		"answer_url": []string{webhook}, "answer_method": http.MethodPost})
}

// requestTime bounds a request to a carrier.
const requestTime = 10 * time.Second

// statusError is a carrier's answer that is not a success.
type statusError struct {
	status int
	text   string
}

func (e *statusError) Error() string {
	return fmt.Sprintf("the carrier answered %d: %.300s", e.status, e.text)
}

// do makes a request and returns the carrier's answer.
func (s *Server) do(req *http.Request) (answer []byte, err error) {
	resp, err := s.client.Do(req)
	if err != nil {
		var at *url.Error
		if errors.As(err, &at) {
			err = at.Err // without the address, which names the account
		}
		return nil, fmt.Errorf("ask the carrier: %w", err)
	}
	defer func() { _ = resp.Body.Close() }() // the body has been read, or has failed
	body, err := io.ReadAll(resp.Body)
	switch {
	case err != nil:
		return nil, fmt.Errorf("read the carrier's answer: %w", err)
	case resp.StatusCode/100 != 2:
		return nil, &statusError{resp.StatusCode, string(body)}
	}
	return body, nil
}
