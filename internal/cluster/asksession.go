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

// askSession sends another node a signed request about one of its sessions; path is the rest of the path after the
// session ID. It returns the answer's body, or conflict's error for the body of a 409. Other errors wrap
// store.ErrUnknown (the node doesn't run the session), ErrUnreachable or ErrRefused.
func (p *Peers) askSession(ctx context.Context, client *http.Client, method string, node store.Node,
	conflict func(why []byte) error, session string, path ...string) ([]byte, error) {
	base, err := url.Parse(node.URL)
	if err != nil {
		return nil, fmt.Errorf("%w: its address is not a URL", ErrUnreachable)
	}
	at := base.JoinPath(sessionsPath, url.PathEscape(session)).JoinPath(path...)
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
		return nil, fmt.Errorf("%w: on the node that ran it", store.ErrUnknown)
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
