// Package approval holds the words of the errors that a model gets in the place of a tool's
// answer while a call waits for a person's approval: the question is open, cannot be asked, or
// was answered. They are entries like those of package toolerror.
package approval

import (
	"fmt"

	"voicegw/prompts/toolerror"
)

// Needed says that the user is being asked on the screen.
func Needed(tool string) toolerror.Words {
	return toolerror.Words{
		Message:    tool + " needs the user's approval. Nothing has been done yet; the user is being asked on the screen.",
		Suggestion: "Say in a sentence what is to be approved and ask the user to press the button. Do not call it again: the outcome comes by itself.",
	}
}

// NeededAloud says that the user may agree aloud. confirm is the name of the tool
// with which the model reports the answer.
func NeededAloud(tool, confirm, reference string) toolerror.Words {
	return toolerror.Words{
		Message:    tool + " needs the user's approval. Nothing has been done yet.",
		Suggestion: fmt.Sprintf("Say in a sentence what is to be done and ask for a clear yes. When the user has answered, call %s with reference %q and approved true or false. The user may also press the button; then the outcome comes by itself.", confirm, reference),
	}
}

// NeededWithin refuses a call by a tool that a person would have to approve, as nobody has approved the
// call of caller.
func NeededWithin(tool, caller string) toolerror.Words {
	return toolerror.Words{
		Message:    fmt.Sprintf("%s was not run: a person has to approve it, and nobody was asked about %s, which calls it.", tool, caller),
		Suggestion: fmt.Sprintf("Tell the user that it was not done. If there is a tool %s, call it yourself, so that the user is asked.", tool),
	}
}

// CouldNotAsk says that the question to the user could not be recorded.
func CouldNotAsk() toolerror.Words {
	return toolerror.Words{Message: "The user could not be asked to approve it; nothing was done.", Suggestion: toolerror.DoesNotWork}
}

// TooManyQuestions refuses a call that needs an approval while too many others wait for one.
func TooManyQuestions() toolerror.Words {
	return toolerror.Words{Message: "Too many questions wait for the user's answer already.", Suggestion: "Ask the user to answer them first."}
}

// AskedTooOften refuses a call that needs an approval for the rest of the conversation.
// times is how often the user was asked without approving anything.
func AskedTooOften(times int, tool string) toolerror.Words {
	return toolerror.Words{
		Message:    fmt.Sprintf("The user was asked %d times in this conversation to approve something and has not done so; that is as often as is allowed. They are not asked again, and %s was not run.", times, tool),
		Suggestion: "Call nothing that needs an approval any more. Tell the user that it was not done, and that they can ask for it in a new conversation.",
	}
}

// AskedTooOftenAbout refuses a call of one tool until the user says something. times is
// how often the user was asked about the tool without approving it.
func AskedTooOftenAbout(times int, tool string) toolerror.Words {
	return toolerror.Words{
		Message:    fmt.Sprintf("The user was asked %d times to approve %s and has not done so. They are not asked again now, and it was not run.", times, tool),
		Suggestion: "Do not call it again by yourself. Tell the user that it was not done, and go on with what they say; only if they ask for it again in their own words, call it once more.",
	}
}
