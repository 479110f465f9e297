package report

// Figure identifies a distribution of times.
type Figure int

// Group is a report's section.
type Group string

// The groups in report order.
const (
	GroupAnswers    Group = "Answers"
	GroupGateway    Group = "As measured by the gateway"
	GroupBargeIn    Group = "Interruptions"
	GroupSound      Group = "Sound"
	GroupTools      Group = "Tools"
	GroupLosses     Group = "Lost connections"
	GroupSessions   Group = "Sessions"
	GroupGenerator  Group = "The generator itself"
	GroupConsistent Group = "Correctness"
)

// Definition describes a figure or a counter.
type Definition struct {
	// Name is the name in thresholds and in the JSON report.
	Name  string
	Group Group
	Title string
	// Meaning is the start and end of the time, or the thing counted.
	Meaning string
}

var figureDefinitions []Definition

func defineFigure(name string, group Group, title, meaning string) Figure {
	figureDefinitions = append(figureDefinitions, Definition{name, group, title, meaning})
	return Figure(len(figureDefinitions) - 1)
}

// The figures in report order.
var (
	FirstAudio = defineFigure("first_audio", GroupAnswers, "first audio",
		"from the end of the user's speech (the last voiced sample, by the schedule) or from sending the typed text, to the "+
			"first binary frame of the answer")
	FirstAudioSpoken = defineFigure("first_audio_spoken", GroupAnswers, "after speech", "first_audio of the turns that were spoken")
	FirstAudioTyped  = defineFigure("first_audio_typed", GroupAnswers, "after text", "first_audio of the turns that were typed")
	Detection        = defineFigure("detection", GroupAnswers, "end of speech noticed",
		"from the end of the user's speech to speech.stopped: how long the model, or the gateway's detector, took to detect "+
			"the end of speech. With push-to-talk it is the rest of the frame. Absent if the answer arrived before speech.stopped")
	Answer = defineFigure("answer", GroupAnswers,
		"answer", "from the detected end of speech (speech.stopped, the end of push-to-talk, or sending the text) to the "+
			"first binary frame of the answer: the model's time to its first audio, plus the gateway and the network. This is "+
			"the figure to compare with a simulator's first-audio delay")
	Added = defineFigure("added", GroupAnswers,
		"added", "answer minus the provider's known delay (--provider-delay): the gateway and the network. Below zero counts as zero")

	GatewayTotal = defineFigure("gateway_total", GroupGateway, "first audio",
		"speech_end_to_first_audio_ms of turn.ended: first_audio as the gateway measures it, without the network")
	GatewayDetection = defineFigure("gateway_detection", GroupGateway, "end of speech noticed", "detection_ms of turn.ended")
	GatewayProvider  = defineFigure("gateway_provider", GroupGateway, "the provider's part", "provider_ms of turn.ended")
	GatewayOwn       = defineFigure("gateway_own", GroupGateway, "its own part", "gateway_ms of turn.ended")

	InterruptSeen = defineFigure("interrupt_seen", GroupBargeIn, "speech noticed",
		"from the first voiced sample of an interruption to speech.started")
	Flush = defineFigure("flush", GroupBargeIn,
		"flush", "from the first voiced sample of an interruption (or the typed text, or the stop button) to audio.flush: "+
			"when the loudspeaker falls silent")
	LastAudio = defineFigure("last_audio", GroupBargeIn, "last audio",
		"from the first voiced sample of an interruption to the last binary frame of the interrupted answer; 0 if all of it arrived before")

	AudioGap = defineFigure("audio_gap", GroupSound, "gap between frames", "between two binary frames of one answer, as they arrive")
	ItemGap  = defineFigure("item_gap", GroupSound, "largest gap",
		"the longest time between two binary frames of one answer, a value for each answer; includes changes of the "+
			"provider's connection, but not lost connections of the client")
	BufferNeeded = defineFigure("buffer_needed", GroupSound, "buffer needed",
		"the buffer that a player would have needed to play an answer without a gap: the largest delay of a frame against "+
			"real time since the first one")

	ToolTotal = defineFigure("tool_total", GroupTools, "call", "from tool.started to tool.ended, as they arrive")
	ToolRun   = defineFigure("tool_run", GroupTools, "run", "duration_ms of tool.ended: the tool's own time")
	ToolWait  = defineFigure("tool_wait", GroupTools,
		"wait", "tool_total minus tool_run: waiting for a slot, a lease or the ledger. Below zero counts as zero")

	Resume = defineFigure("resume", GroupLosses, "resume", "from session.start with resume to session.started")
	Outage = defineFigure("outage", GroupLosses, "without connection",
		"from the loss of a connection to session.started on the next one: the client's pauses, connecting, and resume. With "+
			"roam, which keeps the old connection until then, only resume")
	OutageAudio = defineFigure("outage_audio", GroupLosses, "audio to audio",
		"during answers: from the last binary frame before the loss to the first one after it")
	OutageHeard = defineFigure("outage_heard", GroupLosses, "silence heard",
		"during answers: the silence of the player with 100 ms in the rest of the answer; 0 if its buffer was enough")
	ProviderLost = defineFigure("provider_lost", GroupLosses, "provider's connection",
		"lost_ms of provider.reconnected: the time without a model")

	Connect  = defineFigure("connect", GroupSessions, "connect", "from the dial to the open WebSocket")
	Ready    = defineFigure("ready", GroupSessions, "ready", "from session.start to session.started")
	Goodbye  = defineFigure("goodbye", GroupSessions, "goodbye", "from session.end to session.ended")
	CallLate = defineFigure("call_late", GroupSessions, "late calls",
		"the delay of a call against the schedule because the previous one had not ended (open loop: the schedule does not wait)")
	Ticket    = defineFigure("ticket", GroupSessions, "ticket", "from POST /v1/sessions to its answer")
	TextFirst = defineFigure("text_first", GroupSessions, "text agent's first words", "from POST /v1/chat to the first text of the answer")
	Handoff   = defineFigure("handoff", GroupSessions, "handoff", "from receiving the ticket to the first binary frame by voice")

	SendLag = defineFigure("send_lag", GroupGenerator, "send lag",
		"the delay of a frame against the absolute schedule caused by this program; excludes the time in which the gateway "+
			"did not accept earlier frames")
	SendBlock = defineFigure("send_block", GroupGenerator, "send time",
		"the time of a frame's write; it grows if the gateway does not read")
	WakeLag = defineFigure("wake_lag", GroupGenerator, "wake-up lag",
		"the delay of an idle goroutine's wake-ups, 50 times a second: the error of arrival times")
)

// Definition returns the figure's definition.
func (f Figure) Definition() Definition { return figureDefinitions[f] }

// Groups returns the groups in report order.
func Groups() []Group {
	return []Group{GroupAnswers, GroupGateway, GroupBargeIn, GroupSound, GroupTools, GroupLosses, GroupSessions,
		GroupConsistent, GroupGenerator}
}

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
