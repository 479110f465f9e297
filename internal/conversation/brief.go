package conversation

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"voicegw/prompts"
)

const maxLine = 400

// Brief returns the newest lines of the conversation, at most most characters, for an agent that takes over.
func (c *Conversation) Brief(most int) string {
	var lines []string
	left := most
	for i := len(c.Entries) - 1; i >= 0; i-- {
		line := c.Entries[i].line()
		if line == "" {
			continue
		}
		if left -= utf8.RuneCountInString(line) + 1; left < 0 {
			break
		}
		lines = append([]string{line}, lines...)
	}
	if c.Earlier != "" && left > maxEarlierLine {
		lines = append([]string{prompts.EarlierInShort, shorten(c.Earlier, left)}, lines...)
	}
	return strings.Join(lines, "\n")
}

func (e Entry) line() string {
	who := "User"
	switch e.Role {
	case RoleAssistant:
		who = "Assistant"
	case RoleContext:
		who = "Page"
	case RoleNotice:
		who = "Tool"
		if e.System {
			who = "Gateway"
		}
	}
	said := shorten(oneLine(e.Text), maxLine)
	if e.Interrupted {
		said += prompts.Interrupted
	}
	if e.Broken {
		said += prompts.BrokenOff
	}
	for _, call := range e.Calls {
		said = strings.TrimSpace(said + " " + prompts.Called(call.Tool+": "+call.Outcome()))
	}
	if said == "" {
		return ""
	}
	return who + ": " + said
}

// Summary describes part of a conversation in a few sentences without a model. Entries have only start times, so the
// caller passes the duration.
func Summary(entries []Entry, lasted time.Duration) string {
	span := lasted.Round(time.Second).String()
	if lasted < time.Second {
		span = "less than 1s"
	}
	if len(entries) == 0 {
		return "Nothing was said in " + span + "."
	}
	turns := map[int]bool{}
	var asked, answered Entry
	tools := newTally()
	for _, e := range entries {
		switch e.Role {
		case RoleUser:
			turns[e.Turn] = true
			asked = e
		case RoleAssistant:
			if e.Text != "" { // false for an entry of calls only
				answered = e
			}
		}
		for _, call := range e.Calls {
			tools.add(call)
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s over %s.", plural(len(turns), "turn"), span)
	if asked.Text != "" {
		fmt.Fprintf(&b, " The user's last words: %q.", shorten(oneLine(asked.Text), maxLine))
	}
	if answered.Text != "" {
		heard := ""
		if answered.Interrupted {
			heard = " (interrupted; this is what was heard)"
		}
		fmt.Fprintf(&b, " The assistant's last answer%s: %q.", heard, shorten(oneLine(answered.Text), maxLine))
	}
	if s := tools.String(); s != "" {
		fmt.Fprintf(&b, " Tools: %s.", s)
	}
	return b.String()
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// tally counts calls by tool, in the order of first calls.
type tally struct {
	names             []string
	ok, asked, failed map[string]int
}

func newTally() *tally {
	return &tally{ok: map[string]int{}, asked: map[string]int{}, failed: map[string]int{}}
}

func (t *tally) count(name string) int { return t.ok[name] + t.asked[name] + t.failed[name] }

func (t *tally) add(c Call) {
	if t.count(c.Tool) == 0 {
		t.names = append(t.names, c.Tool)
	}
	switch {
	case c.OK:
		t.ok[c.Tool]++
	case c.Asked:
		t.asked[c.Tool]++
	default:
		t.failed[c.Tool]++
	}
}

// String returns text such as "kb_search 2 times, calendar_create_event (failed)".
func (t *tally) String() string {
	var parts []string
	for _, name := range t.names {
		s := name
		if n := t.count(name); n > 1 {
			s += fmt.Sprintf(" %d times", n)
		}
		switch {
		case t.failed[name] == t.count(name):
			s += " (failed)"
		case t.asked[name] == t.count(name):
			s += " (asked for approval)"
		case t.failed[name] > 0:
			s += fmt.Sprintf(" (%d failed)", t.failed[name])
		}
		parts = append(parts, s)
	}
	return strings.Join(parts, ", ")
}
