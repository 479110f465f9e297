package cluster

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

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

// Client is a client relayed by another node. It is a protocol.Conn whose first frame is the session.start that the
// other node read.
type Client struct {
	*protocol.Conn
	start []byte // nil once read
}

func (c *Client) Read() (protocol.Frame, error) {
	if c.start != nil {
		f := protocol.Frame{Data: c.start}
		c.start = nil
		return f, nil
	}
	return c.Conn.Read() //nolint:wrapcheck // it is the same method
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
