package bounded

import (
	"net/http"
	"testing"
	"time"
)

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	for _, tc := range []struct {
		name, value string
		want        time.Duration
	}{
		{"Retry-After", "", 0},
		{"Retry-After", "7", 7 * time.Second},
		{"Retry-After", "1.5", 1500 * time.Millisecond},
		{"Retry-After", "-7", 0},
		{"Retry-After", "soon", 0},
		{"Retry-After", "NaN", 0},
		{"Retry-After", "Inf", 0},
		{"Retry-After", "99999999999", 0},
		{"Retry-After", "200000", 24 * time.Hour},
		{"Retry-After", "Fri, 20 Nov 2026 09:00:30 GMT", 30 * time.Second},
		{"Retry-After", "Fri, 20 Nov 2026 08:00:30 GMT", 0},
		{"Retry-After", "Fri, 27 Nov 2026 09:00:30 GMT", 24 * time.Hour},
		{"Retry-After-Ms", "250", 250 * time.Millisecond},
		{"Retry-After-Ms", "-1", 0},
	} {
		if got := RetryAfter(http.Header{tc.name: {tc.value}}, now); got != tc.want {
			t.Errorf("%s: %q is %s, want %s", tc.name, tc.value, got, tc.want)
		}
	}
}
