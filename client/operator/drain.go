package operator

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"voicegw/internal/textutil"
)

// DrainProgress is the response of /v1/drain; docs/protocol.md explains the fields.
type DrainProgress struct {
	Draining bool      `json:"draining"`
	Done     bool      `json:"done"`
	Until    time.Time `json:"until"`
	Sessions int       `json:"sessions"`
	Away     int       `json:"away"`
	Moved    int       `json:"moved"`
	Carried  int       `json:"carried"`
	Messages int       `json:"messages"`
}

// String formats the progress as one line, without the remaining time.
func (p DrainProgress) String() string {
	if !p.Draining {
		return "not draining"
	}
	left := []string{textutil.Count(p.Sessions, "session")}
	if p.Away > 0 {
		left[0] += fmt.Sprintf(" (%d without a client)", p.Away)
	}
	if p.Carried > 0 {
		left = append(left, textutil.Count(p.Carried, "client")+" of other gateways")
	}
	if p.Messages > 0 {
		left = append(left, textutil.Count(p.Messages, "text message"))
	}
	what := "draining"
	if p.Done {
		what = "drained"
	}
	return fmt.Sprintf("%s: %s moved, %s left", what, textutil.Count(p.Moved, "session"), strings.Join(left, ", "))
}

// Drain makes the gateway give up its sessions and accept no new ones. Zero means its own drain_timeout.
func (o *Client) Drain(ctx context.Context, timeout time.Duration) (p DrainProgress, err error) {
	body, err := json.Marshal(map[string]int64{"timeout_ms": timeout.Milliseconds()})
	if err == nil {
		err = o.exchange(ctx, request{method: http.MethodPost, path: "/v1/drain", body: bytes.NewReader(body)}, &p, nil)
	}
	return p, err
}

// DrainProgress returns the drain's progress.
func (o *Client) DrainProgress(ctx context.Context) (p DrainProgress, err error) {
	err = o.Ask(ctx, http.MethodGet, "/v1/drain", &p)
	return p, err
}
