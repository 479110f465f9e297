package policy

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"voicegw/config/defaults"
	"voicegw/prompts/toolerror"
	"voicegw/registry"
)

// Questions is how many questions for an approval a conversation may put to its user
// without getting one. A zero field means the default.
type Questions struct {
	// PerTool is how many questions about one tool may be declined, expire or be answered
	// elsewhere. Zero means defaults.QuestionsPerTool. After that, each time that the user says something allows one
	// question more.
	PerTool int
	// Total is how many questions of all tools may be so, or wait for an answer. Zero means defaults.Questions.
	Total int
}

func (q Questions) withDefaults() Questions {
	return Questions{PerTool: cmp.Or(q.PerTool, defaults.QuestionsPerTool), Total: cmp.Or(q.Total, defaults.Questions)}
}

// unapproved is a question that nobody has approved.
type unapproved struct {
	Tool string `json:"tool"`
	Name string `json:"name"` // as given to Asked
	// Over says that it does not wait for an answer any more.
	Over bool `json:"over,omitempty"`
	// Before says that the user has said something since.
	Before bool `json:"before,omitempty"`
}

// AskedEnough is the answer to a call whose user is not asked any more; nil if they are
// asked. asking are the tools whose questions are being recorded: they count, because the
// calls of one batch are all decided before the first question is put.
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
	most := b.rules.Questions
	switch {
	case total >= most.Total:
		return registry.NewError(registry.ErrorBudgetExceeded, toolerror.AskedTooOften(total, tool))
	case over >= most.PerTool && lately:
		return registry.NewError(registry.ErrorBudgetExceeded, toolerror.AskedTooOftenAbout(over, tool))
	default:
		return nil
	}
}

// Asked notes that a person is asked about a call of the tool. The name of the question is
// kept with the conversation, so it must not be what answers it.
func (b *Book) Asked(tool, name string) {
	b.unapproved = append(slices.Clip(b.unapproved), unapproved{Tool: tool, Name: name})
}

// Resolved notes that the question of that name does not wait any more: it was answered, or
// is too old.
func (b *Book) Resolved(name string) {
	b.unapproved = slices.Clone(b.unapproved)
	for i := range b.unapproved {
		q := &b.unapproved[i]
		q.Over = q.Over || q.Name == name
	}
}

// Approved notes that a person has approved the question of that name about a tool. The
// tool's questions up to this one do not count any more. A name that the Book does not know
// changes nothing.
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

// Unapproved calls see with the tool and the name of each question that counts as not
// approved, oldest first. See may call Approved, Resolved and Forget.
func (b *Book) Unapproved(see func(tool, name string)) {
	for _, q := range slices.Clone(b.unapproved) {
		see(q.Tool, q.Name)
	}
}

// Forget lets the question of that name not count any more.
func (b *Book) Forget(name string) {
	b.unapproved = slices.DeleteFunc(slices.Clone(b.unapproved), func(q unapproved) bool { return q.Name == name })
}

// carried is what Carry writes.
type carried struct {
	Retrieval  int          `json:"retrieval,omitempty"`
	Total      int          `json:"total,omitempty"`
	ToolTimeMS int64        `json:"tool_time_ms,omitempty"`
	Unapproved []unapproved `json:"unapproved,omitempty"`
}

// Carry is what a Book made for the next message of the same conversation has to know, for
// Resume: what the turn has used of its budget, and the questions that nobody has approved.
func (b *Book) Carry() json.RawMessage {
	raw, _ := json.Marshal(carried{ // numbers and strings alone: it cannot fail
		Retrieval: b.account.Retrieval, Total: b.account.Total, ToolTimeMS: b.account.ToolTime.Milliseconds(),
		Unapproved: b.unapproved,
	})
	return raw
}

// Resume takes up what Carry has written; nothing is nothing. The turn goes on: BeginTurn
// begins another one.
func (b *Book) Resume(raw json.RawMessage) error {
	if len(raw) == 0 {
		return nil
	}
	var c carried
	if err := json.Unmarshal(raw, &c); err != nil {
		return fmt.Errorf("what the conversation has kept of its tool calls cannot be read: %w", err)
	}
	b.account = Account{Retrieval: max(c.Retrieval, 0), Total: max(c.Total, 0), ToolTime: time.Duration(max(c.ToolTimeMS, 0)) * time.Millisecond}
	b.unapproved = c.Unapproved
	return nil
}
