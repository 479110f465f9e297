package caller

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"voicegw/client/load/report"
	"voicegw/client/voice"
)

// judge holds the turns before x against what the script expects of them: what belongs to
// a turn may come a little after its end.
func (c *call) judge(now time.Time, x *voice.Exchange) {
	for len(c.unjudged) > 0 && c.unjudged[0] != x && c.unjudged[0] != x.Interrupts {
		c.judgeOne(now, c.unjudged[0])
		c.unjudged = slices.Delete(c.unjudged, 0, 1)
	}
}

// judgeRest judges all that is left, at the end.
func (c *call) judgeRest(now time.Time) {
	for _, x := range c.unjudged {
		if x.Settled {
			c.judgeOne(now, x)
		}
	}
	c.unjudged = nil
	c.notes = nil
}

// judgeOne measures what only now is known of an exchange, and looks at each of its
// expectations.
func (c *call) judgeOne(now time.Time, x *voice.Exchange) {
	if before := x.Interrupts; before != nil {
		c.Record(report.LastAudio, before.Last.Sub(x.Onset)) // below zero where none came
	}
	c.Forget(x)
	e, n := c.expect(x), c.noted(x)
	c.Add(report.Expectations, int64(e.Count()))
	unmet := func(format string, args ...any) {
		c.Add(report.Unmet, 1)
		c.problem(now, report.KindUnmet, x, format, args...)
	}
	for _, tool := range e.Tools {
		switch {
		case !slices.Contains(n.tools, tool):
			unmet("%s was expected to be called; called were: %s", tool, list(n.tools))
		case slices.Contains(n.broken, tool):
			unmet("%s was expected to be called with success; it failed", tool)
		}
	}
	for _, tool := range e.NoTools {
		if tool == AnyTool && len(n.tools) > 0 || slices.Contains(n.tools, tool) {
			unmet("%s was expected not to be called; called were: %s", tool, list(n.tools))
		}
	}
	for _, tool := range e.Asks {
		if !slices.Contains(n.asks, tool) {
			unmet("%s was expected to ask the user; what asked: %s", tool, list(n.asks))
		}
	}
	matches(e.Text, true, "the answer", x.Answer, unmet)
	matches(e.NoText, false, "the answer", x.Answer, unmet)
	matches(e.Said, true, "what the user said", x.Said, unmet)
	if e.Within > 0 {
		c.judgeWithin(x, e.Within, unmet)
	}
	if e.FlushWithin > 0 {
		judgeFlush(x, e.FlushWithin, unmet)
	}
	if e.Error != "" && !slices.Contains(x.Codes, e.Error) {
		unmet("the error %s was expected; what came: %s", e.Error, list(x.Codes))
	}
}

// judgeWithin looks at the time to the first audio.
func (c *call) judgeWithin(x *voice.Exchange, limit time.Duration, unmet func(string, ...any)) {
	from := x.Spoken
	if x.Number == 0 {
		from = c.ticketAt
	}
	switch {
	case x.First.IsZero():
		unmet("no audio came; it was expected within %s", limit)
	case x.First.Sub(from) > limit:
		unmet("the first audio came after %s; it was expected within %s", rounded(x.First.Sub(from)), limit)
	}
}

// judgeFlush looks at the time to the flush of what was interrupted.
func judgeFlush(x *voice.Exchange, limit time.Duration, unmet func(string, ...any)) {
	switch {
	case x.Interrupts == nil:
		unmet("the answer before was over, so that nothing could be interrupted")
	case x.Flushed.IsZero():
		unmet("no audio.flush came; it was expected within %s", limit)
	case x.Flushed.Sub(x.Onset) > limit:
		unmet("audio.flush came after %s; it was expected within %s", rounded(x.Flushed.Sub(x.Onset)), limit)
	}
}

// matches looks at what was said. A nil expression expects nothing.
func matches(re *regexp.Regexp, want bool, what string, said voice.Transcripts, unmet func(string, ...any)) {
	if re == nil || re.MatchString(said.String()) == want {
		return
	}
	not := ""
	if !want {
		not = "not "
	}
	unmet("%s was expected %sto match %s; it is %q", what, not, strings.TrimPrefix(re.String(), "(?is)"), shorten(said.String()))
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
