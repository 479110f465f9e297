package cluster

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"voicegw/session"
	"voicegw/store"
)

// maxWhy bounds the reason why another node cannot switch an agent, in bytes.
const maxWhy = 1000

// wanted is which agent is to go on, and why. It is part of the path, because the path is signed.
type wanted struct {
	Agent  string `json:"agent"`
	Reason string `json:"reason"`
}

func (w wanted) encode() string {
	raw, _ := json.Marshal(w) // two texts: it cannot fail
	return base64.RawURLEncoding.EncodeToString(raw)
}

func parseWanted(text string) (w wanted, err error) {
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil {
		err = json.Unmarshal(raw, &w)
	}
	return w, err
}

// SwitchAgent implements gateway.Peers: it lets another agent go on with a session that another node runs.
// The error wraps store.ErrUnknown if that node does not run it, session.ErrAgent, ErrUnreachable or
// ErrRefused.
func (p *Peers) SwitchAgent(ctx context.Context, node store.Node, id, agent, reason string) error {
	cannot := func(why []byte) error {
		return fmt.Errorf("%w: %s", session.ErrAgent, bytes.TrimSpace(why[:min(len(why), maxWhy)]))
	}
	_, err := p.askSession(ctx, p.client, http.MethodPut, node, cannot, id, "agent", wanted{agent, reason}.encode())
	return err
}

// switchAgent lets another agent go on with a session, for another node's operator.
func (p *Peers) switchAgent(w http.ResponseWriter, r *http.Request) {
	to, err := parseWanted(r.PathValue("what"))
	if err != nil {
		http.Error(w, "It does not say which agent is to go on.", http.StatusBadRequest)
		return
	}
	err = session.ErrNotHere
	if p.opts.Switch != nil {
		err = p.opts.Switch(r.PathValue("id"), to.Agent, to.Reason)
	}
	switch {
	case err == nil:
		w.WriteHeader(http.StatusNoContent)
	case errors.Is(err, session.ErrAgent):
		http.Error(w, session.WhyNot(err), http.StatusConflict)
	default:
		http.Error(w, "This node does not run the session.", http.StatusNotFound)
	}
}
