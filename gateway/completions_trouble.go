package gateway

import (
	"net/http"
	"strconv"

	"voicegw/session/wsclient"
)

// openaiTrouble is how an error of a turn is told in the form of Chat Completions.
type openaiTrouble struct {
	status int
	kind   string // the field type
	code   string
	param  string
}

// openaiTroubles are the errors of turns by their code: the status where nothing has been
// sent yet, else the event of the stream has the rest. Codes are OpenAI's own where it has
// one (developers.openai.com/api/docs/guides/error-codes, read 2026-11-23), because clients
// know those. A key that the provider does not accept is the gateway's and not the client's,
// so it is no 401. docs/chat.md has this table (TestTroublesStandInTheDocs).
var openaiTroubles = map[string]openaiTrouble{
	wsclient.CodeProviderBusy:        {http.StatusTooManyRequests, "rate_limit_error", "rate_limit_exceeded", ""},
	wsclient.CodeProviderQuota:       {http.StatusTooManyRequests, "insufficient_quota", "insufficient_quota", ""},
	wsclient.CodeTooLong:             {http.StatusBadRequest, "invalid_request_error", "context_length_exceeded", "messages"},
	wsclient.CodeContentFilter:       {http.StatusBadRequest, "invalid_request_error", "content_filter", "messages"},
	wsclient.CodeSettingRefused:      {http.StatusBadRequest, "invalid_request_error", "unsupported_value", ""},
	wsclient.CodeProviderAuth:        {http.StatusBadGateway, "server_error", wsclient.CodeProviderAuth, ""},
	wsclient.CodeProviderAnswer:      {http.StatusBadGateway, "server_error", wsclient.CodeProviderAnswer, ""},
	wsclient.CodeProviderError:       {http.StatusBadGateway, "server_error", wsclient.CodeProviderError, ""},
	wsclient.CodeProviderUnavailable: {http.StatusServiceUnavailable, "server_error", wsclient.CodeProviderUnavailable, ""},
	wsclient.CodeNoAnswer:            {http.StatusServiceUnavailable, "server_error", wsclient.CodeNoAnswer, ""},
	wsclient.CodeStoreUnavailable:    {http.StatusServiceUnavailable, "server_error", wsclient.CodeStoreUnavailable, ""},
}

// troubleOf is the row of an error.
func troubleOf(e *wsclient.Error) openaiTrouble {
	t, known := openaiTroubles[e.Code]
	if !known {
		t = openaiTrouble{http.StatusBadGateway, "server_error", e.Code, ""}
		if e.Retryable {
			t.status = http.StatusServiceUnavailable
		}
	}
	if t.param == "" {
		t.param = e.Ref
	}
	return t
}

// shape is the error's object.
func (t openaiTrouble) shape(message string) map[string]any {
	out := map[string]any{"message": message, "type": t.kind, "param": nil, "code": t.code}
	if t.param != "" {
		out["param"] = t.param
	}
	return out
}

// refuseTurn answers a turn that has failed before anything of it was sent. Clients that make
// requests again by themselves are told not to: the tools of the turn may have run.
func refuseTurn(w http.ResponseWriter, e *wsclient.Error) {
	t := troubleOf(e)
	w.Header().Set("X-Should-Retry", "false")
	if e.RetryAfterMS > 0 {
		w.Header().Set("Retry-After", strconv.FormatInt((e.RetryAfterMS+999)/1000, 10))
		w.Header().Set("Retry-After-Ms", strconv.FormatInt(e.RetryAfterMS, 10))
	}
	answer(w, t.status, map[string]any{"error": t.shape(e.Message)})
}
