// Package livewire holds the protocol of OpenAI Live (gpt-live-1), for its client and for its simulated server: the
// events of both sides, the session object, and the limits.
//
// The server's side is read strictly, as the provider does (ParseClientEvent, ParseStart, Session.Update); the client's
// side accepts what it does not know (ParseServerEvent). Sources: the types of openai-go v3.99.0 (package live),
// developers.openai.com/api/docs/guides/live and api/reference/resources/live, read 2026-11-28, and recorded sessions. A
// text marked (own) is written in the provider's style.
//
// Functions may be called concurrently; values may not be used concurrently while one is changed.
package livewire

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"voicegw/internal/openaiwire"
)

// The address, and a session's defaults.
const (
	Path         = "/v1/live/sessions" // below the host, or below /openai at Azure
	Model        = "gpt-live-1"        // the only model
	DefaultVoice = "marin"             // of a session that names none
)

// Limits. Tokens are as Tokens counts them.
const (
	MaxInstructionTokens = 16384
	MaxAppendTokens      = 500
	MaxMessages          = 128
	MaxInputTokens       = 8192
	// MaxFixture is the longest fixture; its audio is PCM16 at FixtureRate.
	MaxFixture  = 30 * time.Second
	FixtureRate = 24000
	// FrameMS is the length of a piece of output, SlotMS that of a place on the timeline.
	FrameMS = 100
	SlotMS  = 200
	// ContextTokens is the size of the context window; above CompactAt of it the session is compacted.
	ContextTokens = 128_000
	CompactAt     = 0.9
	// Life is how long a session lasts, NoAudioLife how long one without any audio does (both measured).
	Life        = 2 * time.Hour
	NoAudioLife = 31 * time.Second
	// DrainFor is how long session.close may take.
	DrainFor = 10 * time.Second
)

// Voices are the built-in voices; the server refuses RefusedVoices with CodeForbidden.
var (
	Voices = []string{
		"alloy", "ash", "ballad", "beacon", "bossa", "cedar", "cinder", "coral", "delta", "echo", "gleam", "marin", "meridian",
		"quartz", "ripple", "sage", "shida", "shimmer", "stone", "tempo", "verse", "vesper", "willow",
	}
	RefusedVoices = []string{"fable", "nova", "onyx"}
)

// Tokens estimates the tokens of a text, because the provider's tokenizer is not public: a token for every four bytes or
// four tokens for three words, whichever is more. For most texts this is a little too much.
func Tokens(text string) int {
	return max((len(text)+3)/4, (len(strings.Fields(text))*4+2)/3)
}

// Split cuts a text into pieces of at most limit tokens, at the end of a sentence if there is one in the second half of
// a piece, else before a word, else inside it. Spaces at the cuts are removed. An empty text has no pieces; limit is at
// least 4.
func Split(text string, limit int) []string {
	var out []string
	for text = strings.TrimSpace(text); Tokens(text) > limit; text = strings.TrimSpace(text) {
		end, word, sentence := 0, 0, 0
		words, space := 0, true
		for i, c := range text {
			if i+utf8.RuneLen(c) > 4*limit || words > limit*3/4 {
				break
			}
			if unicode.IsSpace(c) {
				if word = i; i > 0 && strings.ContainsRune(".!?。", rune(text[i-1])) {
					sentence = i
				}
			} else if space {
				words++
			}
			if space = unicode.IsSpace(c); words <= limit*3/4 {
				end = i + utf8.RuneLen(c)
			}
		}
		if sentence > end/2 {
			end = sentence
		} else if word > 0 {
			end = word
		}
		out, text = append(out, strings.TrimSpace(text[:end])), text[end:]
	}
	if text != "" {
		out = append(out, text)
	}
	return out
}

// Session is the session object: the configuration of session.start, with the first three fields in the server's events.
type Session struct {
	ID        string `json:"id,omitempty"`
	ExpiresAt int64  `json:"expires_at,omitempty"` // Unix seconds
	Status    string `json:"status,omitempty"`

	Model            string      `json:"model"`
	Instructions     string      `json:"instructions,omitempty"`
	Audio            Audio       `json:"audio"`
	Delegation       *Delegation `json:"delegation,omitempty"`
	Input            []Message   `json:"input,omitzero"`
	Store            bool        `json:"store,omitempty"`
	SafetyIdentifier string      `json:"safety_identifier,omitempty"`
}

// Audio is the format of both directions, and the voice.
type Audio struct {
	Format Format `json:"format"`
	Output struct {
		Voice Voice `json:"voice"`
	} `json:"output"`
}

// Format is audio/pcm with a rate of 16,000 or 24,000, or audio/pcmu or audio/pcma with 8,000.
type Format = openaiwire.Format

// Voice is a built-in voice by its Name, or one of the customer's by its ID.
type Voice struct{ Name, ID string }

// MarshalJSON writes the name, or the object of an id.
func (v Voice) MarshalJSON() ([]byte, error) {
	if v.ID != "" {
		return openaiwire.Object{"id", v.ID}.MarshalJSON()
	}
	return json.Marshal(v.Name) //nolint:wrapcheck // a string can always be encoded
}

// UnmarshalJSON reads a name or an object with an id.
func (v *Voice) UnmarshalJSON(data []byte) error {
	type object struct {
		Name string `json:"-"`
		ID   string `json:"id"`
	}
	*v = Voice{}
	if openaiwire.KindOf(data) == "an object" {
		return json.Unmarshal(data, (*object)(v)) //nolint:wrapcheck // encoding/json names the place
	}
	return json.Unmarshal(data, &v.Name) //nolint:wrapcheck // encoding/json names the place
}

// Delegation is who does the work that the model hands over.
type Delegation struct {
	// Type is DelegateToClient, or an owner that this package does not support: responses, decisions.
	Type string `json:"type"`
	// AcknowledgementDelayMS is how long the model waits before it says that the work is being done.
	AcknowledgementDelayMS int `json:"acknowledgement_delay_ms,omitempty"`
}

// DelegateToClient is the type of a delegation to the application.
const DelegateToClient = "client"

// Message is a message of the history that a session begins with.
type Message struct {
	Role    string `json:"role"` // developer, user or assistant
	Content []Part `json:"content"`
}

// Part is the only part of a message; Type is input_text, or output_text of an assistant.
type Part struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// NewMessage returns a message of a role.
func NewMessage(role, text string) Message {
	kind := "input_text"
	if role == "assistant" {
		kind = "output_text"
	}
	return Message{Role: role, Content: []Part{{kind, text}}}
}

// Tokens estimates the tokens of the message in the history.
func (m Message) Tokens() int { return Tokens(m.Text()) + 4 }

// Text is the words of the message.
func (m Message) Text() string {
	if len(m.Content) == 0 {
		return ""
	}
	return m.Content[0].Text
}

// Error codes. CodeContextIncomplete comes before the end, for each append that was not placed.
const (
	CodeUnknownParameter  = "unknown_parameter"
	CodeImmutable         = "immutable_field_update"
	CodeInvalidValue      = "invalid_value"
	CodeInvalidAudio      = "invalid_audio"
	CodeForbidden         = "forbidden"
	CodeContextIncomplete = "context_injection_incomplete"
	CodeNoCredit          = "credit_balance_exhausted"
	CodeModelNotFound     = "model_not_found"
	CodeMissingScope      = "missing_scope"
)

// Reasons of session.closed.
const (
	ReasonRequested = "close_requested"
	ReasonExpired   = "expired"
	ReasonContent   = "content"
	ReasonHangup    = "remote_hangup"
	ReasonLost      = "connection_lost"
)

// ParseStart reads the session of session.start strictly and completes it with the defaults. It accepts any model: the
// names are the server's.
func ParseStart(raw json.RawMessage) (*Session, *openaiwire.Error) {
	s := &Session{Delegation: &Delegation{Type: DelegateToClient}, Input: []Message{}}
	s.Audio.Format, s.Audio.Output.Voice.Name = Format{Type: "audio/pcm", Rate: 24000}, DefaultVoice
	if err := s.fields().Read(raw, "session"); err != nil {
		return nil, err
	}
	switch {
	case s.Model == "":
		return nil, openaiwire.Missing("session.model")
	case Tokens(s.Instructions) > MaxInstructionTokens:
		return nil, openaiwire.Invalid(CodeInvalidValue, "session.instructions",
			"Instructions must not exceed %d tokens.", MaxInstructionTokens)
	}
	return s, nil
}

func (s *Session) fields() openaiwire.Fields {
	return openaiwire.Fields{
		"model":             openaiwire.Text(&s.Model),
		"instructions":      openaiwire.OrNull(func() {}, openaiwire.Text(&s.Instructions)),
		"store":             openaiwire.Bool(&s.Store),
		"safety_identifier": openaiwire.Text(&s.SafetyIdentifier),
		"delegation":        openaiwire.OrNull(func() {}, s.delegation),
		"input":             s.input,
		"triggers":          noTriggers,
		"audio": openaiwire.Fields{
			"format": readFormat(&s.Audio.Format),
			"output": openaiwire.Fields{"voice": readVoice(&s.Audio.Output.Voice)}.Read,
		}.Read,
	}
}

// noTriggers accepts an empty list: this package knows no Decisions.
func noTriggers(raw json.RawMessage, path string) *openaiwire.Error {
	list, err := openaiwire.Array(raw, path)
	if err == nil && len(list) > 0 {
		err = openaiwire.Invalid(CodeInvalidValue, path, "Decisions triggers are not supported here. Send an empty list, or none.")
	}
	return err
}

func (s *Session) delegation(raw json.RawMessage, path string) *openaiwire.Error {
	d := *s.Delegation
	err := openaiwire.Fields{
		"type":                     openaiwire.Text(&d.Type),
		"acknowledgement_delay_ms": openaiwire.Integer(&d.AcknowledgementDelayMS, 0, 60_000),
		"responses":                openaiwire.Ignored,
		"decisions":                openaiwire.Ignored,
	}.Read(raw, path)
	switch {
	case err != nil:
	case d.Type == "responses" || d.Type == "decisions":
		err = openaiwire.Invalid(CodeInvalidValue, path+".type", "Delegation to '%s' is not supported here. Delegate to 'client'.", d.Type)
	case d.Type != DelegateToClient:
		err = openaiwire.BadValue(path+".type", d.Type, DelegateToClient, "responses", "decisions")
	default:
		s.Delegation = &d
	}
	return err
}

func readFormat(dst *Format) openaiwire.Reader {
	return func(raw json.RawMessage, path string) *openaiwire.Error {
		var f Format
		if err := (openaiwire.Fields{
			"type": openaiwire.Word(&f.Type, "audio/pcm", "audio/pcmu", "audio/pcma"),
			"rate": openaiwire.Integer(&f.Rate, 8000, 24000),
		}).Read(raw, path); err != nil {
			return err
		}
		rates := []int{8000}
		if f.Type == "audio/pcm" {
			rates = []int{16000, 24000}
		}
		switch {
		case f.Type == "":
			return openaiwire.Missing(path + ".type")
		case f.Rate == 0:
			return openaiwire.Missing(path + ".rate")
		case !slices.Contains(rates, f.Rate):
			return openaiwire.Invalid(CodeInvalidValue, path+".rate", "Invalid rate %d for %s. Supported are: %s.",
				f.Rate, f.Type, strings.Trim(fmt.Sprint(rates), "[]"))
		}
		*dst = f
		return nil
	}
}

func readVoice(dst *Voice) openaiwire.Reader {
	return func(raw json.RawMessage, path string) *openaiwire.Error {
		var v Voice
		read := openaiwire.Text(&v.Name)
		if openaiwire.KindOf(raw) == "an object" {
			read = openaiwire.Fields{"id": openaiwire.Text(&v.ID)}.Read
		}
		switch err := read(raw, path); {
		case err != nil:
			return err
		case v == Voice{}:
			return openaiwire.Missing(path)
		case slices.Contains(RefusedVoices, v.Name):
			return openaiwire.Invalid(CodeForbidden, path, "The voice '%s' is not available for this model.", v.Name)
		case v.ID == "" && !slices.Contains(Voices, v.Name):
			return openaiwire.BadValue(path, v.Name, Voices...)
		}
		*dst = v
		return nil
	}
}

func (s *Session) input(raw json.RawMessage, path string) *openaiwire.Error {
	list, err := openaiwire.Array(raw, path)
	if err != nil {
		return err
	}
	if len(list) > MaxMessages {
		return openaiwire.Invalid(CodeInvalidValue, path, "At most %d messages are allowed, but got %d.", MaxMessages, len(list))
	}
	tokens := 0
	for i, one := range list {
		m, err := readMessage(one, openaiwire.Path(path, i))
		if err != nil {
			return err
		}
		s.Input = append(s.Input, m)
		tokens += m.Tokens()
	}
	if tokens > MaxInputTokens {
		return openaiwire.Invalid(CodeInvalidValue, path, "The input must not exceed %d tokens, but has %d.", MaxInputTokens, tokens)
	}
	return nil
}

func readMessage(raw json.RawMessage, path string) (m Message, err *openaiwire.Error) {
	var kind, unused string
	var parts json.RawMessage
	err = openaiwire.Fields{
		"type":    openaiwire.Word(&kind, "message"),
		"id":      openaiwire.OrNull(func() {}, openaiwire.Text(&unused)),
		"status":  openaiwire.OrNull(func() {}, openaiwire.Word(&unused, "incomplete", "completed")),
		"role":    openaiwire.Word(&m.Role, "developer", "user", "assistant"),
		"content": openaiwire.Raw(&parts),
	}.Read(raw, path)
	if err == nil && m.Role == "" {
		err = openaiwire.Missing(path + ".role")
	}
	if err != nil {
		return m, err
	}
	path += ".content"
	if parts == nil {
		return m, openaiwire.Missing(path)
	}
	list, err := openaiwire.Array(parts, path)
	if err == nil && len(list) != 1 {
		err = openaiwire.Invalid(CodeInvalidValue, path, "A message has exactly one text part, but got %d parts.", len(list))
	}
	if err != nil {
		return m, err
	}
	kinds := []string{"input_text"}
	if m.Role == "assistant" {
		kinds = []string{"output_text", "text"}
	}
	p := Part{Type: kinds[0]}
	var text *string
	err = openaiwire.Fields{"type": openaiwire.Word(&p.Type, kinds...), "text": openaiwire.Optional(&text, openaiwire.Text)}.
		Read(list[0], openaiwire.Path(path, 0))
	if err == nil && text == nil {
		err = openaiwire.Missing(openaiwire.Path(path, 0) + ".text")
	}
	if err == nil {
		m.Content = []Part{{p.Type, *text}}
	}
	return m, err
}

// Update returns s with the sparse changes of raw, the session of a session.update, or the first error. s is unchanged.
func (s *Session) Update(raw json.RawMessage) (*Session, *openaiwire.Error) {
	changed := *s
	f := openaiwire.Fields{}
	for name := range s.fields() {
		f[name] = func(_ json.RawMessage, path string) *openaiwire.Error {
			return openaiwire.Invalid(CodeImmutable, path, "'%s' cannot be changed after the session has started.", path)
		}
	}
	f["triggers"], f["delegation"] = noTriggers, changed.sameDelegation
	if err := f.Read(raw, "session"); err != nil {
		return nil, err
	}
	return &changed, nil
}

// sameDelegation reads changes of a delegation; its type cannot change.
func (s *Session) sameDelegation(raw json.RawMessage, path string) *openaiwire.Error {
	var d Delegation
	if json.Unmarshal(raw, &d) == nil && d.Type != "" && d.Type != s.Delegation.Type {
		return openaiwire.Invalid(CodeImmutable, path+".type",
			"The delegation type cannot change: the session has '%s'.", s.Delegation.Type)
	}
	return s.delegation(raw, path)
}
