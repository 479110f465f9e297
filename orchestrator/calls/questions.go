package calls

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"voicegw/config/setting"
	"voicegw/prompts"
	"voicegw/registry"
)

// Questions limits the questions that end without an approval. A zero field means the default.
type Questions struct {
	// PerTool limits the questions about one tool that are declined, expire or are answered elsewhere. After that,
	// each time the user speaks or types allows one more. The default is setting.QuestionsPerTool.
	PerTool int
	Total   int // limits the questions about all tools that are open or ended like that. The default is setting.Questions.
}

func (q Questions) withDefaults() Questions {
	return Questions{PerTool: cmp.Or(q.PerTool, setting.QuestionsPerTool), Total: cmp.Or(q.Total, setting.Questions)}
}

type unapproved struct {
	Tool   string `json:"tool"`
	Name   string `json:"name"`             // as given to Asked
	Over   bool   `json:"over,omitempty"`   // the question is closed
	Before bool   `json:"before,omitempty"` // the user has spoken or typed since
}

// AskedEnough returns why a call must not be asked about any more; nil if it may. asking lists the tools with questions
// being recorded, because a batch is decided before its first question is asked.
func (b *Book) AskedEnough(tool string, asking []string) *registry.Error {
	total, over, lately := len(b.unapproved)+len(asking), 0, slices.Contains(asking, tool)
	for _, q := range b.unapproved {
		if q.Tool == tool {
			lately = lately || !q.Before
			if q.Over {
				over++
			}
		}
	}
	most := b.rules.Questions.withDefaults()
	switch {
	case total >= most.Total:
		return registry.NewError(registry.ErrorBudgetExceeded, prompts.ApprovalAskedTooOften(total, tool))
	case over >= most.PerTool && lately:
		return registry.NewError(registry.ErrorBudgetExceeded, prompts.ApprovalAskedTooOftenAbout(over, tool))
	default:
		return nil
	}
}

// Asked records a question about a tool. name is stored with the conversation, so it must not be the token.
func (b *Book) Asked(tool, name string) {
	b.unapproved = append(slices.Clip(b.unapproved), unapproved{Tool: tool, Name: name})
}

// Resolved records that the question with that name is closed.
func (b *Book) Resolved(name string) {
	b.unapproved = slices.Clone(b.unapproved)
	for i := range b.unapproved {
		q := &b.unapproved[i]
		q.Over = q.Over || q.Name == name
	}
}

// Approved records an approval of the question with that name. The tool's questions up to it no longer count.
func (b *Book) Approved(tool, name string) {
	until := slices.IndexFunc(b.unapproved, func(q unapproved) bool { return q.Tool == tool && q.Name == name })
	var left []unapproved
	for i, q := range b.unapproved {
		if q.Tool != tool || i > until {
			left = append(left, q)
		}
	}
	b.unapproved = left
}

// Unapproved calls see with each question that counts, oldest first. see may call Approved, Resolved and Forget.
func (b *Book) Unapproved(see func(tool, name string)) {
	for _, q := range slices.Clone(b.unapproved) {
		see(q.Tool, q.Name)
	}
}

// Forget removes the question with that name.
func (b *Book) Forget(name string) {
	b.unapproved = slices.DeleteFunc(slices.Clone(b.unapproved), func(q unapproved) bool { return q.Name == name })
}

type carried struct {
	Retrieval  int          `json:"retrieval,omitempty"`
	Total      int          `json:"total,omitempty"`
	ToolTimeMS int64        `json:"tool_time_ms,omitempty"`
	Unapproved []unapproved `json:"unapproved,omitempty"`
	Switches   switches     `json:"switches,omitzero"`
}

// Carry returns the use of the turn's budget and the unapproved questions, for Resume in the next message.
func (b *Book) Carry() json.RawMessage {
	raw, _ := json.Marshal(carried{ // only numbers and strings: it cannot fail
		Retrieval: b.account.Retrieval, Total: b.account.Total, ToolTimeMS: b.account.ToolTime.Milliseconds(),
		Unapproved: b.unapproved, Switches: b.switches,
	})
	return raw
}

// Resume restores the result of Carry; an empty raw changes nothing. The turn continues until BeginTurn.
func (b *Book) Resume(raw json.RawMessage) error {
	if len(raw) == 0 {
		return nil
	}
	var c carried
	if err := json.Unmarshal(raw, &c); err != nil {
		return fmt.Errorf("stored tool call budget of the conversation: %w", err)
	}
	b.account = Account{Retrieval: max(c.Retrieval, 0), Total: max(c.Total, 0),
		ToolTime: time.Duration(max(c.ToolTimeMS, 0)) * time.Millisecond}
	b.unapproved, b.switches = c.Unapproved, c.Switches
	return nil
}
