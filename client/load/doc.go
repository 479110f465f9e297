// Package load calls a gateway with many callers at once, open loop and in real time, and
// reports what they had to wait for. [Run] does the whole; docs/load.md says what the
// figures mean.
//
//	report   the result as JSON, text and HTML; thresholds; comparisons
//	script   what is said and expected
//	speech   recordings, and where the user speaks in them
//	caller   one session: a pure conversation, and the two goroutines that let it happen
//	measure  distributions, counters, problems, and how all of it went over time
//	report   the result as JSON, text and HTML; thresholds; comparisons
//	process  what the gateway's process takes
package load
