package metrics

import (
	"time"

	"voicegw/chat"
	"voicegw/internal/auth"
	"voicegw/protocol"
)

const (
	noError = "none"
	hasLeft = "left"
)

var textCodes = []string{
	protocol.CodeProviderAuth, protocol.CodeProviderError, protocol.CodeProviderBusy, protocol.CodeProviderQuota,
	protocol.CodeProviderUnavailable, protocol.CodeProviderAnswer,
	protocol.CodeTooLong, protocol.CodeContentFilter, protocol.CodeSettingRefused, protocol.CodeNoAnswer, protocol.CodeDraining,
	protocol.CodeStoreUnavailable, protocol.CodeLimit, protocol.CodeInternal,
}

// Texted counts a text turn; see chat.Options.
func (m *Metrics) Texted(e chat.TurnOver) {
	code := e.Code
	switch {
	case e.Status == protocol.DoneCompleted:
		code = noError
	case code == "":
		code = hasLeft
	}
	m.count("chat_turns_total", e.Status, code)
	m.observe("chat_turn_seconds", e.Took.Seconds())
	if e.First > 0 {
		m.observe("chat_first_text_seconds", e.First.Seconds())
	}
	m.add("chat_tokens_total", float64(e.Usage.Cached), "input", "yes")
	m.add("chat_tokens_total", float64(e.Usage.Input-e.Usage.Cached), "input", "no")
	m.add("chat_tokens_total", float64(e.Usage.Output), "output", "no")
}

// wrongs are the values of the label why of auth_failures_total; limit is gateway.TooManyWrong.
var wrongs = []string{auth.ReasonForm, auth.ReasonKey, auth.ReasonExpired, auth.ReasonEarly, auth.ReasonIssuer, auth.ReasonToken, "limit"}

// Refused counts rejected credentials; see gateway.Options.
func (m *Metrics) Refused(why string) { m.count("auth_failures_total", why) }

var classes = [...]string{2: "2xx", 3: "3xx", 4: "4xx", 5: "5xx"}

// Answered counts a request; see gateway.Options. Routes are the program's own.
func (m *Metrics) Answered(route string, status int, took time.Duration) {
	if route == "" {
		route = "refused" // before routing
	}
	class := other
	if i := status / 100; i >= 0 && i < len(classes) && classes[i] != "" {
		class = classes[i]
	}
	m.count("http_requests_total", route, class)
	m.observe("http_request_seconds", took.Seconds(), route)
}
