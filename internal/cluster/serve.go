package cluster

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"time"

	"voicegw/internal/auth"
	"voicegw/internal/user"
	"voicegw/protocol"
)

// attachPath is the path on which a node accepts relayed clients, and upgradeTo the protocol it upgrades to.
const (
	attachPath = "/v1/peer/attach"
	upgradeTo  = "voicegw-relay"
)

// confirmHeader announces that the relaying node will confirm the client with the byte confirmation once the owner has
// answered. Until then the owner doesn't tell the session, because the client may be gone. Older nodes neither confirm
// nor wait.
const (
	confirmHeader = "Voicegw-Relay-Confirms"
	confirmation  = 1
)

// Client is a client relayed by another node. It is a protocol.Conn whose first input is the session.start that the
// other node read.
type Client struct {
	*protocol.Conn
	start []byte // nil once received
}

// Receive is that of protocol.Conn, after the session.start.
func (c *Client) Receive() (protocol.Input, error) {
	if c.start != nil {
		f := protocol.Frame{Data: c.start}
		c.start = nil
		return f.Input(), nil
	}
	return c.Conn.Receive() //nolint:wrapcheck // it is the same method
}

// User returns the identity of a client without a name; the zero User if it is missing or invalid.
func (h Hello) User() user.User {
	u, err := user.Stored(h.Anonymous)
	if err != nil {
		return user.User{}
	}
	return u
}

// Handler serves the other nodes. Its listener should come from gateway.Listen and must not be reachable by clients.
func (p *Peers) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+attachPath, p.attach)
	p.serveSessions(mux)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := p.signer.check(r, time.Now()); err != nil {
			http.Error(w, "This address is for cluster nodes only: "+err.Error()+".", http.StatusUnauthorized)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

func (p *Peers) attach(w http.ResponseWriter, r *http.Request) {
	h, err := parseHello(r.Header.Get(helloHeader))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if r.Header.Get("Upgrade") != upgradeTo || p.opts.Accept == nil {
		http.Error(w, "This node accepts no relayed clients.", http.StatusUpgradeRequired)
		return
	}
	if p.opts.Holds != nil && !p.opts.Holds(h.SessionID) {
		http.Error(w, "This node does not run the session.", http.StatusNotFound)
		return
	}
	conn, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, "The connection cannot be upgraded.", http.StatusInternalServerError)
		return
	}
	confirms := r.Header.Get(confirmHeader) != ""
	early, err := upgrade(conn, rw, confirms)
	if err == nil && confirms {
		early, err = confirmed(conn, early)
	}
	if err != nil {
		_ = conn.Close() // the other node or its client is gone
		return
	}
	p.opts.Accept(h, &Client{Conn: protocol.Adopt(conn, early, p.opts.MaxMessageBytes), start: h.Start})
}

func upgrade(conn net.Conn, rw *bufio.ReadWriter, confirms bool) ([]byte, error) {
	early := make([]byte, rw.Reader.Buffered())
	if _, err := io.ReadFull(rw, early); err != nil {
		return nil, err //nolint:wrapcheck // only that it failed matters
	}
	answer := "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: " + upgradeTo + "\r\n"
	if confirms {
		answer += confirmHeader + ": yes\r\n"
	}
	_, err := io.WriteString(conn, answer+"\r\n")
	return early, errors.Join(err, conn.SetDeadline(time.Time{}))
}

// confirmed waits for the other node's confirmation and returns the data received after it.
func confirmed(conn net.Conn, early []byte) ([]byte, error) {
	if len(early) == 0 {
		early = make([]byte, 1)
		_ = conn.SetReadDeadline(time.Now().Add(answerTime)) // if this fails, the read reports it
		if _, err := io.ReadFull(conn, early); err != nil {
			return nil, err //nolint:wrapcheck // only that it failed matters
		}
	}
	if early[0] != confirmation {
		return nil, fmt.Errorf("cluster: the other node sent %#x instead of a confirmation", early[0])
	}
	return early[1:], conn.SetReadDeadline(time.Time{}) //nolint:wrapcheck // only that it failed matters
}

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
