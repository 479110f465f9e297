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
	"voicegw/transport"
)

// History returns what was said until now for a checkpoint, oldest first, with the calls and their
// answers, the items that have said the newest entries, and how many older entries the story no longer
// has; empty for a nil Story. All audio that has come counts as heard. Words of the user that are not
// complete are left out, and so are the tokens of questions, which are secrets.
func (y *Transcript) History() (entries []conversation.Entry, items []string, dropped int) {
	if y == nil {
		return nil, nil, 0
	}
	line := y.withoutDraft().timeline(func(string) (heardMS, queuedMS int64, ok bool) { return 0, 0, false })
	for i, e := range line {
		entries = append(entries, e.Entry)
		if i >= len(line)-maxItems {
			items = append(items, e.item)
		}
	}
	answers := map[string]transport.PastTool{}
	for _, s := range y.utterances {
		for _, t := range s.tools {
			answers[t.call] = t.PastTool
		}
	}
	for i := range entries {
		entries[i].Text = logging.Tokens(entries[i].Text)
		for j := range entries[i].Calls { // a copy of the story's
			c := &entries[i].Calls[j]
			if t, ok := answers[c.ID]; ok {
				c.Args, c.Envelope = logging.Tokens(t.Args), quoted(logging.Tokens(t.Output))
			}
		}
	}
	return entries, items, y.dropped
}

// maxItems is of how many of the newest entries a checkpoint has the items that have said them.
const maxItems = 16

// Unplaced returns how much of what the session has cost, spent, belongs to none of the entries of History.
func (y *Transcript) Unplaced(spent cost.Amount, entries []conversation.Entry) cost.Amount {
	if y == nil {
		return cost.Amount{}
	}
	return y.unplaced(spent, entries)
}

// Draft returns what the user said last if not all its words are known; nil otherwise, and for a nil
// Story.
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

// Settle settles what Draft has returned in another process: the words count as said as far as they
// are known or, with again set, are left out because the user's audio is heard again.
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

// Unheard records that the client has only a part of an item, and returns the words of that part.
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

// withoutDraft returns the story without what the user said last, if not all its words are known and it
// is not answered: another process hears it again.
func (y *Transcript) withoutDraft() *Transcript {
	n := len(y.utterances)
	for n > 0 && y.utterances[n-1].entry.Role == conversation.RoleContext {
		n-- // the page may tell something while the user speaks
	}
	if n == 0 || !y.utterances[n-1].draft || y.utterances[n-1].entry.Role != conversation.RoleUser || y.utterances[n-1].entry.Turn <= y.ended {
		return y
	}
	z := *y
	z.utterances = slices.Concat(y.utterances[:n-1], y.utterances[n:])
	return &z
}

// quoted returns an answer as JSON. An answer that was cut off is invalid JSON, so it becomes a JSON
// string.
func quoted(output json.RawMessage) json.RawMessage {
	if json.Valid(output) {
		return output
	}
	text, _ := json.Marshal(string(output)) // a string: it cannot fail
	return text
}

// unquoted undoes quoted.
func unquoted(envelope json.RawMessage) json.RawMessage {
	var text string
	if json.Unmarshal(envelope, &text) == nil {
		return json.RawMessage(text)
	}
	return envelope
}

// RestoreStory returns the story of a session that another process has run: entries and items are what
// History has returned there, dropped how many older ones there were. kept are the entries that the
// conversation has of the session; what only these have was said as well, and newer has those of them
// that are not older than entries, with the session's turns. placed is what all entries of the session had
// cost there, those that have gone included.
func RestoreTranscript(of Part, entries []conversation.Entry, items []string, kept []conversation.Entry, dropped int, placed cost.Amount) (y *Transcript, newer []conversation.Entry) {
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
			if c.Envelope != nil {
				t := transport.PastTool{Name: c.Tool, Args: registry.Decode(c.Args).Object(), Output: unquoted(c.Envelope), OK: c.OK}
				s.tools = append(s.tools, answeredTool{c.ID, t})
				y.bytes += len(t.Output)
			}
			c.Args, c.Envelope = nil, nil
		}
		y.add(s)
	}
	return y, newer
}

// turnsBefore returns how many turns the conversation has before those of the session.
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
