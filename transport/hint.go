package transport

import (
	"regexp"
	"strings"
	"time"
)

// waitWords finds the wait in a provider's message: "Please try again in 1.2s", "retry in 6m0s",
// "Retry after 20 seconds".
var waitWords = regexp.MustCompile(`(?i)\b(?:try again|retry|retry after|try again after) (?:in )?((?:\d+(?:\.\d+)?\s*(?:ms|` +
	`milliseconds?|s|secs?|seconds?|m|minutes?|h|hours?)\b\s*)+|(?:\d+(?:\.\d+)?(?:h|m|s|ms))+)`)

// waitPart is one number with its unit.
var waitPart = regexp.MustCompile(`(?i)(\d+(?:\.\d+)?)\s*(ms|milliseconds?|s|secs?|seconds?|m|minutes?|h|hours?)`)

// longestHint limits a hint.
const longestHint = time.Hour

// WaitIn returns the wait in a provider's error message, at most an hour; zero without one.
func WaitIn(message string) time.Duration {
	found := waitWords.FindStringSubmatch(message)
	if found == nil {
		return 0
	}
	var total time.Duration
	for _, part := range waitPart.FindAllStringSubmatch(found[1], 4) {
		unit := strings.ToLower(part[2])
		switch {
		case strings.HasPrefix(unit, "ms"), strings.HasPrefix(unit, "mill"):
			unit = "ms"
		default:
			unit = unit[:1]
		}
		d, err := time.ParseDuration(part[1] + unit)
		if err != nil || d > longestHint {
			return longestHint // the number is too large for a duration
		}
		total += d
	}
	return min(total, longestHint)
}
