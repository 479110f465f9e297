// Package jobs does the long work that calls of tools have begun, and keeps what is owed to their
// conversations. The rules are pure functions of a stored job and a time; a Runner applies them: it takes
// jobs under leases, runs attempts, and writes what became of them, each time over the revision that it
// knows, so that of several gateways one has a job, and one that has lost it writes nothing more.
package jobs
