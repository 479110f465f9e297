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

// maxWhy bounds a reason for refusing a switch in bytes.
const maxWhy = 1000

// wanted is the requested agent and the reason. It is part of the path, because the path is signed.
type wanted struct {
	Agent  string `json:"agent"`
	Reason string `json:"reason"`
}

func (w wanted) encode() string {
	raw, _ := json.Marshal(w) // cannot fail: two strings
	return base64.RawURLEncoding.EncodeToString(raw)
}

func parseWanted(text string) (w wanted, err error) {
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil {
		err = json.Unmarshal(raw, &w)
	}
	return w, err
}

// SwitchAgent implements gateway.Peers: it hands a session of another node to another agent. The error wraps
// store.ErrUnknown if that node doesn't run it, session.ErrAgent, ErrUnreachable or ErrRefused.
func (p *Peers) SwitchAgent(ctx context.Context, node store.Node, id, agent, reason string) error {
	cannot := func(why []byte) error {
		return fmt.Errorf("%w: %s", session.ErrAgent, bytes.TrimSpace(why[:min(len(why), maxWhy)]))
	}
	_, err := p.askSession(ctx, p.client, http.MethodPut, node, cannot, id, "agent", wanted{agent, reason}.encode())
	return err
}

// switchAgent hands a session to another agent for another node.
func (p *Peers) switchAgent(w http.ResponseWriter, r *http.Request) {
	to, err := parseWanted(r.PathValue("what"))
	if err != nil {
		http.Error(w, "The request names no agent.", http.StatusBadRequest)
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
