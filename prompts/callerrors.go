package prompts

import (
	"fmt"
	"strings"
	"time"
)

// Words are the texts of an error.
type Words struct {
	Message    string // explains what happened; the model may repeat it to the user
	Suggestion string // the model's next step; may be empty
}

// DoesNotWork is the suggestion for errors that the call did not cause.
const DoesNotWork = "Tell the user that it does not work at the moment."

// Suggestions of several errors.
const (
	takesTooLong  = "Tell the user that it takes too long at the moment."
	answerWithout = "Answer the user without it."
	goOnYourself  = "Go on with the user yourself, and say what you cannot do."
)

// Errors whose words need no details. Do not change them.
var (
	ToolHangs           = Words{"Earlier calls of this tool hang, so no new one is started.", answerWithout}
	CancelledBefore     = Words{Message: "The call was cancelled before it began."}
	CancelledMidway     = Words{Message: "The call was cancelled before it was finished."}
	ClientAnswerTooLong = Words{"The tool has run, and its answer is too long to be read.",
		"Tell the user that it was done, and that the result is not known. Do not call it again by yourself."}
	Unnamed        = Words{Message: "The tool failed."}
	NotWritten     = Words{Message: "The answer of the tool could not be written."}
	SwitchUnderWay = Words{"The user is being handed over to an agent already.", "Wait for that."}
	NoLedger       = Words{"Tools that change something cannot run here: there is no ledger.", DoesNotWork}
	NotRecorded    = Words{"This could not be recorded, so nothing was done.",
		"Tell the user that it does not work at the moment; it may be tried again later."}
	OutcomeUnknown = Words{"This was started before, and its outcome is unknown. It was not started again.",
		"Tell the user that it may have been done already, and that it has to be looked up before it is tried again."}
	MayStillRun = Words{"This was started before and may still be running. It was not started again.",
		"Tell the user that it may have been done already. Calling it again in a moment gives its result, if it has one by then."}
	ShuttingDown           = Words{Message: "The gateway is shutting down; nothing was done."}
	CouldNotAskForApproval = Words{"The user could not be asked to approve it; nothing was done.", DoesNotWork}
	TooManyQuestions       = Words{"Too many questions wait for the user's answer already.", "Ask the user to answer them first."}
	ConfirmActionArguments = Words{"confirm_action takes reference, a string, and approved, true or false.",
		"Give the reference that CONFIRMATION_REQUIRED came with, and what the user said."}
	NoSuchQuestion = Words{"No question with that reference waits for an answer.",
		"It was answered, has expired, or never was. If the user still wants it, call the tool again."}
	UserHasNotSpoken = Words{"The user has not spoken since the question was put, so no one has agreed.",
		"Ask the user, wait for the answer, and call confirm_action then."}
	AnswerNotRecorded = Words{"The answer could not be recorded; nothing was done.", DoesNotWork}
	OvertakenApproved = Words{"The user went on before what was approved had finished. It is still running.",
		"Answer what the user says now. Do not call it again: its result comes by itself."}
	TooManyCalls = Words{"Too many tool calls are running.", "Wait for their results first."}
	// NoticeFirst: the user has not heard the session's notice yet.
	NoticeFirst = Words{"The user must hear a notice before anything is done.",
		"Wait for the user, and call the tool when they ask for it."}
	SessionEnding = Words{"The session is ending, and the farewell has been said.", "Say nothing more and call no tool."}
	JobUnread     = Words{"This was requested before. Its progress is not available now.", "Tell the user to ask again in a moment."}
)

// of returns the words of an error about a tool, an agent or a job, whose name stands in the message.
func of(message, suggestion string) func(name string) Words {
	return func(name string) Words { return Words{fmt.Sprintf(message, name), suggestion} }
}

// Errors whose words need only the name of the tool or, where they say so, of an agent or a job. Do not change them.
var (
	NoSuchTool = of("There is no tool named %q.", answerWithout)
	// NotAnObject is about the arguments of a client's tool.
	NotAnObject = of("The arguments of %s are not a JSON object.", "Call it again with a JSON object.")
	// AskedTooLong is about a timeout of a service that the tool depends on.
	AskedTooLong       = of("A service that the tool %s needs did not answer in time.", takesTooLong)
	NoTimeLeft         = of("There was no time left to start the tool %s.", takesTooLong)
	BrokenOutput       = of("The tool %s has finished, but its answer has the wrong form and cannot be used.", DoesNotWork)
	FailedUnexpectedly = of("The tool %s failed unexpectedly.", DoesNotWork)
	// Failed replaces the missing message of a tool's error.
	Failed = text("The tool %s failed.")
	// NoNestedCalls: the call is outside a conversation, or after the caller's end.
	NoNestedCalls = of("%s was not run: there is no running call in a conversation that could call it.", "")
	CallsItself   = of("%s was not run: it would call itself.", "")
	NotByTools    = of("%s was not run: tools cannot call it.", "") // it is only for models
	// SwitchBack refuses a switch back to an agent before the user has spoken.
	SwitchBack = of("The agent %s has just handed the user over, and the user has said nothing since.", goOnYourself)
	// LostWrite answers a call with side effects that was running when its process died, LostRead one without.
	LostWrite = of("The connection to %s was lost while it was at work. It is not known whether it was done.",
		"Tell the user that it may have been done already. Call it again only if the user wants that: if it was done, its "+
			"result comes back and nothing is done twice.")
	LostRead = of("The connection to %s was lost before it had answered.", "Call it again if its answer is still needed.")
	// ApprovalNeeded says that the user is asked on the screen.
	ApprovalNeeded = of("%s needs the user's approval. Nothing has been done yet; the user is being asked on the screen.",
		"Say in a sentence what is to be approved and ask the user to press the button. Do not call it again: the "+
			"outcome comes by itself.")
	// ApprovalNeededByKey says that the user answers with the keys of a phone, after the model has asked.
	ApprovalNeededByKey = of("%s needs the user's approval. Nothing has been done yet.",
		"The user is on the phone. Say in a sentence what is to be approved, then ask the user to press 1 to approve it or 2 to "+
			"decline. Only the key counts, not what the user says. Do not call it again: the outcome comes by itself.")
	// ApprovalNeededElsewhere says that a person is asked by another program, whose model does not learn the outcome from here.
	ApprovalNeededElsewhere = of("%s needs a person's approval. Nothing has been done yet. It runs once, as soon as it is approved.",
		"Say in a sentence what is to be approved. Do not call it again unless you are told that it was declined.")
	// Overtaken answers a call that still runs at the user's next turn, OvertakenQuestion one whose question waits.
	Overtaken = of("The user went on before %s had finished. It is still running, and its result will not be sent.",
		"Answer what the user says now. Call it again only if the user still wants it.")
	OvertakenQuestion = of("The user went on before they could be asked to approve %s. Nothing has been done yet.",
		"Answer what the user says now. Do not call it again: the user is being asked, and the outcome comes by itself.")
	// NotAvailable refuses a call of a tool that the conversation has lost.
	NotAvailable = of("%s is not available in this conversation any more, and it was not run.",
		"Do not call it again. Tell the user that it cannot be done here now.")
	// TooManyJobs refuses a job, by its name, while the user has the maximum number of them.
	TooManyJobs = of("%q was not started: this user has the maximum number of these jobs.",
		"Tell the user that it can be started when one of those has ended.")
	// NoJobs refuses a job, by its name, whose end could not be reported.
	NoJobs = of("%q was not started: it takes long, and its result could not be reported, because the gateway does not keep "+
		"this conversation.", "Tell the user that it cannot be done in this conversation.")
	// JobOfAnotherVersion ends a job whose tool has changed since its start.
	JobOfAnotherVersion = of("The work of %s was started by another version of the tool, and this one cannot continue it.",
		"Tell the user that it has failed and must be started again.")

	ServiceUnreachable = text("The service of %s cannot be reached.")
	ServiceForbidden   = text("The service of %s cannot be reached: its address is not allowed.")
	// ToolHostRestarted: the process that ran the call was ended for another reason.
	ToolHostRestarted   = text("%s was stopped because of a fault in another tool.")
	ToolHostUnavailable = text("%s cannot run at the moment; nothing happened.") // the call did not begin
	// ChangedByServer: the tool's MCP server has changed or removed it since it was approved.
	ChangedByServer = text("%s cannot be used: its server has changed it, and the change was not approved yet.")
	// InputNeeded: the tool's MCP server asks for input in the middle of a call.
	InputNeeded = text("The server of %s needs an answer that cannot be given here.")
)

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
	return Words{fmt.Sprintf("The tool %s cannot be used in %s mode.", tool, mode),
		"Answer the user without it, or tell them where it can be used: in " + allowed + " mode."}
}

// InvalidArguments reports problems with a call's arguments.
func InvalidArguments(tool, problems string) Words {
	return Words{fmt.Sprintf("The arguments of %s are not valid: %s.", tool, problems),
		fmt.Sprintf("Correct what details.errors names and call %s again.", tool)}
}

// OutOfTime reports a timeout of the tool: limitMS milliseconds of its own, or the rest of the turn if limitMS is 0.
func OutOfTime(tool string, limitMS int) Words {
	within := "in the time that was left"
	if limitMS > 0 {
		within = fmt.Sprintf("within %d ms", limitMS)
	}
	return Words{fmt.Sprintf("The tool %s did not finish %s and was stopped.", tool, within), takesTooLong}
}

// NotWrittenAtAll goes into JSON if even NotWritten could not be encoded. It contains no quotation marks.
const NotWrittenAtAll = "The answer could not be written."

// TooManyNested refuses a nested call beyond the limit for one call of the model.
func TooManyNested(tool string, most int) Words {
	return Words{fmt.Sprintf("%s was not run: one call may lead to %d calls of other tools, and they are used up.", tool, most), ""}
}

// TooDeep refuses a nested call beyond the depth limit.
func TooDeep(tool string, most int) Words {
	return Words{fmt.Sprintf("%s was not run: nested calls may be %d deep.", tool, most), ""}
}

// CallerDoesNotWrite refuses a writing call by a tool that declares no side effects.
func CallerDoesNotWrite(tool, caller string) Words {
	return Words{fmt.Sprintf("%s was not run: it writes, and %s, which calls it, says that it does not.", tool, caller), ""}
}

// SwitchedTooOften refuses another switch. within is "this turn" or "this conversation", most its limit.
func SwitchedTooOften(most int, within string) Words {
	return Words{fmt.Sprintf("The agent has changed %d times in %s, which is the limit.", most, within), goOnYourself}
}

// SwitchNotPossible refuses a switch that this conversation cannot make. why ends the sentence.
func SwitchNotPossible(agent, why string) Words {
	return Words{fmt.Sprintf("The agent %s cannot continue this conversation: %s.", agent, why), goOnYourself}
}

// TransferNotPossible refuses the transfer of a call. names are those to which it could be transferred.
func TransferNotPossible(to string, names []string) Words {
	if len(names) == 0 {
		return Words{"The user cannot be transferred: this conversation is not a phone call that can be.", goOnYourself}
	}
	return Words{fmt.Sprintf("The call cannot be transferred to %q; it can be to %s.", to, strings.Join(names, ", ")), goOnYourself}
}

// ApprovalNeededAloud says that the user may agree aloud. confirm is the tool that reports the answer.
func ApprovalNeededAloud(tool, confirm, reference string) Words {
	return Words{tool + " needs the user's approval. Nothing has been done yet.",
		fmt.Sprintf("Say in a sentence what is to be done and ask for a clear yes. When the user has answered, "+
			"call %s with reference %q and approved true or false. The user may also press the button; then the outcome "+
			"comes by itself.", confirm, reference)}
}

// ApprovalNeededWithin refuses a nested call that needs approval, because the call of caller has none.
func ApprovalNeededWithin(tool, caller string) Words {
	return Words{fmt.Sprintf("%s was not run: it needs approval, and %s, which calls it, has none.", tool, caller),
		fmt.Sprintf("Tell the user that it was not done. If there is a tool %s, call it yourself, so that "+
			"the user is asked.", tool)}
}

// ApprovalAskedTooOften refuses a call that needs approval for the rest of the conversation.
func ApprovalAskedTooOften(times int, tool string) Words {
	return Words{
		Message: fmt.Sprintf("The user was asked %d times in this conversation to approve something and has not done so; "+
			"which is the limit. They are not asked again, and %s was not run.", times, tool),
		Suggestion: "Call nothing that needs an approval any more. Tell the user that it was not done, and that they can ask " +
			"for it in a new conversation.",
	}
}

// ApprovalAskedTooOftenAbout refuses a call of one tool until the user speaks.
func ApprovalAskedTooOftenAbout(times int, tool string) Words {
	return Words{
		Message: fmt.Sprintf("The user was asked %d times to approve %s and has not done so. They are not asked again now, "+
			"and it was not run.", times, tool),
		Suggestion: "Do not call it again by yourself. Tell the user that it was not done, and continue the conversation; only " +
			"if they ask for it again in their own words, call it once more.",
	}
}

// ApprovalNotGiven answers a confirm_action whose question ran nothing. notice reports the outcome.
func ApprovalNotGiven(notice string) Words {
	return Words{Message: notice, Suggestion: "Nothing was done. Go on with the conversation."}
}

// ToolChanged reports that an approved tool has changed since the question.
func ToolChanged(tool, from, to string) Words {
	return Words{
		Message: "The tool " + tool + " has changed since the user was asked (from version " + from + " to " + to +
			"); nothing was done.",
		Suggestion: "Ask again with the tool as it is now.",
	}
}

// CalledTooOften refuses a call above the tool's limit per user within window, such as "1h". wait is until the next
// one.
func CalledTooOften(tool string, calls int, window string, wait time.Duration) Words {
	return Words{
		fmt.Sprintf("%s may run %d times in %s for one user, and that is used up. It was not run; it can be "+
			"called again in %s.", tool, calls, window, wait),
		"Do not call it before then. Tell the user when it can be tried again.",
	}
}

// CallsTooOften refuses a call of a client that makes too many calls in a minute.
func CallsTooOften(calls int, wait time.Duration) Words {
	return Words{fmt.Sprintf("This client may make %d calls in a minute, and that is used up. The tool was not run; calls are possible "+
		"again in %s.", calls, wait), "Wait until then, and make fewer calls."}
}

// NotAvailableNow refuses a call of a tool outside its hours; when is the next time.
func NotAvailableNow(tool, when string) Words {
	return Words{fmt.Sprintf("%s is not available at this time, and it was not run. It is available again from %s.", tool, when),
		"Do not call it before then. Tell the user that it cannot be done now, and when it can."}
}

// JobOutOfTime ends a job that exceeds its tool's limit, such as "30m".
func JobOutOfTime(tool, longest string) Words {
	return Words{fmt.Sprintf("The work of %s did not end within %s and was stopped.", tool, longest), "Tell the user that it has failed."}
}

// JobInterrupted ends a job whose gateway has died too many times.
func JobInterrupted(tool string, attempts int) Words {
	return Words{
		fmt.Sprintf("The work of %s was started %d times and interrupted each time, so it was given up. It may have "+
			"been done in part.", tool, attempts),
		"Tell the user that it has failed, and that its progress is unknown.",
	}
}

// BudgetUsedUp refuses a call beyond the turn's budget. kind is "tool calls" or "retrieval calls".
func BudgetUsedUp(kind string, allowed int, tool string) Words {
	return Words{fmt.Sprintf("The %s of this turn are used up (%d are allowed). %s was not run.", kind, allowed, tool),
		"Call no further tool in this turn. Answer the user now with what you know, say what is still open, and offer to go " +
			"on if they ask again."}
}

// UnfitRequest refuses arguments that do not fit into a part of an HTTP tool's request.
func UnfitRequest(part string, why error) string {
	return fmt.Sprintf("The call cannot be made: a value in the %s of its request %v.", part, why)
}

// UnusableAnswer reports an answer of an HTTP tool's service that cannot be used.
func UnusableAnswer(tool, why string) string {
	return fmt.Sprintf("The service of %s answered, but its answer %s.", tool, why)
}

// ServiceStatus reports a service's failure; said, its own words, may be empty.
func ServiceStatus(tool string, status int, said string) string {
	switch {
	case status/100 == 3:
		said = "redirects are not followed"
	case said == "":
		return fmt.Sprintf("The service of %s answered with status %d.", tool, status)
	}
	return strings.TrimSuffix(fmt.Sprintf("The service of %s answered with status %d: %s", tool, status, said), ".") + "."
}

// ServerSays reports an MCP server's error; said, its own words, may be empty.
func ServerSays(tool, said string) string {
	if said == "" {
		return "The server of " + tool + " answered with an error."
	}
	return strings.TrimSuffix("The server of "+tool+" answered with an error: "+said, ".") + "."
}

// CutResult says that a result is longer than a model gets.
func CutResult(kib int) string { return fmt.Sprintf("what follows the first %d KiB", kib) }
