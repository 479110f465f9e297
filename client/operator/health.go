package operator

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"voicegw/internal/textutil"
)

// Health is the response of /healthz or /readyz.
type Health struct {
	Status   string `json:"status"`
	Message  string `json:"message"`  // why it is not ready
	Sessions int    `json:"sessions"` // zero if ready
}

// Health asks whether a gateway is alive or, with ready, accepts new sessions. The error has the reason if not.
func (o *Client) Health(ctx context.Context, ready bool) (h Health, err error) {
	if !ready {
		return h, o.Ask(ctx, http.MethodGet, "/healthz", &h)
	}
	status, _, body, err := o.fetch(ctx, request{method: http.MethodGet, path: "/readyz"})
	switch {
	case err != nil:
		return h, err
	case json.Unmarshal(body, &h) != nil || h.Status == "":
		return h, o.stranger(status)
	case status != http.StatusOK:
		return h, fmt.Errorf("the gateway at %s is not ready (%s): %s", o.Base, textutil.Quote(h.Status), textutil.Quote(h.Message))
	}
	return h, nil
}
