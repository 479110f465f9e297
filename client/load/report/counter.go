package report

// Counter identifies a counter.
type Counter int

var counterDefinitions []Definition

func defineCounter(name string, group Group, title, meaning string) Counter {
	counterDefinitions = append(counterDefinitions, Definition{Name: name, Group: group, Title: title, Meaning: meaning})
	return Counter(len(counterDefinitions) - 1)
}

// The counters in report order.
var (
	Turns    = defineCounter("turns", GroupAnswers, "turns", "turns of the script that began")
	Answered = defineCounter("answered", GroupAnswers,
		"answered", "turns that ended as the script expects: heard to the end, or as far as it waits")
	Interrupted = defineCounter("interrupted", GroupAnswers,
		"interrupted", "turns whose answer the next turn interrupted, as the script expects")
	Failed = defineCounter("failed", GroupAnswers,
		"failed", "turns that the gateway ended as failed or without audio, which the script does not expect")
	Stuck = defineCounter("stuck", GroupAnswers, "stuck", "turns with silence longer than the script's patience")
	Cut   = defineCounter("cut", GroupAnswers, "cut off", "turns that had no answer yet when the call ended")
	Early = defineCounter("early", GroupAnswers, "answered too early",
		"turns whose answer began before the user stopped speaking: a pause counted as the end")

	MissedInterruptions = defineCounter("missed_interruptions", GroupBargeIn, "missed", "interruptions after the end of the answer")

	FramesUp      = defineCounter("frames_up", GroupSound, "frames sent", "binary frames sent")
	FramesDropped = defineCounter("frames_dropped", GroupSound, "frames not sent",
		"frames that were dropped because the gateway had not accepted earlier ones for a second: backpressure")
	FramesDown = defineCounter("frames_down", GroupSound, "frames received", "binary frames received")
	PlayedMS   = defineCounter("played_ms", GroupSound, "played", "played audio, in ms")

	ToolCalls    = defineCounter("tools", GroupTools, "calls", "tool.ended received")
	ToolFailures = defineCounter("tools_failed", GroupTools, "failed", "tool.ended with ok false, except those that wait for an approval")
	ToolRepeats  = defineCounter("tools_repeated", GroupTools, "repeated", "tool.ended with deduplicated: nothing was run")
	ToolsOpen    = defineCounter("tools_open", GroupTools, "without an end",
		"tool.started without a tool.ended by the end of the call, except in calls that were cut off")
	Questions = defineCounter("questions", GroupTools, "questions", "confirmation.request received")
	Approvals = defineCounter("approved", GroupTools, "approved", "questions that ended as approved")
	Refusals  = defineCounter("denied", GroupTools, "declined", "questions that ended as denied")

	// Outages count the intended outages, by the script's action.
	Outages = map[string]Counter{
		"drop": defineCounter("drops", GroupLosses, "drops", "connections that this program cut without a close frame"),
		"reload": defineCounter("reloads", GroupLosses,
			"reloads", "connections that this program left like a reloaded page: queued audio is lost"),
		"roam": defineCounter("roams", GroupLosses, "roams", "connections that this program replaced while they were open"),
	}
	Displaced = defineCounter("displaced", GroupLosses, "closed with 4506", "replaced connections that the gateway closed")
	Moves     = defineCounter("moves", GroupLosses,
		"moves", "sessions that the gateway moved to another one: session.moving, or close code 4007")
	Losses        = defineCounter("losses", GroupLosses, "unexpected losses", "connections that broke and were not cut by this program")
	Resumes       = defineCounter("resumes", GroupLosses, "resumes", "session.started with resumed")
	ResumesFailed = defineCounter("resumes_failed", GroupLosses, "failed resumes",
		"sessions that the gateway refused to resume, or that were not reachable in time")
	ResumeRetries = defineCounter("resume_retries", GroupLosses, "attempts repeated", "attempts to resume that failed and were repeated")
	Snapshots     = defineCounter("snapshots", GroupLosses, "snapshots", "resumes for which the gateway no longer had all missed messages")
	LossFlushes   = defineCounter("loss_flushes", GroupLosses, "answers flushed",
		"audio.flush with the reason connection_lost: the rest of the answer is not heard; normal after a reload")
	SpeechLost = defineCounter("unsaid_frames", GroupLosses, "frames of lost speech",
		"frames of the microphone that were older than 2 s when the session resumed")
	OutagesSkipped = defineCounter("not_cut", GroupLosses, "not cut", "connections that were not cut because the session could not resume")

	ProviderReconnecting = defineCounter("provider_reconnecting", GroupLosses, "provider reconnecting", "provider.reconnecting received")
	ProviderReconnected  = defineCounter("provider_reconnected", GroupLosses, "provider reconnected", "provider.reconnected received")
	ProviderFresh        = defineCounter("provider_fresh", GroupLosses, "with a new model",
		"provider.reconnected after which the model does not know the conversation")

	Calls    = defineCounter("calls", GroupSessions, "calls", "connections that began")
	Sessions = defineCounter("sessions", GroupSessions, "sessions", "calls that got session.started")
	Refused  = defineCounter("refused", GroupSessions, "refused", "calls without a session: no connection, or session.start was refused")
	Lost     = defineCounter("lost", GroupSessions, "lost", "sessions that ended before the caller or the model said goodbye")
	Left     = defineCounter("left", GroupSessions, "left on the gateway",
		"sessions that the gateway's /healthz still counts after all have ended")

	Expectations = defineCounter("expectations", GroupConsistent, "expectations", "checks of the script's expectations")
	Unmet        = defineCounter("unmet", GroupConsistent, "unmet expectations", "expectations that were not met")
	Items        = defineCounter("items", GroupConsistent, "answers checked",
		"answers whose audio was compared with the audio_ms of audio.end")
	LostAudio = defineCounter("lost_audio", GroupConsistent, "answers with lost audio",
		"answers whose audio differs from the length in audio.end")
	LostBytes = defineCounter("lost_bytes", GroupConsistent, "lost bytes",
		"missing bytes of audio, by the positions of answers and by audio.end")
	RepeatedBytes = defineCounter("repeated_bytes", GroupConsistent, "repeated bytes",
		"bytes of audio that were repeated although acknowledged, or exceed audio.end")
	LostMessages = defineCounter("lost_messages", GroupConsistent, "lost messages", "messages missing from the sequence of seq")
	StaleFrames  = defineCounter("stale_frames", GroupConsistent, "stale frames",
		"binary frames that arrived after the flush of their answer, or belong to none")
	Errors = defineCounter("errors", GroupConsistent, "errors", "unexpected error messages of the gateway, and broken connections")

	LateFrames = defineCounter("late_frames", GroupGenerator, "late frames", "frames with a send lag of more than 5 ms")
)

// Definition returns the counter's definition.
func (c Counter) Definition() Definition { return counterDefinitions[c] }
