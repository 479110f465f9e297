package handoff

import (
	"cmp"
	"encoding/json"
	"slices"

	"voicegw/conversation"
	"voicegw/internal/redact"
	"voicegw/transport"
)

// History returns what was said until now for a checkpoint, oldest first, with the calls and their
// answers, and how many older entries the story no longer has; empty for a nil Story. All audio that
// has come counts as heard. Words of the user that are not complete are left out, and so are the tokens
// of questions, which are secrets.
func (y *Story) History() (entries []conversation.Entry, dropped int) {
	if y == nil {
		return nil, 0
	}
	entries = y.withoutDraft().SoFar().Entries
	answers := map[string]transport.PastTool{}
	for _, s := range y.said {
		for _, t := range s.tools {
			answers[t.call] = t.PastTool
		}
	}
	for i := range entries {
		entries[i].Text = redact.Tokens(entries[i].Text)
		for j := range entries[i].Calls { // a copy of the story's
			c := &entries[i].Calls[j]
			if t, ok := answers[c.ID]; ok {
				c.Args, c.Envelope = redact.Tokens(t.Args), quoted(redact.Tokens(t.Output))
			}
		}
	}
	return entries, y.dropped
}

// withoutDraft returns the story without what the user said last, if not all its words are known and it
// is not answered: another process hears it again.
func (y *Story) withoutDraft() *Story {
	n := len(y.said)
	if n == 0 || !y.said[n-1].draft || y.said[n-1].entry.Role != conversation.RoleUser || y.said[n-1].entry.Turn <= y.ended {
		return y
	}
	z := *y
	z.said = y.said[:n-1]
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

// RestoreStory returns the story of a session that another process has run: entries are what History
// has returned there, dropped how many older ones there were. kept are the entries that the
// conversation has of the session; what only these have was said as well, and newer has those of them
// that are not older than entries, with the session's turns.
func RestoreStory(of Said, entries, kept []conversation.Entry, dropped int) (y *Story, newer []conversation.Entry) {
	y = NewStory(of)
	all := slices.Clone(entries)
	before := turnsBefore(entries, kept)
	for _, k := range kept {
		k.Turn = max(k.Turn-before, 0)
		if slices.ContainsFunc(entries, func(e conversation.Entry) bool { return e.At.Equal(k.At) && e.Role == k.Role }) {
			continue
		}
		all = append(all, k)
		if len(entries) == 0 || k.At.After(entries[0].At) {
			newer = append(newer, k)
		}
	}
	slices.SortStableFunc(all, func(a, b conversation.Entry) int { return cmp.Compare(a.At.UnixNano(), b.At.UnixNano()) })
	y.dropped = dropped
	for _, e := range all {
		s := &saying{entry: e}
		s.entry.Calls = slices.Clone(e.Calls)
		for i := range s.entry.Calls {
			c := &s.entry.Calls[i]
			if c.Envelope != nil {
				t := transport.PastTool{Name: c.Tool, Args: c.Args, Output: unquoted(c.Envelope), OK: c.OK}
				s.tools = append(s.tools, toldTool{c.ID, t})
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
