package prompts

import "fmt"

// ApprovalNeeded says that the user is asked on the screen.
func ApprovalNeeded(tool string) Words {
	return Words{
		Message: tool + " needs the user's approval. Nothing has been done yet; the user is being asked on the screen.",
		Suggestion: "Say in a sentence what is to be approved and ask the user to press the button. Do not call it again: the " +
			"outcome comes by itself.",
	}
}

// ApprovalNeededAloud says that the user may agree aloud. confirm is the tool that reports the answer.
func ApprovalNeededAloud(tool, confirm, reference string) Words {
	return Words{
		Message: tool + " needs the user's approval. Nothing has been done yet.",
		Suggestion: fmt.Sprintf("Say in a sentence what is to be done and ask for a clear yes. When the user has answered, "+
			"call %s with reference %q and approved true or false. The user may also press the button; then the outcome "+
			"comes by itself.", confirm, reference),
	}
}

// ApprovalNeededWithin refuses a nested call that needs approval, because the call of caller has none.
func ApprovalNeededWithin(tool, caller string) Words {
	return Words{
		Message: fmt.Sprintf("%s was not run: it needs approval, and %s, which calls it, has none.", tool, caller),
		Suggestion: fmt.Sprintf("Tell the user that it was not done. If there is a tool %s, call it yourself, so that "+
			"the user is asked.", tool),
	}
}

// CouldNotAskForApproval says that the question could not be recorded.
func CouldNotAskForApproval() Words {
	return Words{Message: "The user could not be asked to approve it; nothing was done.", Suggestion: DoesNotWork}
}

// TooManyQuestions refuses a call that needs approval while too many questions are open.
func TooManyQuestions() Words {
	return Words{Message: "Too many questions wait for the user's answer already.", Suggestion: "Ask the user to answer them first."}
}

// ApprovalAskedTooOften refuses a call that needs approval for the rest of the conversation, after that many
// questions without an approval.
func ApprovalAskedTooOften(times int, tool string) Words {
	return Words{
		Message: fmt.Sprintf("The user was asked %d times in this conversation to approve something and has not done so; "+
			"which is the limit. They are not asked again, and %s was not run.", times, tool),
		Suggestion: "Call nothing that needs an approval any more. Tell the user that it was not done, and that they can ask " +
			"for it in a new conversation.",
	}
}

// ApprovalAskedTooOftenAbout refuses a call of one tool until the user speaks, after that many questions about it
// without an approval.
func ApprovalAskedTooOftenAbout(times int, tool string) Words {
	return Words{
		Message: fmt.Sprintf("The user was asked %d times to approve %s and has not done so. They are not asked again now, "+
			"and it was not run.", times, tool),
		Suggestion: "Do not call it again by yourself. Tell the user that it was not done, and go on with what they say; only " +
			"if they ask for it again in their own words, call it once more.",
	}
}

// ApprovalNotGiven answers a confirm_action whose question ran nothing. notice reports the outcome, such as
// DeclinedNotice.
func ApprovalNotGiven(notice string) Words {
	return Words{Message: notice, Suggestion: "Nothing was done. Go on with the conversation."}
}

// ConfirmActionArguments reports invalid arguments of confirm_action.
func ConfirmActionArguments() Words {
	return Words{
		Message:    "confirm_action takes reference, a string, and approved, true or false.",
		Suggestion: "Give the reference that CONFIRMATION_REQUIRED came with, and what the user said.",
	}
}

// NoSuchQuestion answers a confirm_action without an open approval request.
func NoSuchQuestion() Words {
	return Words{
		Message:    "No question with that reference waits for an answer.",
		Suggestion: "It was answered, has expired, or never was. If the user still wants it, call the tool again.",
	}
}

// UserHasNotSpoken refuses an approval before the user has spoken.
func UserHasNotSpoken() Words {
	return Words{
		Message:    "The user has not spoken since the question was put, so nobody has agreed.",
		Suggestion: "Ask the user, wait for the answer, and call confirm_action then.",
	}
}

// AnswerNotRecorded reports a failure to record the user's answer.
func AnswerNotRecorded() Words {
	return Words{Message: "The answer could not be recorded; nothing was done.", Suggestion: DoesNotWork}
}

// ToolChanged reports that an approved tool has changed since the question.
func ToolChanged(tool, from, to string) Words {
	return Words{
		Message: "The tool " + tool + " has changed since the user was asked (from version " + from + " to " + to +
			"); nothing was done.",
		Suggestion: "Ask again with the tool as it is now.",
	}
}

// OvertakenQuestion is [Overtaken] for a call whose approval request is pending.
func OvertakenQuestion(tool string) Words {
	return Words{
		Message:    "The user went on before they could be asked to approve " + tool + ". Nothing has been done yet.",
		Suggestion: "Answer what the user says now. Do not call it again: the user is being asked, and the outcome comes by itself.",
	}
}

// OvertakenApproved is [Overtaken] for an approved call.
func OvertakenApproved() Words {
	return Words{
		Message:    "The user went on before what was approved had finished. It is still running.",
		Suggestion: "Answer what the user says now. Do not call it again: its result comes by itself.",
	}
}

// Overtaken answers a call that still runs at the user's next turn.
func Overtaken(tool string) Words {
	return Words{
		"The user went on before " + tool + " had finished. It is still running, and its result will not be sent.",
		"Answer what the user says now. Call it again only if the user still wants it.",
	}
}
