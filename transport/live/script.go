package live

import (
	"slices"
	"strings"

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

type line struct {
	item       string // empty for a complete line
	role, text string // role is user, assistant, developer or result
}

// begin starts the lines of a connection: with the history, or else with those of the last connection. The caller must
// hold mu.
func (d *delegations) begin(past []transport.Past) {
	if len(past) > 0 {
		d.lines = nil
	}
	for i := range d.lines {
		d.lines[i].item = ""
	}
	d.last = ""
	for _, p := range past {
		role, text := entry(p)
		d.lines = append(d.lines, line{role: role, text: text})
		if role == "user" {
			d.last = strings.TrimSpace(text)
		}
	}
	d.cut()
}

// add adds a complete line.
func (d *delegations) add(role, text string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, line{role: role, text: text})
	d.cut()
}

// note takes the transcripts among the events of a dialog that were not returned yet.
func (d *delegations) note(from *dialog) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, ev := range from.Pending() {
		t, ok := ev.(transport.Transcript)
		if !ok {
			continue
		}
		at := slices.IndexFunc(d.lines, func(l line) bool { return l.item == t.Item })
		if at < 0 {
			at = len(d.lines)
			d.lines = append(d.lines, line{item: t.Item, role: string(t.Role)})
		}
		if !d.checked || t.Role != transport.RoleAssistant {
			d.lines[at].text = t.Text
		}
	}
	d.cut()
}

// Passed implements transport.CheckedConn. A stop drops all results: the voice was stopped with one of them, or none.
func (c *conn) Passed(item, text string, stopped bool) {
	d := c.delegations
	d.mu.Lock()
	defer d.mu.Unlock()
	at := slices.IndexFunc(d.lines, func(l line) bool { return l.item == item })
	switch {
	case d.conn != c: // the next connection has items with the same names
	case stopped:
		d.lines = slices.DeleteFunc(d.lines, func(l line) bool { return l.role == result })
	case at >= 0:
		d.lines[at].text = text
		d.cut()
	}
}

// cut drops the oldest lines beyond the limits. The caller must hold mu.
func (d *delegations) cut() {
	size, first := 0, len(d.lines)
	for first > 0 && len(d.lines)-first < maxLines && size+len(d.lines[first-1].text) <= maxLineBytes {
		first--
		size += len(d.lines[first].text)
	}
	d.lines = slices.Delete(d.lines, 0, first)
}

// messages returns the lines as messages of a prompt. The caller must hold mu.
func (d *delegations) messages() (all []textmodel.Message) {
	for _, l := range d.lines {
		text := strings.TrimSpace(l.text)
		if text == "" {
			continue
		}
		m := textmodel.Message{Role: textmodel.RoleUser, Text: text}
		if l.role == result && d.checked {
			m.Text, m.Notice = prompts.AnswerToSay+text, true
		} else if l.role == result || l.role == string(transport.RoleAssistant) {
			m.Role = textmodel.RoleAssistant
		}
		all = append(all, m)
	}
	return all
}
