package gateway

import (
	"bytes"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"voicegw/internal/nonblock"
	"voicegw/session"
)

// TestBehindTakesNobody: while the gateway is behind it says so at /readyz, with since when and
// how late, and refuses sessions in the same words; it takes them again by itself.
func TestBehindTakesNobody(t *testing.T) {
	var late atomic.Pointer[nonblock.Lateness]
	srv, _ := startWith(t, session.Limits{}, func(o *Options) { o.Lateness = func() nonblock.Lateness { return *late.Load() } })
	since := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, l := range []nonblock.Lateness{{Behind: true, Since: since, Longest: 7100 * time.Millisecond}, {}} {
		late.Store(&l)
		for _, path := range []string{"/readyz", "/v1/voice"} {
			resp, body := get(t, srv.URL+path)
			refused := resp.StatusCode == 503 && resp.Header.Get("Retry-After") != ""
			for _, word := range []string{`"behind"`, "7.1 s late", "since 2026-01-02T03:04:05Z", "no new session"} {
				refused = refused && strings.Contains(body, word)
			}
			if refused != l.Behind {
				t.Errorf("behind %t, %s: %d %s", l.Behind, path, resp.StatusCode, body)
			}
		}
	}
}

// TestLatenessIsLogged: with numbers, in either direction.
func TestLatenessIsLogged(t *testing.T) {
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	l := nonblock.Lateness{Behind: true, Since: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Longest: 7100 * time.Millisecond}
	for _, word := range []string{"behind: ", "caught up: "} {
		logLateness(logger, l)
		for _, w := range []string{word, "late_ms=7100", "since=2026-01-02T03:04:05"} {
			if !strings.Contains(log.String(), w) {
				t.Errorf("the log does not say %q: %s", w, log.String())
			}
		}
		log.Reset()
		l.Behind = false
	}
}
