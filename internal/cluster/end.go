package cluster

import (
	"context"
	"net/http"

	"voicegw/store"
)

// sessionsPath is the path on which a node ends its sessions for others: DELETE, with the session's ID.
const sessionsPath = "/v1/peer/sessions/"

// EndSession implements gateway.Peers: it ends a session of another node. The error wraps store.ErrUnknown if that node
// doesn't run it, ErrUnreachable or ErrRefused.
func (p *Peers) EndSession(ctx context.Context, node store.Node, session string) error {
	_, err := p.askSession(ctx, p.client, http.MethodDelete, node, nil, session)
	return err
}
