package metrics

import (
	"cmp"
	"maps"
	"runtime"
	"slices"
	"strconv"
	"time"

	"voicegw/internal/audit"
	"voicegw/internal/meter"
	"voicegw/internal/nonblock"
	"voicegw/internal/traces"
	"voicegw/protocol"
	"voicegw/registry"
	"voicegw/session"
)

// families is the table of all families. One filled by events also needs code in watch.go (sessions), audited.go (tool
// calls), texts.go (text turns) or metrics.go. Then run make docs, and add a panel to
// deploy/grafana/voicegw.json.
var families = []Family{
	// The process.
	{Name: "build_info", Kind: Gauge, Labels: []string{"version", "go", "tools_version"}, read: readBuild,
		Help: "Always 1. The labels are the running version."},
	{Name: "ready", Kind: Gauge, read: func(s *Sources, add emit) { add(truth(s.Ready())) },
		Help: "1 if the gateway accepts new sessions, else 0."},
	{Name: "overloaded", Kind: Gauge, Labels: []string{"reason"}, read: readOverload,
		Help: "1 if new sessions are refused because memory is short (memory) or the store was unavailable for 10 s (store), else 0."},
	{Name: "memory_used_ratio", Kind: Gauge, read: func(s *Sources, add emit) { add(s.Overload().Share) },
		Help: "Share of the memory limit in use; 0 without a limit."},
	{Name: "draining", Kind: Gauge, read: func(s *Sources, add emit) { add(truth(s.census.Draining)) },
		Help: "1 if the gateway is shutting down, else 0."},

	{Name: "reloads_total", Kind: Counter, Labels: []string{"result"}, ends: closed([]string{reloadOK, reloadRefused}),
		Help: "Configuration reloads, by result: ok or refused."},

	// Sessions.
	{Name: "sessions_active", Kind: Gauge, Labels: []string{"provider", "state"}, read: readSessions,
		Help: "Running sessions; attached, or detached while the client is disconnected."},
	{Name: "sessions_limit", Kind: Gauge, read: func(s *Sources, add emit) { add(float64(s.census.Most)) },
		Help: "Maximum number of sessions (limits.sessions)."},
	{Name: "clients_waiting", Kind: Gauge, read: func(s *Sources, add emit) { add(float64(s.census.Waiting)) },
		Help: "Connections that have not sent session.start yet."},
	{Name: "clients_carried", Kind: Gauge, read: func(s *Sources, add emit) { add(float64(s.census.Carried)) },
		Help: "Clients connected here whose session runs on another gateway."},
	{Name: "downlink_backlog_seconds", Kind: Gauge, read: func(s *Sources, add emit) { add(s.census.Backlog.Seconds()) },
		Help: "Largest amount of audio queued for one client."},
	{Name: "sessions_started_total", Kind: Counter, Labels: []string{"provider", "model", "entry"}, ends: closed(entries),
		Help: "Started sessions, by the client's entry; takeover is a session from another gateway."},
	{Name: "sessions_ended_total", Kind: Counter, Labels: []string{"provider", "reason"}, ends: closed(session.Reasons()),
		Help: "Ended sessions, by reason (docs/protocol.md)."},
	{Name: "sessions_refused_total", Kind: Counter, Labels: []string{"reason"}, ends: closed(refusals()),
		Help: "Refused connections, by reason."},
	{Name: "session_duration_seconds", Kind: Histogram, Labels: []string{"provider"}, Buckets: lengths, ends: alone,
		Help: "Duration of sessions on this gateway."},
	{Name: "session_start_seconds", Kind: Histogram, Labels: []string{"provider", "stage"}, Buckets: slow,
		ends: each("wait", "identify", "connect", "total"),
		Help: "Time to start a session, by stage: wait for session.start, identify, connect, total."},
	{Name: "client_messages_rejected_total", Kind: Counter, Labels: []string{"code"}, ends: closed(rejections),
		Help: "Rejected client messages, by error code."},
	{Name: "slow_clients_total", Kind: Counter, Labels: []string{"provider"}, ends: alone,
		Help: "Clients disconnected because they fell too far behind."},
	{Name: "resume_total", Kind: Counter, Labels: []string{"outcome"}, ends: closed(resumeOutcomes()),
		Help: "Attempts to resume, by outcome: local, relayed, moved and taken_over succeeded; others are reasons for refusal."},
	{Name: "resume_seconds", Kind: Histogram, Labels: []string{"outcome"}, Buckets: slow, ends: closed(returned),
		Help: "Time to resume, from the new connection."},

	// Turns.
	{Name: "turns_total", Kind: Counter, Labels: []string{"provider", "model", "status"}, ends: closed(statuses),
		Help: "Turns, by status: completed, interrupted or failed."},
	{Name: "turn_first_audio_seconds", Kind: Histogram, Labels: []string{"provider", "model", "part"}, Buckets: untilAudio,
		ends: each("total", "detection", "provider", "gateway"),
		Help: "Time from the end of the user's speech to the first audio sent: total, and the parts of detection, provider and gateway."},
	{Name: "turn_failures_total", Kind: Counter, Labels: []string{"provider", "code"}, ends: closed(failures),
		Help: "Errors that did not end a session, by code."},
	{Name: "interruptions_total", Kind: Counter, Labels: []string{"provider", "by"}, ends: closed(cutters),
		Help: "Answers the user interrupted: by speech, text, stop or an action."},
	{Name: "bargein_seconds", Kind: Histogram, Labels: []string{"provider"}, Buckets: fast, ends: alone,
		Help: "Time from the start of the user's speech until the rest of the answer was dropped."},
	{Name: "truncated_heard_ratio", Kind: Histogram, Labels: []string{"provider"}, Buckets: ratios, ends: alone,
		Help: "Estimated share of an interrupted answer's sent audio that the user heard."},
	{Name: "nudges_total", Kind: Counter, Labels: []string{"provider"}, ends: alone,
		Help: "Times a silent model was asked to answer."},
	{Name: "audio_seconds_total", Kind: Counter, Labels: []string{"direction", "provider"}, ends: each("up", "down"),
		Help: "Audio from clients (up) and to clients (down), added after each turn."},
	{Name: "audio_dropped_seconds_total", Kind: Counter, Labels: []string{"direction", "reason"},
		ends: [][]string{{"up", "backlog"}, {"up", "ahead"}, {"down", "unheard"}},
		Help: "Dropped audio: up because it waited too long (backlog) or came too fast (ahead), down because it was " +
			"interrupted or the client was gone (unheard)."},
	{Name: "tokens_total", Kind: Counter, Labels: []string{"provider", "model", "direction", "modality", "cached"}, ends: tokenEnds(),
		Help: "Tokens of voice turns; modality is other if the provider reports none."},
	{Name: "cost_usd_total", Kind: Counter, Labels: []string{"provider", "model"},
		Help: "Cost of voice sessions in US dollars; models without a price are missing."},
	{Name: "cost_day_budget_usd", Kind: Gauge, read: func(s *Sources, add emit) { add(s.DayBudget()) },
		Help: "Daily budget of all gateways in US dollars (prices.day_budget); 0 if unset."},
	{Name: "turns_estimated_total", Kind: Counter, Labels: []string{"provider", "model"}, ends: alone,
		Help: "Voice turns with estimated tokens, because the model reports none."},
	{Name: "turns_unpriced_total", Kind: Counter, Labels: []string{"provider", "model"}, ends: alone,
		Help: "Voice turns with tokens of unknown price."},

	// Providers.
	{Name: "provider_connections_active", Kind: Gauge, Labels: []string{"provider"}, read: readLinks,
		Help: "Sessions connected to the model."},
	{Name: "provider_connects_total", Kind: Counter, Labels: []string{"provider", "outcome"}, ends: closed(append(kindNames(), dialedOK)),
		Help: "Attempts to connect to a model: ok, or the kind of error."},
	{Name: "provider_connect_seconds", Kind: Histogram, Labels: []string{"provider", "how"}, Buckets: slow, ends: closed(hows),
		Help: "Duration of successful attempts: a new conversation (fresh), one the provider remembers (resumed), or one sent " +
			"again (replayed)."},
	{Name: "provider_closes_total", Kind: Counter, Labels: []string{"provider", "kind", "code"},
		Help: "Connections lost while their session continued, by kind of error and common provider code."},
	{Name: "provider_errors_total", Kind: Counter, Labels: []string{"provider", "kind"}, ends: closed(reportedKinds),
		Help: "Errors reported by a model that did not end its connection, by kind; clients do not see kind ignore."},
	{Name: "provider_answers_failed_total", Kind: Counter, Labels: []string{"provider", "kind"},
		Help: "Failed or cut off answers of models, by kind of error (docs/providers.md)."},
	{Name: "provider_events_skipped_total", Kind: Counter, Labels: []string{"provider", "why"}, ends: each("unknown", "malformed"),
		Help: "Ignored model messages: unknown type or malformed."},
	{Name: "rotations_total", Kind: Counter, Labels: []string{"provider", "trigger", "outcome"}, ends: after(triggers, rotated),
		Help: "Replaced connections to a model: resumed, replayed, fresh or failed."},
	{Name: "rotation_gap_seconds", Kind: Histogram, Labels: []string{"provider", "trigger"}, Buckets: gaps, ends: closed(triggers),
		Help: "Time without a connection to the model during a replacement."},

	// Text.
	{Name: "chat_turns_total", Kind: Counter, Labels: []string{"status", "code"},
		ends: append(after([]string{protocol.DoneCompleted}, []string{noError}),
			after([]string{protocol.DoneFailed}, append([]string{hasLeft}, textCodes...))...),
		Help: "Text turns, by status (completed, failed, or left by the client) and error code."},
	{Name: "chat_turn_seconds", Kind: Histogram, Buckets: slow, ends: alone,
		Help: "Duration of text turns."},
	{Name: "chat_first_text_seconds", Kind: Histogram, Buckets: untilAudio, ends: alone,
		Help: "Time from a message to the first text of its answer."},
	{Name: "chat_tokens_total", Kind: Counter, Labels: []string{"direction", "cached"},
		ends: [][]string{{"input", "no"}, {"input", "yes"}, {"output", "no"}},
		Help: "Tokens of text turns."},
	{Name: "chat_cost_usd_total", Kind: Counter, ends: alone,
		Help: "Cost of text turns in US dollars."},
	{Name: "http_requests_total", Kind: Counter, Labels: []string{"route", "code"},
		Help: "HTTP requests, by route and status class, without WebSockets."},
	{Name: "http_request_seconds", Kind: Histogram, Labels: []string{"route"}, Buckets: coarse,
		Help: "Duration of HTTP requests, including streams."},

	{Name: "auth_failures_total", Kind: Counter, Labels: []string{"why"}, ends: closed(wrongs),
		Help: "Rejected keys and tokens, by reason; limit counts blocked addresses."},

	{Name: "rate_limited_total", Kind: Counter, Labels: []string{"limit", "key"}, read: readLimited,
		Help: "Sessions, tickets and messages refused by a limit of a user or key; key is the name of the key or issuer, or none."},
	{Name: "usage_unwritten", Kind: Gauge, read: func(s *Sources, add emit) { add(float64(s.Usage().Unwritten)) },
		Help: "Usage entries waiting for the store."},
	{Name: "usage_dropped_total", Kind: Counter, read: func(s *Sources, add emit) { add(float64(s.Usage().Dropped)) },
		Help: "Usage that was not counted: too many users in a day, or too much waiting for the store."},

	{Name: "tls_cert_expiry_seconds", Kind: Gauge, Labels: []string{"host"}, read: readCertificates,
		Help: "Time until the certificate of a name expires; the names that expire first if there are many."},

	// Tools, by voice and by text.
	{Name: "tool_calls_total", Kind: Counter, Labels: []string{"tool", "mode", "outcome"}, ends: closed(outcomes()),
		Help: "Tool calls: ok, cached (an earlier result was returned), or the error type; a canary version has its own id."},
	{Name: "tool_seconds", Kind: Histogram, Labels: []string{"tool", "part"}, Buckets: calling, ends: each("queued", "run"),
		Help: "Time that calls were queued, and ran (run)."},
	{Name: "tool_clamped_total", Kind: Counter, Labels: []string{"tool", "mode"}, ends: alone,
		Help: "Calls with an argument reduced to a limit."},
	{Name: "confirmations_total", Kind: Counter, Labels: []string{"tool", "outcome"}, ends: closed(asked),
		Help: "Actions that need approval: required, then approved, denied, expired or used."},
	{Name: "claims_unmatched_total", Kind: Counter, Labels: []string{"mode", "reason"}, ends: after(modes, unmatched),
		Help: "Claims of the assistant that no call explains: no_side_effect or waits_for_approval."},
	{Name: "checks_total", Kind: Counter, Labels: []string{"check", "result"}, read: readChecks,
		Help: "Results of the checks of the assistant's words: passed (requests), matched, late or failed."},
	{Name: "confirmation_wait_seconds", Kind: Histogram, Labels: []string{"outcome"}, Buckets: answering, ends: closed(answered),
		Help: "Time until approval, denial or expiry."},
	{Name: "ledger_conflicts_total", Kind: Counter, Labels: []string{"tool"}, ends: alone,
		Help: "Side effects not started because the ledger has the same one without an outcome."},
	{Name: "tool_handlers_running", Kind: Gauge, Labels: []string{"tool"},
		read: readTools(func(t registry.ToolStats) int64 { return t.Running }),
		Help: "Running tool handlers."},
	{Name: "tool_handlers_left_behind", Kind: Gauge, Labels: []string{"tool"},
		read: readTools(func(t registry.ToolStats) int64 { return t.LeftBehind }),
		Help: "Handlers still running after their deadline or cancellation."},
	{Name: "tool_handlers_abandoned_total", Kind: Counter, Labels: []string{"tool"},
		read: readTools(func(t registry.ToolStats) int64 { return t.Abandoned }),
		Help: "Handlers that ran past their deadline or cancellation."},

	// What sessions depend on.
	{Name: "loop_busy_ratio", Kind: Gauge, Labels: []string{"loop"}, read: readLoops,
		Help: "Share of time that a network loop was working."},
	{Name: "loop_lag_seconds", Kind: Histogram, Buckets: rounds, readHistogram: func(s *Sources) counts {
		load := s.Loops()
		return counts{each: load.Rounds, sum: load.RoundTime.Seconds()}
	},
		Help: "Duration of network loop rounds, the longest wait of an incoming frame."},
	{Name: "store_op_seconds", Kind: Histogram, Labels: []string{"op"}, Buckets: fast, ends: closed(ops),
		Help: "Duration of store operations, with all attempts."},
	{Name: "store_errors_total", Kind: Counter, Labels: []string{"op"}, ends: closed(ops),
		Help: "Store operations that failed because the store was unavailable."},

	// Webhooks.
	{Name: "webhook_events_total", Kind: Counter, Labels: []string{"webhook", "outcome"}, read: readWebhooks,
		Help: "Webhook events: delivered, given_up after a day or on the receiver's request, or dropped for lack of room."},
	{Name: "webhook_failures_total", Kind: Counter, Labels: []string{"webhook"}, read: func(s *Sources, add emit) {
		for name, w := range s.Webhooks() {
			add(float64(w.Failed), name)
		}
	}, Help: "Failed attempts to deliver an event, which are retried."},
	{Name: "webhook_waiting_events", Kind: Gauge, Labels: []string{"webhook"}, read: func(s *Sources, add emit) {
		for name, w := range s.Webhooks() {
			add(float64(w.Waiting), name)
		}
	}, Help: "Events waiting for a receiver, over all gateways with the same store."},

	// MCP servers.
	{Name: "mcp_server_up", Kind: Gauge, Labels: []string{"server"}, read: func(s *Sources, add emit) {
		for _, m := range s.MCP() {
			add(truth(m.Up), m.Server)
		}
	}, Help: "1 if the MCP server is connected, else 0; calls of its tools then fail."},
	{Name: "mcp_tools_changed", Kind: Gauge, Labels: []string{"server"}, read: func(s *Sources, add emit) {
		for _, m := range s.MCP() {
			add(float64(m.Changed), m.Server)
		}
	}, Help: "Approved tools that the MCP server has changed or removed; they are disabled."},

	{Name: "phone_calls_total", Kind: Counter, Labels: []string{"carrier", "outcome"}, read: func(s *Sources, add emit) {
		for of, n := range s.Phone() {
			add(float64(n), of.Carrier, of.How)
		}
	}, Help: "Phone calls: refused (not the carrier's request, or repeated), declined or failed (no session began), hung_up, " +
		"transferred, moved (to another gateway), ended."},

	// The audit.
	{Name: "audit_written_total", Kind: Counter, Labels: []string{"sink"},
		read: readAudit(func(s audit.SinkStats) float64 { return float64(s.Written) }),
		Help: "Audit records accepted by a sink."},
	{Name: "audit_dropped_total", Kind: Counter, Labels: []string{"sink"},
		read: readAudit(func(s audit.SinkStats) float64 { return float64(s.Dropped + s.GivenUp) }),
		Help: "Audit records lost for a sink."},
	{Name: "audit_failures_total", Kind: Counter, Labels: []string{"sink"},
		read: readAudit(func(s audit.SinkStats) float64 { return float64(s.Failed) }),
		Help: "Failed attempts to write to a sink, which are retried."},
	{Name: "audit_lag_seconds", Kind: Gauge, Labels: []string{"sink"},
		read: readAudit(func(s audit.SinkStats) float64 { return s.Lag.Seconds() }),
		Help: "Age of the oldest unwritten audit record."},
	{Name: "audit_waiting_records", Kind: Gauge, Labels: []string{"sink"},
		read: readAudit(func(s audit.SinkStats) float64 { return float64(s.Waiting) }),
		Help: "Unwritten audit records."},

	// The traces.
	{Name: "trace_decisions_total", Kind: Counter, Labels: []string{"decision"}, read: readDecisions,
		Help: "Turns and other groups of spans, by the reason they were kept; none if they were not."},
	{Name: "trace_spans_total", Kind: Counter, Labels: []string{"outcome"}, read: readSpans,
		Help: "Kept spans: sent, failed (rejected by the collector) or dropped (no room)."},
	{Name: "trace_waiting_spans", Kind: Gauge, read: func(s *Sources, add emit) { add(float64(s.Traces().Waiting)) },
		Help: "Spans waiting to be sent."},
}

func readBuild(s *Sources, add emit) { add(1, s.Version, runtime.Version(), s.Snapshot().Version()) }

func readSessions(s *Sources, add emit) {
	for who, n := range s.providers(s.census.Attached) {
		add(n, who, "attached")
	}
	for who, n := range s.providers(s.census.Detached) {
		add(n, who, "detached")
	}
}

func readLinks(s *Sources, add emit) {
	for who, n := range s.providers(s.census.Linked) {
		add(n, who)
	}
}

// mostHosts bounds the series of tls_cert_expiry_seconds: a certificate may have hundreds of names.
const mostHosts = 20

func readCertificates(s *Sources, add emit) {
	ends := s.Certificates()
	hosts := slices.SortedFunc(maps.Keys(ends), func(a, b string) int { return cmp.Or(ends[a].Compare(ends[b]), cmp.Compare(a, b)) })
	for _, host := range hosts[:min(len(hosts), mostHosts)] {
		if end := ends[host]; !end.IsZero() { // false until a certificate was read
			add(time.Until(end).Seconds(), host)
		}
	}
}

func readLoops(s *Sources, add emit) {
	for i, busy := range s.Loops().Busy {
		add(busy, strconv.Itoa(i))
	}
}

func readTools(of func(registry.ToolStats) int64) func(*Sources, emit) {
	return func(s *Sources, add emit) {
		for tool, stats := range s.Tools() {
			if tool == registry.UnknownTool {
				tool = unknown
			}
			add(float64(of(stats)), tool)
		}
	}
}

func readDecisions(s *Sources, add emit) {
	decided := s.Traces().Decided
	for _, d := range traces.Decisions() {
		add(float64(decided[d]), string(d))
	}
}

func readSpans(s *Sources, add emit) {
	is := s.Traces()
	add(float64(is.Sent), "sent")
	add(float64(is.Failed), "failed")
	add(float64(is.Dropped), "dropped")
}

func readAudit(of func(audit.SinkStats) float64) func(*Sources, emit) {
	return func(s *Sources, add emit) {
		stats := s.Audit()
		add(of(stats.Stream), "stream")
		add(of(stats.Lines), "file")
	}
}

// readLimited reads the refusals by limit. Every limit has a series from the start.
func readLimited(s *Sources, add emit) {
	refused := s.Usage().Refused
	for _, limit := range meter.Limits() {
		if _, ok := refused[meter.Limited{Limit: limit, Key: meter.NoKey}]; !ok {
			add(0, limit, meter.NoKey)
		}
	}
	for of, n := range refused {
		add(float64(n), of.Limit, of.Key)
	}
}

func readWebhooks(s *Sources, add emit) {
	for name, w := range s.Webhooks() {
		add(float64(w.Delivered), name, "delivered")
		add(float64(w.GivenUp), name, "given_up")
		add(float64(w.Dropped), name, "dropped")
	}
}

func truth(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// Prefix begins each family's name.
const Prefix = "voicegw_"

// Kind is the type of a family.
type Kind uint8

// The kinds.
const (
	Counter Kind = iota + 1
	Gauge
	Histogram
)

// Family is one row of the table.
type Family struct {
	// Name is without Prefix and ends in its unit: _seconds, _ratio, _usd; counters end in _total.
	Name    string
	Kind    Kind
	Labels  []string
	Buckets []float64
	Help    string

	// ends are the values of the labels except provider and model, or tool and mode, for the series that begin at zero; an event
	// with another value is not counted. Without ends, a series begins with its first event, and its values are not limited.
	ends [][]string
	// read reads the family on a scrape, readHistogram counts kept elsewhere. Nil for families filled by events.
	read          func(*Sources, emit)
	readHistogram func(*Sources) counts
}

type counts struct {
	each []uint64 // by bucket; the last one is above all bounds
	sum  float64
}

func (f *Family) isRead() bool { return f.read != nil || f.readHistogram != nil }

// emit adds a series to the family being read, with its label values in order.
type emit func(value float64, labels ...string)

// FullName is the name with Prefix.
func (f *Family) FullName() string { return Prefix + f.Name }

// Families returns the table.
func Families() []Family { return slices.Clone(families) }

func inSeconds(all []time.Duration) []float64 {
	var s []float64
	for _, d := range all {
		s = append(s, d.Seconds())
	}
	return s
}

// The buckets, in seconds unless named otherwise. 1.5 and 0.05 are the service level objectives in docs.
var (
	untilAudio = []float64{.01, .025, .05, .1, .2, .3, .5, .7, 1, 1.5, 2, 3, 5, 8, 15}
	fast       = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1}
	slow       = []float64{.01, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}
	gaps       = []float64{.05, .1, .2, .3, .5, 1, 5} // gaps up to 0.3 s are inaudible
	calling    = []float64{.05, .25, 1, 2.5, 5, 15}
	answering  = []float64{2, 5, 15, 60, 300} // for a person's reaction
	lengths    = []float64{10, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200}
	rounds     = inSeconds(nonblock.RoundBounds())
	coarse     = []float64{.1, 1, 10} // for families with many label values
	ratios     = []float64{.1, .25, .5, .75, .9, 1}
)
