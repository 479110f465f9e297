package phone

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"voicegw/config/setting"
)

// Outgoing asks for a call.
type Outgoing struct {
	// To is the number to call, and From the caller's; empty means the configured one.
	To string `json:"to"`
	// Agent speaks; empty means the default one.
	Agent string `json:"agent"`
	// User is who will answer; empty means the called number.
	User string `json:"user"`
	// Request is the subject of the call, with which the agent begins.
	Request string `json:"pending_request"`
}

// maxRequest limits Outgoing.Request in bytes, because carriers get it in a URL.
const maxRequest = 1000

// The errors of Dial for requests that cannot be carried out.
var (
	ErrNoOutbound = errors.New("this gateway makes no calls; the operator can allow them with phone.outbound.from")
	ErrNumber     = errors.New("to must be a number that phone.outbound.prefixes allows, such as +15550100")
	ErrRequest    = fmt.Errorf("pending_request is longer than %d bytes", maxRequest)
	ErrTooMany    = errors.New("too many calls were begun within a minute")
)

// invited describes a call that the gateway has begun. The carrier returns it in the webhook's URL.
type invited struct {
	Agent, User, Request, To string
	Until                    int64 // Unix seconds
}

const (
	invitedParameter = "call"
	invitedFor       = 10 * time.Minute // ringing included
)

// Begun is a call that was begun. CallID is the carrier's; both are empty if Telnyx does not name it.
type Begun struct {
	CallID         string `json:"call_id"`
	ConversationID string `json:"conversation_id"`
}

// Dial begins a call. The error is one of the above, or the carrier's.
func (s *Server) Dial(ctx context.Context, out Outgoing) (Begun, error) {
	set := s.settings()
	allowed := func(prefix string) bool { return strings.HasPrefix(out.To, prefix) }
	switch {
	case set.Outbound.From == "":
		return Begun{}, ErrNoOutbound
	case !IsNumber(out.To) || !slices.ContainsFunc(set.Outbound.Prefixes, allowed):
		return Begun{}, ErrNumber
	case len(out.Request) > maxRequest:
		return Begun{}, ErrRequest
	case !s.mayDial(set.Outbound.PerMinute):
		return Begun{}, ErrTooMany
	}
	by := carrierOf(set.Outbound.Carrier, set)
	in := invited{out.Agent, out.User, out.Request, out.To, time.Now().Add(invitedFor).Unix()}
	sealed, err := seal(set.Accounts[set.Outbound.Carrier], in)
	if err != nil {
		return Begun{}, err
	}
	at := set.PublicURL + VoicePath(set.Outbound.Carrier) + "?" + url.Values{invitedParameter: {sealed}}.Encode()
	req, err := by.dial(ctx, set.Outbound.From, out.To, at)
	if err != nil {
		return Begun{}, err
	}
	answer, err := s.do(req)
	if err != nil {
		return Begun{}, err
	}
	// Twilio has sid, Telnyx call_sid (which its documentation leaves out), and Vonage uuid.
	var made struct {
		SID     string
		CallSID string `json:"call_sid"`
		UUID    string
	}
	err = json.Unmarshal(answer, &made)
	id := made.SID + made.CallSID + made.UUID
	switch {
	case err != nil, id == "" && set.Outbound.Carrier != Telnyx:
		return Begun{}, fmt.Errorf("the carrier's answer names no call: %.300q", answer)
	case id == "":
		return Begun{}, nil
	}
	return Begun{CallID: id, ConversationID: conversationOf(set.Outbound.Carrier, id)}, nil
}

// IsNumber reports whether text is a number in E.164: + and 7 to 15 digits.
func IsNumber(text string) bool {
	digits, ok := strings.CutPrefix(text, "+")
	return ok && len(digits) >= 7 && len(digits) <= 15 && digits[0] != '0' && strings.Trim(digits, "0123456789") == ""
}

func (s *Server) mayDial(perMinute int) bool {
	perMinute = cmp.Or(perMinute, setting.PhoneCalls)
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	s.began = slices.DeleteFunc(s.began, func(at time.Time) bool { return now.Sub(at) > time.Minute })
	if len(s.began) >= perMinute {
		return false
	}
	s.began = append(s.began, now)
	return true
}

// seal encodes in with a MAC, because not every carrier signs the URL of a webhook.
func seal(by Account, in invited) (string, error) {
	data, err := json.Marshal(in)
	if err != nil {
		return "", fmt.Errorf("encode a call: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(append(by.mac(data), data...)), nil
}

// mac proves that the gateway made data: only the operator and the carrier know the secret.
func (a Account) mac(data []byte) []byte {
	mac := hmac.New(sha256.New, []byte("voicegw phone call\n"+a.Secret))
	mac.Write(data)
	return mac.Sum(nil)
}

func unseal(by Account, sealed string, c call) (*invited, error) {
	data, err := base64.RawURLEncoding.DecodeString(sealed)
	if err != nil || len(data) < sha256.Size || !hmac.Equal(data[:sha256.Size], by.mac(data[sha256.Size:])) {
		return nil, errors.New("its URL was not made by this gateway")
	}
	var in invited
	if err := json.Unmarshal(data[sha256.Size:], &in); err != nil {
		return nil, fmt.Errorf("its URL cannot be read: %w", err)
	}
	if in.To != c.to || time.Now().Unix() > in.Until {
		return nil, errors.New("its URL belongs to another call, or is too old")
	}
	return &in, nil
}
