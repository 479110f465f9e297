package orchestrator

import (
	"slices"

	"voicegw/prompts"
)

// jobEnded has the model told of the end of long work at the next quiet moment. What a session that is ending
// cannot tell any more is told when the conversation goes on.
func (m *machine) jobEnded(in JobEnded) {
	if m.phase != PhaseActive || m.TellsOf(in.Job) || len(m.notices) >= maxNotices {
		return
	}
	m.notices = append(m.notices, notice{job: in.Job, text: prompts.JobNotice(in.Name, in.Tool, in.Job, m.mark.JSON(in.Result))})
}

// TellsOf reports whether the model will be told of the end of a job.
func (s State) TellsOf(job string) bool {
	return slices.ContainsFunc(s.notices, func(n notice) bool { return n.job == job })
}
