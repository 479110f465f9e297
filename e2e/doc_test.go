// Package e2e holds the tests and benchmarks of the whole: real sockets from the
// client through the gateway and a provider's adapter to the simulator, nothing
// faked. It has no code of its own.
package e2e
