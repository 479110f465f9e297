// Package load calls a gateway with many callers at once, open loop and in real time, and reports their waits. [Run]
// is the entry point; docs/load.md defines the figures. Subpackage caller runs one session; report has the
// measurements and the results.
package load
