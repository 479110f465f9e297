package registry

import (
	"context"
	"errors"
	"time"
)

// The capabilities below are what a tool may ask of the gateway: it names them as fields
// of its Needs. All of them may be used from any number of goroutines at once.

// Messenger is the capability of a tool to speak to the client of the session that
// it was called in. It is there for each call in which a client is connected, and does
// nothing once the session is over.
type Messenger interface {
	// Timeout tells the client that its user is shut out until then, for d, and why.
	Timeout(until time.Time, d time.Duration, message string)
}

// Blocks shuts users out.
type Blocks interface {
	// Block shuts user out until then, on all nodes. A block that lasts longer stays as it
	// is. The error wraps ErrUser or ErrFull, or says that the block could not be recorded;
	// then nothing has changed.
	Block(ctx context.Context, user string, until time.Time) error
}

// VoiceSessions makes voice sessions that a client is invited to.
type VoiceSessions interface {
	// Offer makes a voice session and the one ticket that opens it. It replaces an offer of
	// the same conversation that was not taken yet: the ticket of that one opens nothing any
	// more. The error is ErrVoiceActive while the conversation's voice session runs, or wraps
	// ErrUser or ErrFull, or says that nothing could be recorded.
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
	// Origin is the only origin whose pages may use the ticket; empty for any client.
	Origin string
}

// VoiceOffer is a voice session that waits for its client.
type VoiceOffer struct {
	// SessionID begins with "voice-".
	SessionID string
	// ConversationID and PendingRequest are those of the request.
	ConversationID string
	PendingRequest string
	// Ticket opens the session once. It is a secret of the client's: it never goes to
	// a model or into a log.
	Ticket string
	// ExpiresAt is when the ticket ends, UTC.
	ExpiresAt time.Time
}

// Inviter tells the client of the text conversation that a tool was called in
// about a voice session (voice_session_start). It is there for calls in text mode,
// and does nothing once the conversation's stream is over.
type Inviter interface {
	Invite(offer VoiceOffer)
	// Origin is that of the page which the client is, and which alone may use a ticket
	// made for it; empty for a client that is not a page.
	Origin() string
	// Keep makes the conversation one that a voice session finds, where its client keeps it.
	// It comes before the offer. The error says that it could not be stored.
	Keep(ctx context.Context) error
}

// Gallery shows images to the client of the text conversation that a tool was called in
// (ui.image). It is there for calls in text mode, and does nothing once the
// conversation's stream is over.
type Gallery interface {
	Show(image Image)
}

// Image is an image that a tool has made and the gateway keeps for a while.
type Image struct {
	// ID is its secret name: whoever has it can fetch the image.
	ID string
	// URL is where it is, from the root of the gateway that the client knows.
	URL string
	// Prompt is what it was made from.
	Prompt string
	// Width and Height are in pixels.
	Width, Height int
	// ExpiresAt is when it is no longer kept, UTC.
	ExpiresAt time.Time
}

// The errors of Blocks and VoiceSessions that a tool tells apart.
var (
	// ErrFull is wrapped where as much is recorded as may be. Trying again later may help.
	ErrFull = errors.New("as many are recorded as may be")
	// ErrUser is wrapped where the user is empty or too long.
	ErrUser = errors.New("the user is empty or too long")
	// ErrVoiceActive says that a voice session of the conversation is running.
	ErrVoiceActive = errors.New("a voice session is running already")
)
