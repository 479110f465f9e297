// Package fault decides which faults the provider simulator injects, and when.
//
// A Script is read from YAML (Parse); an Injector is one connection's use of
// it. The injector is pure: the wire reports where it is (a Point), and the injector
// returns the Actions that are due there. The wires carry them out. With
// the same script, the same seed and the same points the results are the same.
package fault
