package conversation

import (
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"voicegw/internal/textutil"
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

var calledIn = regexp.MustCompile(`\[called ([\w-]+): ok\]|^Gateway: The user approved ([\w-]+) \(reference `)

// CalledIn returns the tools that, by a Brief, were called successfully or with the user's approval.
func CalledIn(brief string) (tools []string) {
	for line := range strings.Lines(brief) {
		for _, m := range calledIn.FindAllStringSubmatch(line, -1) {
			tools = append(tools, m[1]+m[2])
		}
	}
	return tools
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
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s over %s.", textutil.Count(len(turns), "turn"), span)
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
	if s := tally(entries); s != "" {
		fmt.Fprintf(&b, " Tools: %s.", s)
	}
	return b.String()
}

// tally counts calls by tool, in the order of first calls: "kb_search 2 times, calendar_create_event (failed)".
func tally(entries []Entry) string {
	var names []string
	made := map[string][]Call{}
	for _, e := range entries {
		for _, c := range e.Calls {
			if made[c.Tool] == nil {
				names = append(names, c.Tool)
			}
			made[c.Tool] = append(made[c.Tool], c)
		}
	}
	for i, name := range names {
		all, failed, asked := len(made[name]), 0, 0
		for _, c := range made[name] {
			switch {
			case c.OK:
			case c.Asked:
				asked++
			default:
				failed++
			}
		}
		if all > 1 {
			names[i] += fmt.Sprintf(" %d times", all)
		}
		switch {
		case failed == all:
			names[i] += " (failed)"
		case asked == all:
			names[i] += " (asked for approval)"
		case failed > 0:
			names[i] += fmt.Sprintf(" (%d failed)", failed)
		}
	}
	return strings.Join(names, ", ")
}
