// Package load calls a gateway with many callers at once, open loop and in real time, and
// reports how long they had to wait. [Run] does it all; docs/load.md defines the figures.
//
//	caller   one session: its script, a pure conversation, and the two goroutines that run it
//	measure  distributions, counters, problems, and all of it over time
//	report   the result as JSON, text and HTML; thresholds; comparisons
package load
