// Package orchestrator decides what happens in a voice session: where turns begin and end, what an interruption stops,
// what the model is told, and what becomes of a tool call.
//
// [Step] is a pure function from a [State] and an [Input] to the next State and a list of [Action] values. It reads no
// clock, starts no goroutine and moves no audio; the session feeds it and carries the actions out. Bugs therefore
// become table rows, and conversations golden files.
package orchestrator
