package cluster

import (
	"context"
	"fmt"
	"net/http"

	"voicegw/store"
)

// sessionsPath is where a node ends its sessions for others: DELETE, followed by the session's id.
const sessionsPath = "/v1/peer/sessions/"

// EndSession implements gateway.Peers: it ends a session that another node runs. The error wraps
// store.ErrUnknown if that node does not run it, ErrUnreachable or ErrRefused.
func (p *Peers) EndSession(ctx context.Context, node store.Node, session string) error {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	answer, err := p.askSession(ctx, p.client, http.MethodDelete, node, session)
	if err != nil {
		return err
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
