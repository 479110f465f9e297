package policy

import (
	"encoding/json"
	"time"

	"voicegw/prompts/toolerror"
	"voicegw/registry"
	"voicegw/registry/toolname"
)

// ConfirmAction is the tool with which a model reports that the user has agreed aloud, if the
// operator allows that.
const ConfirmAction = toolname.ConfirmAction

// Question returns the answer CONFIRMATION_REQUIRED, which a model gets for a call that a person
// must approve. spoken means that the user may agree aloud.
func Question(p *registry.Prepared, token, reference string, expires time.Time, spoken bool) registry.Envelope {
	tool := p.Tool().ToolID
	words := toolerror.ApprovalNeeded(tool)
	if spoken {
		words = toolerror.ApprovalNeededAloud(tool, ConfirmAction, reference)
	}
	e := registry.NewError(registry.ErrorConfirmationRequired, words)
	e.Details, _ = json.Marshal(map[string]string{"reference": reference}) // only strings: it cannot fail
	e.ConfirmationRequest = &registry.ConfirmationRequest{
		Token: token, Tool: tool, Args: p.Args(), Preview: p.Preview(),
		ExpiresAt: expires.UTC().Format("2006-01-02T15:04:05.000Z"),
	}
	return p.Refuse(e)
}

// NotAsked returns the answer to a call whose question could not be recorded.
func NotAsked(p *registry.Prepared) registry.Envelope {
	return p.Refuse(registry.NewError(registry.ErrorTransient, toolerror.CouldNotAskForApproval()))
}
