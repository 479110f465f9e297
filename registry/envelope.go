package registry

import (
	"bytes"
	"cmp"
	_ "embed" // for the schema
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"voicegw/prompts"
	"voicegw/registry/document"
)

// ResponseSchemaVersion is the version of the envelope's format.
const ResponseSchemaVersion = "1.0.0"

// Envelope is a tool's answer: data and intents if OK, otherwise an error. Its JSON has exactly ok, data, intents and
// meta, or ok, error and meta. A value may be copied; its slices and maps never change.
type Envelope struct {
	OK bool `json:"ok"`
	// Data is the answer; nil is encoded as null.
	Data json.RawMessage `json:"data"`
	// Intents is always present on success, even if empty.
	Intents []Intent `json:"intents"`
	// Error is set if and only if OK is false.
	Error *Error `json:"error"`
	Meta  Meta   `json:"meta"`
	// Evidence are the ids from [Evidenced], at most MaxEvidence, for the audit; the model has them in Data.
	Evidence []string `json:"-"`
	// Job is a background job that the runner of calls must start, and then put the model's answer into Data. Nil
	// without a job.
	Job *BegunJob `json:"-"`
	// Unbegun means that [Prepared.Run] did not call the tool's Execute.
	Unbegun bool `json:"-"`
}

// Fail replaces the answer with an error and keeps the meta data.
func (e *Envelope) Fail(why *Error) {
	*e = Envelope{Error: why, Meta: e.Meta}
}

// Evidenced is implemented by a [Result]'s Data that is based on records. The audit gets only these ids of the
// answer.
type Evidenced interface {
	EvidenceIDs() []string
}

// MaxEvidence limits the ids of an answer.
const MaxEvidence = 32

// Error explains a failure to a model so that it can act.
type Error struct {
	Type    ErrorType `json:"type"`
	Message string    `json:"message"`
	// Retryable means that the same call may succeed later.
	Retryable bool `json:"retryable"`
	// IdempotencyRequired means that a retry may repeat the side effect unless it has the same idempotency key: the
	// tool writes and isn't idempotent.
	IdempotencyRequired bool `json:"idempotencyRequired,omitempty"`
	// PartialSideEffects means that something may have changed despite the error.
	PartialSideEffects bool `json:"partialSideEffects,omitempty"`
	// Repeatable is [ToolError.Repeatable], for the ledger.
	Repeatable bool `json:"-"`
	// Details is JSON that depends on the type; for VALIDATION an object with "errors", a list of {path, message}.
	Details             json.RawMessage      `json:"details,omitempty"`
	Suggestion          string               `json:"suggestion,omitempty"`
	ConfirmationRequest *ConfirmationRequest `json:"confirmation_request,omitempty"`
}

// ConfirmationRequest is a request for a person's approval.
type ConfirmationRequest struct {
	// Token is the secret to answer with. Stored copies omit it and restore it from the reference in Error.Details.
	Token   string          `json:"token,omitempty"`
	Tool    string          `json:"tool"`
	Args    json.RawMessage `json:"args"`
	Preview string          `json:"preview"`
	// ExpiresAt is RFC 3339, UTC, with milliseconds.
	ExpiresAt string `json:"expires_at"`
}

// Kept returns the envelope for storage, without the confirmation's token. It shares the rest with e and doesn't
// change e.
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

// Meta describes the call.
type Meta struct {
	Tool            string `json:"tool"`
	ToolVersion     string `json:"toolVersion,omitempty"`
	RegistryVersion string `json:"registryVersion"`
	// DurationMS is the call's duration in ms.
	DurationMS            int64              `json:"duration"`
	ResponseSchemaVersion string             `json:"responseSchemaVersion"`
	LatencyBudgetExceeded bool               `json:"latencyBudgetExceeded,omitempty"`
	Clamped               map[string]Clamped `json:"clamped,omitempty"`
	Invalid               []document.Problem `json:"invalid,omitempty"`
	Budget                json.RawMessage    `json:"budget,omitempty"`
	// Said tells the model what came of the intents SAY_EXACTLY; empty without any.
	Said string `json:"said,omitempty"`
	// Job is the id of a started background job, or empty.
	Job          string `json:"job,omitempty"`
	CacheHit     bool   `json:"_idempotent_cache_hit,omitempty"`
	OriginalTurn int    `json:"_original_turn,omitempty"`
}

// Clamped is a lowered argument with the exact requested value.
type Clamped struct {
	Requested json.Number `json:"requested"`
	Applied   int         `json:"applied"`
}

// NotFound returns the answer to a call of an unknown tool.
func NotFound(tool, registryVersion string, took time.Duration) Envelope {
	return Envelope{
		Error: NewError(ErrorNotFound, prompts.NoSuchTool(tool)),
		Meta: Meta{Tool: tool, RegistryVersion: registryVersion,
			DurationMS: took.Milliseconds(), ResponseSchemaVersion: ResponseSchemaVersion},
	}
}

// NewError makes an error. TRANSIENT and RATE_LIMIT are retryable; set the other fields on the result.
func NewError(t ErrorType, words prompts.Words) *Error {
	return &Error{
		Type: t, Message: words.Message, Suggestion: words.Suggestion,
		Retryable: t == ErrorTransient || t == ErrorRateLimit,
	}
}

// AsksUser reports whether the call waits for approval, so that nothing has run.
func (e Envelope) AsksUser() bool {
	return e.Error != nil && e.Error.Type == ErrorConfirmationRequired
}

// Encode encodes the envelope as one line of JSON without HTML escapes. It cannot fail: an envelope with invalid raw
// JSON becomes INTERNAL.
func (e Envelope) Encode() json.RawMessage {
	b, err := document.Marshal(e)
	if err == nil {
		return b
	}
	meta := e.Meta
	meta.Budget, meta.Clamped = nil, nil
	b, err = document.Marshal(Envelope{Error: NewError(ErrorInternal, prompts.NotWritten), Meta: meta})
	if err != nil { // only strings and numbers are left
		return json.RawMessage(`{"ok":false,"error":{"type":"INTERNAL","message":"` + prompts.NotWrittenAtAll +
			`","retryable":false},"meta":{"tool":"","registryVersion":"","duration":0,"responseSchemaVersion":"1.0.0"}}`)
	}
	return b
}

// MarshalJSON encodes either a success or a failure.
func (e Envelope) MarshalJSON() ([]byte, error) {
	out := struct {
		OK      bool             `json:"ok"`
		Data    *json.RawMessage `json:"data,omitempty"`
		Intents *[]Intent        `json:"intents,omitempty"`
		Error   *Error           `json:"error,omitempty"`
		Meta    Meta             `json:"meta"`
	}{OK: e.OK, Meta: e.Meta}
	if e.OK {
		e.Intents = append([]Intent{}, e.Intents...)
		out.Data, out.Intents = &e.Data, &e.Intents
	} else if out.Error = e.Error; out.Error == nil {
		out.Error = NewError(ErrorInternal, prompts.Unnamed)
	}
	return document.Marshal(out)
}

//go:embed envelope.schema.json
var envelopeText []byte

var compactEnvelope = sync.OnceValue(func() json.RawMessage {
	var b bytes.Buffer
	if err := json.Compact(&b, envelopeText); err != nil {
		panic("registry: envelope.schema.json: " + err.Error()) // every test of an envelope compiles it
	}
	return b.Bytes()
})

// EnvelopeSchema returns the JSON Schema of all tools' [Envelope]s. The caller owns it.
func EnvelopeSchema() json.RawMessage { return slices.Clone(compactEnvelope()) }

// sameJSON reports whether a decoded value equals that of a text.
func sameJSON(v any, text json.RawMessage) bool {
	other, _, ok := document.Decode(text, MaxFileBytes, maxFileDepth)
	return ok && bytes.Equal(document.AppendCanonical(nil, v), document.AppendCanonical(nil, other))
}

// errOutput means that a result doesn't match the tool's output schema; only for the log.
var errOutput = errors.New("the handler's result breaks the tool's own output schema")

// fitOutput checks data against the tool's output schema, after replacing Go's nil slices and maps with empty lists
// and objects. If it doesn't match, the outcome is INTERNAL, with the places in its details. The log gets the places
// without values.
func (t *Tool) fitOutput(data json.RawMessage) (json.RawMessage, *outcome) {
	form := t.compiled.Output
	if form == nil {
		return data, nil
	}
	value, problems, _ := document.Decode(data, MaxDataBytes, document.MaxSpecDepth)
	changed := false
	if len(problems) == 0 {
		value, changed = form.Emptied(value)
		problems = form.Validate(value)
	}
	switch {
	case len(problems) > 0:
		return nil, t.brokenOutput(problems)
	case changed:
		return document.AppendCanonical(make([]byte, 0, len(data)), value), nil
	}
	return data, nil
}

func (t *Tool) brokenOutput(problems []document.Problem) *outcome {
	problems, more, details := problemDetails(problems)
	var places []string
	for _, p := range problems {
		places = append(places, document.Shorten(cmp.Or(p.Path, "the data as a whole"), 100))
	}
	if more > 0 {
		places = append(places, fmt.Sprintf("and %d more", more))
	}
	told := NewError(ErrorInternal, prompts.BrokenOutput(t.ToolID))
	told.Details = details
	return &outcome{err: fmt.Errorf("%w, at %s", errOutput, strings.Join(places, ", ")), told: told}
}

// problemDetails returns the problems that a model is told, how many more there are, and the details of an error.
func problemDetails(problems []document.Problem) (told []document.Problem, more int, details json.RawMessage) {
	more = max(0, len(problems)-document.MaxProblems)
	told = problems[:len(problems)-more]
	details, _ = document.Marshal(struct { // strings only: cannot fail
		Errors []document.Problem `json:"errors"`
		More   int                `json:"more,omitempty"`
	}{told, more})
	return told, more, details
}
