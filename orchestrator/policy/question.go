package policy

import (
	"encoding/json"
	"fmt"
	"time"

	"voicegw/registry"
)

// ConfirmAction is the tool with which a model confirms what the user has agreed to
// aloud, where that is allowed.
const ConfirmAction = registry.ConfirmAction

// Question makes what a model is told of a call that a person has to approve: the
// answer CONFIRMATION_REQUIRED, to be given to Book.Asked. spoken says that the user may
// agree aloud.
func (b *Book) Question(p *registry.Prepared, token, reference string, expires time.Time, spoken bool) registry.Envelope {
	tool := p.Tool().ToolID
	details, _ := json.Marshal(map[string]string{"reference": reference}) // strings alone: it cannot fail
	e := &registry.Error{
		Type: registry.ErrorConfirmationRequired, Details: details,
		ConfirmationRequest: &registry.ConfirmationRequest{
			Token: token, Tool: tool, Args: p.Args(), Preview: p.Preview(),
			ExpiresAt: expires.UTC().Format("2006-01-02T15:04:05.000Z"),
		},
		Message:    tool + " needs the user's approval. Nothing has been done yet; the user is being asked on the screen.",
		Suggestion: "Say in a sentence what is to be approved and ask the user to press the button. Do not call it again: the outcome comes by itself.",
	}
	if spoken {
		e.Message = tool + " needs the user's approval. Nothing has been done yet."
		e.Suggestion = fmt.Sprintf("Say in a sentence what is to be done and ask for a clear yes. When the user has answered, call %s with reference %q and approved true or false. The user may also press the button; then the outcome comes by itself.", ConfirmAction, reference)
	}
	return p.Refuse(e)
}

// NotAsked is the answer to a call whose question could not be recorded.
func (b *Book) NotAsked(p *registry.Prepared) registry.Envelope {
	return p.Refuse(&registry.Error{
		Type: registry.ErrorTransient, Message: "The user could not be asked to approve it; nothing was done.",
		Retryable: true, Suggestion: "Tell the user that it does not work at the moment.",
	})
}

// What follows are the gateway's own words to a model, as turns of the user's. Whoever sends
// them puts the mark of the conversation before them (mark.Mark.Notice).

// NudgeNotice asks a model once more that has ended its answer without a word.
const NudgeNotice = "The user is waiting for an answer. Answer now, in a sentence, without calling a tool."

// ApprovedNotice tells a model what came of an approved action; result is the envelope.
func ApprovedNotice(tool, reference string, result json.RawMessage) string {
	return fmt.Sprintf("The user approved %s (reference %s), and it was run. This is its result; tell the user what came of it, and do not call it again: %s",
		tool, reference, result)
}

// DeclinedNotice tells a model that the user has said no.
func DeclinedNotice(tool, reference string) string {
	return fmt.Sprintf("The user declined %s (reference %s). Nothing was done. Acknowledge it briefly.", tool, reference)
}

// ExpiredNotice tells a model that the user has not answered in time.
func ExpiredNotice(tool, reference string) string {
	return fmt.Sprintf("The user did not answer in time whether to run %s (reference %s). Nothing was done, and it cannot be approved any more. Say so briefly.", tool, reference)
}

// AnsweredNotice tells a model that somebody else has answered a question.
func AnsweredNotice(tool, reference string) string {
	return fmt.Sprintf("Whether to run %s (reference %s) was answered somewhere else. It was not run here, and cannot be approved any more. Say so briefly.", tool, reference)
}

// UnknownNotice tells a model of an approved action whose outcome nobody knows: the gateway
// was killed before it was recorded. begun says that the action may have been done.
func UnknownNotice(tool, reference string, approved time.Time, begun bool) string {
	what := "It seems that it was not begun"
	if begun {
		what = "It was begun and may have been done"
	}
	return fmt.Sprintf("The user approved %s (reference %s) at %s, and the gateway was ended before the outcome was recorded. %s, but nobody knows. Do not call it again by yourself: tell the user, and have it looked up first.",
		tool, reference, approved.UTC().Format(time.RFC3339), what)
}
