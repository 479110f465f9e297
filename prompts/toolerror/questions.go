package toolerror

import "fmt"

// NeedsApproval says that the user is being asked on the screen.
func NeedsApproval(tool string) Words {
	return Words{
		tool + " needs the user's approval. Nothing has been done yet; the user is being asked on the screen.",
		"Say in a sentence what is to be approved and ask the user to press the button. Do not call it again: the outcome comes by itself.",
	}
}

// NeedsSpokenApproval says that the user may agree aloud. confirm is the name of the tool
// with which the model reports the answer.
func NeedsSpokenApproval(tool, confirm, reference string) Words {
	return Words{
		tool + " needs the user's approval. Nothing has been done yet.",
		fmt.Sprintf("Say in a sentence what is to be done and ask for a clear yes. When the user has answered, call %s with reference %q and approved true or false. The user may also press the button; then the outcome comes by itself.", confirm, reference),
	}
}

// CouldNotAsk says that the question to the user could not be recorded.
func CouldNotAsk() Words {
	return Words{"The user could not be asked to approve it; nothing was done.", doesNotWork}
}

// NotApproved answers the confirm_action for a question after which nothing was run. notice
// reports the outcome, such as prompts.DeclinedNotice.
func NotApproved(notice string) Words {
	return Words{notice, "Nothing was done. Go on with the conversation."}
}

// ConfirmActionArguments says that the arguments of confirm_action are invalid.
func ConfirmActionArguments() Words {
	return Words{
		"confirm_action takes reference, a string, and approved, true or false.",
		"Give the reference that CONFIRMATION_REQUIRED came with, and what the user said.",
	}
}

// NoSuchQuestion answers a confirm_action whose reference names no open question.
func NoSuchQuestion() Words {
	return Words{
		"No question with that reference waits for an answer.",
		"It was answered, has expired, or never was. If the user still wants it, call the tool again.",
	}
}

// UserHasNotSpoken answers a confirm_action to which the user cannot have agreed.
func UserHasNotSpoken() Words {
	return Words{
		"The user has not spoken since the question was put, so nobody has agreed.",
		"Ask the user, wait for the answer, and call confirm_action then.",
	}
}

// AnswerNotRecorded says that the user's answer could not be recorded.
func AnswerNotRecorded() Words {
	return Words{"The answer could not be recorded; nothing was done.", doesNotWork}
}

// ToolChanged says that an approved tool is no longer the version that the user approved.
func ToolChanged(tool, from, to string) Words {
	return Words{
		"The tool " + tool + " has changed since the user was asked (from version " + from + " to " + to + "); nothing was done.",
		"Ask again with the tool as it is now.",
	}
}
