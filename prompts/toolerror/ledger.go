package toolerror

// NoLedger refuses a tool that changes something if there is no ledger.
func NoLedger() Words {
	return Words{"Tools that change something cannot run here: there is no ledger.", DoesNotWork}
}

// NotRecorded says that the ledger could not record the call before it ran.
func NotRecorded() Words {
	return Words{
		"It could not be recorded that this is to be done, so nothing was done.",
		"Tell the user that it does not work at the moment; it may be tried again later.",
	}
}

// OutcomeUnknown says that the same operation was started before and may have been done.
func OutcomeUnknown() Words {
	return Words{
		"This was begun before, and nobody knows whether it was done. It was not begun again.",
		"Tell the user that it may have been done already, and that it has to be looked up before it is tried again.",
	}
}

// MayStillRun says that the same operation was started before and may still be running.
func MayStillRun() Words {
	return Words{
		"This was begun before and has not been finished; it may be at work still. It was not begun again.",
		"Tell the user that it may have been done already. Calling it again in a moment gives its result, if it has one by then.",
	}
}

// ShuttingDown says that the gateway starts no more calls.
func ShuttingDown() Words {
	return Words{Message: "The gateway is shutting down; nothing was done."}
}

// LostWrite answers a call that changes something and was under way when its process ended.
func LostWrite(tool string) Words {
	return Words{
		"The connection to " + tool + " was lost while it was at work. It is not known whether it was done.",
		"Tell the user that it may have been done already. Call it again only if the user wants that: if it was done, its result comes back and nothing is done twice.",
	}
}

// LostRead answers a call that changes nothing and was under way when its process ended.
func LostRead(tool string) Words {
	return Words{
		"The connection to " + tool + " was lost before it had answered.",
		"Call it again if its answer is still needed.",
	}
}
