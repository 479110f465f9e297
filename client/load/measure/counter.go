package measure

// Counter is something that is counted.
type Counter int

// The counters. Their definitions are in Counters.
const (
	Calls Counter = iota
	Sessions
	Refused
	Lost
	Left

	Turns
	Answered
	Interrupted
	Failed
	Stuck
	Cut
	Early
	MissedInterruptions

	Expectations
	Unmet

	ToolCalls
	ToolFailures
	ToolRepeats
	ToolsOpen
	Questions
	Approvals
	Refusals

	FramesUp
	FramesDropped
	FramesDown
	BytesUp
	BytesDown

	Items
	LostAudio
	LostAudioMS
	LostMessages
	StaleFrames
	PlayedMS

	LateFrames
	Errors

	numCounters
)

// counters are the definitions, by Counter.
var counters = [numCounters]Definition{
	Calls:    {"calls", GroupSessions, "calls", "connections that were begun"},
	Sessions: {"sessions", GroupSessions, "sessions", "calls that got session.started"},
	Refused:  {"refused", GroupSessions, "refused", "calls that got no session: nobody answered, or session.start was refused"},
	Lost:     {"lost", GroupSessions, "lost", "sessions that ended before the caller or the model had said goodbye"},
	Left:     {"left", GroupSessions, "left on the gateway", "sessions that the gateway still has after all have ended, by its /healthz"},

	Turns:               {"turns", GroupAnswers, "turns", "turns of the script that were begun"},
	Answered:            {"answered", GroupAnswers, "answered", "turns that ended as the script wants: heard to the end, or as far as it waits"},
	Interrupted:         {"interrupted", GroupAnswers, "interrupted", "turns whose answer the next turn has interrupted, as the script wants"},
	Failed:              {"failed", GroupAnswers, "failed", "turns that the gateway has ended as failed, or without any audio, and the script does not want that"},
	Stuck:               {"stuck", GroupAnswers, "stuck", "turns in which nothing was heard for longer than the script's patience"},
	Cut:                 {"cut", GroupAnswers, "cut off", "turns that had no answer yet when the call ended"},
	Early:               {"early", GroupAnswers, "answered too early", "turns whose answer began before the user had stopped speaking: a pause was taken for the end"},
	MissedInterruptions: {"missed_interruptions", GroupBargeIn, "missed", "interruptions that were no longer any, because the answer was over"},

	Expectations: {"expectations", GroupConsistent, "expectations", "what the script expects, each time"},
	Unmet:        {"unmet", GroupConsistent, "unmet expectations", "expectations that were not met"},

	ToolCalls:    {"tools", GroupTools, "calls", "tool.ended that came"},
	ToolFailures: {"tools_failed", GroupTools, "failed", "tool.ended with ok false, but for those that wait for an approval"},
	ToolRepeats:  {"tools_repeated", GroupTools, "repeated", "tool.ended with deduplicated: nothing was run"},
	ToolsOpen:    {"tools_open", GroupTools, "without an end", "tool.started without a tool.ended by the end of the call, but for calls that were cut off"},
	Questions:    {"questions", GroupTools, "questions", "confirmation.request that came"},
	Approvals:    {"approved", GroupTools, "approved", "questions that ended as approved"},
	Refusals:     {"denied", GroupTools, "declined", "questions that ended as denied"},

	FramesUp:      {"frames_up", GroupSound, "frames sent", "binary frames sent"},
	FramesDropped: {"frames_dropped", GroupSound, "frames not sent", "frames that were thrown away because the gateway had not taken earlier ones for a second: backpressure"},
	FramesDown:    {"frames_down", GroupSound, "frames received", "binary frames received"},
	BytesUp:       {"bytes_up", GroupSound, "bytes sent", "bytes of audio sent"},
	BytesDown:     {"bytes_down", GroupSound, "bytes received", "bytes of audio received"},

	Items:        {"items", GroupConsistent, "answers checked", "answers whose audio was held against the audio_ms of audio.end"},
	LostAudio:    {"lost_audio", GroupConsistent, "answers with lost audio", "answers whose audio is not as long as audio.end says"},
	LostAudioMS:  {"lost_audio_ms", GroupConsistent, "lost audio", "how much is missing or too much in them, in ms"},
	LostMessages: {"lost_messages", GroupConsistent, "lost messages", "messages that are missing by their seq"},
	StaleFrames:  {"stale_frames", GroupConsistent, "stale frames", "binary frames that came after the flush of their answer, or belong to none"},
	PlayedMS:     {"played_ms", GroupSound, "played", "audio that was played, in ms"},

	LateFrames: {"late_frames", GroupGenerator, "late frames", "frames with a send lag of more than 5 ms"},
	Errors:     {"errors", GroupConsistent, "errors", "error messages of the gateway that the script does not expect, and connections that broke"},
}

// Definition returns what a counter counts.
func (c Counter) Definition() Definition { return counters[c] }

// Counters returns all counters, in the order of a report.
func Counters() []Counter {
	var out []Counter
	for _, g := range Groups() {
		for c := range numCounters {
			if counters[c].Group == g {
				out = append(out, c)
			}
		}
	}
	return out
}

// Buffers are the sizes of the players that underruns are counted for, in ms.
func Buffers() [3]int { return [3]int{60, 100, 200} }
