package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"voicegw/session"
	"voicegw/store"
)

// Session implements gateway.Peers: it returns a session of another node. The error wraps store.ErrUnknown if that node
// doesn't run it, ErrUnreachable or ErrRefused.
func (p *Peers) Session(ctx context.Context, node store.Node, id string) (session.Running, error) {
	body, err := p.askSession(ctx, p.prompts, http.MethodGet, node, nil, id)
	if err != nil {
		return session.Running{}, err
	}
	return parseRunning(body, id)
}

func parseRunning(body []byte, id string) (found session.Running, err error) {
	if err := json.Unmarshal(body, &found); err != nil {
		return session.Running{}, fmt.Errorf("%w: invalid session in its answer: %w", ErrRefused, err)
	}
	if found.ID != id {
		return session.Running{}, fmt.Errorf("%w: its answer is about another session", ErrRefused)
	}
	return found, nil
}

// show returns a session of this node to another node.
func (p *Peers) show(w http.ResponseWriter, r *http.Request) {
	if p.opts.Session != nil {
		if found, ok := p.opts.Session(r.PathValue("id")); ok {
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(found) // the other node may have disconnected
			return
		}
	}
	http.Error(w, "This node does not run the session.", http.StatusNotFound)
}

// sessionsPath is the path on which a node ends its sessions for others: DELETE, with the session's ID.
const sessionsPath = "/v1/peer/sessions/"

// EndSession implements gateway.Peers: it ends a session of another node. The error wraps store.ErrUnknown if that node
// doesn't run it, ErrUnreachable or ErrRefused.
func (p *Peers) EndSession(ctx context.Context, node store.Node, session string) error {
	_, err := p.askSession(ctx, p.client, http.MethodDelete, node, nil, session)
	return err
}
