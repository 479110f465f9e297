package registry

import (
	"context"
	"errors"
	"time"
)

// The capabilities below are what a tool may ask of the gateway: a tool names them as fields
// of its Needs. All of them may be used concurrently.

// Messenger lets a tool speak to the client of the session in which the tool was called. It is
// available in every call, and does nothing if no client is connected or the call is over.
type Messenger interface {
	// Timeout tells the client that its user is blocked for d, until the given time, and why.
	Timeout(until time.Time, d time.Duration, message string)
	// Send gives the client a message of the tool's own (tool.message): name says what it is, and data
	// is written as JSON. Nothing is sent if the error is not nil: it wraps ErrNotTaken if the name
	// is not one to three words of small letters, digits and underscores, joined by dots, if the data
	// cannot be written or has more than MaxAside bytes, or if the call has sent MaxAsides messages.
	// No model reads it.
	Send(name string, data any) error
}

// Progress lets a tool say how far it is, while it works. It is available in every call, and does
// nothing once the call is over.
type Progress interface {
	// Tell shows the client what the tool is at (tool.progress), in at most MaxProgress characters, and
	// how much of the work is done: 0 to 1, or less than 0 if that is not known. It never waits, and may
	// be called as often as the work goes on: the client gets the newest, twice a second at most. A voice model
	// that takes it is told the text now and then, as a word of the tool.
	Tell(text string, fraction float64)
}

// MaxProgress is the longest text of Progress.Tell, in characters; a longer one is cut.
const MaxProgress = 200

// Audit lets a tool write into the audit, beside the line of its call. It is available in every
// call, and does nothing once the call is over.
type Audit interface {
	// Note writes a line tool_note: event says what has happened, and data is written as JSON, as it
	// is, so it must hold no secret and nothing that was said. The error is that of Messenger.Send.
	Note(event string, data any) error
}

// The limits of what one call sends to its client, and of what it notes in the audit.
const (
	// MaxAsides is how many messages, and how many notes, one call may give.
	MaxAsides = 32
	// MaxAside bounds the JSON of each, in bytes.
	MaxAside = 8 << 10
)

// Blocks blocks users.
type Blocks interface {
	// Block blocks user until the given time, on all nodes. A block that lasts longer stays as
	// it is. The error wraps ErrUser or ErrFull, or says that the block could not be recorded;
	// then nothing has changed.
	Block(ctx context.Context, user string, until time.Time) error
}

// VoiceSessions creates voice sessions to which a client is invited.
type VoiceSessions interface {
	// Offer creates a voice session and the one ticket that opens it. It replaces an earlier
	// offer of the same conversation that was not taken: the earlier ticket becomes invalid.
	// The error is ErrVoiceActive while the conversation's voice session runs, or wraps
	// ErrUser or ErrFull, or says that nothing could be recorded.
	Offer(ctx context.Context, request VoiceRequest) (VoiceOffer, error)
}

// VoiceRequest says for whom a voice session is created.
type VoiceRequest struct {
	UserID string
	// Vouched says that a trusted caller named the user; Scopes are what that caller granted.
	Vouched bool
	Scopes  []string
	// ConversationID is the conversation that continues by voice; empty means the user's only one.
	ConversationID string
	Agent          string
	// PendingRequest is what the voice agent answers first; it may be empty.
	PendingRequest string
	// Said is what was said in a conversation that only its client keeps. It is stored for the
	// voice session, unless the conversation is stored already.
	Said []Utterance
	// Origin is the only origin whose pages may use the ticket; empty allows any client.
	Origin string
	// Guarantor is the principal that asks for it, as Inviter.Guarantor.
	Guarantor Guarantor
}

// Guarantor is whoever has sent a request, whose limits a voice session counts for that comes of it. The
// zero Guarantor is nobody that is known.
type Guarantor struct {
	// ID is that of the principal, and Mark tells apart different credentials that have had it
	// (auth.Principal). Either may be empty.
	ID, Mark string
	// Expires is when the credentials end; zero if they do not.
	Expires time.Time
}

// Utterance is something that the user, or else the assistant, has said by text.
type Utterance struct {
	Assistant bool
	Text      string
}

// VoiceOffer is a voice session that waits for its client.
type VoiceOffer struct {
	// SessionID begins with "voice-".
	SessionID string
	// ConversationID and PendingRequest are copied from the request.
	ConversationID string
	PendingRequest string
	// Ticket opens the session once. It is the client's secret: it must never reach a model
	// or a log.
	Ticket string
	// ExpiresAt is when the ticket expires, UTC.
	ExpiresAt time.Time
}

// Inviter tells the client of the text conversation in which a tool was called about a
// voice session (voice_session_start). It is available to calls in text mode, and does
// nothing once the conversation's stream is over.
type Inviter interface {
	Invite(offer VoiceOffer)
	// Origin is the origin of the client's page, the only one that may use a ticket made for
	// it; empty if the client is not a page.
	Origin() string
	// Guarantor is the principal that sent the request.
	Guarantor() Guarantor
	// Said returns what was said in a conversation that only its client keeps, the oldest
	// first; nil if the gateway keeps it.
	Said() []Utterance
}

// Gallery shows images to the client of the text conversation in which a tool was called
// (ui.image). It is available to calls in text mode, and does nothing once the
// conversation's stream is over.
type Gallery interface {
	Show(image Image)
}

// Image is an image that a tool has made and the gateway keeps for a limited time.
type Image struct {
	// ID is its secret name: anyone who knows it can fetch the image.
	ID string
	// URL is the image's path, from the root of the gateway that the client knows.
	URL string
	// Prompt is the text from which the image was made.
	Prompt string
	// Width and Height are in pixels.
	Width, Height int
	// ExpiresAt is when the gateway deletes the image, UTC.
	ExpiresAt time.Time
}

// The errors of capabilities that a tool can distinguish.
var (
	// ErrNotTaken is wrapped if a message or a note is not as it may be, or one too many.
	ErrNotTaken = errors.New("it was not taken")
	// ErrFull is wrapped if no more entries may be recorded. Trying again later may help.
	ErrFull = errors.New("as many are recorded as may be")
	// ErrUser is wrapped if the user is empty or too long.
	ErrUser = errors.New("the user is empty or too long")
	// ErrVoiceActive says that a voice session of the conversation is running.
	ErrVoiceActive = errors.New("a voice session is running already")
)
