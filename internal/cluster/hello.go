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

// Hello is what a node knows about a client that it passes on.
type Hello struct {
	// SessionID is the session that the client wants to resume.
	SessionID string `json:"session_id"`
	// Start is the client's session.start, as it came. It holds the resume token, which is a
	// secret.
	Start json.RawMessage `json:"start"`
	// Addr is the client's address.
	Addr netip.Addr `json:"addr"`
	// Origin is the origin of its page; empty if it is not a page.
	Origin string `json:"origin,omitempty"`
	// Anonymous is the identity of a client that gives no name.
	Anonymous string `json:"anonymous,omitempty"`
	// Principal is who the client has shown to be; nil for nobody.
	Principal *principal `json:"principal,omitempty"`
}

// principal is a client's auth.Principal as nodes tell each other: what decides whether it may come
// back to a session.
type principal struct {
	Kind   auth.Kind   `json:"kind"`
	ID     string      `json:"id"`
	User   string      `json:"user,omitempty"`
	Scopes auth.Scopes `json:"scopes"`
	// Mark and Expires are missing from what an older version says.
	Mark    string    `json:"mark,omitempty"`
	Expires time.Time `json:"expires,omitzero"`
}

// tell returns what another node is told of p.
func tell(p auth.Principal) *principal {
	if p.IsZero() {
		return nil
	}
	return &principal{Kind: p.Kind, ID: p.ID, User: p.User.String(), Scopes: p.Scopes, Mark: p.Mark, Expires: p.Expires}
}

// told returns the principal that another node has told of. The error says that its user is invalid.
func (p *principal) told() (auth.Principal, error) {
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

// helloHeader is the header with the Hello: JSON in base64url (RFC 4648 section 5).
const helloHeader = "Voicegw-Hello"

// maxHello bounds the header, in bytes. A session.start that resumes has a few hundred.
const maxHello = 16 << 10

var errHelloTooLong = errors.New("cluster: the client's session.start is too long to be passed on")

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

// parseHello reads the header; the error names what is wrong, without a value.
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
		return Hello{}, errors.New("the header " + helloHeader + " holds no valid JSON of a client")
	}
	if _, err := h.Principal.told(); err != nil {
		return Hello{}, errors.New("the header " + helloHeader + " holds an invalid principal.user")
	}
	if h.SessionID == "" || len(h.Start) == 0 || !h.Addr.IsValid() {
		return Hello{}, errors.New("the header " + helloHeader + " lacks session_id, start or addr")
	}
	return h, nil
}
