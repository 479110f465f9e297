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

// Jobs is the session's access to long-running jobs that calls have started; *jobs.Runner implements it.
type Jobs interface {
	// Job returns a job with its result.
	Job(ctx context.Context, id string) (store.Job, error)
	// Told records that the conversation was informed of the job's end. Only the first of concurrent callers gets
	// true.
	Told(ctx context.Context, id string) (first bool, err error)
}

// jobReports tracks the session's finished jobs.
type jobReports struct {
	reading atomic.Bool // a goroutine reads them

	// Guarded by the session's mu.
	source   Jobs            // nil until a job has ended
	reported map[string]bool // jobs whose end this process reported to the model; nil before the first
}

// jobTime bounds reading and recording one job.
const jobTime = 5 * time.Second

// JobsEnded informs the sessions on this node of their finished jobs. owed lists all unreported jobs of the cluster,
// without results. The caller repeats the call until Jobs.Told. It does not wait.
func (m *Manager) JobsEnded(owed []store.Job, from Jobs) {
	of := map[string][]string{} // ids by conversation
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

// JobProgressed sends a job's progress to the client of its conversation's session on this node. It does not wait.
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
		s.log().Warn("a finished job could not be read; will retry", "job", id, "error", err)
		return
	case !j.Owed(), !conversation.Owned(j.User, j.Conversation, s.user):
		return
	}
	s.dispatch(orchestrator.JobEnded{Job: j.ID, Tool: j.Tool, Name: j.Name, Result: j.Result})
}

// note records that the model knows of a job's end. JobsEnded tries again after an error.
func (r *jobReports) note(ctx context.Context, s *session, id string) {
	source := locked(s, func() Jobs { return r.source })
	if _, err := source.Told(ctx, id); err != nil && !errors.Is(err, store.ErrUnknown) {
		s.log().Warn("a job could not be marked as reported; will retry", "job", id, "error", err)
	}
}

// markReported records that the model knows of a job's end. The caller must hold mu.
func (r *jobReports) markReported(s *session, a orchestrator.JobTold) {
	if r.reported == nil {
		r.reported = map[string]bool{}
	}
	r.reported[a.Job] = true
	s.log().Info("the end of a job was reported to the model", "job", a.Job)
	if r.source == nil {
		return // an earlier process queued it; JobsEnded records it
	}
	s.client.leaving.Go(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(s.context()), jobTime)
		defer cancel()
		r.note(ctx, s, a.Job)
	})
}
