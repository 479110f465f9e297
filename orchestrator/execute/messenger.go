package execute

import (
	"encoding/json"
	"sync"
	"time"

	"voicegw/internal/audit"
	"voicegw/orchestrator/calls"
	"voicegw/protocol"
	"voicegw/registry"
)

// messenger implements the registry.CallCapabilities of one call. It is safe for concurrent use. After the call's end
// its methods do nothing, even if the handler is still running.
type messenger struct {
	// Never change.
	run     calls.Run
	session registry.Session
	c       *Conversation
	begun   time.Time

	mu          sync.Mutex // guards the following fields
	over        bool
	sent, noted int
	next        *protocol.ToolProgress // waits for pause; may be nil
	pause       *time.Timer            // until the next progress message; nil if it may come now
}

// progressEvery is the minimum interval of progress messages about a call.
const progressEvery = 500 * time.Millisecond

func (b *messenger) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.over = true
	if b.pause != nil {
		b.pause.Stop()
	}
}

// Tell implements registry.Progress.
func (b *messenger) Tell(text string, fraction float64) {
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

// progress sends progress and starts the pause. The caller must hold mu.
func (b *messenger) progress(m *protocol.ToolProgress) {
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

func (b *messenger) report(m *protocol.ToolProgress) {
	if b.c.Progress == nil || m.Text == "" {
		return
	}
	p := calls.Progressed{Call: b.run.Call, Text: m.Text, Fraction: -1}
	if m.Fraction != nil {
		p.Fraction = *m.Fraction
	}
	b.c.Progress(p)
}

// Timeout implements registry.Messenger.
func (b *messenger) Timeout(until time.Time, d time.Duration, message string) {
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

// Send implements registry.Messenger.
func (b *messenger) Send(name string, data any) error {
	return b.aside(name, data, &b.sent, "messages", func(encoded json.RawMessage) { b.message(name, encoded) })
}

// Note implements registry.Audit.
func (b *messenger) Note(event string, data any) error {
	tool := b.run.Prepared.Tool()
	note := func(encoded json.RawMessage) {
		b.c.Audit(audit.Record{
			Event: audit.EventNote, Time: audit.At(time.Now()), Mode: b.session.Mode, OK: true, TurnID: b.run.Turn,
			ToolID: tool.ToolID, ToolVersion: tool.Version, ToolVariant: tool.Variant(), Category: tool.Category,
			RegistryVersion: b.run.Prepared.RegistryVersion(),
			ToolCall:        audit.ToolCall{CallID: b.run.Call, IdempotencyKey: b.run.Keys.Idempotency},
			Approval:        audit.Approval{Reference: b.run.Reference}, ToolNote: audit.ToolNote{Note: event, NoteData: encoded},
		})
	}
	if b.c.Audit == nil {
		note = nil
	}
	return b.aside(event, data, &b.noted, "notes", note)
}

// aside passes a tool's addition on, within the limit of its kind. A nil do drops it.
func (b *messenger) aside(name string, data any, made *int, kind string, do func(encoded json.RawMessage)) error {
	encoded, err := registry.Aside(name, data)
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.over || do == nil:
		return nil
	case *made == registry.MaxAsides:
		return registry.TooManyAsides(kind)
	}
	*made++
	do(encoded)
	return nil
}

// message sends the client a tool's message. The caller must hold mu.
func (b *messenger) message(name string, data json.RawMessage) {
	tool := b.run.Prepared.Tool()
	b.tell(&protocol.ToolMessage{Header: protocol.Header{Turn: b.run.Turn}, CallID: b.run.Call, Tool: tool.ToolID,
		Category: string(tool.Category), Name: name, Data: data})
}

// tell sends the client a message. The caller must hold mu, so that no message follows the call's end.
func (b *messenger) tell(m protocol.ServerMessage) {
	if b.c.Tell != nil {
		b.c.Tell(m)
	}
}

// stream implements registry.Stream for one attempt at a call. It is safe for concurrent use, and silent after the
// attempt.
type stream struct {
	b *messenger // whose mu guards the following fields

	over         bool
	parts, bytes int
}

func (s *stream) end() {
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	s.over = true
}

// Part implements registry.Stream.
func (s *stream) Part(data any) error {
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	part, err := registry.NewPart(data, s.parts, s.bytes)
	if err != nil || s.over || s.b.over {
		return err //nolint:wrapcheck // for the tool
	}
	encoded, err := json.Marshal(part)
	if err != nil {
		return err //nolint:wrapcheck // the data is JSON already: it cannot fail
	}
	s.parts, s.bytes = part.Part, s.bytes+len(part.Data)
	s.b.message(registry.PartName, encoded)
	return nil
}
