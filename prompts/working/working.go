// Package working has what a model is told of work that goes on while it talks.
package working

import "fmt"

// The messages of a repeated call whose action began long work before.
const (
	// JobUnderWay: the work has not ended.
	JobUnderWay = "This was requested before and is still under way. You will be told the result when it ends; do not call it again."
	// JobForgotten: the work has ended, and its result is no longer kept.
	JobForgotten = "This was requested before and has ended. Its result was reported then and is no longer kept here."
	// JobCancelled: somebody has stopped the work.
	JobCancelled = "This was requested before and was cancelled before it ended. It may have been done in part."
)

// Progress gives a model what a tool says of a call that still runs. It is no turn: nobody has said it. fraction is
// how much is done, 0 to 1, or less than 0 if that is not known. The caller puts the mark of the conversation before it.
func Progress(tool, text string, fraction float64) string {
	done := ""
	if fraction >= 0 {
		done = fmt.Sprintf(" (%.0f %% done)", 100*min(fraction, 1))
	}
	return fmt.Sprintf("The tool %s, which you have called, still runs; its result comes later. Until then it reports how far it is%s, in case the user asks. The user has not said it, and it asks for nothing: %s", tool, done, text)
}
