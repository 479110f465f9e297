package gateway

import (
	"cmp"
	"net/http"
	"strconv"

	"voicegw/protocol"
)

// openaiTrouble is an error of a turn in the format of Chat Completions.
type openaiTrouble struct {
	status int
	kind   string // the field type
	code   string
	param  string
}

// openaiTroubles maps error codes of turns to a status, if nothing has been sent, and to the fields of the stream's
// error. Codes are OpenAI's where possible (developers.openai.com/api/docs/guides/error-codes, read 2026-11-23). A
// rejected API key of the provider is the gateway's problem, not the client's, so it isn't a 401. docs/chat.md has
// this table (TestTroublesStandInTheDocs).
var openaiTroubles = map[string]openaiTrouble{
	protocol.CodeProviderBusy:        {http.StatusTooManyRequests, "rate_limit_error", "rate_limit_exceeded", ""},
	protocol.CodeProviderQuota:       {http.StatusTooManyRequests, "insufficient_quota", "insufficient_quota", ""},
	protocol.CodeTooLong:             {http.StatusBadRequest, "invalid_request_error", "context_length_exceeded", "messages"},
	protocol.CodeContentFilter:       {http.StatusBadRequest, "invalid_request_error", "content_filter", "messages"},
	protocol.CodeSettingRefused:      {http.StatusBadRequest, "invalid_request_error", "unsupported_value", ""},
	protocol.CodeProviderAuth:        {http.StatusBadGateway, "server_error", protocol.CodeProviderAuth, ""},
	protocol.CodeProviderAnswer:      {http.StatusBadGateway, "server_error", protocol.CodeProviderAnswer, ""},
	protocol.CodeProviderError:       {http.StatusBadGateway, "server_error", protocol.CodeProviderError, ""},
	protocol.CodeProviderUnavailable: {http.StatusServiceUnavailable, "server_error", protocol.CodeProviderUnavailable, ""},
	protocol.CodeNoAnswer:            {http.StatusServiceUnavailable, "server_error", protocol.CodeNoAnswer, ""},
	protocol.CodeDraining:            {http.StatusServiceUnavailable, "server_error", protocol.CodeDraining, ""},
	protocol.CodeStoreUnavailable:    {http.StatusServiceUnavailable, "server_error", protocol.CodeStoreUnavailable, ""},
}

func troubleOf(e *protocol.Error) openaiTrouble {
	t, known := openaiTroubles[e.Code]
	if !known {
		t = openaiTrouble{http.StatusBadGateway, "server_error", e.Code, ""}
		if e.Retryable {
			t.status = http.StatusServiceUnavailable
		}
	}
	t.param = cmp.Or(t.param, e.Ref)
	return t
}

func (t openaiTrouble) shape(message string) map[string]any {
	out := map[string]any{"message": message, "type": t.kind, "param": nil, "code": t.code}
	if t.param != "" {
		out["param"] = t.param
	}
	return out
}

// refuseTurn answers a turn that failed before anything was sent. Clients must not retry automatically, because the
// turn's tools may have run.
func refuseTurn(w http.ResponseWriter, e *protocol.Error) {
	t := troubleOf(e)
	w.Header().Set("X-Should-Retry", "false")
	if e.RetryAfterMS > 0 {
		w.Header().Set("Retry-After", strconv.FormatInt((e.RetryAfterMS+999)/1000, 10))
		w.Header().Set("Retry-After-Ms", strconv.FormatInt(e.RetryAfterMS, 10))
	}
	answer(w, t.status, map[string]any{"error": t.shape(e.Message)})
}
