// Package e2e contains the tests and benchmarks of the whole system, with real sockets from the client through the
// gateway and a provider's adapter to the simulator.
package e2e
