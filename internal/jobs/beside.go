package jobs

import (
	"sync"
	"time"

	"voicegw/internal/audit"
	"voicegw/registry"
	"voicegw/registry/spec"
	"voicegw/store"
)

// beside is what one attempt does beside its result: it is its registry.CallCapabilities. Its methods may be
// called concurrently, also by work that was left behind, which nobody hears any more.
type beside struct {
	// Fixed.
	r   *Runner
	job store.Job
	// news holds the newest progress, from the work to do; never closed.
	news chan store.JobProgress

	mu    sync.Mutex // guards the following fields
	over  bool
	noted int
}

func (b *beside) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.over = true
}

// Tell is registry.Progress.Tell.
func (b *beside) Tell(text string, fraction float64) {
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
	case <-b.news: // older than this one
	default:
	}
	b.news <- p // it has room: only this method, under mu, sends
}

// Timeout is registry.Messenger.Timeout: no client waits for long work.
func (*beside) Timeout(time.Time, time.Duration, string) {}

// Send is registry.Messenger.Send: no client waits for long work.
func (*beside) Send(name string, data any) error {
	_, err := registry.Aside(name, data)
	return err
}

// Note is registry.Audit.Note.
func (b *beside) Note(event string, data any) error {
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
		SessionID: j.Session, UserID: j.User, ConversationID: j.Conversation, Agent: j.Agent, TurnID: j.Turn, CallID: j.Call,
		IdempotencyKey: j.Key, Job: j.ID, Note: event, NoteData: encoded,
	})
	return nil
}
