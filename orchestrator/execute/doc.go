// Package execute carries out what the orchestrator has decided about tool calls. It runs them
// in parallel and apart from audio, makes an entry in the ledger before each side effect,
// records questions to the user and their answers, and repeats calls where that is safe. All
// tools run through it, for voice and text alike.
package execute
