package operator

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"voicegw/internal/textutil"
)

// Health is how a gateway is: the answer of /healthz or /readyz.
type Health struct {
	Status   string `json:"status"`
	Message  string `json:"message"`  // why it is not ready
	Sessions int    `json:"sessions"` // zero in the answer of a gateway that is ready
}

// Health asks a gateway whether it lives or, with ready, whether it takes new sessions. The error says
// why not.
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
