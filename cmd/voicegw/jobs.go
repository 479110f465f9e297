package main

import (
	"time"

	"voicegw/internal/jobs"
	"voicegw/internal/webhook"
	"voicegw/store"
)

// jobsTime limits the release of running jobs at the end.
const jobsTime = 3 * time.Second

// openJobs starts the background jobs, including those that ended processes have left.
func (s *server) openJobs() {
	s.jobs = jobs.New(jobs.Options{
		Keep: s.caps.store.Jobs(), Tools: s.tools.Snapshot, Node: s.cfg.Cluster.URL, Audit: s.record, Ended: s.sendJob, Owed: s.jobsOwed,
		Progressed: s.jobProgressed, Logger: s.logger.With("component", "jobs"),
	})
	s.caps.handoff.SetJobs(s.jobs)
}

// jobsOwed reports finished jobs to their voice sessions. It does not block.
func (s *server) jobsOwed(owed []store.Job) {
	if m := s.voices.Load(); m != nil {
		m.JobsEnded(owed, s.jobs)
	}
}

// jobProgressed reports a job's progress to its voice session. It does not block.
func (s *server) jobProgressed(j store.Job) {
	if m := s.voices.Load(); m != nil {
		m.JobProgressed(j)
	}
}

// sendJob sends a webhook event for a finished job. It does not block.
func (s *server) sendJob(j store.Job) {
	e, err := webhook.NewJobEvent(j.EndedAt, webhook.Job{
		JobID: j.ID, Tool: j.Tool, Name: j.Name, State: string(j.State), User: j.User, ConversationID: j.Conversation, SessionID: j.Session,
		CallID: j.Call, Attempts: j.Attempt, CreatedAt: webhook.Time(j.CreatedAt), EndedAt: webhook.Time(j.EndedAt),
	})
	if err != nil {
		s.logger.Error("queueing a webhook event failed", "type", webhook.JobEnded, "job", j.ID, "error", err)
		return
	}
	s.webhooks.Tell(e)
}
