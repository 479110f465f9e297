package prompts

import (
	"fmt"
	"time"
)

// TooManyCalls refuses a call while too many others run.
func TooManyCalls() Words {
	return Words{"Too many tool calls are running.", "Wait for their results first."}
}

// SessionEnding refuses a call after the farewell of a voice session.
func SessionEnding() Words {
	return Words{"The session is ending, and the farewell has been said.", "Say nothing more and call no tool."}
}

// CalledTooOften refuses a call above the tool's rate limit: calls per user within window, such as "1h". wait is the
// time until the next one.
func CalledTooOften(tool string, calls int, window string, wait time.Duration) Words {
	return Words{
		fmt.Sprintf("%s may run %d times in %s for one user, and that is used up. It was not run; it can be called again in %s.", tool, calls, window, wait),
		"Do not call it before then. Tell the user when it can be tried again.",
	}
}

// NotAvailableNow refuses a call outside the tool's times; when describes the next one.
func NotAvailableNow(tool, when string) Words {
	return Words{
		fmt.Sprintf("%s is not available at this time, and it was not run. It is available again from %s.", tool, when),
		"Do not call it before then. Tell the user that it cannot be done now, and when it can.",
	}
}

// NotAvailable refuses a call of a tool that is no longer available to the conversation.
func NotAvailable(tool string) Words {
	return Words{
		fmt.Sprintf("%s is not available in this conversation any more, and it was not run.", tool),
		"Do not call it again. Tell the user that it cannot be done here now.",
	}
}

// TooManyJobs refuses a job above the user's limit. name is the job's name.
func TooManyJobs(name string) Words {
	return Words{
		fmt.Sprintf("%q was not begun: as much of it is under way for this user as may be.", name),
		"Tell the user that it can be begun when one of those has ended.",
	}
}

// NoJobs refuses a job whose result could not be reported.
func NoJobs(name string) Words {
	return Words{
		fmt.Sprintf("%q was not started: it takes long, and its result could not be reported, because the gateway does not keep this conversation.", name),
		"Tell the user that it cannot be done in this conversation.",
	}
}

// JobUnread answers a repeated call with an unreadable job.
func JobUnread() Words {
	return Words{"This was requested before. How far it is cannot be read now.", "Tell the user to ask again in a moment."}
}

// JobOfAnotherVersion ends a job of another version of its tool.
func JobOfAnotherVersion(tool string) Words {
	return Words{fmt.Sprintf("The work of %s was begun by another version of the tool, which this one cannot go on with.", tool), "Tell the user that it has failed and must be begun again."}
}

// JobOutOfTime ends a job above its tool's time limit, such as "30m".
func JobOutOfTime(tool, longest string) Words {
	return Words{fmt.Sprintf("The work of %s did not end within %s and was stopped.", tool, longest), "Tell the user that it has failed."}
}

// JobInterrupted ends a job after too many deaths of its gateway.
func JobInterrupted(tool string, attempts int) Words {
	return Words{
		fmt.Sprintf("The work of %s was begun %d times and was interrupted each time, so it was given up. It may have been done in part.", tool, attempts),
		"Tell the user that it has failed, and that nobody knows how far it came.",
	}
}

// BudgetUsedUp refuses a call above the turn's budget. kind is "tool calls" or "retrieval calls", allowed the limit.
func BudgetUsedUp(kind string, allowed int, tool string) Words {
	return Words{
		fmt.Sprintf("The %s of this turn are used up (%d are allowed). %s was not run.", kind, allowed, tool),
		"Call no further tool in this turn. Answer the user now with what you know, say what is still open, and offer to go on if they ask again.",
	}
}
