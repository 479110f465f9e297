package protocol

import (
	"encoding/json"
	"reflect"
	"strconv"
	"time"
)

// ServerMessage is a message that the gateway sends in a text frame. The set is closed;
// every message carries a Header.
type ServerMessage interface {
	serverType() string
	header() *Header
}

// Header is the first part of every message from the gateway. The encoder fills in
// Type and Seq.
type Header struct {
	Type string `json:"type"`
	// Seq starts at 1 and increases by one with every message of a session.
	Seq int64 `json:"seq"`
	// Turn counts the user's turns from 1; zero if the message belongs to none.
	Turn int `json:"turn,omitempty"`
}

func (h *Header) header() *Header { return h }

// HeaderOf returns the header of a message, whatever its type.
func HeaderOf(m ServerMessage) Header { return *m.header() }

// Time is an instant on the wire: RFC 3339, UTC, with milliseconds.
type Time struct{ time.Time }

const timeLayout = "2006-01-02T15:04:05.000Z"

// MarshalJSON writes the instant; the zero time becomes null.
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
	Header
	SessionID string `json:"session_id"`
	// ResumeToken lets the client come back to the session, once. It is empty if the gateway does
	// not let clients come back.
	ResumeToken string `json:"resume_token,omitempty"`
	Provider    string `json:"provider"`
	Model       string `json:"model"`
	Agent       string `json:"agent,omitempty"`
	// AgentsVersion is the version of all agents that had documents when the session began.
	AgentsVersion string `json:"agents_version,omitempty"`
	ToolsVersion  string `json:"tools_version,omitempty"`
	InputRate     int    `json:"input_rate"`
	OutputRate    int    `json:"output_rate"`
	// ExpiresAt is when the session reaches its length limit.
	ExpiresAt Time `json:"expires_at"`
	// Resumed means that this is the session that the client has come back to.
	Resumed bool `json:"resumed"`
	// Snapshot means that not everything that the client has missed is still known: instead of it,
	// the state of things follows, in messages with new numbers.
	Snapshot bool `json:"snapshot,omitempty"`
	// InputMS is where the audio that the client sends next stands on the session's input clock: as
	// much has been taken of all that it has sent so far, in ms.
	InputMS int64 `json:"input_ms,omitempty"`
	// InputAgain asks the client to send again first, as fast as it can, what it has kept from InputMS
	// to the ToMS of its ResumeInput: the audio was lost with the gateway that had it.
	InputAgain bool `json:"input_again,omitempty"`
	// Voice is the model's voice if the client or the operator chose one; empty means the
	// provider's default.
	Voice string `json:"voice,omitempty"`
	// ConversationID is the conversation that the session continues; empty if it is new.
	ConversationID string `json:"conversation_id,omitempty"`
	// Inspect means that Start.Inspect was granted.
	Inspect bool `json:"inspect,omitempty"`
	// Images means that the model takes an InputImage.
	Images bool `json:"images,omitempty"`
	// Context means that the model takes an InputContext.
	Context bool `json:"context,omitempty"`
}

// AudioStart announces that the following binary frames belong to ItemID.
type AudioStart struct {
	Header
	ItemID string `json:"item_id"`
	// FromMS is the position in the item at which the frames continue, for a client that has come
	// back; zero for an item's beginning.
	FromMS int64 `json:"from_ms,omitempty"`
}

// AudioEnd reports that all audio of ItemID has been sent: AudioMS in total.
type AudioEnd struct {
	Header
	ItemID  string `json:"item_id"`
	AudioMS int64  `json:"audio_ms"`
}

// AudioFlush tells the client to drop its buffered audio of ItemID. Neither more of that
// audio nor an AudioEnd follows.
type AudioFlush struct {
	Header
	ItemID string `json:"item_id"`
	Reason string `json:"reason"`
}

// SpeechStarted reports where the user's speech began, in ms on
// the client's audio clock: since the first sample it sent.
type SpeechStarted struct {
	Header
	AudioMS int64 `json:"audio_ms"`
}

// SpeechStopped reports where the user's speech ended, on the clock of SpeechStarted.
//
// AudioMS is where the speech counts as over, which may include the silence that a speech detector waits
// for; EndMS is where the last sound ended. EndMS is nil if it is not known.
type SpeechStopped struct {
	Header
	AudioMS int64  `json:"audio_ms"`
	EndMS   *int64 `json:"end_ms,omitempty"`
}

// Transcript is an upsert: the whole text of one utterance so far.
type Transcript struct {
	Header
	ID        string `json:"id"`
	Role      string `json:"role"`
	Text      string `json:"text"`
	Final     bool   `json:"final"`
	StartedAt Time   `json:"started_at"`
}

// TurnStarted reports that a user's turn has begun. In the stream of a text conversation it
// is the first new message.
type TurnStarted struct {
	Header
	// ConversationID is the id of a text conversation; empty in a voice session.
	ConversationID string `json:"conversation_id,omitempty"`
}

// TurnEnded reports how a turn ended: completed, interrupted or failed.
type TurnEnded struct {
	Header
	Status  string   `json:"status"`
	Usage   Usage    `json:"usage"`
	Latency *Latency `json:"latency,omitempty"`
}

// Usage counts the tokens of one turn.
type Usage struct {
	InputTokens  int64       `json:"input_tokens"`
	OutputTokens int64       `json:"output_tokens"`
	Input        UsageInput  `json:"input"`
	Output       UsageOutput `json:"output"`
	// Estimated says that the model has not reported all of it, and that the numbers are a guess.
	Estimated bool `json:"estimated,omitempty"`
	// Cost is only told to a client that inspects its session or conversation.
	Cost *Cost `json:"cost,omitempty"`
}

// Cost is what a turn or a session has cost: money is counted in micro-dollars.
type Cost struct {
	USDMicros int64 `json:"usd_micros"`
	// Unpriced is how many of the model's reports of usage could not be priced. They are not in
	// USDMicros, and were not free.
	Unpriced int64 `json:"unpriced,omitempty"`
}

// Plus returns the sum of u and v.
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

// UsageInput counts input tokens by modality; cached tokens are a subset of them.
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

// Latency is how long the user waited for a turn's first audio, in ms, and where the time
// was spent: the first field is the sum of the others.
type Latency struct {
	// SpeechEndToFirstAudioMS starts at the user's last voiced sample, or at the typed
	// text.
	SpeechEndToFirstAudioMS int64 `json:"speech_end_to_first_audio_ms"`
	// DetectionMS is how long the gateway needed to detect the end of speech;
	// zero for a typed turn.
	DetectionMS int64 `json:"detection_ms"`
	ProviderMS  int64 `json:"provider_ms"`
	GatewayMS   int64 `json:"gateway_ms"`
}

// ToolStarted is the first message about a tool call; ToolEnded is the last. CallID is the
// gateway's own, unique in the session.
type ToolStarted struct {
	Header
	CallID   string `json:"call_id"`
	Tool     string `json:"tool"`
	Category string `json:"category,omitempty"`
}

// ToolProgress reports that a tool has exceeded its latency budget and still runs, or how far it is.
type ToolProgress struct {
	Header
	CallID   string `json:"call_id"`
	Tool     string `json:"tool"`
	Category string `json:"category,omitempty"`
	// DurationMS is how long the tool has run so far.
	DurationMS int64 `json:"duration_ms"`
	// Text is what the tool says that it is at; empty if it has said nothing now.
	Text string `json:"text,omitempty"`
	// Fraction is how much of the work is done, from 0 to 1; nil if the tool has not said it.
	Fraction *float64 `json:"fraction,omitempty"`
}

// ToolMessage is what a running tool tells the client, in a form that only the two know.
type ToolMessage struct {
	Header
	CallID   string `json:"call_id"`
	Tool     string `json:"tool"`
	Category string `json:"category,omitempty"`
	// Name says what Data is.
	Name string          `json:"name"`
	Data json.RawMessage `json:"data"`
}

// JobProgress tells how far long work is that an earlier call of the conversation has begun, on whatever gateway it is
// done. It belongs to no turn.
type JobProgress struct {
	Header
	// JobID is that of the answer to the call; Tool has begun it, and Name is what it is called.
	JobID string `json:"job_id"`
	Tool  string `json:"tool"`
	Name  string `json:"name"`
	// Text and Fraction are as in ToolProgress.
	Text     string   `json:"text,omitempty"`
	Fraction *float64 `json:"fraction,omitempty"`
}

// ConfirmationRequest asks the user whether a tool may run with exactly these
// arguments. The client answers with ConfirmationResolve.
type ConfirmationRequest struct {
	Header
	// Token identifies the request in the answer; it works once.
	Token string          `json:"token"`
	Tool  string          `json:"tool"`
	Args  json.RawMessage `json:"args"`
	// Preview describes to the user what would be done.
	Preview   string `json:"preview"`
	ExpiresAt Time   `json:"expires_at"`
}

// ConfirmationEnded reports the outcome of a ConfirmationRequest: approved, denied or
// expired.
type ConfirmationEnded struct {
	Header
	Token   string `json:"token"`
	Tool    string `json:"tool"`
	Outcome string `json:"outcome"`
}

// ToolEnded is the end of a ToolStarted.
type ToolEnded struct {
	Header
	CallID       string          `json:"call_id"`
	Tool         string          `json:"tool"`
	Category     string          `json:"category,omitempty"`
	OK           bool            `json:"ok"`
	DurationMS   int64           `json:"duration_ms"`
	Error        json.RawMessage `json:"error,omitempty"`
	Deduplicated bool            `json:"deduplicated,omitempty"`
	Clamped      json.RawMessage `json:"clamped,omitempty"`
}

// Asks means that the tool waits for the user's approval, which is not a failure.
func (m *ToolEnded) Asks() bool {
	var failure struct{ Type string }
	return !m.OK && json.Unmarshal(m.Error, &failure) == nil && failure.Type == "CONFIRMATION_REQUIRED"
}

// Timeout reports that the user is locked out until TimeoutUntil, in
// ms since the epoch.
type Timeout struct {
	Header
	TimeoutUntil    int64  `json:"timeoutUntil"`
	DurationSeconds int    `json:"durationSeconds"`
	Message         string `json:"message"`
}

// SessionMoving announces that the session leaves this gateway. The client should connect again, and
// come back to its session, which any gateway of the cluster then serves.
type SessionMoving struct {
	Header
	// Reason is draining, taken_over or provider_unavailable; a client need not know it.
	Reason string `json:"reason"`
	// Deadline is when the gateway will close the connection by itself.
	Deadline Time `json:"deadline"`
}

// AgentSwitched reports that another agent goes on with the conversation.
type AgentSwitched struct {
	Header
	From string `json:"from"`
	To   string `json:"to"`
	// Reason is a few words of the agent before, or of whoever has switched; it may be empty.
	Reason string `json:"reason,omitempty"`
}

// ProviderReconnecting reports that the connection to the model is being replaced, which the user
// may notice.
type ProviderReconnecting struct {
	Header
	Reason string `json:"reason"`
}

// ProviderReconnected reports that the model can be spoken with again.
type ProviderReconnected struct {
	Header
	Reason string `json:"reason"`
	LostMS int64  `json:"lost_ms"`
	// How is "resumed" if the provider remembers the conversation, "replayed" if it was told it
	// again, and "fresh" if it knows nothing of it.
	How string `json:"how"`
}

// SessionEnding announces that the session will end automatically in AfterMS ms.
type SessionEnding struct {
	Header
	Reason  string `json:"reason"`
	AfterMS int64  `json:"after,omitempty"`
}

// SessionEnded is the last message of a session.
type SessionEnded struct {
	Header
	Reason string `json:"reason"`
	// Handback is set if the session continued a conversation.
	Handback *Handback `json:"handback,omitempty"`
}

// Handback returns a conversation that was continued by voice.
type Handback struct {
	ConversationID string `json:"conversation_id"`
	// Summary is what was said, in a few sentences.
	Summary string `json:"summary"`
}

// Error reports what went wrong, in words for a person.
type Error struct {
	Header
	Code      string `json:"code"`
	Message   string `json:"message"`
	Retryable bool   `json:"retryable"`
	// Ref names what the error is about: a field or an id.
	Ref string `json:"ref,omitempty"`
	// Until is when the state will be over; used with "blocked".
	Until Time `json:"until,omitzero"`
	// RetryAfterMS is how long the model's provider asks to wait; zero if it gave no time.
	RetryAfterMS int64 `json:"retry_after_ms,omitempty"`
}

// Pong answers Ping.
type Pong struct {
	Header
	T float64 `json:"t"`
}

// Unknown is a message of a type that this side does not know.
type Unknown struct {
	Header
	Raw json.RawMessage `json:"-"`
}

func (*SessionStarted) serverType() string { return "session.started" }
func (*AudioStart) serverType() string     { return "audio.start" }
func (*AudioEnd) serverType() string       { return "audio.end" }
func (*AudioFlush) serverType() string     { return "audio.flush" }
func (*SpeechStarted) serverType() string  { return "speech.started" }
func (*SpeechStopped) serverType() string  { return "speech.stopped" }
func (*Transcript) serverType() string     { return "transcript" }
func (*TurnStarted) serverType() string    { return "turn.started" }
func (*TurnEnded) serverType() string      { return "turn.ended" }
func (*ToolStarted) serverType() string    { return "tool.started" }
func (*ToolProgress) serverType() string   { return "tool.progress" }
func (*JobProgress) serverType() string    { return "job.progress" }
func (*ToolMessage) serverType() string    { return "tool.message" }
func (*ToolEnded) serverType() string      { return "tool.ended" }

func (*ConfirmationRequest) serverType() string { return "confirmation.request" }
func (*ConfirmationEnded) serverType() string   { return "confirmation.ended" }

func (*Timeout) serverType() string       { return "timeout" }
func (*SessionMoving) serverType() string { return "session.moving" }

func (*AgentSwitched) serverType() string        { return "agent.switched" }
func (*ProviderReconnecting) serverType() string { return "provider.reconnecting" }
func (*ProviderReconnected) serverType() string  { return "provider.reconnected" }

func (*SessionEnding) serverType() string { return "session.ending" }
func (*SessionEnded) serverType() string  { return "session.ended" }
func (*Error) serverType() string         { return "error" }
func (*Pong) serverType() string          { return "pong" }
func (u *Unknown) serverType() string     { return u.Type }

// SetTurn sets the turn that a message belongs to.
func SetTurn(m ServerMessage, turn int) { m.header().Turn = turn }

// Clone returns a copy of a message with its own header, so that both can be sent
// independently. The copy shares what the fields point to.
func Clone(m ServerMessage) ServerMessage {
	of := reflect.ValueOf(m).Elem()
	to := reflect.New(of.Type())
	to.Elem().Set(of)
	return to.Interface().(ServerMessage)
}
