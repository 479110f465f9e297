package chat

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"voicegw/internal/conversation"
	"voicegw/prompts"
	"voicegw/registry"
	"voicegw/registry/spec"
	"voicegw/transport/textmodel"
)

// prompt returns the model's input: the system text, as much of the history as fits, and this turn.
func (t *turn) prompt() textmodel.Prompt {
	p := textmodel.Prompt{User: userName(t.req.User.String()), Settings: t.req.Settings, MaxOutput: t.req.MaxOutput}
	if t.a.opts.Instructions != nil {
		text := t.a.opts.Instructions(t.persona, t.tools, t.mark, t.req.TimeZone)
		p.Messages = append(p.Messages, textmodel.Message{Role: textmodel.RoleSystem, Text: text})
	}
	before := t.earlier
	if t.req.History == nil {
		before = t.history()
	}
	for _, m := range slices.Concat(before, t.messages) {
		p.Messages = append(p.Messages, marked(t.mark, m))
	}
	if t.tools != nil {
		for _, tool := range t.tools.Tools(spec.ModeText) {
			p.Tools = append(p.Tools, textmodel.Tool{Name: tool.ToolID, Description: tool.Description, Parameters: tool.Forms.OpenAIChat})
		}
	}
	for _, tool := range t.req.Tools { // written by the client, so the mark is removed
		tool.Description, tool.Parameters = t.mark.Foreign(tool.Description), t.mark.JSON(tool.Parameters)
		p.Tools = append(p.Tools, tool)
	}
	p.Parallel = t.req.Parallel
	if t.items == 0 { // the first answer of the turn
		p.ToolChoice = t.req.ToolChoice
	}
	p.ToolsOff = string(t.req.ToolChoice) == `"none"`
	return p
}

// marked adds the mark to the gateway's own messages and removes it from all other text.
func marked(mark prompts.Mark, m textmodel.Message) textmodel.Message {
	switch {
	case m.Notice:
		m.Text = mark.Notice(m.Text)
	case m.Role == textmodel.RoleTool:
		m.Text = string(mark.JSON(json.RawMessage(m.Text)))
	default:
		m.Text = mark.Foreign(m.Text)
		m.Parts = slices.Clone(m.Parts)
		for i := range m.Parts {
			m.Parts[i].Text = mark.Foreign(m.Parts[i].Text)
		}
	}
	m.Calls = slices.Clone(m.Calls)
	for i := range m.Calls {
		c := &m.Calls[i]
		c.Name, c.Args = nameInHistory(c.Name), mark.JSON(registry.Decode(c.Args).Object())
	}
	return m
}

const maxNameInHistory = 64

// nameInHistory replaces characters that providers reject in a history (^[a-zA-Z0-9_-]{1,64}$), for a model's own
// names.
func nameInHistory(name string) string {
	valid := func(r rune) rune {
		if r == '_' || r == '-' || r < utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r)) {
			return r
		}
		return '_'
	}
	name = strings.Map(valid, name)
	return cmp.Or(name[:min(len(name), maxNameInHistory)], "_")
}

func userName(user string) string {
	sum := sha256.Sum256([]byte("voicegw user " + user))
	return hex.EncodeToString(sum[:12])
}

// wholeTurns is the number of latest turns that keep their tools' full answers.
const wholeTurns = 2

// maxHistory limits the history sent to the model, in characters.
const maxHistory = 48_000

// history returns the conversation so far, without the oldest entries if it is too long.
func (t *turn) history() []textmodel.Message {
	var all [][]textmodel.Message // grouped by entry: calls and their answers stay together
	for _, e := range t.conv.Entries {
		all = append(all, entryMessages(e, e.Turn > t.conv.Turns-wholeTurns))
	}
	left, first := maxHistory, len(all)
	for first > 0 {
		if left -= size(all[first-1]); left < 0 {
			break
		}
		first--
	}
	var out []textmodel.Message
	if before := t.before(first); before != "" {
		out = append(out, textmodel.Message{Role: textmodel.RoleUser, Text: before, Notice: true})
	}
	for _, group := range all[first:] {
		out = append(out, group...)
	}
	return out
}

func (t *turn) before(first int) string {
	if t.conv.Dropped == 0 && first == 0 {
		return ""
	}
	left := conversation.Conversation{Entries: t.conv.Entries[:first], Earlier: t.conv.Earlier}
	brief := left.Brief(maxHistory / 8)
	if brief == "" {
		return ""
	}
	return prompts.SaidBefore(brief)
}

func size(group []textmodel.Message) int {
	n := 0
	for _, m := range group {
		n += utf8.RuneCountInString(m.Text)
		n += len(m.Extra)
		for _, c := range m.Calls {
			n += len(c.Args) + len(c.Extra)
		}
	}
	return n
}

func entryMessages(e conversation.Entry, whole bool) []textmodel.Message {
	text := e.Text
	if e.Interrupted {
		text += prompts.InterruptedHere
	}
	if e.Broken {
		text += prompts.BrokeOffHere
	}
	if e.Role == conversation.RoleContext {
		return []textmodel.Message{{Role: textmodel.RoleUser, Text: prompts.PageContext(text), Notice: true}}
	}
	if e.Side == conversation.SideVoice {
		text = prompts.ByVoice + text
	}
	switch {
	case e.Role != conversation.RoleAssistant:
		return []textmodel.Message{{Role: textmodel.RoleUser, Text: text, Notice: e.System && e.Role == conversation.RoleNotice}}
	case len(e.Calls) == 0:
		m := textmodel.Message{Role: textmodel.RoleAssistant, Text: text}
		if whole {
			m.Extra = e.Extra
		}
		return []textmodel.Message{m}
	case whole && e.Side == conversation.SideText && !slices.ContainsFunc(e.Calls, incomplete):
		m := textmodel.Message{Role: textmodel.RoleAssistant, Text: text, Extra: e.Extra}
		var answers []textmodel.Message
		for _, c := range e.Calls {
			m.Calls = append(m.Calls, textmodel.ToolCall{ID: c.ID, Name: c.Tool, Args: c.Args, Extra: c.Extra})
			answers = append(answers, textmodel.Message{Role: textmodel.RoleTool, CallID: c.ID, Text: string(c.Envelope)})
		}
		return append([]textmodel.Message{m}, answers...)
	default:
		var named []string
		for _, c := range e.Calls {
			named = append(named, c.Tool+": "+c.Outcome())
		}
		text = strings.TrimSpace(text + " " + prompts.Called(strings.Join(named, ", ")))
		return []textmodel.Message{{Role: textmodel.RoleAssistant, Text: text}}
	}
}

func incomplete(c conversation.Call) bool { return c.Envelope == nil || c.ID == "" }
