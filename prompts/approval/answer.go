package approval

import "voicegw/prompts/toolerror"

// NotGiven answers the confirm_action for a question after which nothing was run. notice
// reports the outcome, such as prompts.DeclinedNotice.
func NotGiven(notice string) toolerror.Words {
	return toolerror.Words{Message: notice, Suggestion: "Nothing was done. Go on with the conversation."}
}

// ConfirmActionArguments says that the arguments of confirm_action are invalid.
func ConfirmActionArguments() toolerror.Words {
	return toolerror.Words{
		Message:    "confirm_action takes reference, a string, and approved, true or false.",
		Suggestion: "Give the reference that CONFIRMATION_REQUIRED came with, and what the user said.",
	}
}

// NoSuchQuestion answers a confirm_action whose reference names no open question.
func NoSuchQuestion() toolerror.Words {
	return toolerror.Words{
		Message:    "No question with that reference waits for an answer.",
		Suggestion: "It was answered, has expired, or never was. If the user still wants it, call the tool again.",
	}
}

// UserHasNotSpoken answers a confirm_action to which the user cannot have agreed.
func UserHasNotSpoken() toolerror.Words {
	return toolerror.Words{
		Message:    "The user has not spoken since the question was put, so nobody has agreed.",
		Suggestion: "Ask the user, wait for the answer, and call confirm_action then.",
	}
}

// AnswerNotRecorded says that the user's answer could not be recorded.
func AnswerNotRecorded() toolerror.Words {
	return toolerror.Words{Message: "The answer could not be recorded; nothing was done.", Suggestion: toolerror.DoesNotWork}
}

// ToolChanged says that an approved tool is no longer the version that the user approved.
func ToolChanged(tool, from, to string) toolerror.Words {
	return toolerror.Words{
		Message:    "The tool " + tool + " has changed since the user was asked (from version " + from + " to " + to + "); nothing was done.",
		Suggestion: "Ask again with the tool as it is now.",
	}
}

// OvertakenQuestion is toolerror.Overtaken for a call whose question to the user is being recorded.
func OvertakenQuestion(tool string) toolerror.Words {
	return toolerror.Words{
		Message:    "The user went on before they could be asked to approve " + tool + ". Nothing has been done yet.",
		Suggestion: "Answer what the user says now. Do not call it again: the user is being asked, and the outcome comes by itself.",
	}
}

// Overtaken is toolerror.Overtaken for a call that the user has approved.
func Overtaken() toolerror.Words {
	return toolerror.Words{
		Message:    "The user went on before what was approved had finished. It is still running.",
		Suggestion: "Answer what the user says now. Do not call it again: its result comes by itself.",
	}
}
