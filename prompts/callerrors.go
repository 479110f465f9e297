package prompts

import "fmt"

// Words are the texts of an error.
type Words struct {
	// Message says what happened; the model may repeat it to the user.
	Message string
	// Suggestion says what the model should do instead; may be empty.
	Suggestion string
}

// DoesNotWork is the suggestion of errors that the call did not cause.
const DoesNotWork = "Tell the user that it does not work at the moment."

// Suggestions of several errors.
const (
	takesTooLong  = "Tell the user that it takes too long at the moment."
	answerWithout = "Answer the user without it."
)

// NoSuchTool answers a call of a tool that does not exist.
func NoSuchTool(tool string) Words {
	return Words{fmt.Sprintf("There is no tool named %q.", tool), answerWithout}
}

// UseAnotherTool is the suggestion of NoSuchTool if there are tools. hint is empty or
// "; did you mean …?", names lists the tools.
func UseAnotherTool(hint, names string) string {
	return fmt.Sprintf("Use one of the tools there are%s: %s. Or answer the user without any.", hint, names)
}

// NoGuide answers a call of describe_tool about a tool that does not exist. names lists
// the tools that the model may call.
func NoGuide(tool, names string) Words {
	return Words{fmt.Sprintf("There is no tool named %q here.", tool), "The tools are: " + names + "."}
}

// WrongMode answers a call of a tool that is not for this mode. allowed names the modes
// for which it is, such as "text and voice".
func WrongMode(tool, mode, allowed string) Words {
	return Words{
		fmt.Sprintf("The tool %s cannot be used in %s mode.", tool, mode),
		"Answer the user without it, or tell them where it can be used: in " + allowed + " mode.",
	}
}

// InvalidArguments answers a call whose arguments are invalid. problems says what is
// wrong with which of them.
func InvalidArguments(tool, problems string) Words {
	return Words{
		fmt.Sprintf("The arguments of %s are not valid: %s.", tool, problems),
		fmt.Sprintf("Correct what details.errors names and call %s again.", tool),
	}
}

// NotAnObject answers a call of a client's tool whose arguments are not a JSON object.
func NotAnObject(tool string) Words {
	return Words{"The arguments of " + tool + " are no JSON object.", "Call it again with a JSON object."}
}

// ToolHangs refuses a call of a tool if too many of its earlier calls have not returned.
func ToolHangs() Words {
	return Words{"Earlier calls of this tool hang, so no new one is begun.", answerWithout}
}

// AskedTooLong says that something the tool depends on did not answer in time.
func AskedTooLong(tool string) Words {
	return Words{fmt.Sprintf("What the tool %s asked did not answer in time.", tool), takesTooLong}
}

// NoTimeLeft says that no time was left when the tool should have begun.
func NoTimeLeft(tool string) Words {
	return Words{fmt.Sprintf("There was no time left to begin the tool %s.", tool), takesTooLong}
}

// OutOfTime says that the tool was stopped because its time was over: limitMS milliseconds
// of its own, or the remaining time of the turn if limitMS is 0.
func OutOfTime(tool string, limitMS int) Words {
	within := "in the time that was left"
	if limitMS > 0 {
		within = fmt.Sprintf("within %d ms", limitMS)
	}
	return Words{fmt.Sprintf("The tool %s did not finish %s and was stopped.", tool, within), takesTooLong}
}

// CancelledBefore says that the call was cancelled before the tool began.
func CancelledBefore() Words { return Words{Message: "The call was cancelled before it began."} }

// CancelledMidway says that the call was cancelled while the tool ran.
func CancelledMidway() Words { return Words{Message: "The call was cancelled before it was finished."} }

// BrokenOutput says that the tool has answered, but not in the form in which it must.
func BrokenOutput(tool string) Words {
	return Words{fmt.Sprintf("The tool %s has finished, but its answer is not in the form that it must have, so that it cannot be used.", tool), DoesNotWork}
}

// ClientAnswerTooLong says that a tool of the client's has run, and has answered too much.
func ClientAnswerTooLong() Words {
	return Words{"The tool has run, and its answer is too long to be read.", "Tell the user that it was done, and that the result is not known. Do not call it again by yourself."}
}

// FailedUnexpectedly says that the tool failed without a message for the model.
func FailedUnexpectedly(tool string) Words {
	return Words{fmt.Sprintf("The tool %s failed unexpectedly.", tool), DoesNotWork}
}

// Failed is the message of an error that the tool returned without a message.
func Failed(tool string) string { return fmt.Sprintf("The tool %s failed.", tool) }

// Unnamed replaces an error about which nothing is known.
func Unnamed() Words { return Words{Message: "The tool failed."} }

// NotWritten says that the tool's answer cannot be written as JSON.
func NotWritten() Words { return Words{Message: "The answer of the tool could not be written."} }

// NotWrittenAtAll is put into JSON if not even NotWritten could be written. It contains no
// quotation marks.
const NotWrittenAtAll = "The answer could not be written."

// NoNestedCalls refuses a call by a tool outside of a conversation, or after its own call has ended.
func NoNestedCalls(tool string) Words {
	return Words{fmt.Sprintf("%s was not run: there is no running call in a conversation that could call it.", tool), ""}
}

// TooManyNested refuses a call by a tool beyond the bound for one call of the model.
func TooManyNested(tool string, most int) Words {
	return Words{fmt.Sprintf("%s was not run: one call may lead to %d calls of other tools, and they are used up.", tool, most), ""}
}

// TooDeep refuses a call by a tool that is itself called by too many others in a row.
func TooDeep(tool string, most int) Words {
	return Words{fmt.Sprintf("%s was not run: calls may be within one another %d deep.", tool, most), ""}
}

// CallsItself refuses a call by a tool that would go round in a circle.
func CallsItself(tool string) Words {
	return Words{fmt.Sprintf("%s was not run: it is calling already, and would call itself.", tool), ""}
}

// CallerDoesNotWrite refuses a call of a tool that writes by one that says that it does not.
func CallerDoesNotWrite(tool, caller string) Words {
	return Words{fmt.Sprintf("%s was not run: it writes, and %s, which calls it, says that it does not.", tool, caller), ""}
}

// NotByTools refuses a call by a tool of one that only a model can call.
func NotByTools(tool string) Words {
	return Words{fmt.Sprintf("%s was not run: tools cannot call it.", tool), ""}
}

// goOnYourself is what a model does that may not hand its user over.
const goOnYourself = "Go on with the user yourself, and say what you cannot do."

// SwitchBack refuses to hand the user back to an agent that has handed them over, before the user has
// said anything.
func SwitchBack(agent string) Words {
	return Words{fmt.Sprintf("The agent %s has just handed the user over, and the user has said nothing since.", agent), goOnYourself}
}

// SwitchedTooOften refuses another switch. within is "this turn" or "this conversation", most how many
// it may have.
func SwitchedTooOften(most int, within string) Words {
	return Words{fmt.Sprintf("The agent has changed %d times in %s, and that is as often as it may.", most, within), goOnYourself}
}

// SwitchUnderWay refuses a second switch beside one that has not ended.
func SwitchUnderWay() Words {
	return Words{"The user is being handed over to an agent already.", "Wait for that."}
}

// SwitchNotPossible refuses a switch that this conversation cannot make. why is the reason, as the
// end of a sentence.
func SwitchNotPossible(agent, why string) Words {
	return Words{fmt.Sprintf("The agent %s cannot go on with this conversation: %s.", agent, why), goOnYourself}
}

// NoLedger refuses a tool that changes something if there is no ledger.
func NoLedger() Words {
	return Words{"Tools that change something cannot run here: there is no ledger.", DoesNotWork}
}

// NotRecorded says that the ledger could not record the call before it ran.
func NotRecorded() Words {
	return Words{
		"It could not be recorded that this is to be done, so nothing was done.",
		"Tell the user that it does not work at the moment; it may be tried again later.",
	}
}

// OutcomeUnknown says that the same operation was started before and may have been done.
func OutcomeUnknown() Words {
	return Words{
		"This was begun before, and nobody knows whether it was done. It was not begun again.",
		"Tell the user that it may have been done already, and that it has to be looked up before it is tried again.",
	}
}

// MayStillRun says that the same operation was started before and may still be running.
func MayStillRun() Words {
	return Words{
		"This was begun before and has not been finished; it may be at work still. It was not begun again.",
		"Tell the user that it may have been done already. Calling it again in a moment gives its result, if it has one by then.",
	}
}

// ShuttingDown says that the gateway starts no more calls.
func ShuttingDown() Words {
	return Words{Message: "The gateway is shutting down; nothing was done."}
}

// LostWrite answers a call that changes something and was under way when its process ended.
func LostWrite(tool string) Words {
	return Words{
		"The connection to " + tool + " was lost while it was at work. It is not known whether it was done.",
		"Tell the user that it may have been done already. Call it again only if the user wants that: if it was done, its result comes back and nothing is done twice.",
	}
}

// LostRead answers a call that changes nothing and was under way when its process ended.
func LostRead(tool string) Words {
	return Words{
		"The connection to " + tool + " was lost before it had answered.",
		"Call it again if its answer is still needed.",
	}
}
