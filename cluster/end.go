package cluster

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"voicegw/store"
)

// sessionsPath is where a node ends its sessions for others: DELETE, followed by the session's id.
const sessionsPath = "/v1/peer/sessions/"

// EndSession implements gateway.Peers: it ends a session that another node runs. The error wraps
// store.ErrUnknown if that node does not run it, ErrUnreachable or ErrRefused.
func (p *Peers) EndSession(ctx context.Context, node store.Node, session string) error {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	base, err := url.Parse(node.URL)
	if err != nil {
		return fmt.Errorf("%w: its address is no URL", ErrUnreachable)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodDelete, base.JoinPath(sessionsPath, url.PathEscape(session)).String(), nil)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	p.signer.sign(r, time.Now())
	answer, err := p.client.Do(r)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	_ = answer.Body.Close() // the status is the answer
	switch answer.StatusCode {
	case http.StatusNoContent:
		return nil
	case http.StatusNotFound:
		return fmt.Errorf("%w: on the node that had it", store.ErrUnknown)
	}
	return fmt.Errorf("%w: %s", ErrRefused, answer.Status)
}
