package server

import (
	"maps"
	"slices"
	"time"

	"voicegw/config"
	"voicegw/internal/jobs"
	"voicegw/internal/webhook"
	"voicegw/store"
)

func endpoints(cfg *config.Config) []webhook.Endpoint {
	var all []webhook.Endpoint
	for _, name := range slices.Sorted(maps.Keys(cfg.Webhooks)) {
		w := cfg.Webhooks[name]
		all = append(all, webhook.Endpoint{
			Name: name, URL: w.URL.Reveal(), Secrets: w.Secrets(), Events: w.Events, Private: w.Private, Timeout: w.Timeout,
		})
	}
	return all
}

// sendSession sends a webhook event for the start or end of a session. It does not block.
func (s *Server) sendSession(kind string, at time.Time, data webhook.Session) {
	e, err := webhook.NewEvent(kind, at, data)
	s.tellWebhooks(e, err, kind, "session_id", data.SessionID)
}

func (s *Server) tellWebhooks(e store.Webhook, err error, kind, about, id string) {
	if err != nil {
		s.logger.Error("queueing a webhook event failed", "type", kind, about, id, "error", err)
		return
	}
	s.webhooks.Tell(e)
}

// openJobs starts the background jobs, including those that ended processes have left.
func (s *Server) openJobs() {
	// Neither blocks.
	owed := func(owed []store.Job) {
		if m := s.voices.Load(); m != nil {
			m.JobsEnded(owed, s.jobs)
		}
	}
	progressed := func(j store.Job) {
		if m := s.voices.Load(); m != nil {
			m.JobProgressed(j)
		}
	}
	s.jobs = jobs.New(jobs.Options{
		Keep: s.caps.store.Jobs, Tools: s.tools.Snapshot, Node: s.cfg.Cluster.URL, Audit: s.record, Ended: s.sendJob, Owed: owed,
		Progressed: progressed, Logger: s.logger.With("component", "jobs"),
	})
	s.caps.handoff.SetJobs(s.jobs)
}

// sendJob sends a webhook event for a finished job. It does not block.
func (s *Server) sendJob(j store.Job) {
	e, err := webhook.NewJobEvent(j.EndedAt, webhook.Job{
		JobID: j.ID, Tool: j.Tool, Name: j.Name, State: string(j.State), User: j.User, ConversationID: j.Conversation, SessionID: j.Session,
		CallID: j.Call, Attempts: j.Attempt, CreatedAt: webhook.Time(j.CreatedAt), EndedAt: webhook.Time(j.EndedAt),
	})
	s.tellWebhooks(e, err, webhook.JobEnded, "job", j.ID)
}
