package live

import (
	"slices"
	"strings"
	"sync"

	"voicegw/transport"
	"voicegw/transport/textmodel"
)

// The part of the conversation that the text model gets.
const (
	maxLines     = 80
	maxLineBytes = 48 << 10 // of all lines
)

// script is the conversation so far, for the text model. It may be used concurrently.
type script struct {
	mu    sync.Mutex // guards the following field
	lines []line     // oldest first
}

type line struct {
	item       string // empty for a complete line
	role, text string // role is user, assistant or developer
}

// begin starts the script of a connection: with the history, or else with the lines of the last connection.
func (s *script) begin(past []transport.Past) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(past) == 0 {
		for i := range s.lines {
			s.lines[i].item = ""
		}
		return
	}
	s.lines = nil
	for _, p := range past {
		role, text := entry(p)
		s.lines = append(s.lines, line{role: role, text: text})
	}
	s.cut()
}

// add adds a complete line.
func (s *script) add(role, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, line{role: role, text: text})
	s.cut()
}

// note takes the transcripts among the events of a dialog that were not returned yet.
func (s *script) note(d *dialog) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, ev := range d.queue[d.given:] {
		t, ok := ev.(transport.Transcript)
		if !ok {
			continue
		}
		at := slices.IndexFunc(s.lines, func(l line) bool { return l.item == t.Item })
		if at < 0 {
			s.lines = append(s.lines, line{item: t.Item, role: string(t.Role), text: t.Text})
		} else {
			s.lines[at].text = t.Text
		}
	}
	s.cut()
}

// cut drops the oldest lines beyond the limits. The caller must hold mu.
func (s *script) cut() {
	size, first := 0, len(s.lines)
	for first > 0 && len(s.lines)-first < maxLines && size+len(s.lines[first-1].text) <= maxLineBytes {
		first--
		size += len(s.lines[first].text)
	}
	s.lines = slices.Delete(s.lines, 0, first)
}

// messages returns the lines as messages of a prompt.
func (s *script) messages() (all []textmodel.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.lines {
		text := strings.TrimSpace(l.text)
		if text == "" {
			continue
		}
		role := textmodel.RoleUser
		if l.role == string(transport.RoleAssistant) {
			role = textmodel.RoleAssistant
		}
		all = append(all, textmodel.Message{Role: role, Text: text})
	}
	return all
}
