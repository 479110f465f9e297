package registry

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"voicegw/registry/document"
)

// TestEnvelopeForms covers fields that the orchestrator sets, not the registry.
func TestEnvelopeForms(t *testing.T) {
	meta := Meta{
		Tool: "t", ToolVersion: "1.0.0", RegistryVersion: "1.0.0a", DurationMS: 5, ResponseSchemaVersion: ResponseSchemaVersion, LatencyBudgetExceeded: true,
		Clamped: map[string]Clamped{"top_k": {"10", 3}}, Budget: json.RawMessage(`{"total":1}`), CacheHit: true, OriginalTurn: 2,
	}
	tests := []struct {
		env  Envelope
		want string
	}{
		{Envelope{OK: true, Meta: meta}, `{"ok":true,"data":null,"intents":[],"meta":{"tool":"t","toolVersion":"1.0.0","registryVersion":"1.0.0a","duration":5,"responseSchemaVersion":"1.0.0","latencyBudgetExceeded":true,"clamped":{"top_k":{"requested":10,"applied":3}},"budget":{"total":1},"_idempotent_cache_hit":true,"_original_turn":2}}`},
		{Envelope{Error: &Error{Type: ErrorConfirmationRequired, Message: "Ask.", ConfirmationRequest: &ConfirmationRequest{Token: "x", Tool: "t", Args: json.RawMessage(`{}`), Preview: "p", ExpiresAt: "2026-11-20T00:00:00.000Z"}}, Meta: Meta{Tool: "t", ResponseSchemaVersion: ResponseSchemaVersion}},
			`{"ok":false,"error":{"type":"CONFIRMATION_REQUIRED","message":"Ask.","retryable":false,"confirmation_request":{"token":"x","tool":"t","args":{},"preview":"p","expires_at":"2026-11-20T00:00:00.000Z"}},"meta":{"tool":"t","registryVersion":"","duration":0,"responseSchemaVersion":"1.0.0"}}`},
		{NotFound("<x>", "1.0.0a", 7*time.Millisecond),
			`{"ok":false,"error":{"type":"NOT_FOUND","message":"There is no tool named \"<x>\".","retryable":false,"suggestion":"Answer the user without it."},"meta":{"tool":"<x>","registryVersion":"1.0.0a","duration":7,"responseSchemaVersion":"1.0.0"}}`},
		{Envelope{Meta: Meta{ResponseSchemaVersion: ResponseSchemaVersion}}, `{"ok":false,"error":{"type":"INTERNAL","message":"The tool failed.","retryable":false},"meta":{"tool":"","registryVersion":"","duration":0,"responseSchemaVersion":"1.0.0"}}`},
		{Envelope{OK: true, Data: json.RawMessage(`{`), Meta: meta}, `{"ok":false,"error":{"type":"INTERNAL","message":"The answer of the tool could not be written.","retryable":false},"meta":{"tool":"t","toolVersion":"1.0.0","registryVersion":"1.0.0a","duration":5,"responseSchemaVersion":"1.0.0","latencyBudgetExceeded":true,"_idempotent_cache_hit":true,"_original_turn":2}}`},
	}
	for _, tt := range tests {
		if got := string(tt.env.Encode()); got != tt.want {
			t.Errorf("got  %s\nwant %s", got, tt.want)
		}
		checkEnvelope(t, tt.env)
	}
}

// TestKept: the stored envelope has no token; its other fields, and the original envelope, are unchanged.
func TestKept(t *testing.T) {
	asked := Envelope{Error: &Error{Type: ErrorConfirmationRequired, Message: "Ask.", Details: json.RawMessage(`{"reference":"ABC"}`), ConfirmationRequest: &ConfirmationRequest{
		Token: "cf_x", Tool: "t", Args: json.RawMessage(`{}`), Preview: "p", ExpiresAt: "2026-11-20T00:00:00.000Z"}}, Meta: Meta{Tool: "t", ResponseSchemaVersion: ResponseSchemaVersion}}
	whole := string(asked.Encode())
	kept := asked.Kept()
	if want, got := strings.Replace(whole, `"token":"cf_x",`, "", 1), string(kept.Encode()); got != want || got == whole {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if string(asked.Encode()) != whole {
		t.Errorf("the envelope has changed: %s", asked.Encode())
	}
	checkEnvelope(t, kept)
	for _, env := range []Envelope{{OK: true}, {Error: &Error{Type: ErrorConflict, Message: "x"}}} {
		if string(env.Kept().Encode()) != string(env.Encode()) {
			t.Errorf("%s is stored as %s", env.Encode(), env.Kept().Encode())
		}
	}
}

// TestEnvelopeSchemaIsComplete: a new error type or intent must be added to the schema.
func TestEnvelopeSchemaIsComplete(t *testing.T) {
	for _, typ := range ErrorTypes() {
		checkEnvelope(t, Envelope{Error: &Error{Type: typ, Message: "x"}, Meta: Meta{ResponseSchemaVersion: ResponseSchemaVersion}})
	}
	for _, wrong := range []string{
		`{"ok":true,"data":1,"meta":{}}`, `{"ok":true,"data":1,"intents":[],"error":{}}`, `{"ok":false}`,
	} {
		v, _, _ := document.Decode([]byte(wrong), document.MaxArgsBytes, document.MaxArgsDepth)
		if schema, err := envelopeSchema(); err != nil || schema.Validate(v) == nil {
			t.Errorf("the schema accepts %s", wrong)
		}
	}
}

func TestToolError(t *testing.T) {
	cause := Errorf(ErrorConflict, "taken")
	e := Errorf(ErrorTransient, "asking %s: %w", "x", cause)
	if !e.Retryable || e.Message != "asking x: CONFLICT: taken" || e.Unwrap() != cause {
		t.Errorf("got %+v", e)
	}
	if Errorf(ErrorPermanent, "x").Retryable || !Errorf(ErrorRateLimit, "x").Retryable {
		t.Error("retryable is wrong")
	}
	if s := (&ToolError{Type: ErrorAuth, Message: "m", Err: cause}).Error(); !strings.Contains(s, "AUTH: m: CONFLICT") {
		t.Error(s)
	}
}
