package handoff

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"voicegw/internal/conversation"
	"voicegw/internal/textutil"
	"voicegw/orchestrator"
	"voicegw/prompts"
	"voicegw/registry"
	"voicegw/transport"
)

// The bounds of what a new connection is told, in bytes.
const (
	// maxPast is how much of the end of the conversation is told word for word. The rest is told in
	// a few sentences.
	maxPast = 24 << 10
	// maxPastArgs and maxPastOutput are what a story keeps of one tool call.
	maxPastArgs   = 2 << 10
	maxPastOutput = 4 << 10
)

// pastTool returns what a story keeps of a finished call. Arguments that are no object or too long
// are left out: a provider wants an object.
func pastTool(a orchestrator.ToolEnded) transport.PastTool {
	p := transport.PastTool{Name: clip(a.Tool), Args: registry.Decode(a.Written).Object(), OK: a.Envelope.OK}
	if len(p.Args) > maxPastArgs {
		p.Args = json.RawMessage("{}")
	}
	p.Output = json.RawMessage(textutil.Shorten(string(a.Envelope.Encode()), maxPastOutput))
	return p
}

// Past returns the conversation so far for a model that knows nothing of it, oldest first: what the
// user said, what they heard, and each call with its answer; empty for a nil Story. own is the mark
// before the gateway's own words, which is removed from everybody else's. Words that still sound
// count as heard, because the user will have heard them.
func (y *Transcript) Past(own prompts.Mark, lasted time.Duration) []transport.Past {
	if y == nil {
		return nil
	}
	said := slices.Clone(y.utterances)
	slices.SortStableFunc(said, func(a, b *utterance) int { return cmp.Compare(a.entry.At.UnixNano(), b.entry.At.UnixNano()) })
	from, size := len(said), 0
	for from > 0 {
		one := said[from-1]
		size += len(one.entry.Text)
		for _, t := range one.tools {
			size += len(t.Args) + len(t.Output)
		}
		if size > maxPast {
			break
		}
		from--
	}
	var past []transport.Past
	if from > 0 || y.dropped > 0 {
		past = append(past, transport.PastNote{Text: own.Notice(prompts.SaidBefore(conversation.Summary(entriesOf(said[:from]), lasted)))})
	}
	for _, s := range said[from:] {
		past = append(past, s.past(own)...)
	}
	return past
}

// entriesOf returns the entries of sayings, with their texts as far as they were heard.
func entriesOf(said []*utterance) (entries []conversation.Entry) {
	for _, s := range said {
		one := *s
		one.cutText()
		entries = append(entries, one.entry)
	}
	return entries
}

// past returns one saying as a model is told it.
func (s *utterance) past(own prompts.Mark) (past []transport.Past) {
	one := *s
	one.cutText()
	for _, t := range one.tools {
		t.Args, t.Output = own.JSON(t.Args), json.RawMessage(own.Foreign(string(t.Output)))
		past = append(past, t.PastTool)
	}
	text := own.Foreign(one.entry.Text)
	switch {
	case strings.TrimSpace(text) == "":
	case one.entry.Role == conversation.RoleUser:
		past = append(past, transport.PastUser{Text: text})
	case one.entry.Role == conversation.RoleAssistant:
		past = append(past, transport.PastAssistant{Text: text, Interrupted: one.entry.Interrupted})
	case one.entry.Role == conversation.RoleContext:
		past = append(past, transport.PastUser{Text: own.Notice(prompts.PageContext(text))}) // not as the system's words
	default:
		past = append(past, transport.PastNote{Text: own.Notice(text)})
	}
	return past
}
