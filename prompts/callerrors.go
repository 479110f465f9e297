package prompts

import "fmt"

// Words are the texts of an error.
type Words struct {
	// Message explains what happened; the model may repeat it to the user.
	Message string
	// Suggestion is the model's next step; may be empty.
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

// UseAnotherTool is the suggestion of NoSuchTool. hint is empty or "; did you mean …?", names lists the tools.
func UseAnotherTool(hint, names string) string {
	return fmt.Sprintf("Use one of the tools there are%s: %s. Or answer the user without any.", hint, names)
}

// NoGuide answers a describe_tool about a tool that does not exist. names lists the tools.
func NoGuide(tool, names string) Words {
	return Words{fmt.Sprintf("There is no tool named %q here.", tool), "The tools are: " + names + "."}
}

// WrongMode answers a call of a tool for other modes. allowed names them, such as "text and voice".
func WrongMode(tool, mode, allowed string) Words {
	return Words{
		fmt.Sprintf("The tool %s cannot be used in %s mode.", tool, mode),
		"Answer the user without it, or tell them where it can be used: in " + allowed + " mode.",
	}
}

// InvalidArguments reports problems with a call's arguments.
func InvalidArguments(tool, problems string) Words {
	return Words{
		fmt.Sprintf("The arguments of %s are not valid: %s.", tool, problems),
		fmt.Sprintf("Correct what details.errors names and call %s again.", tool),
	}
}

// NotAnObject reports that the arguments of a client's tool are not a JSON object.
func NotAnObject(tool string) Words {
	return Words{"The arguments of " + tool + " are not a JSON object.", "Call it again with a JSON object."}
}

// ToolHangs refuses a call of a tool with too many hanging calls.
func ToolHangs() Words {
	return Words{"Earlier calls of this tool hang, so no new one is started.", answerWithout}
}

// AskedTooLong reports a timeout of a service that the tool depends on.
func AskedTooLong(tool string) Words {
	return Words{fmt.Sprintf("A service that the tool %s needs did not answer in time.", tool), takesTooLong}
}

// NoTimeLeft reports that the turn's time was over before the tool began.
func NoTimeLeft(tool string) Words {
	return Words{fmt.Sprintf("There was no time left to start the tool %s.", tool), takesTooLong}
}

// OutOfTime reports a timeout of the tool: limitMS milliseconds of its own, or the rest of the turn if limitMS is 0.
func OutOfTime(tool string, limitMS int) Words {
	within := "in the time that was left"
	if limitMS > 0 {
		within = fmt.Sprintf("within %d ms", limitMS)
	}
	return Words{fmt.Sprintf("The tool %s did not finish %s and was stopped.", tool, within), takesTooLong}
}

// CancelledBefore reports a call that was cancelled before the tool began.
func CancelledBefore() Words { return Words{Message: "The call was cancelled before it began."} }

// CancelledMidway reports a call that was cancelled while the tool ran.
func CancelledMidway() Words { return Words{Message: "The call was cancelled before it was finished."} }

// BrokenOutput reports an answer with the wrong form.
func BrokenOutput(tool string) Words {
	return Words{fmt.Sprintf("The tool %s has finished, but its answer has the wrong form and cannot be used.", tool), DoesNotWork}
}

// ClientAnswerTooLong reports that a client's tool has run and its answer is too long.
func ClientAnswerTooLong() Words {
	return Words{"The tool has run, and its answer is too long to be read.",
		"Tell the user that it was done, and that the result is not known. Do not call it again by yourself."}
}

// FailedUnexpectedly reports a failure without a message for the model.
func FailedUnexpectedly(tool string) Words {
	return Words{fmt.Sprintf("The tool %s failed unexpectedly.", tool), DoesNotWork}
}

// Failed replaces the missing message of a tool's error.
func Failed(tool string) string { return fmt.Sprintf("The tool %s failed.", tool) }

// Unnamed replaces an unknown error.
func Unnamed() Words { return Words{Message: "The tool failed."} }

// NotWritten reports an answer that cannot be encoded as JSON.
func NotWritten() Words { return Words{Message: "The answer of the tool could not be written."} }

// NotWrittenAtAll goes into JSON if even NotWritten could not be encoded. It contains no quotation marks.
const NotWrittenAtAll = "The answer could not be written."

// NoNestedCalls refuses a nested call outside a conversation or after the caller's end.
func NoNestedCalls(tool string) Words {
	return Words{fmt.Sprintf("%s was not run: there is no running call in a conversation that could call it.", tool), ""}
}

// TooManyNested refuses a nested call beyond the limit for one call of the model.
func TooManyNested(tool string, most int) Words {
	return Words{fmt.Sprintf("%s was not run: one call may lead to %d calls of other tools, and they are used up.", tool, most), ""}
}

// TooDeep refuses a nested call beyond the depth limit.
func TooDeep(tool string, most int) Words {
	return Words{fmt.Sprintf("%s was not run: nested calls may be %d deep.", tool, most), ""}
}

// CallsItself refuses a recursive call.
func CallsItself(tool string) Words {
	return Words{fmt.Sprintf("%s was not run: it would call itself.", tool), ""}
}

// CallerDoesNotWrite refuses a writing call by a tool that declares no side effects.
func CallerDoesNotWrite(tool, caller string) Words {
	return Words{fmt.Sprintf("%s was not run: it writes, and %s, which calls it, says that it does not.", tool, caller), ""}
}

// NotByTools refuses a nested call of a tool for models only.
func NotByTools(tool string) Words {
	return Words{fmt.Sprintf("%s was not run: tools cannot call it.", tool), ""}
}

// goOnYourself is the suggestion after a refused switch.
const goOnYourself = "Go on with the user yourself, and say what you cannot do."

// SwitchBack refuses a switch back before the user has spoken.
func SwitchBack(agent string) Words {
	return Words{fmt.Sprintf("The agent %s has just handed the user over, and the user has said nothing since.", agent), goOnYourself}
}

// SwitchedTooOften refuses another switch. within is "this turn" or "this conversation", most its limit.
func SwitchedTooOften(most int, within string) Words {
	return Words{fmt.Sprintf("The agent has changed %d times in %s, which is the limit.", most, within), goOnYourself}
}

// SwitchUnderWay refuses a second switch at the same time.
func SwitchUnderWay() Words {
	return Words{"The user is being handed over to an agent already.", "Wait for that."}
}

// SwitchNotPossible refuses a switch that this conversation cannot make. why ends the sentence.
func SwitchNotPossible(agent, why string) Words {
	return Words{fmt.Sprintf("The agent %s cannot go on with this conversation: %s.", agent, why), goOnYourself}
}

// NoLedger refuses a writing tool without a ledger.
func NoLedger() Words {
	return Words{"Tools that change something cannot run here: there is no ledger.", DoesNotWork}
}

// NotRecorded reports that the call could not be recorded and did not run.
func NotRecorded() Words {
	return Words{
		"This could not be recorded, so nothing was done.",
		"Tell the user that it does not work at the moment; it may be tried again later.",
	}
}

// OutcomeUnknown reports that the same action was started earlier and may have been done.
func OutcomeUnknown() Words {
	return Words{
		"This was started before, and its outcome is unknown. It was not started again.",
		"Tell the user that it may have been done already, and that it has to be looked up before it is tried again.",
	}
}

// MayStillRun reports that the same action was started earlier and may still be running.
func MayStillRun() Words {
	return Words{
		"This was started before and may still be running. It was not started again.",
		"Tell the user that it may have been done already. Calling it again in a moment gives its result, if it has one by then.",
	}
}

// ShuttingDown reports that the gateway starts no more calls.
func ShuttingDown() Words {
	return Words{Message: "The gateway is shutting down; nothing was done."}
}

// LostWrite answers a call with side effects that was running when its process died.
func LostWrite(tool string) Words {
	return Words{
		"The connection to " + tool + " was lost while it was at work. It is not known whether it was done.",
		"Tell the user that it may have been done already. Call it again only if the user wants that: if it was done, its " +
			"result comes back and nothing is done twice.",
	}
}

// LostRead answers a call without side effects that was running when its process died.
func LostRead(tool string) Words {
	return Words{
		"The connection to " + tool + " was lost before it had answered.",
		"Call it again if its answer is still needed.",
	}
}
