// Package scenario decides what the simulated model hears, says and does.
//
// A Scenario is read from YAML (Parse, Default); a Dialogue is one
// conversation that follows it. The dialogue is pure and has no clock: the caller passes in
// the user's words or the results, and gets back the steps of a turn.
// The wires carry the steps out.
package scenario
