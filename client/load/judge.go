package load

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"time"

	"voicegw/client/load/report"
	"voicegw/client/voice"
	"voicegw/registry/document"
)

// judge compares the turns before x with the script's expectations; parts of a turn may arrive shortly after its end.
func (c *call) judge(now time.Time, x *voice.Exchange) {
	for len(c.unjudged) > 0 && c.unjudged[0] != x && c.unjudged[0] != x.Interrupts {
		c.judgeOne(now, c.unjudged[0])
		c.unjudged = slices.Delete(c.unjudged, 0, 1)
	}
}

func (c *call) judgeRest(now time.Time) {
	for _, x := range c.unjudged {
		if x.Settled {
			c.judgeOne(now, x)
		}
	}
	c.unjudged = nil
	c.notes = nil
}

func (c *call) judgeOne(now time.Time, x *voice.Exchange) {
	if before := x.Interrupts; before != nil {
		c.Record(report.LastAudio, before.Last.Sub(x.Onset)) // negative if none arrived
	}
	c.Forget(x)
	n := c.notes[x]
	e, _ := c.scripted(x)
	c.Add(report.Expectations, int64(e.Count()))
	unmet := func(format string, args ...any) {
		c.Add(report.Unmet, 1)
		c.problem(now, report.KindUnmet, x, format, args...)
	}
	for _, tool := range e.Tools {
		switch {
		case !slices.Contains(n.tools, tool):
			unmet("expected a call of %s; called: %s", tool, list(n.tools))
		case slices.Contains(n.broken, tool):
			unmet("expected a successful call of %s; it failed", tool)
		}
	}
	for _, tool := range e.NoTools {
		if tool == AnyTool && len(n.tools) > 0 || slices.Contains(n.tools, tool) {
			unmet("expected no call of %s; called: %s", tool, list(n.tools))
		}
	}
	for _, tool := range e.Asks {
		if !slices.Contains(n.asks, tool) {
			unmet("expected %s to ask the user; asked: %s", tool, list(n.asks))
		}
	}
	matches(e.Text, true, "the answer", x.Answer, unmet)
	matches(e.NoText, false, "the answer", x.Answer, unmet)
	matches(e.Said, true, "the user's transcript", x.Said, unmet)
	if e.Within > 0 {
		c.judgeWithin(x, e.Within, unmet)
	}
	if e.FlushWithin > 0 {
		judgeFlush(x, e.FlushWithin, unmet)
	}
	if e.Error != "" && !slices.Contains(x.Codes, e.Error) {
		unmet("expected the error %s; errors: %s", e.Error, list(x.Codes))
	}
}

func (c *call) judgeWithin(x *voice.Exchange, limit time.Duration, unmet func(string, ...any)) {
	from := x.Spoken
	if x.Number == 0 {
		from = c.ticketAt
	}
	switch {
	case x.First.IsZero():
		unmet("expected audio within %s; none arrived", limit)
	case x.First.Sub(from) > limit:
		unmet("the first audio arrived after %s; expected within %s", rounded(x.First.Sub(from)), limit)
	}
}

func judgeFlush(x *voice.Exchange, limit time.Duration, unmet func(string, ...any)) {
	switch {
	case x.Interrupts == nil:
		unmet("the previous answer was over, so there was nothing to interrupt")
	case x.Flushed.IsZero():
		unmet("expected audio.flush within %s; none arrived", limit)
	case x.Flushed.Sub(x.Onset) > limit:
		unmet("audio.flush arrived after %s; expected within %s", rounded(x.Flushed.Sub(x.Onset)), limit)
	}
}

func matches(re *regexp.Regexp, want bool, what string, said voice.Transcripts, unmet func(string, ...any)) {
	if re == nil || re.MatchString(said.String()) == want {
		return
	}
	not := map[bool]string{false: "not "}[want]
	unmet("expected %s %sto match %s; it is %q", what, not, strings.TrimPrefix(re.String(), "(?is)"), document.Shorten(said.String(), 200))
}

func rounded(d time.Duration) time.Duration { return d.Round(time.Millisecond) }

func list(names []string) string { return cmp.Or(strings.Join(names, ", "), "none") }
