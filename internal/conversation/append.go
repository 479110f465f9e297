package conversation

import (
	"encoding/json"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"voicegw/internal/logging"
	"voicegw/prompts"
)

// New returns an empty conversation.
func New(id, user, agent string, now time.Time) *Conversation {
	return &Conversation{ID: id, User: user, Agent: agent, CreatedAt: now.UTC(), UpdatedAt: now.UTC(), Entries: []Entry{}}
}

// ValidID reports whether id is 1 to MaxID bytes of letters, digits, dots, hyphens and underscores.
func ValidID(id string) bool {
	if id == "" || len(id) > MaxID {
		return false
	}
	return !strings.ContainsFunc(id, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '.' && r != '-' && r != '_'
	})
}

// Append adds entries in the given order without confirmation tokens, within the limits.
func (c *Conversation) Append(now time.Time, entries ...Entry) {
	c.add(entries)
	c.UpdatedAt = now.UTC()
	c.bound()
}

// Join inserts entries from elsewhere by time, and numbers their turns after the existing ones.
func (c *Conversation) Join(now time.Time, entries ...Entry) {
	entries = slices.Clone(entries)
	for i := range entries {
		if entries[i].Turn > 0 {
			entries[i].Turn += c.Turns
		}
	}
	c.Merge(now, entries...)
}

// Retell replaces the entries of a voice session, or joins them the first time. It skips those dropped as too old.
func (c *Conversation) Retell(now time.Time, session string, entries ...Entry) {
	told := func(e Entry) bool { return e.SessionID == session }
	if session == "" || !slices.ContainsFunc(c.Entries, told) {
		c.Join(now, entries...)
		return
	}
	before := c.turnsBefore(told, entries)
	oldest := c.Entries[0].At
	c.Entries = slices.DeleteFunc(c.Entries, told)
	var kept []Entry
	for _, e := range entries {
		if c.Dropped > 0 && e.At.Before(oldest) {
			continue
		}
		if e.Turn > 0 {
			e.Turn += before
		}
		kept = append(kept, e)
	}
	c.Merge(now, kept...)
}

// turnsBefore returns the offset for a session's turn numbers, which keeps numbers unique.
func (c *Conversation) turnsBefore(told func(Entry) bool, entries []Entry) int {
	before := 0
	for _, e := range c.Entries {
		if !told(e) {
			before = max(before, e.Turn)
			continue
		}
		for _, is := range entries {
			if is.Turn > 0 && is.At.Equal(e.At) && is.Role == e.Role {
				before = max(before, e.Turn-is.Turn)
			}
		}
	}
	return before
}

// Merge inserts by time entries that were created while others were added, without outcomes already recorded.
func (c *Conversation) Merge(now time.Time, entries ...Entry) {
	c.add(slices.DeleteFunc(slices.Clone(entries), c.repeats))
	slices.SortStableFunc(c.Entries, func(a, b Entry) int { return a.At.Compare(b.At) })
	c.UpdatedAt = now.UTC()
	c.bound()
}

func (c *Conversation) repeats(e Entry) bool {
	about := referenceIn.FindStringSubmatch(e.Text)
	return e.Role == RoleNotice && e.System && about != nil && c.HasOutcome(about[1])
}

func (c *Conversation) add(entries []Entry) {
	for _, e := range entries {
		e.At, e.Text = e.At.UTC(), shorten(logging.Tokens(e.Text), MaxText)
		e.Extra = logging.Tokens(e.Extra)
		e.Calls = slices.Clone(e.Calls)
		for i := range e.Calls {
			call := &e.Calls[i]
			call.Args, call.Envelope, call.Extra = logging.Tokens(call.Args), logging.Tokens(call.Envelope), logging.Tokens(call.Extra)
		}
		c.Entries = append(c.Entries, e)
		c.Turns = max(c.Turns, e.Turn)
	}
}

// bound drops the oldest whole turns until the rest fits.
func (c *Conversation) bound() {
	sizes := make([]int, len(c.Entries))
	total := 0
	for i, e := range c.Entries {
		raw, _ := json.Marshal(e) // cannot fail: plain values and valid JSON
		sizes[i] = len(raw)
		total += sizes[i]
	}
	drop := 0
	for len(c.Entries)-drop > 1 && (len(c.Entries)-drop > MaxEntries || total > MaxBytes) {
		turn := c.Entries[drop].Turn
		for drop < len(c.Entries)-1 && c.Entries[drop].Turn == turn {
			c.note(c.Entries[drop])
			total -= sizes[drop]
			drop++
		}
	}
	if drop > 0 {
		c.Past = c.Past.clone()
		for _, e := range c.Entries[:drop] {
			c.Past.take(e)
		}
		c.Dropped += drop
		c.Entries = append([]Entry{}, c.Entries[drop:]...)
	}
}

// The lengths of Earlier in characters.
const (
	maxEarlier     = 2000
	maxEarlierLine = 120
)

func (c *Conversation) note(e Entry) {
	if e.Role != RoleUser || e.Text == "" {
		return
	}
	if c.Earlier != "" {
		c.Earlier += "\n"
	}
	c.Earlier += prompts.UserSaid + shorten(oneLine(e.Text), maxEarlierLine)
	for utf8.RuneCountInString(c.Earlier) > maxEarlier {
		_, rest, ok := strings.Cut(c.Earlier, "\n")
		if !ok {
			break
		}
		c.Earlier = rest
	}
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// shorten truncates a text to most characters, ending in an ellipsis.
func shorten(s string, most int) string {
	if len(s) <= most || utf8.RuneCountInString(s) <= most {
		return strings.ToValidUTF8(s, "\uFFFD")
	}
	runes := []rune(s)
	return strings.TrimSpace(string(runes[:most-1])) + "…"
}
