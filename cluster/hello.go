package cluster

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
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
	// MayInspect allows the client to look inside the session.
	MayInspect bool `json:"may_inspect,omitempty"`
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
	if h.SessionID == "" || len(h.Start) == 0 || !h.Addr.IsValid() {
		return Hello{}, errors.New("the header " + helloHeader + " lacks session_id, start or addr")
	}
	return h, nil
}
