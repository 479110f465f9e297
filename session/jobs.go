package session

import (
	"cmp"
	"context"
	"errors"
	"sync/atomic"
	"time"

	"voicegw/internal/conversation"
	"voicegw/orchestrator"
	"voicegw/protocol"
	"voicegw/store"
)

// Jobs is what a session asks about long work that calls have begun; *jobs.Runner implements it.
type Jobs interface {
	// Job returns a job with its result.
	Job(ctx context.Context, id string) (store.Job, error)
	// Told notes that the conversation of a job was told of its end; of several who note it one gets true.
	Told(ctx context.Context, id string) (first bool, err error)
}

// jobReports is what a session knows of its jobs that have ended.
type jobReports struct {
	reading atomic.Bool // a goroutine reads them

	// Guarded by the session's mu.
	source   Jobs            // nil until a job has ended
	reported map[string]bool // ids of the jobs whose end this process reported to the model; nil before the first
}

// jobTime bounds reading and noting one job.
const jobTime = 5 * time.Second

// JobsEnded has the sessions on this node told of the ends of their long work: each job of which nobody has
// been told, also those of other nodes, without results. It is called again and again until Jobs.Told, and
// does not wait.
func (m *Manager) JobsEnded(owed []store.Job, from Jobs) {
	of := map[string][]string{} // ids of jobs by conversation
	for _, j := range owed {
		of[j.Conversation] = append(of[j.Conversation], j.ID)
	}
	m.roster.mu.Lock()
	defer m.roster.mu.Unlock()
	for _, s := range m.roster.sessions {
		ids := of[cmp.Or(s.start.ConversationID, s.id)]
		if len(ids) == 0 || !s.jobs.reading.CompareAndSwap(false, true) {
			continue
		}
		s.visitors.Go(func() {
			defer s.jobs.reading.Store(false)
			for _, id := range ids {
				s.jobs.ended(s, id, from)
			}
		})
	}
}

// JobProgressed tells the client of the conversation's session on this node how far a job is. It does not wait.
func (m *Manager) JobProgressed(j store.Job) {
	if j.Progress == nil {
		return
	}
	m.roster.mu.Lock()
	defer m.roster.mu.Unlock()
	for _, s := range m.roster.sessions {
		if cmp.Or(s.start.ConversationID, s.id) == j.Conversation && conversation.Owned(j.User, j.Conversation, s.user) {
			s.send(&protocol.JobProgress{JobID: j.ID, Tool: j.Tool, Name: j.Name, Text: j.Progress.Text, Fraction: j.Progress.Fraction})
		}
	}
}

// ended has the model told of the end of a job, or notes that it was told.
func (r *jobReports) ended(s *session, id string, from Jobs) {
	ctx, cancel := context.WithTimeout(s.context(), jobTime)
	defer cancel()
	s.mu.Lock()
	r.source = from
	told, waits := r.reported[id], s.state.TellsOf(id)
	s.mu.Unlock()
	switch {
	case told:
		r.note(ctx, s, id)
		return
	case waits:
		return
	}
	j, err := from.Job(ctx, id)
	switch {
	case errors.Is(err, store.ErrUnknown), s.isOver():
		return
	case err != nil:
		s.log().Warn("a job that has ended could not be read; it is tried again", "job", id, "error", err)
		return
	case !j.Owed(), !conversation.Owned(j.User, j.Conversation, s.user):
		return
	}
	s.dispatch(orchestrator.JobEnded{Job: j.ID, Tool: j.Tool, Name: j.Name, Result: j.Result})
}

// note notes that the model was told of a job. JobsEnded tries it again.
func (r *jobReports) note(ctx context.Context, s *session, id string) {
	source := locked(s, func() Jobs { return r.source })
	if _, err := source.Told(ctx, id); err != nil && !errors.Is(err, store.ErrUnknown) {
		s.log().Warn("it could not be noted that the model was told of a job; it is tried again", "job", id, "error", err)
	}
}

// told notes that the model was told of a job. The caller must hold mu.
func (r *jobReports) markReported(s *session, a orchestrator.JobTold) {
	if r.reported == nil {
		r.reported = map[string]bool{}
	}
	r.reported[a.Job] = true
	s.log().Info("the model was told of the end of a job", "job", a.Job)
	if r.source == nil {
		return // the process before has queued it; JobsEnded notes it
	}
	s.client.leaving.Go(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(s.context()), jobTime)
		defer cancel()
		r.note(ctx, s, a.Job)
	})
}
