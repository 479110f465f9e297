package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"voicegw/session"
	"voicegw/store"
)

// maxPrompt bounds a prompt with its tools in bytes.
const maxPrompt = 4 << 20

// Prompt implements gateway.Peers: it returns the prompt of a session of another node. The error wraps store.ErrUnknown
// if that node doesn't run it, session.ErrNoModel, ErrUnreachable or ErrRefused.
func (p *Peers) Prompt(ctx context.Context, node store.Node, id string) (session.Prompt, error) {
	body, err := p.askSession(ctx, p.prompts, http.MethodGet, node, func([]byte) error { return session.ErrNoModel }, id, "prompt")
	if err != nil {
		return session.Prompt{}, err
	}
	return parsePrompt(body)
}

func parsePrompt(body []byte) (found session.Prompt, err error) {
	if err := json.Unmarshal(body, &found); err != nil {
		return session.Prompt{}, fmt.Errorf("%w: invalid prompt in its answer: %w", ErrRefused, err)
	}
	return found, nil
}

// showPrompt returns a session's prompt to another node.
func (p *Peers) showPrompt(w http.ResponseWriter, r *http.Request) {
	found, err := session.Prompt{}, session.ErrNotHere
	if p.opts.Prompt != nil {
		found, err = p.opts.Prompt(r.PathValue("id"))
	}
	switch {
	case err == nil:
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(found) // the other node may have disconnected
	case errors.Is(err, session.ErrNoModel):
		http.Error(w, "The session has no model.", http.StatusConflict)
	default:
		http.Error(w, "This node does not run the session.", http.StatusNotFound)
	}
}
