package operator

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"time"

	"voicegw/protocol"
)

// Drain makes the gateway give up its sessions and accept no new ones. Zero means its own drain_timeout.
func (o *Client) Drain(ctx context.Context, timeout time.Duration) (p protocol.DrainProgress, err error) {
	body, err := json.Marshal(map[string]int64{"timeout_ms": timeout.Milliseconds()})
	if err == nil {
		err = o.exchange(ctx, request{method: http.MethodPost, path: "/v1/drain", body: bytes.NewReader(body)}, &p, nil)
	}
	return p, err
}

// DrainProgress returns the drain's progress.
func (o *Client) DrainProgress(ctx context.Context) (p protocol.DrainProgress, err error) {
	err = o.Ask(ctx, http.MethodGet, "/v1/drain", &p)
	return p, err
}
