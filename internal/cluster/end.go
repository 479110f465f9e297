package cluster

import (
	"context"
	"net/http"

	"voicegw/store"
)

// sessionsPath is where a node ends its sessions for others: DELETE, followed by the session's id.
const sessionsPath = "/v1/peer/sessions/"

// EndSession implements gateway.Peers: it ends a session that another node runs. The error wraps
// store.ErrUnknown if that node does not run it, ErrUnreachable or ErrRefused.
func (p *Peers) EndSession(ctx context.Context, node store.Node, session string) error {
	_, err := p.askSession(ctx, p.client, http.MethodDelete, node, nil, session)
	return err
}
