package scenario

import (
	"regexp"
	"strings"
	"time"
)

// This file is the built-in behaviour for inputs without a rule.

func (b *builder) auto() {
	if b.again {
		return // don't affect later turns
	}
	if calls := b.choose(); len(calls) > 0 {
		if b.c.Preamble {
			b.say("I'll check that for you.")
		}
		b.calls(calls)
		return
	}
	b.say(b.answer())
}

// choose picks a tool and makes its call, or several if the input names several values for its only argument; nil if
// no tool fits.
func (b *builder) choose() []Call {
	c := &b.c
	if c.ToolsOff {
		return nil
	}
	if c.ToolNamed != "" {
		t := c.tool(c.ToolNamed)
		if t == nil {
			t = &Tool{Name: c.ToolNamed}
		}
		return b.fillCalls(t)
	}
	if len(c.Tools) == 0 {
		return nil
	}
	best, score := &c.Tools[0], 0
	for i := range c.Tools {
		t := &c.Tools[i]
		s := fitness(t, b.text, c.Instructions)
		if s <= score {
			continue
		}
		if _, meant := fill(t, b.text); meant || c.ToolRequired {
			best, score = t, s
		}
	}
	// Speech with unknown words leads to a call if there is only one tool and the instructions name it.
	told := b.spoken && b.text == "" && len(c.Tools) == 1 && strings.Contains(c.Instructions, best.Name)
	if score == 0 && !c.ToolRequired && !told {
		return nil
	}
	return b.fillCalls(best)
}

// fitness counts the words of the text that match a tool's name, description and arguments, and the sentence of the
// instructions that names it.
func fitness(t *Tool, text, instructions string) int {
	said := content(text)
	if len(said) == 0 {
		return 0
	}
	score := 3*overlap(said, content(t.Name)) + 2*overlap(said, content(t.Description))
	for _, p := range parseSchema(t.Parameters).props {
		score += overlap(said, content(p.name))
	}
	for _, sentence := range strings.Split(strings.ReplaceAll(instructions, ". ", ".\n"), "\n") {
		if strings.Contains(sentence, t.Name) {
			score += overlap(said, content(sentence))
		}
	}
	return score
}

func (b *builder) fillCalls(t *Tool) []Call {
	s := parseSchema(t.Parameters)
	var calls []Call
	for _, text := range split(s, b.text) {
		calls = append(calls, Call{Name: t.Name, Args: Fill(*t, text)})
	}
	return calls
}

var several = regexp.MustCompile(`\b(\p{Lu}\p{L}+(?: \p{Lu}\p{L}+)*)((?:, (?:in )?\p{Lu}\p{L}+(?: \p{Lu}\p{L}+)*)*),? and ` +
	`(?:in |for )?(\p{Lu}\p{L}+(?: \p{Lu}\p{L}+)*)`)

// split turns "the weather in London and Paris" into one text for each place, if the tool takes one text.
func split(s schema, text string) []string {
	if len(s.props) != 1 || s.props[0].schema.kind != "string" || len(s.props[0].schema.enum) > 0 {
		return []string{text}
	}
	at := several.FindStringSubmatch(text)
	if at == nil {
		return []string{text}
	}
	names := []string{at[1]}
	for _, more := range strings.Split(at[2], ",") {
		if more = strings.TrimPrefix(strings.TrimSpace(more), "in "); more != "" {
			names = append(names, more)
		}
	}
	names = append(names, at[3])
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = strings.Replace(text, at[0], n, 1)
	}
	return out
}

var (
	greeting = regexp.MustCompile(`(?i)^\W*(hello|hi|hey|good (morning|afternoon|evening))\b`)
	named    = regexp.MustCompile(`(?i)\bmy name is (\p{L}+)`)
	sayThis  = regexp.MustCompile(`(?i)^\W*(?:please )?(?:say|repeat)(?: after me)?:? +["“']?(.+?)["”']?[.!]?$`)
	greetMe  = regexp.MustCompile(`(?i)\bgreet`)
	farewell = regexp.MustCompile(`(?i)\b(goodbye|good bye|bye|see you)\b`)
	thanks   = regexp.MustCompile(`(?i)\b(thanks|thank you)\b`)
)

func (b *builder) answer() string {
	text := strings.Join(strings.Fields(b.text), " ")
	switch {
	case text == "" && b.spoken:
		return "I heard you speak for " + inWords(b.heard) +
			". I am a simulated model, so I do not know the words, but I can hear, speak, and be interrupted."
	case text == "":
		return "I am here. What can I do for you?"
	}
	if m := named.FindStringSubmatch(text); m != nil {
		return "Hello, " + m[1] + "! Nice to meet you. How can I help you today?"
	}
	switch m := sayThis.FindStringSubmatch(text); {
	case greetMe.MatchString(text):
		return "Hello there!"
	case m != nil:
		return sentence(m[1])
	case farewell.MatchString(text):
		return "Goodbye! It was nice to talk with you."
	case thanks.MatchString(text):
		return "You are welcome."
	case greeting.MatchString(text):
		return "Hello! What can I do for you?"
	case strings.HasSuffix(text, "?"):
		return "You asked: " + shorten(text, 300) + " I am a simulated model and do not know the answer."
	}
	return "You said: " + sentence(shorten(text, 300)) + " I am a simulated model, so that is all I can say about it."
}

func inWords(d time.Duration) string {
	n := int((d + 500*time.Millisecond) / time.Second)
	switch {
	case d < 700*time.Millisecond:
		return "less than a second"
	case n <= 1:
		return "one second"
	}
	return number(n) + " seconds"
}
