// Package counter names what a load run counts, and says what each of it means.
package counter

import "voicegw/client/load/measure/figure"

// Counter is something that is counted.
type Counter int

// definitions are those of the counters, by Counter.
var definitions []figure.Definition

// define makes a counter.
func define(name string, group figure.Group, title, meaning string) Counter {
	definitions = append(definitions, figure.Definition{Name: name, Group: group, Title: title, Meaning: meaning})
	return Counter(len(definitions) - 1)
}

// The counters, in the order of a report.
var (
	Turns       = define("turns", figure.GroupAnswers, "turns", "turns of the script that were begun")
	Answered    = define("answered", figure.GroupAnswers, "answered", "turns that ended as the script wants: heard to the end, or as far as it waits")
	Interrupted = define("interrupted", figure.GroupAnswers, "interrupted", "turns whose answer the next turn has interrupted, as the script wants")
	Failed      = define("failed", figure.GroupAnswers, "failed", "turns that the gateway has ended as failed, or without any audio, and the script does not want that")
	Stuck       = define("stuck", figure.GroupAnswers, "stuck", "turns in which nothing was heard for longer than the script's patience")
	Cut         = define("cut", figure.GroupAnswers, "cut off", "turns that had no answer yet when the call ended")
	Early       = define("early", figure.GroupAnswers, "answered too early", "turns whose answer began before the user had stopped speaking: a pause was taken for the end")

	MissedInterruptions = define("missed_interruptions", figure.GroupBargeIn, "missed", "interruptions that were no longer any, because the answer was over")

	FramesUp      = define("frames_up", figure.GroupSound, "frames sent", "binary frames sent")
	FramesDropped = define("frames_dropped", figure.GroupSound, "frames not sent", "frames that were thrown away because the gateway had not taken earlier ones for a second: backpressure")
	FramesDown    = define("frames_down", figure.GroupSound, "frames received", "binary frames received")
	PlayedMS      = define("played_ms", figure.GroupSound, "played", "audio that was played, in ms")

	ToolCalls    = define("tools", figure.GroupTools, "calls", "tool.ended that came")
	ToolFailures = define("tools_failed", figure.GroupTools, "failed", "tool.ended with ok false, but for those that wait for an approval")
	ToolRepeats  = define("tools_repeated", figure.GroupTools, "repeated", "tool.ended with deduplicated: nothing was run")
	ToolsOpen    = define("tools_open", figure.GroupTools, "without an end", "tool.started without a tool.ended by the end of the call, but for calls that were cut off")
	Questions    = define("questions", figure.GroupTools, "questions", "confirmation.request that came")
	Approvals    = define("approved", figure.GroupTools, "approved", "questions that ended as approved")
	Refusals     = define("denied", figure.GroupTools, "declined", "questions that ended as denied")

	// Outages are the connections that this program has taken away, by the act of the script.
	Outages = map[string]Counter{
		"drop":   define("drops", figure.GroupLosses, "drops", "connections that this program has cut, without a word"),
		"reload": define("reloads", figure.GroupLosses, "reloads", "connections that this program has left as a page does that is loaded again: what was to be played is lost"),
		"roam":   define("roams", figure.GroupLosses, "roams", "connections that this program has replaced while they were open"),
	}
	Displaced     = define("displaced", figure.GroupLosses, "closed with 4506", "replaced connections that the gateway has closed")
	Moves         = define("moves", figure.GroupLosses, "moves", "sessions that the gateway has given to another one: session.moving, or close code 4007")
	Losses        = define("losses", figure.GroupLosses, "lost by themselves", "connections that broke and were not taken away by this program")
	Resumes       = define("resumes", figure.GroupLosses, "resumes", "session.started with resumed")
	ResumesFailed = define("resumes_failed", figure.GroupLosses, "failed resumes", "sessions that the gateway did not let go on, or that could not be reached in time")
	ResumeRetries = define("resume_retries", figure.GroupLosses, "attempts repeated", "attempts to come back that failed and were repeated")
	Snapshots     = define("snapshots", figure.GroupLosses, "snapshots", "resumes after which the gateway did not have all that was missed")
	LossFlushes   = define("loss_flushes", figure.GroupLosses, "answers flushed", "audio.flush with the reason connection_lost: the rest of the answer is not heard. After a reload that is how it is")
	Unsaid        = define("unsaid_frames", figure.GroupLosses, "frames not said", "frames of the microphone that were older than 2 s when the session went on")
	NotCut        = define("not_cut", figure.GroupLosses, "not taken away", "connections that were to be taken away where the session could not be continued")

	ProviderReconnecting = define("provider_reconnecting", figure.GroupLosses, "provider reconnecting", "provider.reconnecting that came")
	ProviderReconnected  = define("provider_reconnected", figure.GroupLosses, "provider reconnected", "provider.reconnected that came")
	ProviderFresh        = define("provider_fresh", figure.GroupLosses, "with a new model", "provider.reconnected after which the model knows nothing of the conversation")

	Calls    = define("calls", figure.GroupSessions, "calls", "connections that were begun")
	Sessions = define("sessions", figure.GroupSessions, "sessions", "calls that got session.started")
	Refused  = define("refused", figure.GroupSessions, "refused", "calls that got no session: nobody answered, or session.start was refused")
	Lost     = define("lost", figure.GroupSessions, "lost", "sessions that ended before the caller or the model had said goodbye")
	Left     = define("left", figure.GroupSessions, "left on the gateway", "sessions that the gateway still has after all have ended, by its /healthz")

	Expectations  = define("expectations", figure.GroupConsistent, "expectations", "what the script expects, each time")
	Unmet         = define("unmet", figure.GroupConsistent, "unmet expectations", "expectations that were not met")
	Items         = define("items", figure.GroupConsistent, "answers checked", "answers whose audio was held against the audio_ms of audio.end")
	LostAudio     = define("lost_audio", figure.GroupConsistent, "answers with lost audio", "answers whose audio is not as long as audio.end says")
	LostBytes     = define("lost_bytes", figure.GroupConsistent, "lost bytes", "bytes of audio that did not come, by the positions of answers and by audio.end")
	RepeatedBytes = define("repeated_bytes", figure.GroupConsistent, "repeated bytes", "bytes of audio that came again, although the gateway knew that they had come, or more than audio.end says")
	LostMessages  = define("lost_messages", figure.GroupConsistent, "lost messages", "messages that are missing by their seq")
	StaleFrames   = define("stale_frames", figure.GroupConsistent, "stale frames", "binary frames that came after the flush of their answer, or belong to none")
	Errors        = define("errors", figure.GroupConsistent, "errors", "error messages of the gateway that the script does not expect, and connections that broke")

	LateFrames = define("late_frames", figure.GroupGenerator, "late frames", "frames with a send lag of more than 5 ms")
)

// Definition returns what a counter counts.
func (c Counter) Definition() figure.Definition { return definitions[c] }

// Counters returns all counters, in the order of a report.
func Counters() []Counter {
	var out []Counter
	for c := range definitions {
		out = append(out, Counter(c))
	}
	return out
}
