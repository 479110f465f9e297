// Package jobs runs the long work that tool calls start, and keeps each result until its conversation has been informed.
// The rules are pure functions of a stored job and a time. A Runner applies them: it leases jobs, runs attempts and
// saves results. Each save requires the revision it last read, so a gateway that lost a job's lease can't overwrite the
// new owner's result.
package jobs
