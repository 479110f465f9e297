package execute

import (
	"sync"
	"time"

	"voicegw/internal/audit"
	"voicegw/orchestrator/calls"
	"voicegw/protocol"
	"voicegw/registry"
)

// beside is what one call does beside its answer: it is the call's registry.CallCapabilities. Its
// methods may be called concurrently, also by a handler that was left behind, which nobody hears
// any more.
type beside struct {
	// Fixed.
	run     calls.Run
	session registry.Session
	c       *Conversation
	begun   time.Time

	mu          sync.Mutex // guards the following fields, and keeps everything before the call's end
	over        bool
	sent, noted int
	next        *protocol.ToolProgress // waits for pause; nil if there is no news
	pause       *time.Timer            // until the client may be told of progress again; nil if it may
}

// progressEvery is the shortest time between two messages about a call's progress.
const progressEvery = 500 * time.Millisecond

// besides returns what a call does beside its answer, the capabilities of the call, and what must be called once its handler has ended or
// was left behind: from then on they do nothing.
func besides(run calls.Run, session registry.Session, c *Conversation) (b *beside, caps []any, end func()) {
	b = &beside{run: run, session: session, c: c, begun: time.Now()}
	return b, append([]any{b}, c.Capabilities...), b.end
}

func (b *beside) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.over = true
	if b.pause != nil {
		b.pause.Stop()
	}
}

// Tell is registry.Progress.Tell.
func (b *beside) Tell(text string, fraction float64) {
	tool := b.run.Prepared.Tool()
	m := &protocol.ToolProgress{
		Header: protocol.Header{Turn: b.run.Turn}, CallID: b.run.Call, Tool: tool.ToolID, Category: string(tool.Category),
		DurationMS: time.Since(b.begun).Milliseconds(), Text: registry.ProgressText(text),
	}
	if fraction >= 0 { // and not NaN
		m.Fraction = new(min(fraction, 1))
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.pause != nil {
		b.next = m
		return
	}
	b.progress(m)
}

// progress tells the client how far the call is, and lets nothing more through for a while. The caller
// must hold mu.
func (b *beside) progress(m *protocol.ToolProgress) {
	if b.over {
		return
	}
	b.tell(m)
	b.report(m)
	b.pause = time.AfterFunc(progressEvery, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.pause = nil
		if next := b.next; next != nil {
			b.next = nil
			b.progress(next)
		}
	})
}

// report reports what the client was told of progress, if it has words. The caller must hold mu.
func (b *beside) report(m *protocol.ToolProgress) {
	if b.c.Progress == nil || m.Text == "" {
		return
	}
	p := calls.Progressed{Call: b.run.Call, Text: m.Text, Fraction: -1}
	if m.Fraction != nil {
		p.Fraction = *m.Fraction
	}
	b.c.Progress(p)
}

// Timeout is registry.Messenger.Timeout.
func (b *beside) Timeout(until time.Time, d time.Duration, message string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.over {
		return
	}
	if b.c.Blocked != nil {
		b.c.Blocked(until)
	}
	b.tell(&protocol.Timeout{TimeoutUntil: until.UnixMilli(), DurationSeconds: int(d.Seconds()), Message: message})
}

// Send is registry.Messenger.Send.
func (b *beside) Send(name string, data any) error {
	encoded, err := registry.Aside(name, data)
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.over:
		return nil
	case b.sent == registry.MaxAsides:
		return registry.TooManyAsides("messages")
	}
	b.sent++
	tool := b.run.Prepared.Tool()
	b.tell(&protocol.ToolMessage{
		Header: protocol.Header{Turn: b.run.Turn}, CallID: b.run.Call, Tool: tool.ToolID, Category: string(tool.Category), Name: name, Data: encoded,
	})
	return nil
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
	case b.over || b.c.Audit == nil:
		return nil
	case b.noted == registry.MaxAsides:
		return registry.TooManyAsides("notes")
	}
	b.noted++
	b.c.Audit(audit.Note{
		At: time.Now(), Tool: b.run.Prepared.Tool(), RegistryVersion: b.run.Prepared.RegistryVersion(), Mode: b.session.Mode,
		Turn: b.run.Turn, ID: b.run.Call, Key: b.run.Keys.Idempotency, Reference: b.run.Reference, Event: event, Data: encoded,
	}.Record())
	return nil
}

// tell sends the client a message. The caller must hold mu, so that none comes after the call's end.
func (b *beside) tell(m protocol.ServerMessage) {
	if b.c.Tell != nil {
		b.c.Tell(m)
	}
}
