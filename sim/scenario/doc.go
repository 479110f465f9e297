// Package scenario decides what the simulated model hears, says and does.
//
// A Scenario is read from YAML (Parse, Default); a Dialogue is a conversation that follows it. The dialogue is pure
// and has no clock: it takes the user's words or results and returns the steps of a turn, which the wires carry out.
package scenario
