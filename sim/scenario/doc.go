// Package scenario is what the simulated model hears, says and does.
//
// A Scenario is read from YAML (Parse, Default); a Dialogue is one
// conversation in it. The dialogue is pure and has no clock: it is told what
// the user said or which results came, and answers with the steps of a turn.
// The wires carry the steps out.
package scenario
