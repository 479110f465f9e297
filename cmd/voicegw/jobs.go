package main

import (
	"context"
	"time"

	"voicegw/jobs"
)

// jobsTime bounds how long giving back the jobs that run may take at the end.
const jobsTime = 3 * time.Second

// openJobs begins to do the long work that calls begin, and that was left by processes that have ended.
func (s *server) openJobs() {
	s.jobs = jobs.New(jobs.Options{
		Keep: jobs.Kept(s.caps.store.Jobs()), Tools: s.tools.Snapshot, Node: s.cfg.Cluster.URL, Audit: s.record,
		Logger: s.logger.With("component", "jobs"),
	})
	s.caps.handoff.TellJobs(s.jobs)
}

func (s *server) closeJobs() error {
	if s.jobs == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), jobsTime)
	defer cancel()
	return s.jobs.Close(ctx)
}
