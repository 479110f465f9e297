package gateway

import (
	"strings"
	"sync/atomic"
	"testing"

	"voicegw/session"
)

// TestBehindTakesNobody: while the gateway is behind it says so at /readyz and refuses
// sessions in words, and takes them again by itself.
func TestBehindTakesNobody(t *testing.T) {
	var behind atomic.Bool
	srv, _ := startWith(t, session.Limits{}, func(o *Options) { o.Behind = behind.Load })
	for _, late := range []bool{true, false} {
		behind.Store(late)
		for _, path := range []string{"/readyz", "/v1/voice"} {
			resp, body := get(t, srv.URL+path)
			if refused := resp.StatusCode == 503 && resp.Header.Get("Retry-After") != "" && strings.Contains(body, "behind"); refused != late {
				t.Errorf("behind %t, %s: %d %s", late, path, resp.StatusCode, body)
			}
		}
	}
}
