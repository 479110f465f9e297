package dashboard

// Panel is one row of the table of panels.
type Panel struct {
	Title string
	// Unit is Grafana's name for the unit: s, percentunit, short, currencyUSD, reqps.
	Unit string
	// Number shows the present value alone, instead of its course.
	Number bool
	// Help tells what to look for.
	Help    string
	Queries []Query
	// MayBeEmpty says that no data is nothing unusual: nothing of the kind has happened.
	MayBeEmpty bool
}

// Query is one curve of a panel, or several by label.
type Query struct {
	// Expr is PromQL. "@" stands for the variables of the dashboard that choose gateways, and
	// "@p" for those and the provider.
	Expr string
	// Legend names a curve, with labels as {{label}}.
	Legend string
}

// Row is a heading of the dashboard with its panels.
type Row struct {
	Title  string
	Panels []Panel
}

// the quantile q of a histogram of turns, in PromQL.
func firstAudio(q, part string) string {
	return `histogram_quantile(` + q + `, sum by (le) (rate(voicegw_turn_first_audio_seconds_bucket{@p,part="` + part + `"}[$__rate_interval])))`
}

func quantile(q, metric, by string) string {
	labels := "le"
	if by != "" {
		labels += ", " + by
	}
	return `histogram_quantile(` + q + `, sum by (` + labels + `) (rate(voicegw_` + metric + `_bucket{@}[$__rate_interval])))`
}

func rate(by, metric, selector string) string {
	return `sum by (` + by + `) (rate(voicegw_` + metric + `{` + selector + `}[$__rate_interval]))`
}

// rows is the table of panels. The first row has the four numbers that people ask for.
var rows = []Row{
	{"The four numbers", []Panel{
		{Title: "Cost per minute of talk", Unit: "currencyUSD", Number: true, MayBeEmpty: true,
			Help:    "What the models cost for each minute of speech, the users' and the models' together. Empty while no model with a known price has been used.",
			Queries: []Query{{`sum(increase(voicegw_cost_usd_total{@p}[$__range])) / (sum(increase(voicegw_audio_seconds_total{@p}[$__range])) / 60)`, "a minute"}}},
		{Title: "Response time", Unit: "s", Number: true,
			Help: "From the end of the user's speech to the first audio of the answer.",
			Queries: []Query{
				{`histogram_quantile(0.5, sum by (le) (increase(voicegw_turn_first_audio_seconds_bucket{@p,part="total"}[$__range])))`, "p50"},
				{`histogram_quantile(0.95, sum by (le) (increase(voicegw_turn_first_audio_seconds_bucket{@p,part="total"}[$__range])))`, "p95"},
			}},
		{Title: "Talk-over rate", Unit: "percentunit", Number: true,
			Help:    "The share of turns in which the user spoke over the answer.",
			Queries: []Query{{`sum(increase(voicegw_interruptions_total{@p,by="user_speech"}[$__range])) / sum(increase(voicegw_turns_total{@p}[$__range]))`, "of turns"}}},
		{Title: "Dead-air events", Unit: "short", Number: true,
			Help:    "How often the user waited for nothing: silent models that had to be asked again, and turns without an answer.",
			Queries: []Query{{`sum(increase(voicegw_nudges_total{@p}[$__range])) + sum(increase(voicegw_turn_failures_total{@p,code="no_answer"}[$__range]))`, "events"}}},
	}},
	{"Sessions", []Panel{
		{Title: "Sessions", Unit: "short", Help: "Detached ones wait for their client to come back.",
			Queries: []Query{{`sum by (state) (voicegw_sessions_active{@p})`, "{{state}}"}, {`sum(voicegw_sessions_limit{@})`, "limit"}}},
		{Title: "Sessions by gateway", Unit: "short",
			Queries: []Query{{`sum by (instance) (voicegw_sessions_active{@p})`, "{{instance}}"}}},
		{Title: "Begun and ended", Unit: "reqps",
			Queries: []Query{{rate("entry", "sessions_started_total", "@p"), "begun: {{entry}}"}, {rate("reason", "sessions_ended_total", "@p") + " > 0", "ended: {{reason}}"}}},
		{Title: "Refused", Unit: "reqps", MayBeEmpty: true, Help: "Connections that got no session.",
			Queries: []Query{{rate("reason", "sessions_refused_total", "@") + " > 0", "{{reason}}"}}},
		{Title: "Length of sessions", Unit: "s", Queries: []Query{{quantile("0.5", "session_duration_seconds", ""), "p50"}, {quantile("0.95", "session_duration_seconds", ""), "p95"}}},
		{Title: "Time to begin, p95", Unit: "s", Help: "Until session.start has come, the client is known, and the model is reached.",
			Queries: []Query{{quantile("0.95", "session_start_seconds", "stage"), "{{stage}}"}}},
		{Title: "Clients without a session here", Unit: "short", Queries: []Query{{`sum(voicegw_clients_waiting{@})`, "waiting"}, {`sum(voicegw_clients_carried{@})`, "carried to other gateways"}}},
		{Title: "Coming back", Unit: "reqps", MayBeEmpty: true, Queries: []Query{{rate("outcome", "resume_total", "@") + " > 0", "{{outcome}}"}}},
		{Title: "Time to come back, p95", Unit: "s", MayBeEmpty: true, Queries: []Query{{quantile("0.95", "resume_seconds", "outcome"), "{{outcome}}"}}},
	}},
	{"Turns", []Panel{
		{Title: "Turns", Unit: "reqps", Queries: []Query{{rate("status", "turns_total", "@p"), "{{status}}"}}},
		{Title: "Response time", Unit: "s", Queries: []Query{{firstAudio("0.5", "total"), "p50"}, {firstAudio("0.95", "total"), "p95"}, {firstAudio("0.99", "total"), "p99"}}},
		{Title: "Parts of the response time, p95", Unit: "s", Help: "Which part is slow: noticing that the user has finished, the provider's model, or the gateway.",
			Queries: []Query{{`histogram_quantile(0.95, sum by (le, part) (rate(voicegw_turn_first_audio_seconds_bucket{@p,part!="total"}[$__rate_interval])))`, "{{part}}"}}},
		{Title: "Errors that clients were told of", Unit: "reqps", MayBeEmpty: true, Queries: []Query{{rate("code", "turn_failures_total", "@p") + " > 0", "{{code}}"}}},
		{Title: "Interruptions", Unit: "reqps", Queries: []Query{{rate("by", "interruptions_total", "@p"), "{{by}}"}}},
		{Title: "Time to fall silent, p95", Unit: "s", MayBeEmpty: true, Help: "From the beginning of the user's speech until the rest of the answer is dropped.",
			Queries: []Query{{quantile("0.95", "bargein_seconds", "provider"), "{{provider}}"}}},
		{Title: "Heard of interrupted answers, median", Unit: "percentunit", MayBeEmpty: true,
			Queries: []Query{{`histogram_quantile(0.5, sum by (le) (rate(voicegw_truncated_heard_ratio_bucket{@p}[$__rate_interval])))`, "heard"}}},
		{Title: "Silent models that were asked again", Unit: "reqps", Queries: []Query{{rate("provider", "nudges_total", "@p"), "{{provider}}"}}},
	}},
	{"Audio and tokens", []Panel{
		{Title: "Audio", Unit: "short", Help: "Seconds of audio a second: how many people and models speak at once.",
			Queries: []Query{{rate("direction", "audio_seconds_total", "@p"), "{{direction}}"}}},
		{Title: "Audio dropped", Unit: "short", Help: "Seconds of audio a second. Unheard is usual: the rest of interrupted answers.",
			Queries: []Query{{rate("direction, reason", "audio_dropped_seconds_total", "@"), "{{direction}} {{reason}}"}}},
		{Title: "Longest backlog for a client", Unit: "s", Queries: []Query{{`max by (instance) (voicegw_downlink_backlog_seconds{@})`, "{{instance}}"}}},
		{Title: "Slow clients", Unit: "reqps", Queries: []Query{{rate("provider", "slow_clients_total", "@p"), "{{provider}}"}}},
		{Title: "Refused messages of clients", Unit: "reqps", MayBeEmpty: true, Queries: []Query{{rate("code", "client_messages_rejected_total", "@") + " > 0", "{{code}}"}}},
		{Title: "Tokens", Unit: "short", Help: "Tokens a second.", Queries: []Query{{rate("direction, modality, cached", "tokens_total", "@p"), "{{direction}} {{modality}}, cached {{cached}}"}}},
		{Title: "Cost an hour", Unit: "currencyUSD", MayBeEmpty: true, Queries: []Query{
			{`3600 * ` + rate("provider, model", "cost_usd_total", "@p"), "{{provider}} {{model}}"}, {`3600 * sum(rate(voicegw_chat_cost_usd_total{@}[$__rate_interval]))`, "text"},
		}},
		{Title: "Cost a day at the pace of the last hour", Unit: "currencyUSD", Help: "Beside the budget of a day (prices.day_budget); 0 if there is no budget.", Queries: []Query{
			{`24 * ((sum(increase(voicegw_cost_usd_total{@}[1h])) or vector(0)) + sum(increase(voicegw_chat_cost_usd_total{@}[1h])))`, "at this pace"}, {`max(voicegw_cost_day_budget_usd{@})`, "budget"},
		}},
		{Title: "Turns without a price", Unit: "reqps", Queries: []Query{{rate("provider, model", "turns_unpriced_total", "@p"), "{{provider}} {{model}}"}}},
		{Title: "Turns whose tokens are a guess", Unit: "reqps", Help: "The model reports none.", Queries: []Query{{rate("provider, model", "turns_estimated_total", "@p"), "{{provider}} {{model}}"}}},
	}},
	{"Providers", []Panel{
		{Title: "Connections", Unit: "short", Queries: []Query{{`sum by (provider) (voicegw_provider_connections_active{@p})`, "{{provider}}"}}},
		{Title: "Attempts to connect", Unit: "reqps", Queries: []Query{{rate("provider, outcome", "provider_connects_total", "@p") + " > 0", "{{provider}} {{outcome}}"}}},
		{Title: "Time to connect, p95", Unit: "s", Queries: []Query{{`histogram_quantile(0.95, sum by (le, provider, how) (rate(voicegw_provider_connect_seconds_bucket{@p}[$__rate_interval])))`, "{{provider}} {{how}}"}}},
		{Title: "Answers that failed", Unit: "reqps", MayBeEmpty: true, Queries: []Query{{rate("provider, kind", "provider_answers_failed_total", "@p") + " > 0", "{{provider}} {{kind}}"}}},
		{Title: "Connections that broke", Unit: "reqps", MayBeEmpty: true, Queries: []Query{{rate("provider, kind, code", "provider_closes_total", "@p") + " > 0", "{{provider}} {{kind}} {{code}}"}}},
		{Title: "Connections replaced", Unit: "reqps", MayBeEmpty: true, Queries: []Query{{rate("provider, trigger, outcome", "rotations_total", "@p") + " > 0", "{{provider}} {{trigger}}: {{outcome}}"}}},
		{Title: "Without a connection, p95", Unit: "s", MayBeEmpty: true, Queries: []Query{{quantile("0.95", "rotation_gap_seconds", "trigger"), "{{trigger}}"}}},
		{Title: "Errors of models", Unit: "reqps", MayBeEmpty: true, Help: "Their connections went on. The kind ignore was not shown to clients.",
			Queries: []Query{{rate("provider, kind", "provider_errors_total", "@p") + " > 0", "{{provider}} {{kind}}"}}},
		{Title: "Messages that mean nothing", Unit: "reqps", Help: "A provider has changed its protocol, or sends nonsense.",
			Queries: []Query{{rate("provider, why", "provider_events_skipped_total", "@p"), "{{provider}} {{why}}"}}},
	}},
	{"Text and HTTP", []Panel{
		{Title: "Turns in text", Unit: "reqps", MayBeEmpty: true, Queries: []Query{{rate("status, code", "chat_turns_total", "@") + " > 0", "{{status}} {{code}}"}}},
		{Title: "Time of turns in text", Unit: "s", MayBeEmpty: true, Queries: []Query{
			{quantile("0.95", "chat_first_text_seconds", ""), "first text, p95"}, {quantile("0.95", "chat_turn_seconds", ""), "whole, p95"},
		}},
		{Title: "Tokens in text", Unit: "short", Help: "Tokens a second.", Queries: []Query{{rate("direction, cached", "chat_tokens_total", "@"), "{{direction}}, cached {{cached}}"}}},
		{Title: "Requests", Unit: "reqps", MayBeEmpty: true, Queries: []Query{{rate("route, code", "http_requests_total", "@") + " > 0", "{{route}} {{code}}"}}},
		{Title: "Events for webhooks", Unit: "reqps", MayBeEmpty: true, Queries: []Query{{rate("webhook, outcome", "webhook_events_total", "@") + " > 0", "{{webhook}}: {{outcome}}"}, {rate("webhook", "webhook_failures_total", "@") + " > 0", "{{webhook}}: failed attempts"}}},
		{Title: "Events that wait for webhooks", Unit: "short", MayBeEmpty: true, Queries: []Query{{`max by (webhook) (voicegw_webhook_waiting_events{@})`, "{{webhook}}"}}},
		{Title: "Readings of the configuration", Unit: "reqps", Queries: []Query{{rate("result", "reloads_total", "@"), "{{result}}"}}},
		{Title: "Wrong keys and tokens", Unit: "reqps", Queries: []Query{{rate("why", "auth_failures_total", "@"), "{{why}}"}}},
		{Title: "Refused by a limit", Unit: "reqps", Help: "Sessions, tickets and messages of users and keys that have used what they may.", Queries: []Query{{rate("limit, key", "rate_limited_total", "@"), "{{limit}} {{key}}"}}},
		{Title: "Usage that is not written, or not counted", Unit: "short", Queries: []Query{
			{`sum by (instance) (voicegw_usage_unwritten{@})`, "waits, {{instance}}"},
			{`sum by (instance) (increase(voicegw_usage_dropped_total{@}[1h]))`, "not counted, {{instance}}"},
		}},
		{Title: "Time of answers, p95", Unit: "s", MayBeEmpty: true, Queries: []Query{{quantile("0.95", "http_request_seconds", "route"), "{{route}}"}}},
	}},
	{"Tools", []Panel{
		{Title: "Calls", Unit: "reqps", MayBeEmpty: true, Queries: []Query{{rate("tool, outcome", "tool_calls_total", "@") + " > 0", "{{tool}} {{outcome}}"}}},
		{Title: "Time of calls, p95", Unit: "s", MayBeEmpty: true, Queries: []Query{{quantile("0.95", "tool_seconds", "tool, part"), "{{tool}} {{part}}"}}},
		{Title: "Approvals", Unit: "reqps", MayBeEmpty: true, Queries: []Query{{rate("tool, outcome", "confirmations_total", "@") + " > 0", "{{tool}} {{outcome}}"}}},
		{Title: "Time until a person answers, p50", Unit: "s", MayBeEmpty: true, Queries: []Query{{quantile("0.5", "confirmation_wait_seconds", "outcome"), "{{outcome}}"}}},
		{Title: "Arguments lowered to a limit", Unit: "reqps", MayBeEmpty: true, Queries: []Query{{rate("tool", "tool_clamped_total", "@") + " > 0", "{{tool}}"}}},
		{Title: "Actions of unknown outcome", Unit: "short", MayBeEmpty: true, Queries: []Query{{`sum by (tool) (increase(voicegw_ledger_conflicts_total{@}[1h])) > 0`, "{{tool}}"}}},
		{Title: "Handlers", Unit: "short", MayBeEmpty: true, Queries: []Query{
			{`sum by (tool) (voicegw_tool_handlers_running{@}) > 0`, "{{tool}} runs"}, {`sum by (tool) (voicegw_tool_handlers_left_behind{@}) > 0`, "{{tool}} left behind"},
			{`sum by (tool) (increase(voicegw_tool_handlers_abandoned_total{@}[1h])) > 0`, "{{tool}} abandoned in an hour"},
		}},
	}},
	{"The gateways", []Panel{
		{Title: "Ready", Unit: "short", Queries: []Query{{`voicegw_ready{@}`, "{{instance}} ready"}, {`voicegw_draining{@}`, "{{instance}} draining"}, {`voicegw_overloaded{@}`, "{{instance}} overloaded: {{reason}}"}}},
		{Title: "Memory of its limit", Unit: "percentunit", Help: "What a gateway cannot give back, of its limit. From 85 % it takes no new session.", Queries: []Query{{`voicegw_memory_used_ratio{@}`, "{{instance}}"}}},
		{Title: "Versions", Unit: "short", Queries: []Query{{`sum by (version, tools_version, go) (voicegw_build_info{@})`, "{{version}}, tools {{tools_version}}, {{go}}"}}},
		{Title: "Busy loops", Unit: "percentunit", Queries: []Query{{`voicegw_loop_busy_ratio{@}`, "{{instance}} {{loop}}"}}},
		{Title: "Rounds of loops, p99", Unit: "s", Help: "How long what comes for a connection may wait.", Queries: []Query{{quantile("0.99", "loop_lag_seconds", "instance"), "{{instance}}"}}},
		{Title: "The store, p99", Unit: "s", Queries: []Query{{quantile("0.99", "store_op_seconds", "op"), "{{op}}"}}},
		{Title: "Errors of the store", Unit: "reqps", Queries: []Query{{rate("op", "store_errors_total", "@"), "{{op}}"}}},
		{Title: "The audit", Unit: "reqps", Queries: []Query{
			{rate("sink", "audit_written_total", "@"), "{{sink}} written"}, {rate("sink", "audit_dropped_total", "@"), "{{sink}} lost"}, {rate("sink", "audit_failures_total", "@"), "{{sink}} failures"},
		}},
		{Title: "Records that wait for the audit", Unit: "short", Queries: []Query{{`sum by (instance, sink) (voicegw_audit_waiting_records{@})`, "{{instance}} {{sink}}"}}},
		{Title: "Oldest record that waits for the audit", Unit: "s", Queries: []Query{{`max by (instance, sink) (voicegw_audit_lag_seconds{@})`, "{{instance}} {{sink}}"}}},
		{Title: "Spans of traces", Unit: "reqps", Help: "Those that are lost harm nobody: the collector is away or too slow.", Queries: []Query{
			{rate("outcome", "trace_spans_total", "@"), "{{outcome}}"}, {`sum(voicegw_trace_waiting_spans{@})`, "waiting, in all"},
		}},
		{Title: "Why turns are kept in traces", Unit: "reqps", Queries: []Query{{rate("decision", "trace_decisions_total", "@"), "{{decision}}"}}},
		{Title: "Certificates", Unit: "s", MayBeEmpty: true, Help: "How long they are still valid.", Queries: []Query{{`min by (host) (voicegw_tls_cert_expiry_seconds{@})`, "{{host}}"}}},
		{Title: "CPU", Unit: "percentunit", Queries: []Query{{`rate(process_cpu_seconds_total{@}[$__rate_interval])`, "{{instance}}"}}},
		{Title: "Memory", Unit: "bytes", Queries: []Query{{`process_resident_memory_bytes{@}`, "{{instance}}"}}},
		{Title: "Goroutines", Unit: "short", Queries: []Query{{`go_goroutines{@}`, "{{instance}}"}}},
	}},
}

// Rows returns the table of panels.
func Rows() []Row { return rows }
