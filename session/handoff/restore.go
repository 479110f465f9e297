package handoff

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"voicegw/internal/conversation"
	"voicegw/internal/cost"
	"voicegw/internal/logging"
	"voicegw/orchestrator"
	"voicegw/registry"
)

// History returns the conversation for a checkpoint, oldest first, with the results of calls, the items that spoke the
// newest entries, and the number of dropped older entries; empty for a nil Transcript. All received audio counts as
// heard. Incomplete words of the user and the tokens of questions, which are secrets, are left out.
func (y *Transcript) History() (entries []conversation.Entry, items []string, dropped int) {
	if y == nil {
		return nil, nil, 0
	}
	line := y.withoutDraft().timeline(allHeard)
	for i, e := range line {
		entries = append(entries, e.Entry)
		if i >= len(line)-maxItems {
			items = append(items, e.item)
		}
	}
	for i := range entries {
		entries[i].Text = logging.Tokens(entries[i].Text)
		for j := range entries[i].Calls { // a copy
			if c := &entries[i].Calls[j]; c.Envelope != nil {
				c.Args, c.Envelope = logging.Tokens(c.Args), quoted(logging.Tokens(c.Envelope))
			}
		}
	}
	return entries, items, y.dropped
}

// maxItems is the number of newest entries whose items a checkpoint has.
const maxItems = 16

// Draft returns the user's last utterance if its words are incomplete; otherwise, and for a nil Transcript, nil.
func (y *Transcript) Draft() *conversation.Entry {
	if y == nil {
		return nil
	}
	for _, s := range slices.Backward(y.utterances) {
		if s.entry.Role != conversation.RoleUser {
			continue
		}
		if !s.draft || s.entry.Turn <= y.ended || strings.TrimSpace(s.entry.Text) == "" {
			return nil
		}
		e := s.entry
		e.Text = logging.Tokens(e.Text)
		return &e
	}
	return nil
}

// Settle makes the words of another process's Draft final or, with again, removes them: their audio is repeated.
func (y *Transcript) Settle(draft conversation.Entry, again bool) {
	if y == nil {
		return
	}
	i := slices.IndexFunc(y.utterances, func(s *utterance) bool { return s.entry.Role == draft.Role && s.entry.At.Equal(draft.At) })
	switch {
	case again && i >= 0:
		y.bytes -= len(y.utterances[i].entry.Text)
		y.utterances = slices.Delete(y.utterances, i, i+1)
	case !again && i < 0:
		y.add(&utterance{entry: draft})
	}
}

// Unheard records that the client has only a part of an item, and returns that part's words.
func (y *Transcript) Unheard(u orchestrator.Unheard) (text string) {
	s := y.find(u.Item, conversation.RoleAssistant)
	if s == nil {
		return ""
	}
	s.stop(u.HasMS, u.MS)
	s.sentMS = u.HasMS
	one := *s
	one.cutText()
	return one.entry.Text
}

// withoutDraft leaves out an incomplete and unanswered last utterance: another process will hear it again.
func (y *Transcript) withoutDraft() *Transcript {
	n := len(y.utterances)
	for n > 0 && y.utterances[n-1].entry.Role == conversation.RoleContext {
		n-- // the page may add context while the user speaks
	}
	if n == 0 || !y.utterances[n-1].draft || y.utterances[n-1].entry.Role != conversation.RoleUser ||
		y.utterances[n-1].entry.Turn <= y.ended {
		return y
	}
	z := *y
	z.utterances = slices.Concat(y.utterances[:n-1], y.utterances[n:])
	return &z
}

// quoted returns a result as JSON. A truncated result is invalid JSON, so it becomes a JSON string.
func quoted(output json.RawMessage) json.RawMessage {
	if json.Valid(output) {
		return output
	}
	text, _ := json.Marshal(string(output)) // a string: it cannot fail
	return text
}

func unquoted(envelope json.RawMessage) json.RawMessage {
	var text string
	if json.Unmarshal(envelope, &text) == nil {
		return json.RawMessage(text)
	}
	return envelope
}

// RestoreTranscript returns the transcript of a taken session, from History and with kept, the session's entries in the
// conversation; newer are those of kept that are not older than entries, with the session's turns. placed is the cost
// of all entries, including dropped ones.
func RestoreTranscript(of Part, entries []conversation.Entry, items []string, kept []conversation.Entry, dropped int,
	placed cost.Amount) (y *Transcript, newer []conversation.Entry) {
	y = NewTranscript(of)
	gone := placed
	for _, e := range entries {
		gone = gone.Minus(costOf(e))
	}
	var all []timed
	for i, e := range entries {
		one := timed{Entry: e}
		if n := i - len(entries) + len(items); n >= 0 {
			one.item = items[n]
		}
		all = append(all, one)
	}
	before := turnsBefore(entries, kept)
	for _, k := range kept {
		k.Turn = max(k.Turn-before, 0)
		if slices.ContainsFunc(entries, func(e conversation.Entry) bool { return e.At.Equal(k.At) && e.Role == k.Role }) {
			continue
		}
		all = append(all, timed{Entry: k})
		if len(entries) == 0 || k.At.After(entries[0].At) {
			newer = append(newer, k)
		} else {
			gone = gone.Minus(costOf(k))
		}
	}
	y.droppedCost = cost.Amount{Micros: max(gone.Micros, 0), Unpriced: max(gone.Unpriced, 0)}
	slices.SortStableFunc(all, func(a, b timed) int { return cmp.Compare(a.At.UnixNano(), b.At.UnixNano()) })
	y.dropped = dropped
	for _, e := range all {
		s := &utterance{entry: e.Entry, id: e.item}
		s.entry.Calls = slices.Clone(e.Calls)
		for i := range s.entry.Calls {
			c := &s.entry.Calls[i]
			if c.Envelope == nil {
				c.Args = nil
				continue
			}
			c.Args, c.Envelope = registry.Decode(c.Args).Object(), unquoted(c.Envelope)
			y.bytes += len(c.Envelope)
		}
		y.add(s)
	}
	return y, newer
}

// turnsBefore returns the number of the conversation's turns before the session's.
func turnsBefore(entries, kept []conversation.Entry) int {
	for _, k := range kept {
		for _, e := range entries {
			if e.At.Equal(k.At) && e.Role == k.Role {
				return k.Turn - e.Turn
			}
		}
	}
	if len(kept) == 0 {
		return 0
	}
	return max(kept[0].Turn-1, 0)
}
