package report

// Counter is something that is counted.
type Counter int

// counterDefinitions are those of the counters, by Counter.
var counterDefinitions []Definition

// defineCounter makes a counter.
func defineCounter(name string, group Group, title, meaning string) Counter {
	counterDefinitions = append(counterDefinitions, Definition{Name: name, Group: group, Title: title, Meaning: meaning})
	return Counter(len(counterDefinitions) - 1)
}

// The counters, in the order of a report.
var (
	Turns       = defineCounter("turns", GroupAnswers, "turns", "turns of the script that were begun")
	Answered    = defineCounter("answered", GroupAnswers, "answered", "turns that ended as the script wants: heard to the end, or as far as it waits")
	Interrupted = defineCounter("interrupted", GroupAnswers, "interrupted", "turns whose answer the next turn has interrupted, as the script wants")
	Failed      = defineCounter("failed", GroupAnswers, "failed", "turns that the gateway has ended as failed, or without any audio, and the script does not want that")
	Stuck       = defineCounter("stuck", GroupAnswers, "stuck", "turns in which nothing was heard for longer than the script's patience")
	Cut         = defineCounter("cut", GroupAnswers, "cut off", "turns that had no answer yet when the call ended")
	Early       = defineCounter("early", GroupAnswers, "answered too early", "turns whose answer began before the user had stopped speaking: a pause was taken for the end")

	MissedInterruptions = defineCounter("missed_interruptions", GroupBargeIn, "missed", "interruptions that were no longer any, because the answer was over")

	FramesUp      = defineCounter("frames_up", GroupSound, "frames sent", "binary frames sent")
	FramesDropped = defineCounter("frames_dropped", GroupSound, "frames not sent", "frames that were thrown away because the gateway had not taken earlier ones for a second: backpressure")
	FramesDown    = defineCounter("frames_down", GroupSound, "frames received", "binary frames received")
	PlayedMS      = defineCounter("played_ms", GroupSound, "played", "audio that was played, in ms")

	ToolCalls    = defineCounter("tools", GroupTools, "calls", "tool.ended that came")
	ToolFailures = defineCounter("tools_failed", GroupTools, "failed", "tool.ended with ok false, but for those that wait for an approval")
	ToolRepeats  = defineCounter("tools_repeated", GroupTools, "repeated", "tool.ended with deduplicated: nothing was run")
	ToolsOpen    = defineCounter("tools_open", GroupTools, "without an end", "tool.started without a tool.ended by the end of the call, but for calls that were cut off")
	Questions    = defineCounter("questions", GroupTools, "questions", "confirmation.request that came")
	Approvals    = defineCounter("approved", GroupTools, "approved", "questions that ended as approved")
	Refusals     = defineCounter("denied", GroupTools, "declined", "questions that ended as denied")

	// Outages are the connections that this program has taken away, by the act of the script.
	Outages = map[string]Counter{
		"drop":   defineCounter("drops", GroupLosses, "drops", "connections that this program has cut, without a word"),
		"reload": defineCounter("reloads", GroupLosses, "reloads", "connections that this program has left as a page does that is loaded again: what was to be played is lost"),
		"roam":   defineCounter("roams", GroupLosses, "roams", "connections that this program has replaced while they were open"),
	}
	Displaced     = defineCounter("displaced", GroupLosses, "closed with 4506", "replaced connections that the gateway has closed")
	Moves         = defineCounter("moves", GroupLosses, "moves", "sessions that the gateway has given to another one: session.moving, or close code 4007")
	Losses        = defineCounter("losses", GroupLosses, "lost by themselves", "connections that broke and were not taken away by this program")
	Resumes       = defineCounter("resumes", GroupLosses, "resumes", "session.started with resumed")
	ResumesFailed = defineCounter("resumes_failed", GroupLosses, "failed resumes", "sessions that the gateway did not let go on, or that could not be reached in time")
	ResumeRetries = defineCounter("resume_retries", GroupLosses, "attempts repeated", "attempts to come back that failed and were repeated")
	Snapshots     = defineCounter("snapshots", GroupLosses, "snapshots", "resumes after which the gateway did not have all that was missed")
	LossFlushes   = defineCounter("loss_flushes", GroupLosses, "answers flushed", "audio.flush with the reason connection_lost: the rest of the answer is not heard. After a reload that is how it is")
	Unsaid        = defineCounter("unsaid_frames", GroupLosses, "frames not said", "frames of the microphone that were older than 2 s when the session went on")
	NotCut        = defineCounter("not_cut", GroupLosses, "not taken away", "connections that were to be taken away where the session could not be continued")

	ProviderReconnecting = defineCounter("provider_reconnecting", GroupLosses, "provider reconnecting", "provider.reconnecting that came")
	ProviderReconnected  = defineCounter("provider_reconnected", GroupLosses, "provider reconnected", "provider.reconnected that came")
	ProviderFresh        = defineCounter("provider_fresh", GroupLosses, "with a new model", "provider.reconnected after which the model knows nothing of the conversation")

	Calls    = defineCounter("calls", GroupSessions, "calls", "connections that were begun")
	Sessions = defineCounter("sessions", GroupSessions, "sessions", "calls that got session.started")
	Refused  = defineCounter("refused", GroupSessions, "refused", "calls that got no session: nobody answered, or session.start was refused")
	Lost     = defineCounter("lost", GroupSessions, "lost", "sessions that ended before the caller or the model had said goodbye")
	Left     = defineCounter("left", GroupSessions, "left on the gateway", "sessions that the gateway still has after all have ended, by its /healthz")

	Expectations  = defineCounter("expectations", GroupConsistent, "expectations", "what the script expects, each time")
	Unmet         = defineCounter("unmet", GroupConsistent, "unmet expectations", "expectations that were not met")
	Items         = defineCounter("items", GroupConsistent, "answers checked", "answers whose audio was held against the audio_ms of audio.end")
	LostAudio     = defineCounter("lost_audio", GroupConsistent, "answers with lost audio", "answers whose audio is not as long as audio.end says")
	LostBytes     = defineCounter("lost_bytes", GroupConsistent, "lost bytes", "bytes of audio that did not come, by the positions of answers and by audio.end")
	RepeatedBytes = defineCounter("repeated_bytes", GroupConsistent, "repeated bytes", "bytes of audio that came again, although the gateway knew that they had come, or more than audio.end says")
	LostMessages  = defineCounter("lost_messages", GroupConsistent, "lost messages", "messages that are missing by their seq")
	StaleFrames   = defineCounter("stale_frames", GroupConsistent, "stale frames", "binary frames that came after the flush of their answer, or belong to none")
	Errors        = defineCounter("errors", GroupConsistent, "errors", "error messages of the gateway that the script does not expect, and connections that broke")

	LateFrames = defineCounter("late_frames", GroupGenerator, "late frames", "frames with a send lag of more than 5 ms")
)

// Definition returns what a counter counts.
func (c Counter) Definition() Definition { return counterDefinitions[c] }

// Counters returns all counters, in the order of a report.
func Counters() []Counter {
	var out []Counter
	for c := range counterDefinitions {
		out = append(out, Counter(c))
	}
	return out
}
