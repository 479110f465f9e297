package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"voicegw/chat"
	"voicegw/internal/auth"
	"voicegw/protocol"
)

type texts struct {
	turns                  map[string]set[prometheus.Counter] // by status, then by code
	took, first            prometheus.Observer
	input, cached, written prometheus.Counter
}

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

func (m *Metrics) newTexts() texts {
	c, h := m.counters, m.histograms
	return texts{
		turns: map[string]set[prometheus.Counter]{
			protocol.DoneCompleted: counterSet(c["chat_turns_total"], []string{noError}, protocol.DoneCompleted),
			protocol.DoneFailed:    counterSet(c["chat_turns_total"], append([]string{hasLeft}, textCodes...), protocol.DoneFailed),
		},
		took: h["chat_turn_seconds"].WithLabelValues(), first: h["chat_first_text_seconds"].WithLabelValues(),
		input: c["chat_tokens_total"].WithLabelValues("input", "no"), cached: c["chat_tokens_total"].WithLabelValues("input", "yes"),
		written: c["chat_tokens_total"].WithLabelValues("output", "no"),
	}
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
	if turns, ok := m.texts.turns[e.Status]; ok {
		turns.with(code).Inc()
	}
	m.texts.took.Observe(e.Took.Seconds())
	if e.First > 0 {
		m.texts.first.Observe(e.First.Seconds())
	}
	m.texts.cached.Add(float64(max(e.Usage.Cached, 0)))
	m.texts.input.Add(float64(max(e.Usage.Input-e.Usage.Cached, 0)))
	m.texts.written.Add(float64(max(e.Usage.Output, 0)))
}

// wrongs are the values of the label why of auth_failures_total; limit is gateway.TooManyWrong.
var wrongs = []string{auth.ReasonForm, auth.ReasonKey, auth.ReasonExpired, auth.ReasonEarly, auth.ReasonIssuer, auth.ReasonToken, "limit"}

// Refused counts rejected credentials; see gateway.Options.
func (m *Metrics) Refused(why string) { m.wrong.with(why).Inc() }

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
	m.counters["http_requests_total"].WithLabelValues(route, class).Inc()
	m.histograms["http_request_seconds"].WithLabelValues(route).Observe(took.Seconds())
}
