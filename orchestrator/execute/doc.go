// Package execute carries out what the orchestrator has decided about tool calls: it
// runs them in parallel and away from audio, makes an entry in the ledger before each
// side effect, records questions to the user and their answers, and repeats what may be
// repeated. It is the one way a tool runs, for voice and text alike.
package execute
