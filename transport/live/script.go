package live

import (
	"slices"
	"strings"
	"sync"

	"voicegw/prompts"
	"voicegw/transport"
	"voicegw/transport/textmodel"
)

// The part of the conversation that the text model gets.
const (
	maxLines     = 80
	maxLineBytes = 48 << 10 // of all lines
	result       = "result" // the role of the text model's answers
)

// script is the conversation so far, for the text model. It may be used concurrently.
type script struct {
	mu      sync.Mutex // guards the following fields
	lines   []line     // oldest first
	checked bool       // the voice's words count once they have passed
}

type line struct {
	item       string // empty for a complete line
	role, text string // role is user, assistant, developer or result
}

// begin starts the script of a connection: with the history, or else with the lines of the last connection.
func (s *script) begin(past []transport.Past, checked bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.checked = checked
	if len(past) > 0 {
		s.lines = nil
	}
	for i := range s.lines {
		s.lines[i].item = ""
	}
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
			at = len(s.lines)
			s.lines = append(s.lines, line{item: t.Item, role: string(t.Role)})
		}
		if !s.checked || t.Role != transport.RoleAssistant {
			s.lines[at].text = t.Text
		}
	}
	s.cut()
}

// Passed implements transport.CheckedConn. A stop drops all results: the voice was stopped with one of them, or none.
func (c *conn) Passed(item, text string, stopped bool) {
	c.delegations.mu.Lock()
	defer c.delegations.mu.Unlock()
	s := &c.delegations.script
	s.mu.Lock()
	defer s.mu.Unlock()
	at := slices.IndexFunc(s.lines, func(l line) bool { return l.item == item })
	switch {
	case c.delegations.conn != c: // the next connection has items with the same names
	case stopped:
		s.lines = slices.DeleteFunc(s.lines, func(l line) bool { return l.role == result })
	case at >= 0:
		s.lines[at].text = text
		s.cut()
	}
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
		m := textmodel.Message{Role: textmodel.RoleUser, Text: text}
		if l.role == result && s.checked {
			m.Text, m.Notice = prompts.AnswerToSay+text, true
		} else if l.role == result || l.role == string(transport.RoleAssistant) {
			m.Role = textmodel.RoleAssistant
		}
		all = append(all, m)
	}
	return all
}
