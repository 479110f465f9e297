package startvoicesession

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"voicegw/registry"
	"voicegw/registry/registrytest"
	"voicegw/registry/spec"
)

// client records its invitations.
type client struct {
	offers []registry.VoiceOffer
	said   []registry.Utterance
}

func (c *client) Said() []registry.Utterance       { return c.said }
func (c *client) Invite(offer registry.VoiceOffer) { c.offers = append(c.offers, offer) }
func (c *client) Origin() string                   { return "https://app.example" }
func (c *client) Guarantor() registry.Guarantor {
	return registry.Guarantor{ID: "key:0123abcd", Mark: "0a"}
}

// offers makes one voice session, and records the requests.
type offers struct{ asked []registry.VoiceRequest }

func (o *offers) Offer(_ context.Context, r registry.VoiceRequest) (registry.VoiceOffer, error) {
	o.asked = append(o.asked, r)
	if len(o.asked) > 1 {
		return registry.VoiceOffer{}, registry.ErrVoiceActive
	}
	return registry.VoiceOffer{
		SessionID: "voice-1", ConversationID: r.ConversationID, PendingRequest: r.PendingRequest,
		Ticket: "the secret", ExpiresAt: time.Now().Add(time.Minute),
	}, nil
}

// broken offers nothing.
type broken struct{ err error }

func (b broken) Offer(context.Context, registry.VoiceRequest) (registry.VoiceOffer, error) {
	return registry.VoiceOffer{}, b.err
}

func call(v registry.VoiceSessions, c *client) registry.Call[Args, Needs] {
	return registry.Call[Args, Needs]{
		Args:    Args{PendingRequest: " What is new? "},
		Needs:   Needs{VoiceSessions: v, Inviter: c},
		Session: registry.Session{UserID: "ada", ConversationID: "c1", Agent: "default", Vouched: true, Scopes: []string{"hr"}, Mode: spec.ModeText},
	}
}

// TestInvitation: the client gets the ticket, the model does not.
func TestInvitation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		said := []registry.Utterance{{Text: "Hello"}, {Assistant: true, Text: "Hi."}}
		v, c := &offers{}, &client{said: said}
		result, err := Execute(t.Context(), call(v, c))
		if err != nil || len(c.offers) != 1 || len(result.Intents) != 0 {
			t.Fatalf("%+v, offers %v, %v", result, c.offers, err)
		}
		offer := c.offers[0]
		answer := Output{SessionID: offer.SessionID, PendingRequest: "What is new?",
			ExpiresAt: time.Now().Add(time.Minute).UTC().Format("2006-01-02T15:04:05.000Z")}
		if diff := cmp.Diff(answer, result.Data); diff != "" {
			t.Error(diff)
		}
		registrytest.Fits(t, "start-voice-session", result.Data)
		if data, _ := json.Marshal(result.Data); offer.Ticket != "the secret" || strings.Contains(string(data), offer.Ticket) {
			t.Errorf("the ticket %q is in %s, or is empty", offer.Ticket, data)
		}
		want := []registry.VoiceRequest{{UserID: "ada", Vouched: true, Scopes: []string{"hr"}, ConversationID: "c1", Agent: "default", PendingRequest: "What is new?", Said: said, Origin: "https://app.example", Guarantor: registry.Guarantor{ID: "key:0123abcd", Mark: "0a"}}}
		if diff := cmp.Diff(want, v.asked); diff != "" {
			t.Error(diff)
		}
		// The conversation is in voice now.
		_, err = Execute(t.Context(), call(v, c))
		var e *registry.ToolError
		if !errors.As(err, &e) || e.Type != registry.ErrorSessionActive || e.Retryable || len(c.offers) != 1 {
			t.Errorf("while in voice: %v, %d offers", err, len(c.offers))
		}
	})
}

func TestWithoutPendingRequest(t *testing.T) {
	c, v := &client{}, &offers{}
	in := call(v, c)
	in.Args.PendingRequest = ""
	in.Session.Vouched, in.Session.Scopes = false, nil // like a browser that claims to be ada
	if _, err := Execute(t.Context(), in); err != nil || c.offers[0].PendingRequest != "" || v.asked[0].Vouched || v.asked[0].Scopes != nil {
		t.Errorf("%+v, %+v, %v", c.offers, v.asked, err)
	}
}

func TestFailures(t *testing.T) {
	for name, tc := range map[string]struct {
		err   error
		want  registry.ErrorType
		retry bool
	}{
		"no user":     {registry.ErrUser, registry.ErrorSessionInactive, false},
		"too many":    {registry.ErrFull, registry.ErrorRateLimit, true},
		"store fails": {errors.New("disk full"), registry.ErrorTransient, true},
	} {
		t.Run(name, func(t *testing.T) {
			c := &client{}
			_, err := Execute(t.Context(), call(broken{tc.err}, c))
			var e *registry.ToolError
			if !errors.As(err, &e) || e.Type != tc.want || e.Retryable != tc.retry || e.Suggestion == "" || strings.Contains(e.Message, "disk") {
				t.Errorf("%v", err)
			}
			if len(c.offers) != 0 {
				t.Error("the client was invited without an offer")
			}
		})
	}
}
