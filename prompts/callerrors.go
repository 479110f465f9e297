package prompts

import "fmt"

// Words are the texts of an error.
type Words struct {
	// Message explains what happened; the model may repeat it to the user.
	Message string
	// Suggestion tells the model what to do instead; may be empty.
	Suggestion string
}

// DoesNotWork is the suggestion for errors that the call did not cause.
const DoesNotWork = "Tell the user that it does not work at the moment."

// Suggestions of several errors.
const (
	takesTooLong  = "Tell the user that it takes too long at the moment."
	answerWithout = "Answer the user without it."
)

// NoSuchTool answers a call of an unknown tool.
func NoSuchTool(tool string) Words {
	return Words{fmt.Sprintf("There is no tool named %q.", tool), answerWithout}
}

// UseAnotherTool is the suggestion of NoSuchTool if there are tools. hint is empty or "; did you mean …?", and names
// lists the tools.
func UseAnotherTool(hint, names string) string {
	return fmt.Sprintf("Use one of the tools there are%s: %s. Or answer the user without any.", hint, names)
}

// NoGuide answers a describe_tool for an unknown tool. names lists the model's tools.
func NoGuide(tool, names string) Words {
	return Words{fmt.Sprintf("There is no tool named %q here.", tool), "The tools are: " + names + "."}
}

// WrongMode answers a call of a tool in a mode that it doesn't allow. allowed names its modes, such as "text and
// voice".
func WrongMode(tool, mode, allowed string) Words {
	return Words{
		fmt.Sprintf("The tool %s cannot be used in %s mode.", tool, mode),
		"Answer the user without it, or tell them where it can be used: in " + allowed + " mode.",
	}
}

// InvalidArguments answers a call with invalid arguments.
func InvalidArguments(tool, problems string) Words {
	return Words{
		fmt.Sprintf("The arguments of %s are not valid: %s.", tool, problems),
		fmt.Sprintf("Correct what details.errors names and call %s again.", tool),
	}
}

// NotAnObject answers a call of a client's tool with arguments that aren't a JSON object.
func NotAnObject(tool string) Words {
	return Words{"The arguments of " + tool + " are no JSON object.", "Call it again with a JSON object."}
}

// ToolHangs refuses a call while too many earlier calls of the tool hang.
func ToolHangs() Words {
	return Words{"Earlier calls of this tool hang, so no new one is begun.", answerWithout}
}

// AskedTooLong means that a dependency of the tool did not answer in time.
func AskedTooLong(tool string) Words {
	return Words{fmt.Sprintf("What the tool %s asked did not answer in time.", tool), takesTooLong}
}

// NoTimeLeft means that no time was left to start the tool.
func NoTimeLeft(tool string) Words {
	return Words{fmt.Sprintf("There was no time left to begin the tool %s.", tool), takesTooLong}
}

// OutOfTime means that the tool was stopped after limitMS milliseconds, or after the turn's remaining time if limitMS
// is 0.
func OutOfTime(tool string, limitMS int) Words {
	within := "in the time that was left"
	if limitMS > 0 {
		within = fmt.Sprintf("within %d ms", limitMS)
	}
	return Words{fmt.Sprintf("The tool %s did not finish %s and was stopped.", tool, within), takesTooLong}
}

// CancelledBefore means that the call was cancelled before the tool started.
func CancelledBefore() Words { return Words{Message: "The call was cancelled before it began."} }

// CancelledMidway means that the call was cancelled while the tool ran.
func CancelledMidway() Words { return Words{Message: "The call was cancelled before it was finished."} }

// BrokenOutput means that the tool's answer doesn't match its output schema.
func BrokenOutput(tool string) Words {
	return Words{fmt.Sprintf("The tool %s has finished, but its answer is not in the form that it must have, so that it cannot be used.", tool), DoesNotWork}
}

// ClientAnswerTooLong means that a client's tool ran, but its answer is too long.
func ClientAnswerTooLong() Words {
	return Words{"The tool has run, and its answer is too long to be read.", "Tell the user that it was done, and that the result is not known. Do not call it again by yourself."}
}

// FailedUnexpectedly means that the tool failed without a message for the model.
func FailedUnexpectedly(tool string) Words {
	return Words{fmt.Sprintf("The tool %s failed unexpectedly.", tool), DoesNotWork}
}

// Failed is the message of a tool's error without a message.
func Failed(tool string) string { return fmt.Sprintf("The tool %s failed.", tool) }

// Unnamed replaces an unknown error.
func Unnamed() Words { return Words{Message: "The tool failed."} }

// NotWritten means that the tool's answer cannot be encoded as JSON.
func NotWritten() Words { return Words{Message: "The answer of the tool could not be written."} }

// NotWrittenAtAll is used inside JSON if even NotWritten cannot be encoded. It contains no quotation marks.
const NotWrittenAtAll = "The answer could not be written."

// NoNestedCalls refuses a nested call outside a conversation, or after the calling call has ended.
func NoNestedCalls(tool string) Words {
	return Words{fmt.Sprintf("%s was not run: there is no running call in a conversation that could call it.", tool), ""}
}

// TooManyNested refuses a nested call above the limit for a model's call.
func TooManyNested(tool string, most int) Words {
	return Words{fmt.Sprintf("%s was not run: one call may lead to %d calls of other tools, and they are used up.", tool, most), ""}
}

// TooDeep refuses a nested call above the depth limit.
func TooDeep(tool string, most int) Words {
	return Words{fmt.Sprintf("%s was not run: calls may be within one another %d deep.", tool, most), ""}
}

// CallsItself refuses a recursive call.
func CallsItself(tool string) Words {
	return Words{fmt.Sprintf("%s was not run: it is calling already, and would call itself.", tool), ""}
}

// CallerDoesNotWrite refuses a nested call of a tool with side effects by a tool without.
func CallerDoesNotWrite(tool, caller string) Words {
	return Words{fmt.Sprintf("%s was not run: it writes, and %s, which calls it, says that it does not.", tool, caller), ""}
}

// NotByTools refuses a nested call of a tool that only models may call.
func NotByTools(tool string) Words {
	return Words{fmt.Sprintf("%s was not run: tools cannot call it.", tool), ""}
}

// goOnYourself is the suggestion for a refused switch.
const goOnYourself = "Go on with the user yourself, and say what you cannot do."

// SwitchBack refuses to switch back to the previous agent before the user has said anything.
func SwitchBack(agent string) Words {
	return Words{fmt.Sprintf("The agent %s has just handed the user over, and the user has said nothing since.", agent), goOnYourself}
}

// SwitchedTooOften refuses another switch. within is "this turn" or "this conversation", most the limit.
func SwitchedTooOften(most int, within string) Words {
	return Words{fmt.Sprintf("The agent has changed %d times in %s, and that is as often as it may.", most, within), goOnYourself}
}

// SwitchUnderWay refuses a second switch while one is in progress.
func SwitchUnderWay() Words {
	return Words{"The user is being handed over to an agent already.", "Wait for that."}
}

// SwitchNotPossible refuses an impossible switch. why completes a sentence.
func SwitchNotPossible(agent, why string) Words {
	return Words{fmt.Sprintf("The agent %s cannot go on with this conversation: %s.", agent, why), goOnYourself}
}

// NoLedger refuses a tool with side effects without a ledger.
func NoLedger() Words {
	return Words{"Tools that change something cannot run here: there is no ledger.", DoesNotWork}
}

// NotRecorded means that the ledger could not record the call before it ran.
func NotRecorded() Words {
	return Words{
		"It could not be recorded that this is to be done, so nothing was done.",
		"Tell the user that it does not work at the moment; it may be tried again later.",
	}
}

// OutcomeUnknown means that the same operation was started before and may have been done.
func OutcomeUnknown() Words {
	return Words{
		"This was begun before, and nobody knows whether it was done. It was not begun again.",
		"Tell the user that it may have been done already, and that it has to be looked up before it is tried again.",
	}
}

// MayStillRun means that the same operation was started before and may still be running.
func MayStillRun() Words {
	return Words{
		"This was begun before and has not been finished; it may be at work still. It was not begun again.",
		"Tell the user that it may have been done already. Calling it again in a moment gives its result, if it has one by then.",
	}
}

// ShuttingDown means that the gateway starts no more calls.
func ShuttingDown() Words {
	return Words{Message: "The gateway is shutting down; nothing was done."}
}

// LostWrite answers a call with side effects that was running when its process died.
func LostWrite(tool string) Words {
	return Words{
		"The connection to " + tool + " was lost while it was at work. It is not known whether it was done.",
		"Tell the user that it may have been done already. Call it again only if the user wants that: if it was done, its result comes back and nothing is done twice.",
	}
}

// LostRead answers a call without side effects that was running when its process died.
func LostRead(tool string) Words {
	return Words{
		"The connection to " + tool + " was lost before it had answered.",
		"Call it again if its answer is still needed.",
	}
}
