// Package orchestrator decides what happens in a voice session: where turns begin and end, what an interruption stops,
// what the model is told, and what becomes of a tool call.
//
// [Step] is a pure function from a [State] and an [Input] to the next State and a list of [Action] values. It reads no
// clock, starts no goroutine and moves no audio; the session feeds it and carries the actions out. Bugs therefore
// become table rows, and conversations golden files.
package orchestrator

import (
	"slices"

	"voicegw/prompts"
)

// jobEnded tells the model about the end of a job at the next quiet moment. An ending session leaves it to the next
// session of the conversation.
func (m *machine) jobEnded(in JobEnded) {
	if m.phase != PhaseActive || m.TellsOf(in.Job) || len(m.notices) >= maxNotices {
		return
	}
	m.notices = append(m.notices, notice{job: in.Job, text: prompts.JobNotice(in.Name, in.Tool, in.Job, m.mark.JSON(in.Result))})
}

// TellsOf reports whether the model will be told about the end of a job.
func (s State) TellsOf(job string) bool {
	return slices.ContainsFunc(s.notices, func(n notice) bool { return n.job == job })
}
