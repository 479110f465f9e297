package capability

import (
	"context"
	"time"
)

// VoiceSessions makes voice sessions that a client is invited to. Package store has one
// that is the same for all nodes.
type VoiceSessions interface {
	// Offer makes a voice session and the one ticket that opens it. An offer of the
	// same conversation that was not taken yet is replaced: its ticket is worth
	// nothing from then on. The error is ErrVoiceActive while the conversation's
	// voice session runs, or wraps ErrUser or ErrFull.
	Offer(ctx context.Context, request VoiceRequest) (VoiceOffer, error)
}

// VoiceRequest says whom a voice session is for.
type VoiceRequest struct {
	UserID string
	// Vouched says that a trusted caller named the user, Scopes what it has granted.
	Vouched bool
	Scopes  []string
	// ConversationID is the conversation that goes on by voice; empty: the user's only one.
	ConversationID string
	Agent          string
	// PendingRequest is what the voice agent is to answer first; may be empty.
	PendingRequest string
	// Context is what was said before, for an agent that does not know it; may be empty.
	Context string
	// Origin is the only origin whose pages may use the ticket; empty for any client.
	Origin string
	// Inspect lets the client look inside its session, if it asks to.
	Inspect bool
}

// VoiceOffer is a voice session that waits for its client.
type VoiceOffer struct {
	// SessionID begins with "voice-".
	SessionID string
	// ConversationID is that of the request.
	ConversationID string
	PendingRequest string
	// Ticket opens the session once. It is a secret of the client's: it never goes to
	// a model or into a log.
	Ticket string
	// URL is where the client connects; empty means the gateway that it knows.
	URL string
	// ExpiresAt is when the ticket ends, UTC.
	ExpiresAt time.Time
}

// Inviter tells the client of the text conversation that a tool was called in
// about a voice session (voice_session_start). It is there for calls in text mode,
// and does nothing once the conversation's stream is over.
type Inviter interface {
	Invite(offer VoiceOffer)
	// Origin is that of the page which the client is, and which alone may use a ticket
	// made for it; empty for a client that is no page.
	Origin() string
	// Keep makes the conversation one that a voice session finds, where its client keeps it.
	// It comes before the offer. The error says that it could not be stored.
	Keep(ctx context.Context) error
}

// TicketLife is how long an offer's ticket can be used unless the operator has decided
// otherwise.
const TicketLife = 60 * time.Second
