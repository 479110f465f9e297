package gemini

import (
	"fmt"
	"strings"

	"github.com/coder/websocket"
)

// refusedByModel returns the provider's close for a valid setting that the named model or version of the API does not
// accept, or nil. If only the refusal is documented and not its text, the reason is the provider's general one. Sources,
// read 2026-11-23:
//   - pydantic/pydantic-ai#8394, tried on 2.5, 3.8 and 3.8 extended thinking: v1beta refuses proactivity, v1alpha accepts
//     it; googleapis/js-genai#696 and #1953.
//   - ai.google.dev/gemini-api/docs/models/gemini-3.8-live, "Migrating from Gemini 3.1 Flash Live": proactive audio is
//     always on and false is an error; affective dialog was removed from the API (js-genai#1953 quotes the reason);
//     thinking_level is not supported on gemini-3.8-live (ProfSynapse/nexus#389 and vercel/ai#20787: no thinkingConfig is).
//   - the same reports, tried on gemini-3.8-live-extended-thinking: it wants a level of low, medium or high, or a budget,
//     and not both.
func refusedByModel(m *setupMessage, h habits, r route) *closeError {
	p, g := m.Proactivity, m.GenerationConfig
	quiet := p != nil && p.ProactiveAudio != nil && !*p.ProactiveAudio
	switch {
	case p != nil && !r.vertex && r.version != "v1alpha":
		return invalid(`Invalid JSON payload received. Unknown name "proactivity" at 'setup': Cannot find field.`)
	case h.gen == gen38 && (quiet || g.AffectiveDialog != nil || !h.extended && g.ThinkingConfig != nil):
		return invalid(reasonInvalidArgument)
	case h.extended && !thinkingChosen(m):
		return invalid(reasonInvalidArgument)
	case h.translates && !translationOnly(m):
		return invalid(reasonInvalidArgument)
	}
	return nil
}

// translationOnly: ai.google.dev/gemini-api/docs/live-api/live-translate, read 2026-11-30, says that a translation model
// supports neither tools nor instructions.
func translationOnly(m *setupMessage) bool {
	t := m.GenerationConfig.TranslationConfig
	return t != nil && t.TargetLanguageCode != "" && m.SystemInstruction == nil && len(m.Tools) == 0
}

func thinkingChosen(m *setupMessage) bool {
	t := m.GenerationConfig.ThinkingConfig
	if t == nil {
		return false
	}
	switch strings.ToLower(t.ThinkingLevel) {
	case "low", "medium", "high":
		return t.ThinkingBudget == nil
	case "", "thinking_level_unspecified":
		return t.ThinkingBudget != nil
	}
	return false
}

// Close reasons of the provider, as users' reports quote them (among them livekit/agents#2274, #4159, #4414 and #4545,
// googleapis/js-genai#1236, google/adk-python#225 and #3918, yagudaev/voiceclaw#155; read 2026-11-20), and those of
// Google's JSON layer, which are the same on every API. The connection cuts them at 123 bytes, as the provider does.
const (
	reasonInvalidArgument = "Request contains an invalid argument."
	reasonBadKey          = "API key not valid. Please pass a valid API key."
	reasonExpiredKey      = "API key expired. Please renew the API key."
	reasonQuota           = "You exceeded your current quota, please check your plan and billing details. " +
		"For more information on this error, head to: https://ai.google.dev/gemini-api/docs/rate-limits."
	reasonNotImplemented  = "Operation is not implemented, or supported, or enabled."
	reasonSessionNotFound = "BidiGenerateContent session not found"
	reasonInternal        = "Internal error encountered."
	reasonAborted         = "The operation was aborted."
	reasonGoAwayIgnored   = "Connection aborted because the client failed to close the connection after receiving a GoAway " +
		"signal once the session duration expired."
	reasonDeadline = "Deadline expired before operation could complete."
	reasonVoices   = "Cannot extract voices from a non-audio request."
	// The provider's texts about tokens are not recorded; these are its texts about keys.
	reasonBadToken     = "Ephemeral token not valid. Please pass a valid ephemeral token."
	reasonExpiredToken = "Ephemeral token expired. Please renew the ephemeral token."
	reasonUsedToken    = "Ephemeral token has no uses left. Please renew the ephemeral token."
)

// closeError ends a connection with the provider's code and reason. Only in this way does the package report a client's
// mistake: the Developer API sends no error message in the stream.
type closeError struct {
	Code   websocket.StatusCode
	Reason string
}

func (e *closeError) Error() string {
	return fmt.Sprintf("close %d: %s", int(e.Code), e.Reason)
}

func invalid(format string, args ...any) *closeError {
	return &closeError{Code: websocket.StatusInvalidFramePayloadData, Reason: fmt.Sprintf(format, args...)}
}

func policy(format string, args ...any) *closeError {
	return &closeError{Code: websocket.StatusPolicyViolation, Reason: fmt.Sprintf(format, args...)}
}

func internal(reason string) *closeError {
	return &closeError{Code: websocket.StatusInternalError, Reason: reason}
}
