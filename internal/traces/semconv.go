package traces

// ConventionsVersion is that of OpenTelemetry's semantic conventions for generative AI, which this package follows:
// https://github.com/open-telemetry/semantic-conventions-genai, whose pages docs/gen-ai/client-inference.md
// (commit 024a4f9) and those beside it were read on 2026-11-23. All of them have the status Development, so
// they may change: then this file and its version do.
const ConventionsVersion = "0.1.0"

// The operations (gen_ai.operation.name), which also begin the names of their spans.
const (
	opTurn = "invoke_agent" // a turn
	opTool = "execute_tool"
	opChat = "chat" // an answer of a chat model
	// opVoice is an answer of a voice model. The conventions have no name for it yet: their pull request
	// 394 is about to give it one (realtime_inference).
	opVoice = "generate_content"
)

// Attributes of the conventions.
const (
	keyOperation    = "gen_ai.operation.name"
	keyProvider     = "gen_ai.provider.name"
	keyModel        = "gen_ai.request.model"
	keyAgent        = "gen_ai.agent.name"
	keyConversation = "gen_ai.conversation.id"
	keyOutput       = "gen_ai.output.type" // outputSpeech or outputText
	keyResponse     = "gen_ai.response.id"
	keyFinish       = "gen_ai.response.finish_reasons"
	keyFirstChunk   = "gen_ai.response.time_to_first_chunk" // s
	keyStream       = "gen_ai.request.stream"
	keyToolName     = "gen_ai.tool.name"
	keyToolCall     = "gen_ai.tool.call.id" // the gateway's own name of the call
	keyToolType     = "gen_ai.tool.type"
	keyError        = "error.type"
	keyServer       = "server.address"
	keyPort         = "server.port"

	// Only with Options.Content.
	keyInputMessages  = "gen_ai.input.messages"
	keyOutputMessages = "gen_ai.output.messages"
	keyToolArguments  = "gen_ai.tool.call.arguments"
	keyToolResult     = "gen_ai.tool.call.result"
)

// Numbers of tokens, attributes of the conventions. Cached tokens are a part of the input of their
// modality.
const (
	keyInput       = "gen_ai.usage.input_tokens"
	keyOutputs     = "gen_ai.usage.output_tokens"
	keyInputText   = "gen_ai.usage.text.input_tokens"
	keyInputAudio  = "gen_ai.usage.audio.input_tokens"
	keyOutputText  = "gen_ai.usage.text.output_tokens"
	keyOutputAudio = "gen_ai.usage.audio.output_tokens"
	keyCached      = "gen_ai.usage.cache_read.input_tokens"
	keyCachedText  = "gen_ai.usage.text.cache_read.input_tokens"
	keyCachedAudio = "gen_ai.usage.audio.cache_read.input_tokens"
	keyThought     = "gen_ai.usage.reasoning.output_tokens"
)

// Values of attributes.
const (
	outputSpeech = "speech"
	outputText   = "text"
	toolFunction = "function"
)

// The gateway's own spans, for which there is no convention.
const (
	spanStart    = "voicegw.session.start"
	spanIdentify = "voicegw.session.identify"
	spanConnect  = "voicegw.session.connect"
	spanResume   = "voicegw.resume"
	spanRotate   = "voicegw.rotate"
	spanMove     = "voicegw.move"
)

// The gateway's own events of a turn.
const (
	eventError        = "voicegw.error"
	eventProblem      = "voicegw.provider.problem"
	eventConfirmation = "voicegw.confirmation"
)

// The gateway's own attributes.
const (
	keySession   = "voicegw.session.id"
	keyMode      = "voicegw.mode" // voice or text
	keyTurn      = "voicegw.turn"
	keyStatus    = "voicegw.turn.status"
	keyKept      = "voicegw.kept" // why the turn was kept: a Decision
	keyEntry     = "voicegw.entry"
	keyOutcome   = "voicegw.outcome"
	keyReason    = "voicegw.reason"
	keyWait      = "voicegw.session.wait_ms"
	keyFirst     = "voicegw.latency.first_ms" // of the first audio, or of the first text
	keyDetection = "voicegw.latency.detection_ms"
	keyAnswer    = "voicegw.latency.provider_ms"
	keyGateway   = "voicegw.latency.gateway_ms"
	keyCut       = "voicegw.interrupted.by"
	keyHeard     = "voicegw.interrupted.heard_ms"
	keySent      = "voicegw.interrupted.sent_ms"
	keyCost      = "voicegw.cost_usd_micros"
	keyUnpriced  = "voicegw.unpriced"
	keyNudged    = "voicegw.nudged"
	keyOmitted   = "voicegw.omitted" // spans that were too many for one turn
	keyQueued    = "voicegw.tool.queued_ms"
	keyRan       = "voicegw.tool.ran_ms"
	keyOverspent = "voicegw.tool.over_budget"
	keyClamped   = "voicegw.tool.clamped"
	keyCacheHit  = "voicegw.tool.cache_hit"
	keyConfirm   = "voicegw.tool.confirmation"
	keyConfirmer = "voicegw.tool.confirmed_by"
	keyDelivered = "voicegw.tool.not_delivered"
	keyRetryable = "voicegw.retryable"
	keyLinkTo    = "voicegw.link" // what a link leads to: session, question or before
)
