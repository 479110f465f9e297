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

// The bounds of the history for a new connection, in bytes.
const (
	// maxPast is how much of the conversation's end is included verbatim. The rest is summarised.
	maxPast = 24 << 10
	// maxPastArgs and maxPastOutput bound the kept part of one tool call.
	maxPastArgs   = 2 << 10
	maxPastOutput = 4 << 10
)

// pastTool returns the kept part of a finished call. Invalid or too long arguments become an empty object, because
// providers require one.
func pastTool(a orchestrator.ToolEnded) transport.PastTool {
	p := transport.PastTool{Name: clip(a.Tool), Args: registry.Decode(a.Written).Object(), OK: a.Envelope.OK}
	if len(p.Args) > maxPastArgs {
		p.Args = json.RawMessage("{}")
	}
	p.Output = json.RawMessage(textutil.Shorten(string(a.Envelope.Encode()), maxPastOutput))
	return p
}

// Past returns the conversation for a model without memory of it, oldest first: the user's words, the heard answers,
// and each call with its result; empty for a nil Transcript. own is the mark of the gateway's words, which is removed
// from all others. Words that are still playing count as heard.
func (y *Transcript) Past(own prompts.Mark, lasted time.Duration) []transport.Past {
	if y == nil {
		return nil
	}
	utterances := slices.Clone(y.utterances)
	slices.SortStableFunc(utterances, func(a, b *utterance) int { return cmp.Compare(a.entry.At.UnixNano(), b.entry.At.UnixNano()) })
	from, size := len(utterances), 0
	for from > 0 {
		one := utterances[from-1]
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
		past = append(past, transport.PastNote{Text: own.Notice(
			prompts.SaidBefore(conversation.Summary(entriesOf(utterances[:from]), lasted)))})
	}
	for _, s := range utterances[from:] {
		past = append(past, s.past(own)...)
	}
	return past
}

func entriesOf(utterances []*utterance) (entries []conversation.Entry) {
	for _, s := range utterances {
		one := *s
		one.cutText()
		entries = append(entries, one.entry)
	}
	return entries
}

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
