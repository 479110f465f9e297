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
		fmt.Sprintf("%s may run %d times in %s for one user, and that is used up. It was not run; it can be "+
			"called again in %s.", tool, calls, window, wait),
		"Do not call it before then. Tell the user when it can be tried again.",
	}
}

// NotAvailableNow refuses a call of a tool outside its hours; when is the next time.
func NotAvailableNow(tool, when string) Words {
	return Words{
		fmt.Sprintf("%s is not available at this time, and it was not run. It is available again from %s.", tool, when),
		"Do not call it before then. Tell the user that it cannot be done now, and when it can.",
	}
}

// NotAvailable refuses a call of a tool that the conversation has lost.
func NotAvailable(tool string) Words {
	return Words{
		fmt.Sprintf("%s is not available in this conversation any more, and it was not run.", tool),
		"Do not call it again. Tell the user that it cannot be done here now.",
	}
}

// TooManyJobs refuses a job while the user has the maximum number of them. name is the job's.
func TooManyJobs(name string) Words {
	return Words{
		fmt.Sprintf("%q was not started: this user has the maximum number of these jobs.", name),
		"Tell the user that it can be started when one of those has ended.",
	}
}

// NoJobs refuses a job whose end could not be reported.
func NoJobs(name string) Words {
	return Words{
		fmt.Sprintf("%q was not started: it takes long, and its result could not be reported, because the gateway does not "+
			"keep this conversation.", name),
		"Tell the user that it cannot be done in this conversation.",
	}
}

// JobUnread answers a repeated call whose job could not be read.
func JobUnread() Words {
	return Words{"This was requested before. Its progress is not available now.", "Tell the user to ask again in a moment."}
}

// JobOfAnotherVersion ends a job whose tool has changed since its start.
func JobOfAnotherVersion(tool string) Words {
	return Words{fmt.Sprintf("The work of %s was started by another version of the tool, and this one cannot continue it.",
		tool), "Tell the user that it has failed and must be started again."}
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

// BudgetUsedUp refuses a call beyond the turn's budget. kind is "tool calls" or "retrieval calls", allowed is the
// limit.
func BudgetUsedUp(kind string, allowed int, tool string) Words {
	return Words{
		fmt.Sprintf("The %s of this turn are used up (%d are allowed). %s was not run.", kind, allowed, tool),
		"Call no further tool in this turn. Answer the user now with what you know, say what is still open, and offer to go " +
			"on if they ask again.",
	}
}
