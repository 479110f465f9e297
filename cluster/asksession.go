package cluster

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"voicegw/store"
)

// askSession sends another node a signed request about one of its sessions: what are the parts of the path below the
// session. The caller closes the answer's body. The error wraps ErrUnreachable.
func (p *Peers) askSession(ctx context.Context, client *http.Client, method string, node store.Node, session string, what ...string) (*http.Response, error) {
	base, err := url.Parse(node.URL)
	if err != nil {
		return nil, fmt.Errorf("%w: its address is not a URL", ErrUnreachable)
	}
	at := base.JoinPath(sessionsPath, url.PathEscape(session)).JoinPath(what...)
	r, err := http.NewRequestWithContext(ctx, method, at.String(), nil)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	p.signer.sign(r, time.Now())
	answer, err := client.Do(r)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	return answer, nil
}
