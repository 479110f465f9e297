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
	"voicegw/internal/traces"
	"voicegw/registry"
)

// families is the table of all families. To add one that is read, a row is enough. One that events
// fill also needs the code that counts the event: in watch.go (with a field of watcher that newWatcher looks up)
// what sessions tell, in audited.go calls of tools, in texts.go what the text agent tells, in metrics.go what the
// process tells. Then run go run ./scripts/dev metrics, and show it in a panel of deploy/grafana/voicegw.json.
var families = []Family{
	// The process.
	{Name: "build_info", Kind: Gauge, Labels: []string{"version", "go", "tools_version"}, read: readBuild,
		Help: "Always 1; the labels tell which version runs, and with which tools."},
	{Name: "ready", Kind: Gauge, read: func(s *Sources, add emit) { add(truth(s.Ready())) },
		Help: "1 if the gateway takes new sessions, else 0."},
	{Name: "overloaded", Kind: Gauge, Labels: []string{"reason"}, read: readOverload,
		Help: "1 if no new session is taken because memory runs short (memory) or the store has been away for 10 s (store), else 0."},
	{Name: "memory_used_ratio", Kind: Gauge, read: func(s *Sources, add emit) { add(s.Overload().Share) },
		Help: "The share of its limit of memory that the gateway cannot give back; 0 without a limit."},
	{Name: "draining", Kind: Gauge, read: func(s *Sources, add emit) { add(truth(s.census.Draining)) },
		Help: "1 if the gateway is shutting down, else 0."},

	{Name: "reloads_total", Kind: Counter, Labels: []string{"result"},
		Help: "Readings of the configuration while the gateway ran: taken over (ok), or refused because something in it was wrong (refused)."},

	// Sessions.
	{Name: "sessions_active", Kind: Gauge, Labels: []string{"provider", "state"}, read: readSessions,
		Help: "Running sessions; state is attached, or detached while the client is away and may come back."},
	{Name: "sessions_limit", Kind: Gauge, read: func(s *Sources, add emit) { add(float64(s.census.Most)) },
		Help: "How many sessions may run at once (limits.sessions)."},
	{Name: "clients_waiting", Kind: Gauge, read: func(s *Sources, add emit) { add(float64(s.census.Waiting)) },
		Help: "Connections that have not sent session.start yet."},
	{Name: "clients_carried", Kind: Gauge, read: func(s *Sources, add emit) { add(float64(s.census.Carried)) },
		Help: "Clients whose session another gateway runs, and who are connected through this one."},
	{Name: "downlink_backlog_seconds", Kind: Gauge, read: func(s *Sources, add emit) { add(s.census.Backlog.Seconds()) },
		Help: "The most audio that waits for one client."},
	{Name: "sessions_started_total", Kind: Counter, Labels: []string{"provider", "model", "entry"},
		Help: "Sessions that began, by how the client came in; takeover means that another gateway had run the session before."},
	{Name: "sessions_ended_total", Kind: Counter, Labels: []string{"provider", "reason"},
		Help: "Sessions that ended, by the reason of docs/protocol.md."},
	{Name: "sessions_refused_total", Kind: Counter, Labels: []string{"reason"},
		Help: "Connections that got no session, by the reason."},
	{Name: "session_duration_seconds", Kind: Histogram, Labels: []string{"provider"}, Buckets: lengths,
		Help: "How long sessions lasted on this gateway."},
	{Name: "session_start_seconds", Kind: Histogram, Labels: []string{"provider", "stage"}, Buckets: slow,
		Help: "How long it took to begin a session: wait for session.start, identify the client, connect to the model, and the total."},
	{Name: "client_messages_rejected_total", Kind: Counter, Labels: []string{"code"},
		Help: "What clients sent and the gateway refused, by the code of the error."},
	{Name: "slow_clients_total", Kind: Counter, Labels: []string{"provider"},
		Help: "Clients that fell too far behind and lost their connection."},
	{Name: "resume_total", Kind: Counter, Labels: []string{"outcome"},
		Help: "Clients that wanted to come back to their session: local, relayed, moved and taken_over have, the others are the reasons of refusals."},
	{Name: "resume_seconds", Kind: Histogram, Labels: []string{"outcome"}, Buckets: slow,
		Help: "How long coming back took, from the new connection on."},

	// Turns.
	{Name: "turns_total", Kind: Counter, Labels: []string{"provider", "model", "status"},
		Help: "Turns by how they ended: completed, interrupted or failed."},
	{Name: "turn_first_audio_seconds", Kind: Histogram, Labels: []string{"provider", "model", "part"}, Buckets: untilAudio,
		Help: "From the end of the user's speech to the first audio sent to the client: the total, and the parts that detection, the provider and the gateway took."},
	{Name: "turn_failures_total", Kind: Counter, Labels: []string{"provider", "code"},
		Help: "Errors that did not end a session, by their code."},
	{Name: "interruptions_total", Kind: Counter, Labels: []string{"provider", "by"},
		Help: "Answers that the user cut off: by speech, by text, with stop, or by an action."},
	{Name: "bargein_seconds", Kind: Histogram, Labels: []string{"provider"}, Buckets: fast,
		Help: "From the beginning of the user's speech to the moment when the rest of the answer was dropped."},
	{Name: "truncated_heard_ratio", Kind: Histogram, Labels: []string{"provider"}, Buckets: ratios,
		Help: "How much of the audio that was sent of an interrupted answer the user had heard, by the best guess."},
	{Name: "nudges_total", Kind: Counter, Labels: []string{"provider"},
		Help: "How often a silent model was asked to answer."},
	{Name: "audio_seconds_total", Kind: Counter, Labels: []string{"direction", "provider"},
		Help: "Audio from clients (up) and to clients (down), added at the end of each turn."},
	{Name: "audio_dropped_seconds_total", Kind: Counter, Labels: []string{"direction", "reason"},
		Help: "Audio that was dropped: up because it waited too long (backlog) or came too fast (ahead), down because it was interrupted or nobody was there (unheard)."},
	{Name: "tokens_total", Kind: Counter, Labels: []string{"provider", "model", "direction", "modality", "cached"},
		Help: "Tokens of voice turns. What a provider counts in no modality has the modality other."},
	{Name: "cost_usd_total", Kind: Counter, Labels: []string{"provider", "model"},
		Help: "What voice sessions have cost, in US dollars, by the table of prices; a model without a price is not here."},
	{Name: "cost_day_budget_usd", Kind: Gauge, read: func(s *Sources, add emit) { add(s.DayBudget()) },
		Help: "What all gateways together are meant to cost a day, in US dollars (prices.day_budget); 0 if nothing is said."},
	{Name: "turns_estimated_total", Kind: Counter, Labels: []string{"provider", "model"},
		Help: "Voice turns whose tokens are a guess, because the model reports none."},
	{Name: "turns_unpriced_total", Kind: Counter, Labels: []string{"provider", "model"},
		Help: "Voice turns that used tokens whose price is not known."},

	// Providers.
	{Name: "provider_connections_active", Kind: Gauge, Labels: []string{"provider"}, read: readLinks,
		Help: "Sessions that have a connection to the model."},
	{Name: "provider_connects_total", Kind: Counter, Labels: []string{"provider", "outcome"},
		Help: "Attempts to connect to a model: ok, or the kind of the error."},
	{Name: "provider_connect_seconds", Kind: Histogram, Labels: []string{"provider", "how"}, Buckets: slow,
		Help: "How long successful attempts took: for a new conversation (fresh), one that the provider remembers (resumed) or is told again (replayed)."},
	{Name: "provider_closes_total", Kind: Counter, Labels: []string{"provider", "kind", "code"},
		Help: "Connections that ended although their session went on, by the kind of the error and, if it is a usual one, the provider's code."},
	{Name: "provider_errors_total", Kind: Counter, Labels: []string{"provider", "kind"},
		Help: "Errors that a model has reported and after which its connection went on, by kind. Clients are not shown those of the kind ignore, such as a refused truncation."},
	{Name: "provider_answers_failed_total", Kind: Counter, Labels: []string{"provider", "kind"},
		Help: "Answers of models that failed or were cut off, by the kind of the error (docs/providers.md)."},
	{Name: "provider_events_skipped_total", Kind: Counter, Labels: []string{"provider", "why"},
		Help: "Messages of models that meant nothing to the gateway: of an unknown type, or malformed."},
	{Name: "rotations_total", Kind: Counter, Labels: []string{"provider", "trigger", "outcome"},
		Help: "Connections to a model that were replaced: the conversation was resumed, replayed or began afresh, or no connection could be had (failed)."},
	{Name: "rotation_gap_seconds", Kind: Histogram, Labels: []string{"provider", "trigger"}, Buckets: gaps,
		Help: "How long sessions had no connection to a model while it was replaced."},

	// Text.
	{Name: "chat_turns_total", Kind: Counter, Labels: []string{"status", "code"},
		Help: "Turns of the text agent: completed or failed, and with which error; left if the client did not wait."},
	{Name: "chat_turn_seconds", Kind: Histogram, Buckets: slow,
		Help: "How long turns of the text agent took."},
	{Name: "chat_first_text_seconds", Kind: Histogram, Buckets: untilAudio,
		Help: "From a message to the first piece of text of its answer."},
	{Name: "chat_tokens_total", Kind: Counter, Labels: []string{"direction", "cached"},
		Help: "Tokens of the text agent's turns."},
	{Name: "chat_cost_usd_total", Kind: Counter,
		Help: "What turns of the text agent have cost, in US dollars, by the table of prices."},
	{Name: "http_requests_total", Kind: Counter, Labels: []string{"route", "code"},
		Help: "Answered requests by route and class of the status; those that become WebSockets are not here."},
	{Name: "http_request_seconds", Kind: Histogram, Labels: []string{"route"}, Buckets: coarse,
		Help: "How long answers took, to the end of streams."},

	{Name: "auth_failures_total", Kind: Counter, Labels: []string{"why"},
		Help: "Wrong keys and tokens that were shown: why, or limit for those from an address that has shown too many."},

	{Name: "rate_limited_total", Kind: Counter, Labels: []string{"limit", "key"}, read: readLimited,
		Help: "Sessions, tickets and messages that a limit of a user or key has refused: which limit, and the name of the key or issuer; none for those without."},
	{Name: "usage_unwritten", Kind: Gauge, read: func(s *Sources, add emit) { add(float64(s.Usage().Unwritten)) },
		Help: "Entries of what users and keys have used that wait to be written to the store."},
	{Name: "usage_dropped_total", Kind: Counter, read: func(s *Sources, add emit) { add(float64(s.Usage().Dropped)) },
		Help: "Times that something was used and not counted, because there was no room: too many users on one day, or too much that the store has not taken."},

	{Name: "tls_cert_expiry_seconds", Kind: Gauge, Labels: []string{"host"}, read: readCertificates,
		Help: "How long the certificate of a configured name is still valid; of many names, those that end first."},

	// Tools, by voice and by text.
	{Name: "tool_calls_total", Kind: Counter, Labels: []string{"tool", "mode", "outcome"},
		Help: "Calls of tools: ok, cached (an earlier answer was given), or the type of the error. A version beside a tool has its own id."},
	{Name: "tool_seconds", Kind: Histogram, Labels: []string{"tool", "part"}, Buckets: calling,
		Help: "How long calls waited before their handler began (queued), and how long they ran (run)."},
	{Name: "tool_clamped_total", Kind: Counter, Labels: []string{"tool", "mode"},
		Help: "Calls whose arguments were lowered to a limit."},
	{Name: "confirmations_total", Kind: Counter, Labels: []string{"tool", "outcome"},
		Help: "Actions that a person must approve: required, and then approved, denied, expired or used."},
	{Name: "confirmation_wait_seconds", Kind: Histogram, Labels: []string{"outcome"}, Buckets: answering,
		Help: "How long a person took to approve or deny an action, or how long a question was open that expired."},
	{Name: "ledger_conflicts_total", Kind: Counter, Labels: []string{"tool"},
		Help: "Side effects that were not begun because the ledger knows the same one, without its outcome."},
	{Name: "tool_handlers_running", Kind: Gauge, Labels: []string{"tool"}, read: readTools(func(t registry.ToolStats) int64 { return t.Running }),
		Help: "Handlers of tools that run now."},
	{Name: "tool_handlers_left_behind", Kind: Gauge, Labels: []string{"tool"}, read: readTools(func(t registry.ToolStats) int64 { return t.LeftBehind }),
		Help: "Handlers that run although their deadline is over or their call was cancelled."},
	{Name: "tool_handlers_abandoned_total", Kind: Counter, Labels: []string{"tool"}, read: readTools(func(t registry.ToolStats) int64 { return t.Abandoned }),
		Help: "Handlers that were ever left behind."},

	// What sessions depend on.
	{Name: "loop_busy_ratio", Kind: Gauge, Labels: []string{"loop"}, read: readLoops,
		Help: "The share of its time that a loop, which reads from connections, has worked."},
	{Name: "loop_lag_seconds", Kind: Histogram, Buckets: rounds, readHistogram: readRounds,
		Help: "How long rounds of the loops took: what comes for a connection waits at most that long."},
	{Name: "store_op_seconds", Kind: Histogram, Labels: []string{"op"}, Buckets: fast,
		Help: "How long operations of the store took, with all attempts."},
	{Name: "store_errors_total", Kind: Counter, Labels: []string{"op"},
		Help: "Operations of the store that failed because it could not be reached."},

	// Webhooks.
	{Name: "webhook_events_total", Kind: Counter, Labels: []string{"webhook", "outcome"}, read: readWebhooks,
		Help: "Events for receivers of webhooks: delivered, given up after a day or because the receiver said so (given_up), or dropped because there was no room to keep them."},
	{Name: "webhook_failures_total", Kind: Counter, Labels: []string{"webhook"}, read: func(s *Sources, add emit) {
		for name, w := range s.Webhooks() {
			add(float64(w.Failed), name)
		}
	}, Help: "Failed attempts to send an event; it is sent again."},
	{Name: "webhook_waiting_events", Kind: Gauge, Labels: []string{"webhook"}, read: func(s *Sources, add emit) {
		for name, w := range s.Webhooks() {
			add(float64(w.Waiting), name)
		}
	}, Help: "Events that wait for a receiver, in all gateways with a common store together."},

	// The audit.
	{Name: "audit_written_total", Kind: Counter, Labels: []string{"sink"}, read: readAudit(func(s audit.SinkStats) float64 { return float64(s.Written) }),
		Help: "Records of the audit that a sink accepted."},
	{Name: "audit_dropped_total", Kind: Counter, Labels: []string{"sink"}, read: readAudit(func(s audit.SinkStats) float64 { return float64(s.Dropped + s.GivenUp) }),
		Help: "Records of the audit that a sink will never get."},
	{Name: "audit_failures_total", Kind: Counter, Labels: []string{"sink"}, read: readAudit(func(s audit.SinkStats) float64 { return float64(s.Failed) }),
		Help: "Failed attempts to write to a sink; the records are written again."},
	{Name: "audit_lag_seconds", Kind: Gauge, Labels: []string{"sink"}, read: readAudit(func(s audit.SinkStats) float64 { return s.Lag.Seconds() }),
		Help: "How long the oldest record of the audit has waited that is not written."},
	{Name: "audit_waiting_records", Kind: Gauge, Labels: []string{"sink"}, read: readAudit(func(s audit.SinkStats) float64 { return float64(s.Waiting) }),
		Help: "Records of the audit that are not written yet."},

	// The traces.
	{Name: "trace_decisions_total", Kind: Counter, Labels: []string{"decision"}, read: readDecisions,
		Help: "Turns, and other groups of spans, by the reason for which they were kept; none means that they were not."},
	{Name: "trace_spans_total", Kind: Counter, Labels: []string{"outcome"}, read: readSpans,
		Help: "Spans that were kept: sent, failed (the collector has not taken them), or dropped (there was no room for them)."},
	{Name: "trace_waiting_spans", Kind: Gauge, read: func(s *Sources, add emit) { add(float64(s.Traces().Waiting)) },
		Help: "Spans that wait to be sent."},
}

func readBuild(s *Sources, add emit) { add(1, s.Version, runtime.Version(), s.toolsVersion()) }

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
		if end := ends[host]; !end.IsZero() { // otherwise no certificate has been read yet
			add(time.Until(end).Seconds(), host)
		}
	}
}

func readLoops(s *Sources, add emit) {
	for i, busy := range s.Loops().Busy {
		add(busy, strconv.Itoa(i))
	}
}

func readRounds(s *Sources) counts {
	load := s.Loops()
	return counts{each: load.Rounds, sum: load.RoundTime.Seconds()}
}

// readTools reads one counter of each tool.
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

// readAudit reads one counter of each sink of the audit.
func readAudit(of func(audit.SinkStats) float64) func(*Sources, emit) {
	return func(s *Sources, add emit) {
		stats := s.Audit()
		add(of(stats.Stream), "stream")
		add(of(stats.Lines), "file")
	}
}

// readLimited reads how often each limit has refused somebody. Every limit has a series from the start.
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

// readWebhooks reads what has become of events. Names are few: config bounds them.
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
