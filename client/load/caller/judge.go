package caller

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"voicegw/client/load/measure"
	"voicegw/client/load/script"
)

// judge holds the turns before x against what the script expects of them: what belongs to
// a turn may come a little after its end.
func (c *conversation) judge(now time.Time, x *exchange) {
	for len(c.unjudged) > 0 && c.unjudged[0] != x && c.unjudged[0] != x.interrupts {
		c.judgeOne(now, c.unjudged[0])
		c.unjudged = slices.Delete(c.unjudged, 0, 1)
	}
}

// judgeRest judges all that is left, at the end.
func (c *conversation) judgeRest(now time.Time) {
	for _, x := range c.unjudged {
		if x.settled {
			c.judgeOne(now, x)
		}
	}
	c.unjudged = nil
}

// judgeOne measures what only now is known of an exchange, and looks at each of its
// expectations.
func (c *conversation) judgeOne(now time.Time, x *exchange) {
	if before := x.interrupts; before != nil {
		c.c.Record(measure.LastAudio, before.last.Sub(x.onset)) // below zero where none came
	}
	maps.DeleteFunc(c.turns, func(_ int, of *exchange) bool { return of == x })
	e := x.turn.Expect
	c.c.Add(measure.Expectations, int64(e.Count()))
	unmet := func(format string, args ...any) {
		c.c.Add(measure.Unmet, 1)
		c.problem(now, measure.KindUnmet, x, format, args...)
	}
	for _, tool := range e.Tools {
		switch {
		case !slices.Contains(x.tools, tool):
			unmet("%s was expected to be called; called were: %s", tool, list(x.tools))
		case slices.Contains(x.broken, tool):
			unmet("%s was expected to be called with success; it failed", tool)
		}
	}
	for _, tool := range e.NoTools {
		if tool == script.AnyTool && len(x.tools) > 0 || slices.Contains(x.tools, tool) {
			unmet("%s was expected not to be called; called were: %s", tool, list(x.tools))
		}
	}
	for _, tool := range e.Asks {
		if !slices.Contains(x.asks, tool) {
			unmet("%s was expected to ask the user; what asked: %s", tool, list(x.asks))
		}
	}
	matches(e.Text, true, "the answer", x.answer, unmet)
	matches(e.NoText, false, "the answer", x.answer, unmet)
	matches(e.Said, true, "what the user said", x.said, unmet)
	if e.Within > 0 {
		c.judgeWithin(x, unmet)
	}
	if e.FlushWithin > 0 {
		x.judgeFlush(unmet)
	}
	if e.Error != "" && !x.expectsError() {
		unmet("the error %s was expected; what came: %s", e.Error, list(x.codes))
	}
}

// judgeWithin looks at the time to the first audio.
func (c *conversation) judgeWithin(x *exchange, unmet func(string, ...any)) {
	from, limit := x.spoken, x.turn.Expect.Within
	if x.number == 0 {
		from = c.ticket.at
	}
	switch {
	case x.first.IsZero():
		unmet("no audio came; it was expected within %s", limit)
	case x.first.Sub(from) > limit:
		unmet("the first audio came after %s; it was expected within %s", rounded(x.first.Sub(from)), limit)
	}
}

// judgeFlush looks at the time to the flush of what was interrupted.
func (x *exchange) judgeFlush(unmet func(string, ...any)) {
	limit := x.turn.Expect.FlushWithin
	switch {
	case x.interrupts == nil:
		unmet("the answer before was over, so that nothing could be interrupted")
	case x.flushed.IsZero():
		unmet("no audio.flush came; it was expected within %s", limit)
	case x.flushed.Sub(x.onset) > limit:
		unmet("audio.flush came after %s; it was expected within %s", rounded(x.flushed.Sub(x.onset)), limit)
	}
}

// matches looks at what was said. A nil expression expects nothing.
func matches(re *regexp.Regexp, want bool, what string, said transcripts, unmet func(string, ...any)) {
	if re == nil || re.MatchString(said.String()) == want {
		return
	}
	not := ""
	if !want {
		not = "not "
	}
	unmet("%s was expected %sto match %s; it is %q", what, not, strings.TrimPrefix(re.String(), "(?is)"), shorten(said.String()))
}

// expectsError says whether an error that came is the one that the script wants.
func (x *exchange) expectsError() bool {
	return x.turn.Expect.Error != "" && slices.Contains(x.codes, x.turn.Expect.Error)
}

func rounded(d time.Duration) time.Duration { return d.Round(time.Millisecond) }

func list(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// shorten keeps a text short enough for a report.
func shorten(s string) string {
	if r := []rune(s); len(r) > 200 {
		return string(r[:200]) + "…"
	}
	return s
}
