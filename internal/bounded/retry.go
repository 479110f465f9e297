package bounded

import (
	"math"
	"net/http"
	"strconv"
	"time"
)

const longestWait = 24 * time.Hour

// RetryAfter returns the wait a server asks for in an answer received at now: seconds or a date in Retry-After (RFC
// 9110, section 10.2.3), or OpenAI's retry-after-ms. It is at most a day; zero without a valid header.
func RetryAfter(h http.Header, now time.Time) time.Duration {
	text := h.Get("Retry-After")
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil {
		return waitOf(ms / 1000)
	}
	if seconds, err := strconv.ParseFloat(text, 64); err == nil {
		return waitOf(seconds)
	}
	if at, err := http.ParseTime(text); err == nil {
		return waitOf(at.Sub(now).Seconds())
	}
	return 0
}

// waitOf bounds a number of seconds. Values over 32 bits are a server bug.
func waitOf(seconds float64) time.Duration {
	if math.IsNaN(seconds) || seconds <= 0 || seconds > math.MaxInt32 {
		return 0
	}
	return time.Duration(min(seconds, longestWait.Seconds()) * float64(time.Second))
}
