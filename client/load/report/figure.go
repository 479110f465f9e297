package report

// Figure is a distribution of times.
type Figure int

// Group is the part of a report that a figure or a counter stands in.
type Group string

// The groups, in the order of a report.
const (
	GroupAnswers    Group = "Answers"
	GroupGateway    Group = "As the gateway tells it"
	GroupBargeIn    Group = "Interruptions"
	GroupSound      Group = "Sound"
	GroupTools      Group = "Tools"
	GroupLosses     Group = "Lost connections"
	GroupSessions   Group = "Sessions"
	GroupGenerator  Group = "The generator itself"
	GroupConsistent Group = "Correctness"
)

// Definition is what a figure or a counter means.
type Definition struct {
	// Name is what thresholds and the JSON report call it.
	Name  string
	Group Group
	// Title is its name for a person.
	Title string
	// Meaning says from where to where it goes, or what is counted.
	Meaning string
}

// figureDefinitions are those of the figures, by Figure.
var figureDefinitions []Definition

// defineFigure makes a figure.
func defineFigure(name string, group Group, title, meaning string) Figure {
	figureDefinitions = append(figureDefinitions, Definition{name, group, title, meaning})
	return Figure(len(figureDefinitions) - 1)
}

// The figures, in the order of a report.
var (
	FirstAudio       = defineFigure("first_audio", GroupAnswers, "first audio", "from the end of the user's speech (the last voiced sample, when the schedule says that it was spoken) or from the typed text being sent, to the first binary frame of the answer")
	FirstAudioSpoken = defineFigure("first_audio_spoken", GroupAnswers, "after speech", "first_audio of the turns that were spoken")
	FirstAudioTyped  = defineFigure("first_audio_typed", GroupAnswers, "after text", "first_audio of the turns that were typed")
	Detection        = defineFigure("detection", GroupAnswers, "end of speech noticed", "from the end of the user's speech to speech.stopped: how long the model, or the gateway's ear, took to be sure that the user had stopped. In push-to-talk, where the client says so, it is the rest of the frame. It is not there where the answer came sooner than speech.stopped")
	Answer           = defineFigure("answer", GroupAnswers, "answer", "from the end of the speech being known (speech.stopped, the end of push-to-talk, or the text being sent) to the first binary frame of the answer: the model's time to its first audio, and what the gateway and the network add. This is the figure to compare with a simulator's first-audio delay")
	Added            = defineFigure("added", GroupAnswers, "added", "answer less what the provider is known to wait (--provider-delay): what the gateway and the network add. Below zero counts as zero")

	GatewayTotal     = defineFigure("gateway_total", GroupGateway, "first audio", "speech_end_to_first_audio_ms of turn.ended: first_audio as the gateway measures it, without the network")
	GatewayDetection = defineFigure("gateway_detection", GroupGateway, "end of speech noticed", "detection_ms of turn.ended")
	GatewayProvider  = defineFigure("gateway_provider", GroupGateway, "the provider's part", "provider_ms of turn.ended")
	GatewayOwn       = defineFigure("gateway_own", GroupGateway, "its own part", "gateway_ms of turn.ended")

	InterruptSeen = defineFigure("interrupt_seen", GroupBargeIn, "speech noticed", "from the first voiced sample of an interruption to speech.started")
	Flush         = defineFigure("flush", GroupBargeIn, "flush", "from the first voiced sample of an interruption (or the typed text, or the stop button) to audio.flush: when the loudspeaker falls silent")
	LastAudio     = defineFigure("last_audio", GroupBargeIn, "last audio", "from the first voiced sample of an interruption to the last binary frame of the interrupted answer; 0 where all of it had come before")

	AudioGap     = defineFigure("audio_gap", GroupSound, "gap between frames", "between two binary frames of one answer, as they arrive")
	ItemGap      = defineFigure("item_gap", GroupSound, "largest gap", "the longest time between two binary frames of one answer, a value for each answer; a lost connection of the client is not in it. A change of the provider's connection in the middle of an answer is")
	BufferNeeded = defineFigure("buffer_needed", GroupSound, "buffer needed", "how much audio a player would have had to hold back to play an answer without a gap: the most that a frame came later than real time since the first one")

	ToolTotal = defineFigure("tool_total", GroupTools, "call", "from tool.started to tool.ended, as they arrive")
	ToolRun   = defineFigure("tool_run", GroupTools, "run", "duration_ms of tool.ended: the tool's own time")
	ToolWait  = defineFigure("tool_wait", GroupTools, "wait", "tool_total less tool_run: waiting for a place, a lease or the ledger. Below zero counts as zero")

	Resume       = defineFigure("resume", GroupLosses, "resume", "from session.start with resume to session.started")
	Outage       = defineFigure("outage", GroupLosses, "without connection", "from the loss of a connection to session.started on the next one: the pauses of the client, connecting, and resume. With roam, where the old connection is there until then, it is resume alone")
	OutageAudio  = defineFigure("outage_audio", GroupLosses, "audio to audio", "of answers that were coming: from the last binary frame before the loss to the first one after it")
	OutageHeard  = defineFigure("outage_heard", GroupLosses, "silence heard", "of answers that were coming: how long the player with 100 ms was silent in the rest of the answer; 0 where what it held was enough")
	ProviderLost = defineFigure("provider_lost", GroupLosses, "provider's connection", "lost_ms of provider.reconnected: how long the model could not be spoken with")

	Connect   = defineFigure("connect", GroupSessions, "connect", "from the dial to the open WebSocket")
	Ready     = defineFigure("ready", GroupSessions, "ready", "from session.start to session.started")
	Goodbye   = defineFigure("goodbye", GroupSessions, "goodbye", "from session.end to session.ended")
	CallLate  = defineFigure("call_late", GroupSessions, "late calls", "how much later than the schedule a call began because the one before it had not ended (open loop: the schedule does not wait)")
	Ticket    = defineFigure("ticket", GroupSessions, "ticket", "from POST /v1/sessions to its answer")
	TextFirst = defineFigure("text_first", GroupSessions, "text agent's first words", "from POST /v1/chat to the first text of the answer")
	Handoff   = defineFigure("handoff", GroupSessions, "handoff", "from the ticket being there to the first binary frame by voice")

	SendLag   = defineFigure("send_lag", GroupGenerator, "send lag", "how much later than the absolute schedule a frame was handed to the network, as far as it was this program's fault: the time in which the gateway did not take earlier frames is not in it")
	SendBlock = defineFigure("send_block", GroupGenerator, "send time", "how long the network took for a frame: a gateway that does not read makes it grow")
	WakeLag   = defineFigure("wake_lag", GroupGenerator, "wake-up lag", "how late a goroutine of this program that does nothing else is woken, 50 times a second: how far the times of what arrives can be trusted")
)

// Definition returns what a figure means.
func (f Figure) Definition() Definition { return figureDefinitions[f] }

// Figures returns all figures, in the order of a report.
func Figures() []Figure {
	var out []Figure
	for f := range figureDefinitions {
		out = append(out, Figure(f))
	}
	return out
}

// Groups returns the groups in the order of a report.
func Groups() []Group {
	return []Group{GroupAnswers, GroupGateway, GroupBargeIn, GroupSound, GroupTools, GroupLosses, GroupSessions, GroupConsistent, GroupGenerator}
}
