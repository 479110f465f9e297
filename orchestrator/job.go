package orchestrator

import (
	"slices"

	"voicegw/prompts"
)

// jobEnded reports the end of a job to the model at the next quiet moment. An ending session leaves it to the next
// session of the conversation.
func (m *machine) jobEnded(in JobEnded) {
	if m.phase != PhaseActive || m.TellsOf(in.Job) || len(m.notices) >= maxNotices {
		return
	}
	m.notices = append(m.notices, notice{job: in.Job, text: prompts.JobNotice(in.Name, in.Tool, in.Job, m.mark.JSON(in.Result))})
}

// TellsOf reports whether the model will learn of the end of a job.
func (s State) TellsOf(job string) bool {
	return slices.ContainsFunc(s.notices, func(n notice) bool { return n.job == job })
}
