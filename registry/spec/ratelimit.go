package spec

import (
	"fmt"
	"time"

	"voicegw/registry/document"
)

// Limits of a [RateLimit]. Calls are counted in memory, so long windows make no sense.
const (
	maxRateCalls  = 1000
	minRateWindow = time.Second
	maxRateWindow = 24 * time.Hour
)

// RateLimit limits the calls of a user to Calls within each sliding Window.
type RateLimit struct {
	// Calls is 1 to 1000.
	Calls int `json:"calls"`
	// Window is a duration as the author wrote it, such as "1h"; see [RateLimit.Within].
	Window string `json:"window"`
}

// Within returns the window; zero if invalid, which [Parse] reports.
func (l RateLimit) Within() time.Duration {
	d, err := time.ParseDuration(l.Window)
	if err != nil || d < minRateWindow || d > maxRateWindow {
		return 0
	}
	return d
}

// String returns text such as "5 in 1h".
func (l RateLimit) String() string { return fmt.Sprintf("%d in %s", l.Calls, l.Window) }

// rateLimit parses {"calls": 5, "window": "1h"}.
func (r *specReader) rateLimit() *RateLimit {
	v, has := r.object["rateLimit"]
	if !has {
		return nil
	}
	object, ok := v.(map[string]any)
	if !ok {
		r.problem(document.Pointer{"rateLimit"},
			"\"rateLimit\" is an object such as {\"calls\": 5, \"window\": \"1h\"}, got %s; without a limit, leave it out.",
			document.Describe(v))
		return nil
	}
	r.onlyKeys(document.Pointer{"rateLimit"}, object, "a rateLimit", []string{"calls", "window"})
	l := new(RateLimit)
	if calls, has := object["calls"]; !has {
		r.problem(document.Pointer{"rateLimit", "calls"},
			"The key \"calls\" is missing; add it: how often the tool may run for one user within the window.")
	} else if l.Calls, ok = wholeNumber(calls); !ok || l.Calls < 1 || l.Calls > maxRateCalls {
		r.problem(document.Pointer{"rateLimit", "calls"}, "\"calls\" is a whole number from 1 to %d, got %s.", maxRateCalls,
			document.Describe(calls))
	}
	if window, has := object["window"]; !has {
		r.problem(document.Pointer{"rateLimit", "window"}, "The key \"window\" is missing; add it: a time such as \"1h\".")
	} else if l.Window, _ = window.(string); l.Within() == 0 {
		r.problem(document.Pointer{"rateLimit", "window"},
			"\"window\" is a time from 1s to 24h, such as \"30s\", \"10m\" or \"1h30m\", got %s.", document.Show(window))
	}
	return l
}
