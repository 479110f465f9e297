package phone

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"voicegw/gateway/phone/wire"
	"voicegw/internal/conversation"
	"voicegw/registry"
	"voicegw/session/handoff"
)

// desk is a Voice that notes what it is asked for.
type desk struct{ asked []handoff.Invitation }

func (d *desk) Invite(_ context.Context, in handoff.Invitation) (registry.VoiceOffer, error) {
	d.asked = append(d.asked, in)
	return registry.VoiceOffer{Ticket: "s3cret"}, nil
}

func (d *desk) Conversation(_ context.Context, id string) (*conversation.Conversation, error) {
	if id == "call-twilio-CAold" {
		return &conversation.Conversation{}, nil
	}
	return nil, errors.New("unknown")
}

func TestX(t *testing.T) {
	d := &desk{}
	s := New(Options{Voice: d, Settings: Settings{PublicURL: "https://gw.example", Sorry: "Sorry.", Twilio: TwilioSettings{"AC1", "tok", "https://api"}}})
	form := url.Values{"CallSid": {"CA1"}, "AccountSid": {"AC1"}, "From": {"+15551"}, "To": {"+15552"}}
	r := httptest.NewRequest("POST", VoicePath(Twilio), strings.NewReader(form.Encode()))
	r.Header.Set("X-Twilio-Signature", wire.Sign("tok", "https://gw.example"+VoicePath(Twilio), form))
	w := httptest.NewRecorder()
	s.Voice(Twilio)(w, r)
	t.Log(w.Code, w.Body.String())
	_ = http.StatusOK
}
