package textmodel

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/openai/openai-go/v3"
)

type answer struct {
	delta func(string)
	from  string // Client.from
	last  func() // called when the finish reason arrives; only the usage may follow. May be nil.

	begun      bool
	finished   bool // the finish reason has arrived
	finish     string
	text       strings.Builder
	refusal    strings.Builder
	calls      []*partial
	byIndex    map[int]*partial // the call that the next piece with this index belongs to
	argBytes   int
	extra      fields
	extraBytes int
	usage      Usage
}

type partial struct {
	id, name string
	args     strings.Builder
	extra    fields
}

// add adds a chunk. It reads only the first choice, because no other is requested.
func (a *answer) add(chunk openai.ChatCompletionChunk) error {
	if u := chunk.Usage; u.TotalTokens > 0 {
		a.usage = Usage{Input: u.PromptTokens, Cached: u.PromptTokensDetails.CachedTokens, Output: u.CompletionTokens}
	}
	for _, choice := range chunk.Choices {
		if choice.Index != 0 {
			continue
		}
		d := choice.Delta
		if err := a.takeExtra(&a.extra, messageExtras, d.RawJSON()); err != nil {
			return err
		}
		text, err := content(d.Content, d.JSON.Content.Raw())
		if err != nil {
			return err
		}
		if text != "" {
			a.begun = true
			if a.text.Len()+len(text) > maxText {
				return unreadable(fmt.Sprintf("the answer has more than %d bytes", maxText))
			}
			a.text.WriteString(text)
			a.delta(text)
		}
		if d.Refusal != "" && a.refusal.Len()+len(d.Refusal) <= maxText {
			a.begun = true
			a.refusal.WriteString(d.Refusal)
		}
		for _, call := range d.ToolCalls {
			if err := a.addCall(call); err != nil {
				return err
			}
		}
		switch {
		case choice.FinishReason == "error": // OpenRouter ends a failed answer this way
			return problem{Message: "the provider ended its answer with the finish reason error"}
		case choice.FinishReason != "":
			if !a.finished && a.last != nil {
				a.last()
			}
			a.finished, a.finish = true, choice.FinishReason
		}
	}
	return nil
}

// addCall adds a piece of a call. Some servers give every call the index 0, or send whole calls without index or id.
func (a *answer) addCall(d openai.ChatCompletionChunkChoiceDeltaToolCall) error {
	a.begun = true
	p := a.byIndex[int(d.Index)]
	if p == nil || p.ends(d) {
		if len(a.calls) >= maxCalls {
			return unreadable(fmt.Sprintf("the answer calls more than %d tools", maxCalls))
		}
		if a.byIndex == nil {
			a.byIndex = map[int]*partial{}
		}
		p = &partial{}
		a.byIndex[int(d.Index)] = p
		a.calls = append(a.calls, p)
	}
	if d.ID != "" {
		p.id = d.ID
	}
	p.name = cmp.Or(p.name, d.Function.Name)
	args := d.Function.Arguments // some servers send an object, which the library returns unparsed
	if a.argBytes += len(args); a.argBytes > maxArgs {
		return unreadable(fmt.Sprintf("the arguments of the tool calls have more than %d bytes", maxArgs))
	}
	p.args.WriteString(args)
	return a.takeExtra(&p.extra, callExtras, d.RawJSON())
}

// ends reports whether a piece with p's index begins another call: another id, or a name although p is complete.
func (p *partial) ends(d openai.ChatCompletionChunkChoiceDeltaToolCall) bool {
	if d.ID != "" && p.id != "" {
		return d.ID != p.id
	}
	return d.ID == "" && p.id == "" && d.Function.Name != "" && p.name != "" && json.Valid([]byte(p.args.String()))
}

func (a *answer) reply() Reply {
	r := Reply{Text: a.text.String(), Extra: a.pack(a.extra), Usage: a.usage, Cut: a.finish == "length",
		Refused: a.finish == "content_filter"}
	if a.refusal.Len() > 0 {
		r.Refused = true
		if r.Text == "" {
			r.Text = a.refusal.String()
			a.delta(r.Text)
		}
	}
	given := map[string]bool{}
	for i, p := range a.calls {
		id := cmp.Or(p.id, "call_"+strconv.Itoa(i)) // the model needs an id for the answer
		for given[id] {
			id += "_" + strconv.Itoa(i) // unique for each call
		}
		given[id] = true
		r.Calls = append(r.Calls, ToolCall{ID: id, Name: p.name, Args: json.RawMessage(p.args.String()), Extra: a.pack(p.extra)})
	}
	return r
}
