package phone

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
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
	// answer returns the content type and text of the answer to a webhook: without a ticket, the call is not taken.
	answer(set *Settings, c call, ticket string) (form, text string)
	hangUp(ctx context.Context, c call) (*http.Request, error)
	transfer(ctx context.Context, c call, number string) (*http.Request, error)
	// dial begins a call; the carrier asks at webhook what to do with it.
	dial(ctx context.Context, from, to, webhook string) (*http.Request, error)
	// secret is known to the operator and the carrier only.
	secret() string
}

func carrierOf(name string, set *Settings) carrier {
	switch name {
	case Telnyx:
		return telnyx{set.Telnyx, set.PublicURL}
	case Vonage:
		return vonage{set.Vonage, set.PublicURL}
	default:
		return twilio{set.Twilio, set.PublicURL}
	}
}

var errSignature = errors.New("its signature is wrong; check the secret and phone.public_url")

// signedFor is how old a signature with a time may be.
const signedFor = 5 * time.Minute

// TwilioSettings are an account at Twilio. API is the address of its REST interface.
type TwilioSettings struct{ AccountSID, AuthToken, API string }

// twilio is documented at https://www.twilio.com/docs/voice/twiml/stream and
// https://www.twilio.com/docs/voice/api/call-resource, read 2026-11-30.
type twilio struct {
	TwilioSettings
	public string
}

func (t twilio) secret() string { return t.AuthToken }

func (t twilio) incoming(r *http.Request, body []byte) (call, error) {
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return call{}, fmt.Errorf("its form cannot be read: %w", err)
	}
	// The path and the query are signed, too; the rest of the address is the configured one.
	if !Signed(r.Header.Get("X-Twilio-Signature"), t.AuthToken, t.public+r.URL.RequestURI(), form) {
		return call{}, errSignature
	}
	if form.Get("AccountSid") != t.AccountSID {
		return call{}, errors.New("it is of another account; see phone.twilio.account_sid")
	}
	return callOf(Twilio, form)
}

func callOf(carrier string, form url.Values) (call, error) {
	c := call{carrier: carrier, id: form.Get("CallSid"), account: form.Get("AccountSid"), from: form.Get("From"), to: form.Get("To")}
	if c.id == "" || len(c.id) > MaxName || len(c.from) > MaxName || len(c.to) > MaxName {
		return c, errors.New("it names no call, or one with a name that is too long")
	}
	return c, nil
}

func (t twilio) upgrade(r *http.Request) error {
	at := strings.Replace(t.public, "http", "ws", 1) + r.URL.RequestURI()
	sign := r.Header.Get("X-Twilio-Signature")
	// Twilio signs the address as TwiML gave it, and some of its edges add a slash.
	if !Signed(sign, t.AuthToken, at, nil) && !Signed(sign, t.AuthToken, at+"/", nil) {
		return errSignature
	}
	return nil
}

func (t twilio) answer(set *Settings, _ call, ticket string) (form, text string) {
	return markup(set, Twilio, ticket, "")
}

// markup returns TwiML, or TeXML with more attributes of the stream.
func markup(set *Settings, carrier, ticket, attributes string) (form, text string) {
	var b strings.Builder
	b.WriteString(`<?xml version="1.0" encoding="UTF-8"?><Response>`)
	if ticket != "" {
		say(&b, set.Announcement)
		fmt.Fprintf(&b, `<Connect><Stream url="%s"%s><Parameter name="%s" value="%s"/></Stream></Connect>`,
			escaped(strings.Replace(set.PublicURL, "http", "ws", 1)+StreamPath(carrier)), attributes, ticketParameter, escaped(ticket))
	}
	say(&b, set.Sorry) // after a stream only if no session began, because the gateway hangs up before the stream closes
	b.WriteString(`<Hangup/></Response>`)
	return "text/xml; charset=utf-8", b.String()
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

func dialMarkup(number string) string {
	return `<?xml version="1.0" encoding="UTF-8"?><Response><Dial>` + escaped(number) + `</Dial></Response>`
}

func (t twilio) post(ctx context.Context, path string, form url.Values) (*http.Request, error) {
	req, err := postForm(ctx, t.API+"/2010-04-01/Accounts/"+url.PathEscape(t.AccountSID)+"/Calls"+path+".json", form)
	if err == nil {
		req.SetBasicAuth(t.AccountSID, t.AuthToken)
	}
	return req, err
}

func postForm(ctx context.Context, at string, form url.Values) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, at, strings.NewReader(form.Encode()))
	if err != nil {
		return nil, fmt.Errorf("request to a carrier: %w", err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return req, nil
}

func (t twilio) hangUp(ctx context.Context, c call) (*http.Request, error) {
	return t.post(ctx, "/"+url.PathEscape(c.id), url.Values{"Status": {"completed"}})
}

func (t twilio) transfer(ctx context.Context, c call, number string) (*http.Request, error) {
	return t.post(ctx, "/"+url.PathEscape(c.id), url.Values{"Twiml": {dialMarkup(number)}})
}

func (t twilio) dial(ctx context.Context, from, to, webhook string) (*http.Request, error) {
	return t.post(ctx, "", url.Values{"From": {from}, "To": {to}, "Url": {webhook}, "Method": {http.MethodPost}})
}

// TelnyxSettings are an account at Telnyx. PublicKey verifies its webhooks: Ed25519 in base64. Application is the id of
// the TeXML application.
type TelnyxSettings struct{ AccountSID, APIKey, PublicKey, Application, API string }

// telnyx speaks TeXML, which is TwiML with other webhooks and REST. See
// https://developers.telnyx.com/docs/voice/programmable-voice/texml-verbs/stream and
// https://developers.telnyx.com/docs/development/api-fundamentals/webhooks, read 2026-11-30. Telnyx does not sign the
// upgrade of a stream: only the ticket opens a session there.
type telnyx struct {
	TelnyxSettings
	public string
}

func (t telnyx) secret() string { return t.APIKey }

func (t telnyx) incoming(r *http.Request, body []byte) (call, error) {
	key, err := base64.StdEncoding.DecodeString(t.PublicKey)
	sign, wrong := base64.StdEncoding.DecodeString(r.Header.Get("Telnyx-Signature-Ed25519"))
	at := r.Header.Get("Telnyx-Timestamp")
	if err != nil || wrong != nil || len(key) != ed25519.PublicKeySize || !ed25519.Verify(key, append([]byte(at+"|"), body...), sign) {
		return call{}, errSignature
	}
	seconds, err := strconv.ParseInt(at, 10, 64)
	if age := time.Since(time.Unix(seconds, 0)); err != nil || age.Abs() > signedFor {
		return call{}, errors.New("its signature is older than 5 minutes")
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return call{}, fmt.Errorf("its form cannot be read: %w", err)
	}
	return callOf(Telnyx, form)
}

func (t telnyx) upgrade(*http.Request) error {
	if t.APIKey == "" {
		return errors.New("this carrier is not configured")
	}
	return nil
}

func (t telnyx) answer(set *Settings, _ call, ticket string) (form, text string) {
	return markup(set, Telnyx, ticket, ` bidirectionalMode="rtp" codec="PCMU" bidirectionalCodec="PCMU"`)
}

func (t telnyx) post(ctx context.Context, path string, form url.Values) (*http.Request, error) {
	req, err := postForm(ctx, t.API+"/v2/texml/Accounts/"+url.PathEscape(t.AccountSID)+"/Calls"+path, form)
	if err == nil {
		req.Header.Set("Authorization", "Bearer "+t.APIKey)
	}
	return req, err
}

func (t telnyx) hangUp(ctx context.Context, c call) (*http.Request, error) {
	return t.post(ctx, "/"+url.PathEscape(c.id), url.Values{"Status": {"completed"}})
}

func (t telnyx) transfer(ctx context.Context, c call, number string) (*http.Request, error) {
	return t.post(ctx, "/"+url.PathEscape(c.id), url.Values{"Texml": {dialMarkup(number)}})
}

func (t telnyx) dial(ctx context.Context, from, to, webhook string) (*http.Request, error) {
	return t.post(ctx, "", url.Values{"ApplicationSid": {t.Application}, "From": {from}, "To": {to}, "Url": {webhook}})
}

// VonageSettings are an application at Vonage. SignatureSecret verifies webhooks, PrivateKey signs requests.
type VonageSettings struct {
	Application     string
	SignatureSecret string
	PrivateKey      *rsa.PrivateKey
	API             string
}

// vonage is documented at https://developer.vonage.com/voice/voice-api/webhook-reference and
// https://developer.vonage.com/voice/voice-api/ncco-reference, read 2026-11-30. Its numbers have no +.
type vonage struct {
	VonageSettings
	public string
}

func (v vonage) secret() string { return v.SignatureSecret }

// signed verifies the JWT of a request; body is nil for an upgrade.
func (v vonage) signed(r *http.Request, body []byte) error {
	token, err := auth.ParseBearer(r.Header.Values("Authorization"))
	if err != nil || v.SignatureSecret == "" {
		return errSignature
	}
	claims, err := auth.SharedClaims(token, []byte(v.SignatureSecret), signedFor)
	if err != nil {
		return errSignature
	}
	if app, ok := claims["application_id"].(string); ok && app != v.Application {
		return errors.New("it is of another application; see phone.vonage.application_id")
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

func (v vonage) answer(set *Settings, c call, ticket string) (form, text string) {
	var actions []object
	if ticket != "" {
		actions = append(talk(set.Announcement), object{"action": "connect", "endpoint": []object{{
			"type": "websocket", "uri": strings.Replace(v.public, "http", "ws", 1) + StreamPath(Vonage),
			"content-type": "audio/l16;rate=8000", "headers": object{ticketParameter: ticket, "call": c.id},
			"authorization": object{"type": "vonage"},
		}}})
	}
	actions = append(actions, talk(set.Sorry)...)
	out, err := json.Marshal(append([]object{}, actions...))
	if err != nil {
		return "text/plain", err.Error() // text always has a JSON form
	}
	return "application/json", string(out)
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
	token, err := auth.SignRS256(map[string]any{"application_id": v.Application}, v.PrivateKey, time.Minute)
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

func (v vonage) transfer(ctx context.Context, c call, number string) (*http.Request, error) {
	return v.send(ctx, http.MethodPut, "/"+url.PathEscape(c.id), object{"action": "transfer", "destination": object{"type": "ncco",
		"ncco": []object{{"action": "connect", "endpoint": phoneEndpoint(number)}}}})
}

func (v vonage) dial(ctx context.Context, from, to, webhook string) (*http.Request, error) {
	return v.send(ctx, http.MethodPost, "", object{"to": phoneEndpoint(to), "from": phoneEndpoint(from)[0],
		"answer_url": []string{webhook}, "answer_method": http.MethodPost})
}

// requestTime bounds a request to a carrier.
const requestTime = 10 * time.Second

// statusError is a carrier's answer that is no success.
type statusError struct {
	status int
	text   string
}

func (e *statusError) Error() string {
	return fmt.Sprintf("the carrier answered %d: %.300s", e.status, e.text)
}

// do makes a request and returns the id of the call in the answer, if there is one.
func (s *Server) do(req *http.Request) (id string, err error) {
	resp, err := s.client.Do(req)
	if err != nil {
		var at *url.Error
		if errors.As(err, &at) {
			err = at.Err // without the address, which names the account
		}
		return "", fmt.Errorf("ask the carrier: %w", err)
	}
	defer func() { _ = resp.Body.Close() }() // the body has been read, or has failed
	body, err := io.ReadAll(resp.Body)
	switch {
	case err != nil:
		return "", fmt.Errorf("read the carrier's answer: %w", err)
	case resp.StatusCode/100 != 2:
		return "", &statusError{resp.StatusCode, string(body)}
	}
	var made struct{ SID, UUID string }
	_ = json.Unmarshal(body, &made) // not every answer has one
	return made.SID + made.UUID, nil
}

func macOf(key string, data []byte) []byte {
	mac := hmac.New(sha256.New, []byte("voicegw phone call\n"+key))
	mac.Write(data)
	return mac.Sum(nil)
}
