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

// Questions limits how many questions a conversation may ask its user without getting an
// approval. A zero field means the default.
type Questions struct {
	// PerTool is how many questions about one tool may be declined, expire or be answered
	// elsewhere. After that, each time the user says something allows one more question. Zero
	// means defaults.QuestionsPerTool.
	PerTool int
	// Total is how many questions about all tools together may end like that or be open. Zero
	// means defaults.Questions.
	Total int
}

func (q Questions) withDefaults() Questions {
	return Questions{PerTool: cmp.Or(q.PerTool, setting.QuestionsPerTool), Total: cmp.Or(q.Total, setting.Questions)}
}

// unapproved is a question that nobody has approved.
type unapproved struct {
	Tool string `json:"tool"`
	Name string `json:"name"` // as given to Asked
	// Over means that the question is no longer open.
	Over bool `json:"over,omitempty"`
	// Before means that the user has said something since the question.
	Before bool `json:"before,omitempty"`
}

// AskedEnough returns the answer to a call about which the user must not be asked any more; nil
// if they may be asked. asking lists the tools whose questions are being recorded: these count,
// because all calls of a batch are decided before the first question is put.
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

// Asked records that the user is asked about a call of the tool. name is kept with the
// conversation, so it must not be the secret that answers the question.
func (b *Book) Asked(tool, name string) {
	b.unapproved = append(slices.Clip(b.unapproved), unapproved{Tool: tool, Name: name})
}

// Resolved records that the question with that name is no longer open: it was answered or has
// expired.
func (b *Book) Resolved(name string) {
	b.unapproved = slices.Clone(b.unapproved)
	for i := range b.unapproved {
		q := &b.unapproved[i]
		q.Over = q.Over || q.Name == name
	}
}

// Approved records that a person has approved the question with that name about a tool. The
// tool's questions up to and including this one no longer count. A name that the Book does not
// have changes nothing.
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

// Unapproved calls see with the tool and the name of each question that counts as not approved,
// oldest first. see may call Approved, Resolved and Forget.
func (b *Book) Unapproved(see func(tool, name string)) {
	for _, q := range slices.Clone(b.unapproved) {
		see(q.Tool, q.Name)
	}
}

// Forget removes the question with that name, so that it no longer counts.
func (b *Book) Forget(name string) {
	b.unapproved = slices.DeleteFunc(slices.Clone(b.unapproved), func(q unapproved) bool { return q.Name == name })
}

// carried is the JSON form of Carry.
type carried struct {
	Retrieval  int          `json:"retrieval,omitempty"`
	Total      int          `json:"total,omitempty"`
	ToolTimeMS int64        `json:"tool_time_ms,omitempty"`
	Unapproved []unapproved `json:"unapproved,omitempty"`
	Switches   switches     `json:"switches,omitzero"`
}

// Carry returns, for Resume, what the Book of the conversation's next message must know: what
// the turn has used of its budget, and the questions that nobody has approved.
func (b *Book) Carry() json.RawMessage {
	raw, _ := json.Marshal(carried{ // only numbers and strings: it cannot fail
		Retrieval: b.account.Retrieval, Total: b.account.Total, ToolTimeMS: b.account.ToolTime.Milliseconds(),
		Unapproved: b.unapproved, Switches: b.switches,
	})
	return raw
}

// Resume restores what Carry has returned; an empty raw changes nothing. The turn continues
// until BeginTurn begins another one.
func (b *Book) Resume(raw json.RawMessage) error {
	if len(raw) == 0 {
		return nil
	}
	var c carried
	if err := json.Unmarshal(raw, &c); err != nil {
		return fmt.Errorf("what the conversation has kept of its tool calls cannot be read: %w", err)
	}
	b.account = Account{Retrieval: max(c.Retrieval, 0), Total: max(c.Total, 0), ToolTime: time.Duration(max(c.ToolTimeMS, 0)) * time.Millisecond}
	b.unapproved, b.switches = c.Unapproved, c.Switches
	return nil
}
