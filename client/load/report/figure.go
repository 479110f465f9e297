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
	// Title is the name for people.
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
