package cluster

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"voicegw/store"
)

// askSession sends another node a signed request about one of its sessions: what are the parts of the path below the
// session. It returns the body of the answer, or what conflict makes of the body that says why the node cannot do it.
// The other errors wrap store.ErrUnknown if that node does not run the session, ErrUnreachable or ErrRefused.
func (p *Peers) askSession(ctx context.Context, client *http.Client, method string, node store.Node, conflict func(why []byte) error, session string, what ...string) ([]byte, error) {
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
	defer answer.Body.Close() //nolint:errcheck // it was read, or says nothing
	want := http.StatusNoContent
	if method == http.MethodGet {
		want = http.StatusOK
	}
	switch {
	case answer.StatusCode == http.StatusNotFound:
		return nil, fmt.Errorf("%w: on the node that had it", store.ErrUnknown)
	case answer.StatusCode != want && (answer.StatusCode != http.StatusConflict || conflict == nil):
		return nil, fmt.Errorf("%w: %s", ErrRefused, answer.Status)
	}
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	if answer.StatusCode != want {
		return nil, conflict(body)
	}
	return body, nil
}
