// Package fault decides which faults the provider simulator commits, and when.
//
// A Script is read from YAML (Parse); an Injector is one connection's use of
// it. The injector is pure: it is told where the wire stands (a Point) and
// answers with the Actions that are due there. The wires carry them out. With
// the same script, the same seed and the same points the answers are the same.
package fault
