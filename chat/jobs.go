package chat

import (
	"context"
	"slices"

	"voicegw/internal/conversation"
	"voicegw/prompts"
	"voicegw/store"
)

// Jobs tells of long work that has ended; *jobs.Runner implements it.
type Jobs interface {
	// OwedTo returns the jobs of whose end a conversation has not been told.
	OwedTo(ctx context.Context, conversation string) ([]store.Job, error)
	// Told notes that it has been told of one.
	Told(ctx context.Context, id string) (first bool, err error)
}

// owedJobs returns the jobs of whose end the conversation has not been told. That the conversation has a
// notice of a job decides, so that a job is told once although a process is killed before it has noted that.
func (t *turn) owedJobs(ctx context.Context) []store.Job {
	if t.a.opts.Jobs == nil || t.save == nil {
		return nil
	}
	all, err := t.a.opts.Jobs.OwedTo(ctx, t.conv.ID)
	if err != nil {
		t.a.opts.Logger.Warn("it could not be read whether jobs have ended; the next turn tries again", "conversation_id", t.conv.ID, "error", err)
		return nil
	}
	return slices.DeleteFunc(all, func(j store.Job) bool { return !conversation.Owned(j.User, t.conv.ID, t.req.User) })
}

// jobNotice returns what the model is told about the end of a job.
func (t *turn) jobNotice(j store.Job) string {
	return prompts.JobNotice(j.Name, j.Tool, j.ID, t.mark.JSON(j.Result))
}

// toldJobs notes that the conversation has been told of jobs, even if the client has left.
func (t *turn) toldJobs(ctx context.Context, owed []store.Job) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), saveTime)
	defer cancel()
	for _, j := range owed {
		if _, err := t.a.opts.Jobs.Told(ctx, j.ID); err != nil {
			t.a.opts.Logger.Warn("it could not be noted that a conversation was told of a job; the next turn notes it", "conversation_id", t.conv.ID, "job", j.ID, "error", err)
		}
	}
}
