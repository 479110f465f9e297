package cluster

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"voicegw/internal/auth"
	"voicegw/internal/user"
)

// Hello describes a client that one node passes to another.
type Hello struct {
	// SessionID is the session to resume.
	SessionID string `json:"session_id"`
	// Start is the client's session.start, unchanged, including the secret resume token.
	Start json.RawMessage `json:"start"`
	// Addr is the client's address.
	Addr netip.Addr `json:"addr"`
	// Origin is the web page's origin; empty for other clients.
	Origin string `json:"origin,omitempty"`
	// Anonymous is the identity of a client without a name.
	Anonymous string `json:"anonymous,omitempty"`
	// Principal is the authenticated client; nil if unauthenticated.
	Principal *principal `json:"principal,omitempty"`
}

// principal is the wire form of the auth.Principal fields that decide whether a client may resume.
type principal struct {
	Kind   auth.Kind   `json:"kind"`
	ID     string      `json:"id"`
	User   string      `json:"user,omitempty"`
	Scopes auth.Scopes `json:"scopes"`
	// Older versions don't send Mark and Expires.
	Mark    string    `json:"mark,omitempty"`
	Expires time.Time `json:"expires,omitzero"`
}

func wirePrincipal(p auth.Principal) *principal {
	if p.IsZero() {
		return nil
	}
	return &principal{Kind: p.Kind, ID: p.ID, User: p.User.String(), Scopes: p.Scopes, Mark: p.Mark, Expires: p.Expires}
}

func (p *principal) parse() (auth.Principal, error) {
	if p == nil {
		return auth.Principal{}, nil
	}
	out := auth.Principal{Kind: p.Kind, ID: p.ID, Scopes: p.Scopes, Mark: p.Mark, Expires: p.Expires}
	var err error
	if p.User != "" {
		out.User, err = user.Parse(p.User)
	}
	return out, err
}

// helloHeader carries the Hello as JSON in base64url (RFC 4648 section 5).
const helloHeader = "Voicegw-Hello"

// maxHello bounds the header in bytes. A resuming session.start has a few hundred.
const maxHello = 16 << 10

var errHelloTooLong = errors.New("cluster: the client's session.start is too long to relay")

func (h Hello) encode() (string, error) {
	text, err := json.Marshal(h)
	if err != nil {
		return "", fmt.Errorf("cluster: %w", err)
	}
	header := base64.URLEncoding.EncodeToString(text)
	if len(header) > maxHello {
		return "", errHelloTooLong
	}
	return header, nil
}

func parseHello(header string) (Hello, error) {
	var h Hello
	if len(header) > maxHello {
		return h, errHelloTooLong
	}
	text, err := base64.URLEncoding.DecodeString(header)
	if err != nil {
		return h, errors.New("the header " + helloHeader + " is not base64url")
	}
	if json.Unmarshal(text, &h) != nil {
		return Hello{}, errors.New("the header " + helloHeader + " is not valid JSON")
	}
	if _, err := h.Principal.parse(); err != nil {
		return Hello{}, errors.New("the header " + helloHeader + " has an invalid principal.user")
	}
	if h.SessionID == "" || len(h.Start) == 0 || !h.Addr.IsValid() {
		return Hello{}, errors.New("the header " + helloHeader + " lacks session_id, start or addr")
	}
	return h, nil
}
