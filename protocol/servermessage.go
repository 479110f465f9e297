package protocol

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"voicegw/internal/textutil"
)

// ServerMessage is a message from the gateway in a text frame, with a Header. The set is closed.
type ServerMessage interface{ header() *Header }

// Header starts every message from the gateway. Its tag in a message's struct is the name on the wire. The encoder sets
// Type and Seq.
type Header struct {
	Type string `json:"type"`
	// Seq starts at 1 and increases by one with every message of a session.
	Seq int64 `json:"seq"`
	// Turn counts the user's turns from 1; zero without a turn.
	Turn int `json:"turn,omitempty"`
}

func (h *Header) header() *Header { return h }

// HeaderOf returns a message's header.
func HeaderOf(m ServerMessage) Header { return *m.header() }

// Time is encoded as RFC 3339, UTC, with milliseconds.
type Time struct{ time.Time }

const timeLayout = "2006-01-02T15:04:05.000Z"

// MarshalJSON encodes the zero time as null.
func (t Time) MarshalJSON() ([]byte, error) {
	if t.IsZero() {
		return []byte("null"), nil
	}
	return strconv.AppendQuote(nil, t.UTC().Format(timeLayout)), nil
}

// UnmarshalJSON accepts any RFC 3339 time, and null for the zero time.
func (t *Time) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		t.Time = time.Time{}
		return nil
	}
	return t.Time.UnmarshalJSON(b)
}

// SessionStarted answers Start.
type SessionStarted struct {
	Header    `type:"session.started"`
	SessionID string `json:"session_id"`
	// ResumeToken lets the client resume the session, once. It is empty if the gateway doesn't support that.
	ResumeToken string `json:"resume_token,omitempty"`
	Provider    string `json:"provider"`
	Model       string `json:"model"`
	Agent       string `json:"agent,omitempty"`
	// AgentsVersion is the version of all agents with documents at the start of the session.
	AgentsVersion string `json:"agents_version,omitempty"`
	ToolsVersion  string `json:"tools_version,omitempty"`
	InputRate     int    `json:"input_rate"`
	OutputRate    int    `json:"output_rate"`
	// ExpiresAt is the session's length limit.
	ExpiresAt Time `json:"expires_at"`
	// Resumed means that the client's session was resumed.
	Resumed bool `json:"resumed"`
	// Snapshot means that some missed messages are lost: the current state follows in messages with new numbers.
	Snapshot bool `json:"snapshot,omitempty"`
	// InputMS is the position of the client's next audio on the session's input clock, in ms.
	InputMS int64 `json:"input_ms,omitempty"`
	// InputAgain asks the client to resend its audio from InputMS to ResumeInput.ToMS first, as fast as it can.
	InputAgain bool `json:"input_again,omitempty"`
	// Voice is the model's voice as chosen by the client or the operator; empty means the provider's default.
	Voice string `json:"voice,omitempty"`
	// ConversationID is the conversation that the session continues; empty if it is new.
	ConversationID string `json:"conversation_id,omitempty"`
	// Inspect means that Start.Inspect was granted.
	Inspect bool `json:"inspect,omitempty"`
	// Images means that the model accepts InputImage.
	Images bool `json:"images,omitempty"`
	// Context means that the model accepts InputContext.
	Context bool `json:"context,omitempty"`
}

// AudioStart announces that the following binary frames belong to ItemID.
type AudioStart struct {
	Header `type:"audio.start"`
	ItemID string `json:"item_id"`
	// FromMS is the position in the item of the next frame, for a client that has resumed; zero for the start.
	FromMS int64 `json:"from_ms,omitempty"`
}

// AudioEnd reports that all audio of ItemID, AudioMS long, has been sent.
type AudioEnd struct {
	Header  `type:"audio.end"`
	ItemID  string `json:"item_id"`
	AudioMS int64  `json:"audio_ms"`
}

// AudioFlush asks the client to drop its buffered audio of ItemID. Neither more audio of it nor an AudioEnd follows.
type AudioFlush struct {
	Header `type:"audio.flush"`
	ItemID string `json:"item_id"`
	Reason string `json:"reason"`
}

// SpeechStarted reports the start of the user's speech, in ms on the client's audio clock: since its first sample.
type SpeechStarted struct {
	Header  `type:"speech.started"`
	AudioMS int64 `json:"audio_ms"`
}

// SpeechStopped reports the end of the user's speech, on the clock of SpeechStarted. AudioMS may include the silence
// that a speech detector waits for. EndMS is the end of the last sound; nil if unknown.
type SpeechStopped struct {
	Header  `type:"speech.stopped"`
	AudioMS int64  `json:"audio_ms"`
	EndMS   *int64 `json:"end_ms,omitempty"`
}

// Transcript is the complete text of an utterance so far, which replaces earlier ones with the same ID.
type Transcript struct {
	Header    `type:"transcript"`
	ID        string `json:"id"`
	Role      string `json:"role"`
	Text      string `json:"text"`
	Final     bool   `json:"final"`
	StartedAt Time   `json:"started_at"`
}

// TurnStarted reports the start of a user's turn. In a text conversation it is the first new message.
type TurnStarted struct {
	Header `type:"turn.started"`
	// ConversationID is a text conversation's id; empty in a voice session.
	ConversationID string `json:"conversation_id,omitempty"`
}

// TurnEnded reports a turn's outcome: completed, interrupted or failed.
type TurnEnded struct {
	Header  `type:"turn.ended"`
	Status  string   `json:"status"`
	Usage   Usage    `json:"usage"`
	Latency *Latency `json:"latency,omitempty"`
}

// Usage counts the tokens of a turn.
type Usage struct {
	InputTokens  int64       `json:"input_tokens"`
	OutputTokens int64       `json:"output_tokens"`
	Input        UsageInput  `json:"input"`
	Output       UsageOutput `json:"output"`
	// Estimated means that the model has not reported everything, so the numbers are estimates.
	Estimated bool `json:"estimated,omitempty"`
	// Cost is sent only to clients that inspect.
	Cost *Cost `json:"cost,omitempty"`
}

// Cost is the cost of a turn or session, in micro-dollars.
type Cost struct {
	USDMicros int64 `json:"usd_micros"`
	// Unpriced counts usage reports without a price, which USDMicros excludes.
	Unpriced int64 `json:"unpriced,omitempty"`
}

// Plus returns u + v.
func (u Usage) Plus(v Usage) Usage {
	u.Estimated = u.Estimated || v.Estimated
	u.InputTokens += v.InputTokens
	u.OutputTokens += v.OutputTokens
	u.Input.Text += v.Input.Text
	u.Input.Audio += v.Input.Audio
	u.Input.CachedText += v.Input.CachedText
	u.Input.CachedAudio += v.Input.CachedAudio
	u.Output.Text += v.Output.Text
	u.Output.Audio += v.Output.Audio
	if v.Cost != nil {
		sum := *v.Cost
		if u.Cost != nil {
			sum.USDMicros, sum.Unpriced = sum.USDMicros+u.Cost.USDMicros, sum.Unpriced+u.Cost.Unpriced
		}
		u.Cost = &sum
	}
	return u
}

// UsageInput counts input tokens by modality, including cached tokens.
type UsageInput struct {
	Text        int64 `json:"text"`
	Audio       int64 `json:"audio"`
	CachedText  int64 `json:"cached_text"`
	CachedAudio int64 `json:"cached_audio"`
}

// UsageOutput counts output tokens by modality.
type UsageOutput struct {
	Text  int64 `json:"text"`
	Audio int64 `json:"audio"`
}

// Latency is the user's wait for a turn's first audio, in ms: the first field is the sum of the others.
type Latency struct {
	// SpeechEndToFirstAudioMS starts at the user's last voiced sample, or at the typed text.
	SpeechEndToFirstAudioMS int64 `json:"speech_end_to_first_audio_ms"`
	// DetectionMS is the time to detect the end of speech; zero for a typed turn.
	DetectionMS int64 `json:"detection_ms"`
	ProviderMS  int64 `json:"provider_ms"`
	GatewayMS   int64 `json:"gateway_ms"`
}

// ToolStarted is the first message of a tool call and ToolEnded the last. CallID is unique in the session.
type ToolStarted struct {
	Header   `type:"tool.started"`
	CallID   string `json:"call_id"`
	Tool     string `json:"tool"`
	Category string `json:"category,omitempty"`
}

// ToolProgress reports a tool's progress, or that it has exceeded its latency budget.
type ToolProgress struct {
	Header   `type:"tool.progress"`
	CallID   string `json:"call_id"`
	Tool     string `json:"tool"`
	Category string `json:"category,omitempty"`
	// DurationMS is the tool's duration so far.
	DurationMS int64 `json:"duration_ms"`
	// Text describes the tool's current step; may be empty.
	Text string `json:"text,omitempty"`
	// Fraction is the completed part of the work, from 0 to 1; nil if unknown.
	Fraction *float64 `json:"fraction,omitempty"`
}

// ToolMessage is a running tool's own message to the client.
type ToolMessage struct {
	Header   `type:"tool.message"`
	CallID   string `json:"call_id"`
	Tool     string `json:"tool"`
	Category string `json:"category,omitempty"`
	// Name identifies the kind of Data.
	Name string          `json:"name"`
	Data json.RawMessage `json:"data"`
}

// JobProgress reports the progress of a background job of an earlier call, on any gateway. It belongs to no turn.
type JobProgress struct {
	Header `type:"job.progress"`
	// JobID is from the answer of the call; Tool started the job, and Name is its name.
	JobID string `json:"job_id"`
	Tool  string `json:"tool"`
	Name  string `json:"name"`
	// Text and Fraction are as in ToolProgress.
	Text     string   `json:"text,omitempty"`
	Fraction *float64 `json:"fraction,omitempty"`
}

// ConfirmationRequest asks the user to approve a call with exactly these arguments, by ConfirmationResolve.
type ConfirmationRequest struct {
	Header `type:"confirmation.request"`
	// Token identifies the request in the answer; it works once.
	Token string          `json:"token"`
	Tool  string          `json:"tool"`
	Args  json.RawMessage `json:"args"`
	// Preview describes the action to the user.
	Preview   string `json:"preview"`
	ExpiresAt Time   `json:"expires_at"`
}

// ConfirmationEnded reports the outcome of a ConfirmationRequest: approved, denied or expired.
type ConfirmationEnded struct {
	Header  `type:"confirmation.ended"`
	Token   string `json:"token"`
	Tool    string `json:"tool"`
	Outcome string `json:"outcome"`
}

// ToolEnded is the end of a ToolStarted.
type ToolEnded struct {
	Header       `type:"tool.ended"`
	CallID       string          `json:"call_id"`
	Tool         string          `json:"tool"`
	Category     string          `json:"category,omitempty"`
	OK           bool            `json:"ok"`
	DurationMS   int64           `json:"duration_ms"`
	Error        json.RawMessage `json:"error,omitempty"`
	Deduplicated bool            `json:"deduplicated,omitempty"`
	Clamped      json.RawMessage `json:"clamped,omitempty"`
}

// Asks means that the tool waits for the user's approval, which isn't a failure.
func (m *ToolEnded) Asks() bool {
	var failure struct{ Type string }
	return !m.OK && json.Unmarshal(m.Error, &failure) == nil && failure.Type == "CONFIRMATION_REQUIRED"
}

// ClaimUnmatched reports that the assistant has said that it did something, and no tool call of the conversation has done
// it. Kind is the kind of action, such as "book", Text the words, and ItemID the id of their transcript or text.
type ClaimUnmatched struct {
	Header `type:"claim.unmatched"`
	ItemID string `json:"item_id"`
	Kind   string `json:"kind"`
	Text   string `json:"text"`
	// Reason is no_side_effect, or waits_for_approval if a call of that kind waits for the user.
	Reason string `json:"reason"`
}

// AnswerStopped reports that a check of the operator has stopped the rest of an answer. ItemID is the id of its transcript or
// text, Check the check's name.
type AnswerStopped struct {
	Header `type:"answer.stopped"`
	ItemID string `json:"item_id"`
	Check  string `json:"check"`
	// Outcome is what follows: replace, cut or end.
	Outcome string `json:"outcome"`
	// Reason is matched, late or failed.
	Reason string `json:"reason"`
}

// Timeout reports that the user is blocked until TimeoutUntil, in ms since the epoch.
type Timeout struct {
	Header          `type:"timeout"`
	TimeoutUntil    int64  `json:"timeoutUntil"`
	DurationSeconds int    `json:"durationSeconds"`
	Message         string `json:"message"`
}

// SessionMoving announces that the session leaves this gateway. The client should reconnect and resume it anywhere.
type SessionMoving struct {
	Header `type:"session.moving"`
	// Reason is draining, taken_over or provider_unavailable; clients may ignore it.
	Reason string `json:"reason"`
	// Deadline is when the gateway will close the connection.
	Deadline Time `json:"deadline"`
}

// AgentSwitched reports that another agent continues the conversation.
type AgentSwitched struct {
	Header `type:"agent.switched"`
	From   string `json:"from"`
	To     string `json:"to"`
	// Reason is a short text from the previous agent or the caller who switched; may be empty.
	Reason string `json:"reason,omitempty"`
}

// ProviderReconnecting reports that the connection to the model is being replaced, which may be noticeable.
type ProviderReconnecting struct {
	Header `type:"provider.reconnecting"`
	Reason string `json:"reason"`
}

// ProviderReconnected reports that the model is available again.
type ProviderReconnected struct {
	Header `type:"provider.reconnected"`
	Reason string `json:"reason"`
	LostMS int64  `json:"lost_ms"`
	// How is "resumed" if the provider remembers the conversation, "replayed" if it got it again, "fresh" if it lost it.
	How string `json:"how"`
}

// SessionEnding announces that the session will end automatically in AfterMS ms.
type SessionEnding struct {
	Header  `type:"session.ending"`
	Reason  string `json:"reason"`
	AfterMS int64  `json:"after,omitempty"`
}

// SessionEnded is the last message of a session.
type SessionEnded struct {
	Header `type:"session.ended"`
	Reason string `json:"reason"`
	// Handback is set if the session continued a conversation.
	Handback *Handback `json:"handback,omitempty"`
}

// Handback returns a conversation that was continued by voice.
type Handback struct {
	ConversationID string `json:"conversation_id"`
	// Summary summarises the conversation in a few sentences.
	Summary string `json:"summary"`
}

// Error reports a problem to a person.
type Error struct {
	Header    `type:"error"`
	Code      string `json:"code"`
	Message   string `json:"message"`
	Retryable bool   `json:"retryable"`
	// Ref is the field or id that the error is about.
	Ref string `json:"ref,omitempty"`
	// Until is the end of the state, with "blocked".
	Until Time `json:"until,omitzero"`
	// RetryAfterMS is the wait that the model's provider asks for; zero without one.
	RetryAfterMS int64 `json:"retry_after_ms,omitempty"`
}

// Pong answers Ping.
type Pong struct {
	Header `type:"pong"`
	T      float64 `json:"t"`
}

// Unknown is a message of an unknown type.
type Unknown struct {
	Header
	Raw json.RawMessage `json:"-"`
}

// SetTurn sets the turn of a message.
func SetTurn(m ServerMessage, turn int) { m.header().Turn = turn }

// Clone returns a copy of a message with its own header, to send both independently. Referenced values are shared.
func Clone(m ServerMessage) ServerMessage {
	of := reflect.ValueOf(m).Elem()
	to := reflect.New(of.Type())
	to.Elem().Set(of)
	return to.Interface().(ServerMessage)
}

// Messages of POST /v1/chat. Tools, confirmations, timeouts and errors use the same messages as voice.

// TextDelta is the next piece of the agent's answer.
type TextDelta struct {
	Header `type:"text.delta"`
	ItemID string `json:"item_id"`
	Text   string `json:"text"`
}

// TextDone is the complete text of an answer. A turn may contain several, with tools between them.
type TextDone struct {
	Header `type:"text.done"`
	ItemID string `json:"item_id"`
	Text   string `json:"text"`
	// Cut means that the answer ended at the model's length limit.
	Cut bool `json:"cut,omitempty"`
	// Refused means that the model or a filter declined to answer. The text explains it, or ends there.
	Refused bool `json:"refused,omitempty"`
}

// VoiceSessionStart invites the client to connect to URL with Ticket, which works once until ExpiresAt.
type VoiceSessionStart struct {
	Header         `type:"voice_session_start"`
	SessionID      string `json:"sessionId"`
	PendingRequest string `json:"pendingRequest"`
	Ticket         string `json:"ticket"`
	URL            string `json:"url"`
	ExpiresAt      Time   `json:"expires_at"`
}

// UIImage shows a tool's image. URL is the image's path on the gateway, valid until ExpiresAt.
type UIImage struct {
	Header `type:"ui.image"`
	ID     string `json:"id"`
	URL    string `json:"url"`
	Prompt string `json:"prompt"`
	// Width and Height are in pixels.
	Width     int  `json:"width"`
	Height    int  `json:"height"`
	ExpiresAt Time `json:"expires_at"`
}

// TurnUsage counts the tokens of the whole turn.
type TurnUsage struct {
	Header `type:"usage"`
	Usage
}

// Done is the last message of a stream. Its Status is DoneCompleted or DoneFailed.
type Done struct {
	Header         `type:"done"`
	ConversationID string `json:"conversation_id"`
	Status         string `json:"status"`
}

// Values of a final status.
const (
	DoneCompleted = "completed"
	DoneFailed    = "failed"
)

// ToolCall asks the client to run one of its own tools. In text it ends the turn, and the client sends the result
// with its next request; by voice the client sends a ToolResult.
type ToolCall struct {
	Header `type:"tool.call"`
	// CallID identifies the call in the client's result.
	CallID string          `json:"call_id"`
	Name   string          `json:"name"`
	Args   json.RawMessage `json:"args"`
	// TimeoutMS is how long the gateway waits, by voice.
	TimeoutMS int64 `json:"timeout_ms,omitempty"`
	// Again means that the client got the call on an earlier connection: it may be running or done.
	Again bool `json:"again,omitempty"`
}

// Messages for people who build or operate agents. Sessions must request them in Start, and SessionStarted grants
// them, because they contain arguments, answers and records that users may not see.

// InspectCall describes a finished call. It follows the call's ToolEnded.
type InspectCall struct {
	Header `type:"inspect.call"`
	CallID string `json:"call_id"`
	Tool   string `json:"tool"`
	// QueuedMS is the time from the model's call to the handler's start; zero if no handler ran.
	QueuedMS int64 `json:"queued_ms"`
	// RunMS is the handler's duration.
	RunMS int64 `json:"run_ms"`
	// Record is the call's audit record, without arguments.
	Record json.RawMessage `json:"record"`
	// Args are the arguments of the handler: with defaults, and reduced to what is allowed.
	// If no handler ran they are the requested ones, as a string if they were invalid JSON.
	Args json.RawMessage `json:"args"`
	// Envelope is the complete answer to the model.
	Envelope json.RawMessage `json:"envelope"`
}

// InspectIntent reports whether a tool's intent was applied.
type InspectIntent struct {
	Header `type:"inspect.intent"`
	// Intent is an object with a type and its fields.
	Intent  json.RawMessage `json:"intent"`
	Applied bool            `json:"applied"`
	// Why explains a refused intent.
	Why string `json:"why,omitempty"`
}

// InspectState is the session's state, sent after changes, at most once per moment.
type InspectState struct {
	Header `type:"inspect.state"`
	// Phase is connecting, active, ending or ended.
	Phase string `json:"phase"`
	// Speaking: the user speaks. Responding: the model is producing an answer.
	Speaking   bool `json:"speaking"`
	Responding bool `json:"responding"`
	// Awaiting counts calls that the model waits for, Questions open approvals, Notices messages for the next turn.
	Awaiting  int `json:"awaiting"`
	Questions int `json:"questions"`
	// Muted: the user's audio is ignored.
	Muted      bool              `json:"muted"`
	Suppressed InspectSuppressed `json:"suppressed"`
	// Budget is the used part of the turn's budget, as in InspectCall.Record.
	Budget  json.RawMessage `json:"budget,omitempty"`
	Notices int             `json:"notices"`
	// Cost is the session's total cost so far.
	Cost Cost `json:"cost"`
}

// InspectSuppressed is output that a tool has disabled.
type InspectSuppressed struct {
	Audio      bool `json:"audio"`
	Transcript bool `json:"transcript"`
}

// DrainProgress is the response of GET and POST /v1/drain.
type DrainProgress struct {
	// Draining means that the drain has begun, Done that nothing is left.
	Draining bool `json:"draining"`
	Done     bool `json:"done"`
	// Until is when the drain ends the rest; zero before the drain.
	Until time.Time `json:"until,omitzero"`
	// Sessions is the number of local voice sessions, and Away those with a disconnected client.
	Sessions int `json:"sessions"`
	Away     int `json:"away"`
	// Moved is the number of sessions released to other gateways since the drain began.
	Moved int `json:"moved"`
	// Carried is the number of clients that this gateway relays to other gateways' sessions.
	Carried int `json:"carried"`
	// Messages is the number of text messages being answered.
	Messages int `json:"messages"`
}

// String formats the progress as one line, without the remaining time.
func (p DrainProgress) String() string {
	if !p.Draining {
		return "not draining"
	}
	left := []string{textutil.Count(p.Sessions, "session")}
	if p.Away > 0 {
		left[0] += fmt.Sprintf(" (%d without a client)", p.Away)
	}
	if p.Carried > 0 {
		left = append(left, textutil.Count(p.Carried, "client")+" of other gateways")
	}
	if p.Messages > 0 {
		left = append(left, textutil.Count(p.Messages, "text message"))
	}
	what := "draining"
	if p.Done {
		what = "drained"
	}
	return fmt.Sprintf("%s: %s moved, %s left", what, textutil.Count(p.Moved, "session"), strings.Join(left, ", "))
}
