// Package model explores every reachable state of a small protocol and checks its promises in each, whether an end is
// always reachable, and whether it is reached if every process continues. It reports a broken promise with the shortest
// trace.
//
// The models of the gateway's protocols are tests next to the code. They call the gateway's own decisions, so that there
// is no second description to maintain. docs/models.md describes each model and its output.
package model
