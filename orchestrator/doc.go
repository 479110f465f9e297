// Package orchestrator decides what happens in a conversation: where a turn
// begins and ends, what an interruption stops, what the model is told, and what
// becomes of a tool call.
//
// Its heart is [Step], a pure function from a [State] and an [Input] to the next
// State and the [Action] values that follow. It reads no clock, starts no
// goroutine and moves no audio: the session feeds it and carries its actions out,
// in order. A bug report therefore becomes a row of a table, and a whole
// conversation a golden file.
package orchestrator
