package traces

import (
	"crypto/rand"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"voicegw/protocol"
)

type place struct {
	trace [16]byte
	span  [8]byte
}

func (p place) isZero() bool { return p.trace == [16]byte{} }

func (p place) below() place { return place{p.trace, newSpanID()} }

func newPlace(parent protocol.TraceParent) place {
	if !parent.IsZero() {
		return place{parent.Trace, newSpanID()}
	}
	p := place{span: newSpanID()}
	rand.Read(p.trace[:]) // it never fails: crypto/rand ends the program instead
	return p
}

func newSpanID() (id [8]byte) {
	rand.Read(id[:])
	return id
}

// The kinds of spans: server for a client's request, client for a request to a model.
const (
	internal = trace.SpanKindInternal
	server   = trace.SpanKindServer
	client   = trace.SpanKindClient
)

type span struct {
	at         place
	parent     [8]byte // zero for the root of a trace
	name       string
	kind       trace.SpanKind
	begun, end time.Time
	attributes attributes
	events     []event
	links      []link
	failed     string // the type of its error; empty after success
}

type event struct {
	at         time.Time
	name       string
	attributes attributes
}

// link leads to a span of another trace.
type link struct {
	to   place
	what string // a value of keyLinkTo
}

const (
	linkSession  = "session"  // the start of the turn's session
	linkQuestion = "question" // the call that asked the user
	linkBefore   = "before"   // the start of the session on its previous node
)

// attributes collects attributes. Its methods skip empty texts, zeros and false.
type attributes []attribute.KeyValue

func texts(pairs ...string) (a attributes) {
	a.text(pairs...)
	return a
}

// text adds keys, each followed by its value.
func (a *attributes) text(pairs ...string) {
	for pair := range slices.Chunk(pairs, 2) {
		if pair[1] != "" {
			*a = append(*a, attribute.String(pair[0], pair[1]))
		}
	}
}

func (a *attributes) number(key string, value int64) {
	if value != 0 {
		*a = append(*a, attribute.Int64(key, value))
	}
}

// ms adds a duration, even 0 ms.
func (a *attributes) ms(key string, d time.Duration) {
	*a = append(*a, attribute.Int64(key, d.Milliseconds()))
}

func (a *attributes) truth(key string, value bool) {
	if value {
		*a = append(*a, attribute.Bool(key, true))
	}
}

func (a *attributes) texts(key string, values []string) {
	if len(values) > 0 {
		*a = append(*a, attribute.StringSlice(key, values))
	}
}

// ConventionsVersion is that of the semantic conventions for generative AI:
// https://github.com/open-telemetry/semantic-conventions-genai, docs/gen-ai, commit 024a4f9, read on 2026-11-23. They
// are in Development.
const ConventionsVersion = "0.1.0"

// The operations (gen_ai.operation.name). The names of their spans begin with them.
const (
	opTurn = "invoke_agent"
	opTool = "execute_tool"
	opChat = "chat"
	// opVoice is an answer of a voice model; pull request 394 of the conventions proposes realtime_inference.
	opVoice = "generate_content"
)

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
	keyToolCall     = "gen_ai.tool.call.id" // the gateway's own id
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

// Attributes of the conventions for tokens. The input tokens of a modality include its cached tokens.
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

const (
	outputSpeech = "speech"
	outputText   = "text"
	toolFunction = "function"
)

const (
	spanStart    = "voicegw.session.start"
	spanIdentify = "voicegw.session.identify"
	spanConnect  = "voicegw.session.connect"
	spanResume   = "voicegw.resume"
	spanRotate   = "voicegw.rotate"
	spanMove     = "voicegw.move"
)

const (
	eventError        = "voicegw.error"
	eventProblem      = "voicegw.provider.problem"
	eventConfirmation = "voicegw.confirmation"
)

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
	keyFirst     = "voicegw.latency.first_ms" // of the first audio or text
	keyDetection = "voicegw.latency.detection_ms"
	keyAnswer    = "voicegw.latency.provider_ms"
	keyGateway   = "voicegw.latency.gateway_ms"
	keyCut       = "voicegw.interrupted.by"
	keyHeard     = "voicegw.interrupted.heard_ms"
	keySent      = "voicegw.interrupted.sent_ms"
	keyCost      = "voicegw.cost_usd_micros"
	keyUnpriced  = "voicegw.unpriced"
	keyNudged    = "voicegw.nudged"
	keyOmitted   = "voicegw.omitted" // spans and events beyond the bounds of a turn
	keyQueued    = "voicegw.tool.queued_ms"
	keyRan       = "voicegw.tool.ran_ms"
	keyOverspent = "voicegw.tool.over_budget"
	keyClamped   = "voicegw.tool.clamped"
	keyCacheHit  = "voicegw.tool.cache_hit"
	keyConfirm   = "voicegw.tool.confirmation"
	keyConfirmer = "voicegw.tool.confirmed_by"
	keyDelivered = "voicegw.tool.not_delivered"
	keyRetryable = "voicegw.retryable"
	keyLinkTo    = "voicegw.link" // linkSession, linkQuestion or linkBefore
)
