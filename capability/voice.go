package capability

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"strings"
	"sync"
	"time"
)

// VoiceSessions makes voice sessions that a client is invited to.
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
	// ConversationID is the conversation that goes on by voice; empty: the user's only one.
	ConversationID string
	Agent          string
	// PendingRequest is what the voice agent is to answer first; may be empty.
	PendingRequest string
}

// VoiceOffer is a voice session that waits for its client.
type VoiceOffer struct {
	// SessionID begins with "voice-".
	SessionID      string
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
}

// TicketLife is how long an offer's ticket can be used.
const TicketLife = 60 * time.Second

// MemoryVoiceSessions is a VoiceSessions in this process's memory.
type MemoryVoiceSessions struct {
	// Fixed after NewMemoryVoiceSessions.
	url  string
	most int

	mu       sync.Mutex // guards the following fields
	byTicket map[[sha256.Size]byte]conversation
	byKey    map[conversation]*voiceSession
}

// voiceSession is what a conversation has of voice: an offer, or a running session.
type voiceSession struct {
	request VoiceRequest
	id      string
	expires time.Time
	ticket  [sha256.Size]byte
	taken   bool
}

// NewMemoryVoiceSessions returns a MemoryVoiceSessions whose offers name url, and
// which holds at most so many offers and sessions; zero means 10,000.
func NewMemoryVoiceSessions(url string, most int) *MemoryVoiceSessions {
	if most == 0 {
		most = 10_000
	}
	return &MemoryVoiceSessions{
		url: url, most: most,
		byTicket: make(map[[sha256.Size]byte]conversation), byKey: make(map[conversation]*voiceSession),
	}
}

// conversation is a user's conversation; the user's only one has no id.
type conversation struct{ user, id string }

func (r VoiceRequest) key() conversation { return conversation{r.UserID, r.ConversationID} }

// Offer makes a voice session. Only a hash of its ticket is kept.
func (v *MemoryVoiceSessions) Offer(_ context.Context, request VoiceRequest) (VoiceOffer, error) {
	if request.UserID == "" || len(request.UserID) > maxUser || len(request.ConversationID) > maxUser {
		return VoiceOffer{}, ErrUser
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	key := request.key()
	if old := v.byKey[key]; old != nil {
		if old.taken {
			return VoiceOffer{}, ErrVoiceActive
		}
		v.forget(key)
	}
	if len(v.byKey) >= v.most {
		v.forgetExpired()
	}
	if len(v.byKey) >= v.most {
		return VoiceOffer{}, fmt.Errorf("%w: %d voice sessions", ErrFull, v.most)
	}
	ticket := "vt_" + rand.Text()
	s := &voiceSession{
		request: request, id: "voice-" + strings.ToLower(rand.Text()),
		expires: time.Now().UTC().Add(TicketLife), ticket: sha256.Sum256([]byte(ticket)),
	}
	v.byKey[key], v.byTicket[s.ticket] = s, key
	return VoiceOffer{
		SessionID: s.id, PendingRequest: request.PendingRequest,
		Ticket: ticket, URL: v.url, ExpiresAt: s.expires,
	}, nil
}

// forget takes a conversation out. mu is held.
func (v *MemoryVoiceSessions) forget(key conversation) {
	if s := v.byKey[key]; s != nil {
		delete(v.byTicket, s.ticket)
		delete(v.byKey, key)
	}
}

// forgetExpired makes room. mu is held.
func (v *MemoryVoiceSessions) forgetExpired() {
	now := time.Now()
	for key, s := range v.byKey {
		if !s.taken && !now.Before(s.expires) {
			v.forget(key)
		}
	}
}

// Redeem takes the offer that a ticket opens: its session runs from now on, until
// Ended. The error is ErrTicket or ErrTicketExpired.
func (v *MemoryVoiceSessions) Redeem(ticket string) (id string, request VoiceRequest, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	hash := sha256.Sum256([]byte(ticket))
	key, ok := v.byTicket[hash]
	if !ok {
		return "", VoiceRequest{}, ErrTicket
	}
	s := v.byKey[key]
	if !time.Now().Before(s.expires) {
		v.forget(key)
		return "", VoiceRequest{}, ErrTicketExpired
	}
	delete(v.byTicket, hash)
	s.taken = true
	return s.id, s.request, nil
}

// Ended notes that the session of that id is over; another may be offered then.
func (v *MemoryVoiceSessions) Ended(id string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for key, s := range v.byKey {
		if s.id == id {
			v.forget(key)
			return
		}
	}
}
