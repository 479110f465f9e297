// Package fault decides which faults the provider simulator injects, and when.
//
// A Script is read from YAML (Parse); an Injector is one connection's use of it. The injector is pure: the wire
// reports its Point and gets the Actions that are due. The same script, seed and points give the same faults.
package fault
