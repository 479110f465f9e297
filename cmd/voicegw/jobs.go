package main

import (
	"time"

	"voicegw/internal/jobs"
	"voicegw/internal/webhook"
	"voicegw/store"
)

// jobsTime bounds how long giving back the jobs that run may take at the end.
const jobsTime = 3 * time.Second

// openJobs begins to do the long work that calls begin, and that was left by processes that have ended.
func (s *server) openJobs() {
	s.jobs = jobs.New(jobs.Options{
		Keep: s.caps.store.Jobs(), Tools: s.tools.Snapshot, Node: s.cfg.Cluster.URL, Audit: s.record, Ended: s.tellJob, Owed: s.jobsOwed,
		Progressed: s.jobProgressed, Logger: s.logger.With("component", "jobs"),
	})
	s.caps.handoff.TellJobs(s.jobs)
}

// jobsOwed has the voice sessions told of their jobs that have ended. It does not wait.
func (s *server) jobsOwed(owed []store.Job) {
	if m := s.voices.Load(); m != nil {
		m.JobsEnded(owed, s.jobs)
	}
}

// jobProgressed has the client of a voice session told how far a job is. It does not wait.
func (s *server) jobProgressed(j store.Job) {
	if m := s.voices.Load(); m != nil {
		m.JobProgressed(j)
	}
}

// tellJob tells the receivers of webhooks that a job has ended. It does not wait.
func (s *server) tellJob(j store.Job) {
	e, err := webhook.NewJobEvent(j.EndedAt, webhook.Job{
		JobID: j.ID, Tool: j.Tool, Name: j.Name, State: string(j.State), User: j.User, ConversationID: j.Conversation, SessionID: j.Session,
		CallID: j.Call, Attempts: j.Attempt, CreatedAt: webhook.Time(j.CreatedAt), EndedAt: webhook.Time(j.EndedAt),
	})
	if err != nil {
		s.logger.Error("an event cannot be sent", "type", webhook.JobEnded, "job", j.ID, "error", err)
		return
	}
	s.webhooks.Tell(e)
}
