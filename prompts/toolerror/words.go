// Package toolerror holds the words of the errors that a model gets in the place of a
// tool's answer: the call was refused, could not be run, or failed.
// registry.NewError makes the error from them. Those about a person's approval are in package approval.
package toolerror

// Words are what an error says to a model.
type Words struct {
	// Message says what has happened, in words that the model may pass on to the user.
	Message string
	// Suggestion says what the model should do instead. It may be empty.
	Suggestion string
}

// DoesNotWork is the suggestion of errors that are no fault of the call, here and in package approval.
const DoesNotWork = "Tell the user that it does not work at the moment."

// Suggestions that several errors give.
const (
	takesTooLong  = "Tell the user that it takes too long at the moment."
	answerWithout = "Answer the user without it."
)
