package calendar

import (
	"net/http"
	"strconv"
	"time"
)

// maxWait bounds what a server may ask to wait.
const maxWait = 24 * time.Hour

// RetryAfter reads the header of that name, seconds or a date (RFC 9110 section
// 10.2.3), for an answer that came at now. It is 0 for none, at most a day.
func RetryAfter(h http.Header, now time.Time) time.Duration {
	text := h.Get("Retry-After")
	if n, err := strconv.ParseUint(text, 10, 31); err == nil {
		return min(time.Duration(n)*time.Second, maxWait)
	}
	if at, err := http.ParseTime(text); err == nil {
		return min(max(0, at.Sub(now)), maxWait)
	}
	return 0
}
