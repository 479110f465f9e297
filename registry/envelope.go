package registry

import (
	"encoding/json"
	"time"

	"voicegw/prompts"
	"voicegw/registry/document"
)

// ResponseSchemaVersion is the version of the envelope's format.
const ResponseSchemaVersion = "1.0.0"

// Envelope is a tool's answer: data and intents if OK, otherwise an error, and in both cases
// what ran. Its JSON has exactly ok, data, intents and meta, or ok, error and meta.
// A value may be copied; its slices and maps are never changed.
type Envelope struct {
	OK bool `json:"ok"`
	// Data is the tool's answer; nil is written as null.
	Data json.RawMessage `json:"data"`
	// Intents is always present on success, even if it is empty.
	Intents []Intent `json:"intents"`
	// Error is present if and only if OK is false.
	Error *Error `json:"error"`
	Meta  Meta   `json:"meta"`
	// Evidence are the ids that an [Evidenced] result names, at most MaxEvidence. They are for
	// the audit: the model finds them in Data.
	Evidence []string `json:"-"`
	// Job is the long work that the call begins: whoever runs calls must begin it, and puts into Data what the
	// model is told. Nil without.
	Job *BegunJob `json:"-"`
	// Unbegun says of the answer of [Prepared.Run] that the tool's Execute was not called.
	Unbegun bool `json:"-"`
}

// Fail makes the envelope one of a call that has failed: of its answer only the meta data are left.
func (e *Envelope) Fail(why *Error) {
	*e = Envelope{Error: why, Meta: e.Meta}
}

// Evidenced is implemented by the Data of a [Result] that is based on records: it names them.
// The audit gets these ids, and nothing else of the answer.
type Evidenced interface {
	EvidenceIDs() []string
}

// MaxEvidence is how many ids of one answer are kept at most.
const MaxEvidence = 32

// Error tells a model what went wrong, in words on which it can act.
type Error struct {
	Type    ErrorType `json:"type"`
	Message string    `json:"message"`
	// Retryable says that the same call may succeed later.
	Retryable bool `json:"retryable"`
	// IdempotencyRequired says that a retry may repeat the side effect unless it uses the same
	// idempotency key: the tool writes and is not idempotent.
	IdempotencyRequired bool `json:"idempotencyRequired,omitempty"`
	// PartialSideEffects says that something may have been changed despite the error.
	PartialSideEffects bool `json:"partialSideEffects,omitempty"`
	// Repeatable is [ToolError.Repeatable]; only the ledger uses it.
	Repeatable bool `json:"-"`
	// Details is JSON whose form depends on the error's type; for VALIDATION it is an object
	// with "errors", a list of {path, message}.
	Details json.RawMessage `json:"details,omitempty"`
	// Suggestion tells the model what to do instead.
	Suggestion string `json:"suggestion,omitempty"`
	// ConfirmationRequest is set if the type is CONFIRMATION_REQUIRED.
	ConfirmationRequest *ConfirmationRequest `json:"confirmation_request,omitempty"`
}

// ConfirmationRequest is what a person is asked to approve.
type ConfirmationRequest struct {
	// Token is the secret that answers the question. It is removed from the stored copy, and
	// restored from the reference in Error.Details.
	Token   string          `json:"token,omitempty"`
	Tool    string          `json:"tool"`
	Args    json.RawMessage `json:"args"`
	Preview string          `json:"preview"`
	// ExpiresAt is a time in RFC 3339, UTC, with milliseconds.
	ExpiresAt string `json:"expires_at"`
}

// Kept returns the envelope in the form that may be stored: without the token of a
// confirmation. It shares everything else with e and does not change e.
func (e Envelope) Kept() Envelope {
	if e.Error == nil || e.Error.ConfirmationRequest == nil {
		return e
	}
	failure, question := *e.Error, *e.Error.ConfirmationRequest
	question.Token = ""
	failure.ConfirmationRequest = &question
	e.Error = &failure
	return e
}

// Meta says what ran and how.
type Meta struct {
	Tool string `json:"tool"`
	// ToolVersion is absent for an unknown tool.
	ToolVersion     string `json:"toolVersion,omitempty"`
	RegistryVersion string `json:"registryVersion"`
	// DurationMS is how long the call took, in ms.
	DurationMS            int64  `json:"duration"`
	ResponseSchemaVersion string `json:"responseSchemaVersion"`
	// LatencyBudgetExceeded says that the call took longer than the tool's latencyBudgetMs.
	LatencyBudgetExceeded bool `json:"latencyBudgetExceeded,omitempty"`
	// Clamped holds the arguments that were lowered, by name.
	Clamped map[string]Clamped `json:"clamped,omitempty"`
	// Invalid are the list items that were left out because they are invalid, with their
	// places in the arguments; the call was answered for the other items.
	Invalid []document.Problem `json:"invalid,omitempty"`
	// Budget is the caller's account of the turn's budget, an object.
	Budget json.RawMessage `json:"budget,omitempty"`
	// Job is the id of the long work that the call began; empty without any.
	Job string `json:"job,omitempty"`
	// CacheHit and OriginalTurn mark a stored answer that is given again.
	CacheHit     bool `json:"_idempotent_cache_hit,omitempty"`
	OriginalTurn int  `json:"_original_turn,omitempty"`
}

// Clamped is one lowered argument: the requested value (exact) and the value used.
type Clamped struct {
	Requested json.Number `json:"requested"`
	Applied   int         `json:"applied"`
}

// NotFound returns the answer to a call of a tool that does not exist.
func NotFound(tool, registryVersion string, took time.Duration) Envelope {
	return Envelope{
		Error: NewError(ErrorNotFound, prompts.NoSuchTool(tool)),
		Meta: Meta{Tool: tool, RegistryVersion: registryVersion,
			DurationMS: took.Milliseconds(), ResponseSchemaVersion: ResponseSchemaVersion},
	}
}

// NewError makes an error from an entry of package toolerror. TRANSIENT and RATE_LIMIT are
// retryable; set the other fields on the result.
func NewError(t ErrorType, words prompts.Words) *Error {
	return &Error{
		Type: t, Message: words.Message, Suggestion: words.Suggestion,
		Retryable: t == ErrorTransient || t == ErrorRateLimit,
	}
}

// AsksUser reports whether a person was asked for an approval, so that nothing has run.
func (e Envelope) AsksUser() bool {
	return e.Error != nil && e.Error.Type == ErrorConfirmationRequired
}

// Encode writes the envelope as one line of JSON without HTML escapes. It cannot fail: an
// envelope that cannot be written, because it contains invalid raw JSON, becomes INTERNAL.
func (e Envelope) Encode() json.RawMessage {
	b, err := document.Marshal(e)
	if err == nil {
		return b
	}
	meta := e.Meta
	meta.Budget, meta.Clamped = nil, nil
	b, err = document.Marshal(Envelope{Error: NewError(ErrorInternal, prompts.NotWritten()), Meta: meta})
	if err != nil { // only strings and numbers are left
		return json.RawMessage(`{"ok":false,"error":{"type":"INTERNAL","message":"` + prompts.NotWrittenAtAll + `","retryable":false},"meta":{"tool":"","registryVersion":"","duration":0,"responseSchemaVersion":"1.0.0"}}`)
	}
	return b
}

// MarshalJSON writes the form of a success or of a failure, never a mixture.
func (e Envelope) MarshalJSON() ([]byte, error) {
	if !e.OK {
		told := e.Error
		if told == nil {
			told = NewError(ErrorInternal, prompts.Unnamed())
		}
		return document.Marshal(struct {
			OK    bool   `json:"ok"`
			Error *Error `json:"error"`
			Meta  Meta   `json:"meta"`
		}{false, told, e.Meta})
	}
	intents := e.Intents
	if intents == nil {
		intents = []Intent{}
	}
	return document.Marshal(struct {
		OK      bool            `json:"ok"`
		Data    json.RawMessage `json:"data"`
		Intents []Intent        `json:"intents"`
		Meta    Meta            `json:"meta"`
	}{true, e.Data, intents, e.Meta})
}
