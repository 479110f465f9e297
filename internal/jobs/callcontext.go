package jobs

import (
	"sync"
	"time"

	"voicegw/internal/audit"
	"voicegw/registry"
	"voicegw/registry/spec"
	"voicegw/store"
)

// callContext is the registry.CallCapabilities of one attempt. Its methods may be called concurrently, and have no effect
// after the attempt has ended.
type callContext struct {
	// Immutable.
	r   *Runner
	job store.Job
	// news holds the newest progress report; never closed.
	news chan store.JobProgress

	mu    sync.Mutex // guards the following fields
	over  bool
	noted int
}

func (b *callContext) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.over = true
}

// Tell implements registry.Progress.
func (b *callContext) Tell(text string, fraction float64) {
	p := store.JobProgress{Text: registry.ProgressText(text), At: time.Now().UTC()}
	if fraction >= 0 { // and not NaN
		p.Fraction = new(min(fraction, 1))
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.over {
		return
	}
	select {
	case <-b.news:
	default:
	}
	b.news <- p // cannot block: only this method sends, and it holds mu
}

// Timeout does nothing: no client waits for a job.
func (*callContext) Timeout(time.Time, time.Duration, string) {}

// Send validates the message and drops it: no client waits for a job.
func (*callContext) Send(name string, data any) error {
	_, err := registry.Aside(name, data)
	return err
}

// Note implements registry.Audit.
func (b *callContext) Note(event string, data any) error {
	encoded, err := registry.Aside(event, data)
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.over || b.r.opts.Audit == nil:
		return nil
	case b.noted == registry.MaxAsides:
		return registry.TooManyAsides("notes")
	}
	b.noted++
	j := b.job
	b.r.opts.Audit(audit.Record{
		Event: audit.EventNote, Time: time.Now().UTC().Truncate(time.Millisecond), OK: true, ToolID: j.Tool, Mode: spec.Mode(j.Mode),
		SessionID: j.Session, UserID: j.User, ConversationID: j.Conversation, Agent: j.Agent, TurnID: j.Turn,
		ToolCall: audit.ToolCall{CallID: j.Call, IdempotencyKey: j.Key}, Job: j.ID, Note: event, NoteData: encoded,
	})
	return nil
}
