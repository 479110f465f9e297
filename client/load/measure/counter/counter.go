// Package counter names what a load run counts, and says what each of it means.
package counter

import "voicegw/client/load/measure/figure"

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

	// Count is how many counters there are.
	Count
)

func define(name string, group figure.Group, title, meaning string) figure.Definition {
	return figure.Definition{Name: name, Group: group, Title: title, Meaning: meaning}
}

// counters are the definitions, by Counter.
var counters = [Count]figure.Definition{
	Calls:    define("calls", figure.GroupSessions, "calls", "connections that were begun"),
	Sessions: define("sessions", figure.GroupSessions, "sessions", "calls that got session.started"),
	Refused:  define("refused", figure.GroupSessions, "refused", "calls that got no session: nobody answered, or session.start was refused"),
	Lost:     define("lost", figure.GroupSessions, "lost", "sessions that ended before the caller or the model had said goodbye"),
	Left:     define("left", figure.GroupSessions, "left on the gateway", "sessions that the gateway still has after all have ended, by its /healthz"),

	Turns:               define("turns", figure.GroupAnswers, "turns", "turns of the script that were begun"),
	Answered:            define("answered", figure.GroupAnswers, "answered", "turns that ended as the script wants: heard to the end, or as far as it waits"),
	Interrupted:         define("interrupted", figure.GroupAnswers, "interrupted", "turns whose answer the next turn has interrupted, as the script wants"),
	Failed:              define("failed", figure.GroupAnswers, "failed", "turns that the gateway has ended as failed, or without any audio, and the script does not want that"),
	Stuck:               define("stuck", figure.GroupAnswers, "stuck", "turns in which nothing was heard for longer than the script's patience"),
	Cut:                 define("cut", figure.GroupAnswers, "cut off", "turns that had no answer yet when the call ended"),
	Early:               define("early", figure.GroupAnswers, "answered too early", "turns whose answer began before the user had stopped speaking: a pause was taken for the end"),
	MissedInterruptions: define("missed_interruptions", figure.GroupBargeIn, "missed", "interruptions that were no longer any, because the answer was over"),

	Expectations: define("expectations", figure.GroupConsistent, "expectations", "what the script expects, each time"),
	Unmet:        define("unmet", figure.GroupConsistent, "unmet expectations", "expectations that were not met"),

	ToolCalls:    define("tools", figure.GroupTools, "calls", "tool.ended that came"),
	ToolFailures: define("tools_failed", figure.GroupTools, "failed", "tool.ended with ok false, but for those that wait for an approval"),
	ToolRepeats:  define("tools_repeated", figure.GroupTools, "repeated", "tool.ended with deduplicated: nothing was run"),
	ToolsOpen:    define("tools_open", figure.GroupTools, "without an end", "tool.started without a tool.ended by the end of the call, but for calls that were cut off"),
	Questions:    define("questions", figure.GroupTools, "questions", "confirmation.request that came"),
	Approvals:    define("approved", figure.GroupTools, "approved", "questions that ended as approved"),
	Refusals:     define("denied", figure.GroupTools, "declined", "questions that ended as denied"),

	FramesUp:      define("frames_up", figure.GroupSound, "frames sent", "binary frames sent"),
	FramesDropped: define("frames_dropped", figure.GroupSound, "frames not sent", "frames that were thrown away because the gateway had not taken earlier ones for a second: backpressure"),
	FramesDown:    define("frames_down", figure.GroupSound, "frames received", "binary frames received"),
	BytesUp:       define("bytes_up", figure.GroupSound, "bytes sent", "bytes of audio sent"),
	BytesDown:     define("bytes_down", figure.GroupSound, "bytes received", "bytes of audio received"),

	Items:        define("items", figure.GroupConsistent, "answers checked", "answers whose audio was held against the audio_ms of audio.end"),
	LostAudio:    define("lost_audio", figure.GroupConsistent, "answers with lost audio", "answers whose audio is not as long as audio.end says"),
	LostAudioMS:  define("lost_audio_ms", figure.GroupConsistent, "lost audio", "how much is missing or too much in them, in ms"),
	LostMessages: define("lost_messages", figure.GroupConsistent, "lost messages", "messages that are missing by their seq"),
	StaleFrames:  define("stale_frames", figure.GroupConsistent, "stale frames", "binary frames that came after the flush of their answer, or belong to none"),
	PlayedMS:     define("played_ms", figure.GroupSound, "played", "audio that was played, in ms"),

	LateFrames: define("late_frames", figure.GroupGenerator, "late frames", "frames with a send lag of more than 5 ms"),
	Errors:     define("errors", figure.GroupConsistent, "errors", "error messages of the gateway that the script does not expect, and connections that broke"),
}

// Definition returns what a counter counts.
func (c Counter) Definition() figure.Definition { return counters[c] }

// Counters returns all counters, in the order of a report.
func Counters() []Counter {
	var out []Counter
	for _, g := range figure.Groups() {
		for c := range Count {
			if counters[c].Group == g {
				out = append(out, c)
			}
		}
	}
	return out
}
