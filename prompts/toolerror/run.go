package toolerror

import "fmt"

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
