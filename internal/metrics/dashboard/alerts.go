package dashboard

import (
	"strings"

	"voicegw/transport"
)

// Alert is one row of the table of alerts.
type Alert struct {
	Name string
	// Expr is PromQL, and For is how long it must hold.
	Expr, For string
	// Severity is page for what must be looked at now, and ticket for what can wait until morning.
	Severity string
	// Summary says what is wrong, with labels as {{ $labels.provider }}.
	Summary string
	// Runbook is the paragraph of docs/operations.md: what it means, where to look, what to do.
	Runbook string
	// Bad are series with which it fires after At, and Good are some with which it does not. Series
	// that are not named are missing.
	Bad, Good []Series
	At        string
}

// Series is a series of a test: its name with labels, and its values, one a minute, as promtool
// writes them: "0+10x30" is 0, 10, 20 and so on, thirty times.
type Series struct{ Name, Values string }

// Record is a rule that records an expression.
type Record struct{ Name, Expr string }

// The service levels: 99 of 100 turns are answered, 95 of 100 begin to sound within 1.5 s of the end
// of the user's speech.
const (
	answeredBudget = "0.01"
	promptBudget   = "0.05"
)

// windows are those of the alerts about service levels (Google's SRE Workbook, chapter 5, "Multiwindow,
// Multi-Burn-Rate Alerts", read 2026-11-25).
var windows = []string{"5m", "30m", "1h", "6h"}

// Records returns the recording rules.
func Records() []Record {
	var all []Record
	for _, w := range windows {
		all = append(all,
			Record{"voicegw:turns_failed:ratio_rate" + w, `sum(rate(voicegw_turns_total{status="failed"}[` + w + `])) / sum(rate(voicegw_turns_total[` + w + `]))`},
			Record{"voicegw:first_audio_late:ratio_rate" + w, `1 - sum(rate(voicegw_turn_first_audio_seconds_bucket{part="total",le="1.5"}[` + w + `])) / sum(rate(voicegw_turn_first_audio_seconds_count{part="total"}[` + w + `]))`},
		)
	}
	return append(all,
		Record{"voicegw:first_audio_seconds:p50_5m", `histogram_quantile(0.5, sum by (le) (rate(voicegw_turn_first_audio_seconds_bucket{part="total"}[5m])))`},
		Record{"voicegw:first_audio_seconds:p95_5m", `histogram_quantile(0.95, sum by (le) (rate(voicegw_turn_first_audio_seconds_bucket{part="total"}[5m])))`},
		Record{"voicegw:gateway_part_seconds:p99_5m", `histogram_quantile(0.99, sum by (le) (rate(voicegw_turn_first_audio_seconds_bucket{part="gateway"}[5m])))`},
	)
}

// burns reports in PromQL whether a budget is spent that many times too fast, in two windows.
func burns(metric, budget, times, short, long string) string {
	one := func(w string) string { return metric + ":ratio_rate" + w + " > (" + times + " * " + budget + ")" }
	return one(short) + " and " + one(long)
}

// firstAudioSeries are turns, 60 a minute, of which late ones took between 1.5 and 3 s.
func firstAudioSeries(late string) []Series {
	of := func(le, values string) Series {
		return Series{`voicegw_turn_first_audio_seconds_bucket{part="total",provider="gemini",le="` + le + `"}`, values}
	}
	return []Series{of("1", late), of("1.5", late), of("2", late), of("3", "0+60x400"), of("+Inf", "0+60x400"),
		{`voicegw_turn_first_audio_seconds_count{part="total",provider="gemini"}`, "0+60x400"}}
}

// share returns turns, 100 a minute, of which so many are of the first name.
func share(bad, all, badValues, allValues string) []Series {
	return []Series{{bad, badValues}, {all, allValues}}
}

// kinds returns, as a regular expression, the kinds of failures that an alert counts.
func kinds(of transport.Alert) string {
	var all []string
	for _, k := range transport.Kinds() {
		if k.Failure().Alert == of {
			all = append(all, k.String())
		}
	}
	return strings.Join(all, "|")
}

// alerts is the table.
var alerts = []Alert{
	{Name: "VoicegwDown", Severity: "page", For: "1m",
		Expr:    `up == 0 and on (job, instance) sum by (job, instance) (max_over_time(voicegw_sessions_active[10m])) > 0`,
		Summary: "{{ $labels.instance }} does not answer, and had sessions.",
		Runbook: "The gateway is gone or cannot be reached by Prometheus. Clients come back to another gateway with the same store, or to this one when it runs again; without either their sessions are lost after `limits.resume_grace`. Look whether the process runs (`systemctl status voicegw`, `kubectl get pods`), then at the end of its log: `something has not ended`, a panic, or nothing at all, which is a kill by the kernel for want of memory (`dmesg`). Start it again with the same data folder.",
		Bad:     []Series{{`up{job="voicegw",instance="a:1"}`, "1x5 0x20"}, {`voicegw_sessions_active{job="voicegw",instance="a:1",state="attached"}`, "3x5 _x20"}},
		Good:    []Series{{`up{job="voicegw",instance="a:1"}`, "1x5 0x20"}, {`voicegw_sessions_active{job="voicegw",instance="a:1",state="attached"}`, "0x5 _x20"}}, At: "8m"},
	{Name: "VoicegwNotReady", Severity: "page", For: "2m",
		Expr:    `voicegw_ready == 0 and voicegw_draining == 0`,
		Summary: "{{ $labels.instance }} takes no new sessions.",
		Runbook: "`GET /readyz` says why: `behind` means that the gateway is too late with the running sessions (see VoicegwLoopLag), `unavailable` that the store does not answer (see VoicegwStoreErrors). Running sessions go on meanwhile. A gateway that is told to stop (`draining`) does not fire this.",
		Bad:     []Series{{"voicegw_ready", "1x5 0x20"}, {"voicegw_draining", "0x25"}}, Good: []Series{{"voicegw_ready", "1x5 0x20"}, {"voicegw_draining", "1x25"}}, At: "9m"},
	{Name: "VoicegwTurnsUnanswered", Severity: "page", For: "2m",
		Expr:    burns("voicegw:turns_failed", answeredBudget, "14.4", "5m", "1h"),
		Summary: "{{ $value | humanizePercentage }} of the turns fail.",
		Runbook: "More than one turn in seven gets no answer: at this pace a month's budget (1 % of the turns) is gone in two days. See the panel of errors by code: `no_answer` is a silent model, `provider_error` one that refuses. Compare the providers: if only one has trouble, let another one take over (`providers.fallback`, or `provider` for new sessions). Then its status page.",
		Bad:     share(`voicegw_turns_total{status="failed"}`, `voicegw_turns_total{status="completed"}`, "0+20x400", "0+80x400"),
		Good:    share(`voicegw_turns_total{status="failed"}`, `voicegw_turns_total{status="completed"}`, "0+5x400", "0+95x400"), At: "90m"},
	{Name: "VoicegwTurnsUnansweredSlowly", Severity: "ticket", For: "15m",
		Expr:    burns("voicegw:turns_failed", answeredBudget, "6", "30m", "6h"),
		Summary: "{{ $value | humanizePercentage }} of the turns have failed for hours.",
		Runbook: "As VoicegwTurnsUnanswered, at a slower pace: a month's budget is gone in five days.",
		Bad:     share(`voicegw_turns_total{status="failed"}`, `voicegw_turns_total{status="completed"}`, "0+8x500", "0+92x500"),
		Good:    share(`voicegw_turns_total{status="failed"}`, `voicegw_turns_total{status="completed"}`, "0+3x500", "0+97x500"), At: "400m"},
	{Name: "VoicegwAnswersLate", Severity: "page", For: "2m",
		Expr:    burns("voicegw:first_audio_late", promptBudget, "10", "5m", "1h"),
		Summary: "{{ $value | humanizePercentage }} of the answers begin later than 1.5 s after the user has finished.",
		Runbook: "Half of the answers are late, where 5 % may be. The panel of the parts tells whose fault it is: `provider` is the model (compare providers, see their status page, choose a faster model), `detection` the wait for the end of the user's speech (`vad.silence_ms`), `gateway` this machine (see VoicegwGatewaySlow).",
		Bad:     firstAudioSeries("0+20x400"), Good: firstAudioSeries("0+50x400"), At: "90m"},
	{Name: "VoicegwFirstAudioSlow", Severity: "ticket", For: "10m",
		Expr:    `histogram_quantile(0.95, sum by (le, provider) (rate(voicegw_turn_first_audio_seconds_bucket{part="total"}[10m]))) > 2`,
		Summary: "One answer in twenty of {{ $labels.provider }} begins later than {{ $value | humanizeDuration }} after the user has finished.",
		Runbook: "As VoicegwAnswersLate, for one provider: most people begin to speak again after two seconds of silence, and the talk-over rate goes up.",
		Bad:     firstAudioSeries("0+50x400"), Good: firstAudioSeries("0+59x400"), At: "30m"},
	{Name: "VoicegwNoAnswer", Severity: "page", For: "5m",
		Expr:    `sum by (provider) (rate(voicegw_turn_failures_total{code="no_answer"}[15m])) / sum by (provider) (rate(voicegw_turns_total[15m])) > 0.02`,
		Summary: "{{ $labels.provider }} leaves {{ $value | humanizePercentage }} of the turns unanswered.",
		Runbook: "The model was asked and said nothing, also when it was asked again (`voicegw_nudges_total`). Look for a change at the provider or of the model (`warn` lines of the log about models' ends), and whether a new prompt or a tool makes it silent: the [console](console.md#the-instruments) shows a turn from inside.",
		Bad:     share(`voicegw_turn_failures_total{provider="gemini",code="no_answer"}`, `voicegw_turns_total{provider="gemini",status="completed"}`, "0+5x60", "0+95x60"),
		Good:    share(`voicegw_turn_failures_total{provider="gemini",code="no_answer"}`, `voicegw_turns_total{provider="gemini",status="completed"}`, "0+1x60", "0+99x60"), At: "30m"},
	{Name: "VoicegwProviderDown", Severity: "page", For: "3m",
		Expr:    `1 - sum by (provider) (rate(voicegw_provider_connects_total{outcome="ok"}[5m])) / sum by (provider) (rate(voicegw_provider_connects_total[5m])) > 0.2 or sum by (provider) (rate(voicegw_provider_closes_total{kind=~"` + kinds(transport.AlertDown) + `"}[5m])) / sum by (provider) (rate(voicegw_provider_connects_total{outcome="ok"}[5m])) > 0.2 or sum by (provider) (rate(voicegw_provider_answers_failed_total{kind=~"` + kinds(transport.AlertDown) + `"}[5m])) / sum by (provider) (rate(voicegw_turns_total[5m])) > 0.2`,
		Summary: "{{ $value | humanizePercentage }} of the connections to {{ $labels.provider }}, or of its answers, fail.",
		Runbook: "The panels of attempts, of connections that broke and of answers that failed tell the kind: `retry` is the network or the provider (see its status page; does the machine resolve and reach its host?), `server` and `rate_limit` what the provider reports, `timeout` a provider that does not answer (the log names the missing event), `auth` a key that is not accepted, `quota` credit that is used up, `invalid` a setting or a model's name that the provider does not know any more. Running sessions go on as long as their connection lasts, then with `providers.fallback`. Set one, or make another provider the default.",
		Bad:     share(`voicegw_provider_connects_total{provider="gemini",outcome="retry"}`, `voicegw_provider_connects_total{provider="gemini",outcome="ok"}`, "0+30x60", "0+70x60"),
		Good:    share(`voicegw_provider_connects_total{provider="gemini",outcome="retry"}`, `voicegw_provider_connects_total{provider="gemini",outcome="ok"}`, "0+10x60", "0+90x60"), At: "20m"},
	{Name: "VoicegwProviderRefusesKey", Severity: "page", For: "0m",
		Expr: `sum by (provider, outcome) (increase(voicegw_provider_connects_total{outcome=~"` + kinds(transport.AlertKey) + `"}[10m])) > 0` +
			` or sum by (provider, outcome) (label_replace(increase(voicegw_provider_answers_failed_total{kind=~"` + kinds(transport.AlertKey) + `"}[10m]), "outcome", "$1", "kind", "(.*)")) > 0` +
			` or sum by (provider, outcome) (label_replace(increase(voicegw_provider_closes_total{kind=~"` + kinds(transport.AlertKey) + `"}[10m]), "outcome", "$1", "kind", "(.*)")) > 0`,
		Summary: "{{ $labels.provider }} refuses this gateway's key: {{ $labels.outcome }}.",
		Runbook: "`auth`: the key was revoked, or is not allowed to use the model. `quota`: the account has no credit, or too many conversations at once. No new session with this provider begins until that is mended at the provider. Meanwhile make another provider the default.",
		Bad:     []Series{{`voicegw_provider_connects_total{provider="gemini",outcome="quota"}`, "0x5 1x20"}}, Good: []Series{{`voicegw_provider_connects_total{provider="gemini",outcome="quota"}`, "1x30"}}, At: "8m"},
	{Name: "VoicegwSessionsLost", Severity: "page", For: "5m",
		Expr:    `sum(rate(voicegw_sessions_ended_total{reason=~"provider_lost|provider_expired|provider_stalled|voice_lost|internal"}[15m])) / sum(rate(voicegw_sessions_ended_total[15m])) > 0.01`,
		Summary: "{{ $value | humanizePercentage }} of the sessions end by a failure.",
		Runbook: "The panel of ends tells the reason. `provider_…`: a connection to the model was lost and none could be had again; see the panels of broken and replaced connections, and `providers.fallback`. `voice_lost`: another gateway has the conversation, or the store was away for longer than a lease. `internal`: an error of the gateway; its log says which, and is worth a report.",
		Bad:     share(`voicegw_sessions_ended_total{reason="provider_lost"}`, `voicegw_sessions_ended_total{reason="client_ended"}`, "0+5x60", "0+95x60"),
		Good:    share(`voicegw_sessions_ended_total{reason="client_gone"}`, `voicegw_sessions_ended_total{reason="client_ended"}`, "0+5x60", "0+95x60"), At: "30m"},
	{Name: "VoicegwRotationFailing", Severity: "page", For: "5m",
		Expr:    `sum by (provider) (rate(voicegw_rotations_total{outcome="failed"}[15m])) / sum by (provider) (rate(voicegw_rotations_total[15m])) > 0.05`,
		Summary: "{{ $value | humanizePercentage }} of the connections to {{ $labels.provider }} that must be replaced cannot be.",
		Runbook: "Sessions whose connection ends are lost with it. The lines `the model cannot be reached again` of the log have the reason. If the provider refuses to resume (`how` is then `replayed`), the conversation is told again and nothing is lost; if it refuses connections, see VoicegwProviderDown.",
		Bad:     share(`voicegw_rotations_total{provider="gemini",outcome="failed"}`, `voicegw_rotations_total{provider="gemini",outcome="resumed"}`, "0+2x60", "0+8x60"),
		Good:    share(`voicegw_rotations_total{provider="gemini",outcome="fresh"}`, `voicegw_rotations_total{provider="gemini",outcome="resumed"}`, "0+2x60", "0+8x60"), At: "30m"},
	{Name: "VoicegwResumeFailing", Severity: "ticket", For: "10m",
		Expr:    `sum(rate(voicegw_resume_total{outcome!~"local|relayed|moved|taken_over|moving|client_gone"}[15m])) / sum(rate(voicegw_resume_total[15m])) > 0.05`,
		Summary: "{{ $value | humanizePercentage }} of the clients that come back are refused.",
		Runbook: "`resume_refused` is a client that was away for longer than `limits.resume_grace`, or whose session no gateway has: is the store common to all gateways, and do they reach each other (`cluster.url`)? `store_unavailable`: see VoicegwStoreErrors. `too_many_resumes` is somebody who tries tokens.",
		Bad:     share(`voicegw_resume_total{outcome="resume_refused"}`, `voicegw_resume_total{outcome="local"}`, "0+1x60", "0+9x60"),
		Good:    share(`voicegw_resume_total{outcome="moving"}`, `voicegw_resume_total{outcome="local"}`, "0+1x60", "0+9x60"), At: "40m"},
	{Name: "VoicegwNearlyFull", Severity: "ticket", For: "5m",
		Expr:    `sum by (job, instance) (voicegw_sessions_active) / on (job, instance) voicegw_sessions_limit > 0.85`,
		Summary: "{{ $labels.instance }} has {{ $value | humanizePercentage }} of the sessions that it may have.",
		Runbook: "Beyond `limits.sessions` clients are refused (4008, 503). Add a gateway, or raise the limit if the machine has room: docs/capacity.md has what a session costs, and the panels of busy loops and memory what is left.",
		Bad:     []Series{{`voicegw_sessions_active{state="attached"}`, "85x30"}, {`voicegw_sessions_active{state="detached"}`, "5x30"}, {"voicegw_sessions_limit", "100x30"}},
		Good:    []Series{{`voicegw_sessions_active{state="attached"}`, "70x30"}, {`voicegw_sessions_active{state="detached"}`, "5x30"}, {"voicegw_sessions_limit", "100x30"}}, At: "20m"},
	{Name: "VoicegwSlowClients", Severity: "ticket", For: "5m",
		Expr:    `sum by (job, instance) (increase(voicegw_slow_clients_total[15m])) > 10`,
		Summary: "{{ $value }} clients of {{ $labels.instance }} were too slow within a quarter of an hour.",
		Runbook: "Single slow clients have bad networks. Many at once share one: a proxy that buffers, a saturated uplink of this machine, or one region. See the longest backlog, and whether the clients come back (resume).",
		Bad:     []Series{{`voicegw_slow_clients_total{provider="gemini"}`, "0+2x60"}}, Good: []Series{{`voicegw_slow_clients_total{provider="gemini"}`, "0x20 5x40"}}, At: "30m"},
	{Name: "VoicegwLoopLag", Severity: "page", For: "5m",
		Expr:    `histogram_quantile(0.99, sum by (job, instance, le) (rate(voicegw_loop_lag_seconds_bucket[5m]))) > 0.05`,
		Summary: "{{ $labels.instance }} is late with what comes from its connections by up to {{ $value | humanizeDuration }}.",
		Runbook: "The machine has too little processor for its sessions: voices begin to stutter. Drain some (`voicegw drain`) or add a gateway, and lower `limits.sessions`. If the loops are not busy, something else on the machine takes the processor (throttling of a container: `container_cpu_cfs_throttled_periods_total`).",
		Bad:     []Series{{`voicegw_loop_lag_seconds_bucket{le="0.05"}`, "0+90x60"}, {`voicegw_loop_lag_seconds_bucket{le="0.1"}`, "0+100x60"}, {`voicegw_loop_lag_seconds_bucket{le="+Inf"}`, "0+100x60"}},
		Good:    []Series{{`voicegw_loop_lag_seconds_bucket{le="0.05"}`, "0+100x60"}, {`voicegw_loop_lag_seconds_bucket{le="0.1"}`, "0+100x60"}, {`voicegw_loop_lag_seconds_bucket{le="+Inf"}`, "0+100x60"}}, At: "20m"},
	{Name: "VoicegwGatewaySlow", Severity: "ticket", For: "10m",
		Expr:    `voicegw:gateway_part_seconds:p99_5m > 0.05`,
		Summary: "The gateways' own part of the response time is {{ $value | humanizeDuration }} (p99).",
		Runbook: "The gateway holds answers back, not the provider: see VoicegwLoopLag, the panels of busy loops and CPU, and a profile (`--debug-listen`, docs/configuration.md).",
		Bad:     []Series{{`voicegw_turn_first_audio_seconds_bucket{part="gateway",le="0.05"}`, "0+90x60"}, {`voicegw_turn_first_audio_seconds_bucket{part="gateway",le="+Inf"}`, "0+100x60"}, {`voicegw_turn_first_audio_seconds_bucket{part="gateway",le="0.1"}`, "0+100x60"}},
		Good:    []Series{{`voicegw_turn_first_audio_seconds_bucket{part="gateway",le="0.05"}`, "0+100x60"}, {`voicegw_turn_first_audio_seconds_bucket{part="gateway",le="+Inf"}`, "0+100x60"}, {`voicegw_turn_first_audio_seconds_bucket{part="gateway",le="0.1"}`, "0+100x60"}}, At: "30m"},
	{Name: "VoicegwStoreErrors", Severity: "page", For: "2m",
		Expr:    `sum by (job, instance) (rate(voicegw_store_errors_total[5m])) > 0`,
		Summary: "{{ $labels.instance }} does not reach its store.",
		Runbook: "Nothing that must survive can be written: actions are refused (`TRANSIENT`), tickets and takeovers do not work; voices go on. With NATS servers: are they up, do they have a leader (`nats server report jetstream`)? With the store in the process: is the disk full or read-only? The log's lines with `component=store` tell.",
		Bad:     []Series{{`voicegw_store_errors_total{op="write"}`, "0x5 1+1x30"}}, Good: []Series{{`voicegw_store_errors_total{op="write"}`, "3x40"}}, At: "15m"},
	{Name: "VoicegwStoreSlow", Severity: "ticket", For: "10m",
		Expr:    `histogram_quantile(0.99, sum by (job, instance, op, le) (rate(voicegw_store_op_seconds_bucket{op=~"read|write"}[5m]))) > 0.25`,
		Summary: "The store of {{ $labels.instance }} takes {{ $value | humanizeDuration }} to {{ $labels.op }} (p99).",
		Runbook: "Each action waits for two writes, so users wait for it too. A disk that syncs slowly is the usual reason (`store.sync`, docs/data.md), then NATS servers far away or with too much to do.",
		Bad:     []Series{{`voicegw_store_op_seconds_bucket{op="write",le="0.25"}`, "0+90x60"}, {`voicegw_store_op_seconds_bucket{op="write",le="0.5"}`, "0+100x60"}, {`voicegw_store_op_seconds_bucket{op="write",le="+Inf"}`, "0+100x60"}},
		Good:    []Series{{`voicegw_store_op_seconds_bucket{op="write",le="0.25"}`, "0+100x60"}, {`voicegw_store_op_seconds_bucket{op="write",le="0.5"}`, "0+100x60"}, {`voicegw_store_op_seconds_bucket{op="write",le="+Inf"}`, "0+100x60"}}, At: "30m"},
	{Name: "VoicegwActionInDoubt", Severity: "ticket", For: "0m",
		Expr:    `sum by (tool) (increase(voicegw_ledger_conflicts_total[15m])) > 0`,
		Summary: "An action of {{ $labels.tool }} was begun, and nobody knows whether it was done.",
		Runbook: "A gateway died, or a tool was cut off, in the middle of an action; the same action is not begun again, and the user was told. The audit has the record (`voicegw audit --tool`, `errorType` CONFLICT): look at the system that the tool writes to, and do or undo what is missing by hand. docs/policy.md.",
		Bad:     []Series{{`voicegw_ledger_conflicts_total{tool="calendar_create_event"}`, "0x5 1x30"}}, Good: []Series{{`voicegw_ledger_conflicts_total{tool="calendar_create_event"}`, "1x40"}}, At: "10m"},
	{Name: "VoicegwToolFailing", Severity: "ticket", For: "10m",
		Expr:    `sum by (tool) (rate(voicegw_tool_calls_total{outcome=~"INTERNAL|TRANSIENT|PERMANENT|AUTH|RATE_LIMIT"}[15m])) / sum by (tool) (rate(voicegw_tool_calls_total[15m])) > 0.1`,
		Summary: "{{ $value | humanizePercentage }} of the calls of {{ $labels.tool }} fail.",
		Runbook: "What the tool works on is away, refuses its key (`AUTH`), or has changed. The audit has each call, the log the reasons. `voicegw tools call` tries it by hand.",
		Bad:     share(`voicegw_tool_calls_total{tool="kb_search",outcome="TRANSIENT"}`, `voicegw_tool_calls_total{tool="kb_search",outcome="ok"}`, "0+2x60", "0+8x60"),
		Good:    share(`voicegw_tool_calls_total{tool="kb_search",outcome="NOT_FOUND"}`, `voicegw_tool_calls_total{tool="kb_search",outcome="ok"}`, "0+2x60", "0+8x60"), At: "30m"},
	{Name: "VoicegwCertificateEnds", Severity: "ticket", For: "1h",
		Expr:    `min by (job, instance, host) (voicegw_tls_cert_expiry_seconds) < 14 * 86400`,
		Summary: "The certificate of {{ $labels.host }} ends in {{ $value | humanizeDuration }}.",
		Runbook: "Nobody can connect once it has ended. With files (`tls.certificates`), put the new one in their place: the gateway reads them again. With ACME, certificates are renewed a month before their end, so something has prevented it for two weeks: the log has the reason of each attempt.",
		Bad:     []Series{{`voicegw_tls_cert_expiry_seconds{host="voice.example.com"}`, "864000x100"}}, Good: []Series{{`voicegw_tls_cert_expiry_seconds{host="voice.example.com"}`, "2592000x100"}}, At: "80m"},
	{Name: "VoicegwWrongKeys", Severity: "ticket", For: "5m",
		Expr:    `sum by (job, instance) (rate(voicegw_auth_failures_total[5m])) > 1`,
		Summary: "{{ $labels.instance }} is shown {{ $value | humanize }} wrong keys and tokens a second.",
		Runbook: "Somebody guesses, or a client goes on with a key that was revoked or a token that has ended. The panel of wrong keys says why they are refused: `expired` and `key` are clients of yours, whose new key did not arrive; `issuer` and `token` may be an identity provider whose configuration has changed; `form` is somebody who tries. An address that shows many has to wait (`limit`). The log has the addresses (`request refused`).",
		Bad:     []Series{{`voicegw_auth_failures_total{why="key"}`, "0+120x40"}}, Good: []Series{{`voicegw_auth_failures_total{why="key"}`, "0+6x40"}}, At: "20m"},
	{Name: "VoicegwWebhookLosing", Severity: "ticket", For: "0m",
		Expr:    `sum by (webhook) (increase(voicegw_webhook_events_total{outcome=~"given_up|dropped"}[15m])) > 0`,
		Summary: "Events for the webhook {{ $labels.webhook }} are lost.",
		Runbook: "The receiver will not learn of some sessions. `given_up`: it has not taken an event for a day, or answers 410. `dropped`: 10,000 events wait for it already, or the store is away. The log names each event that is given up (`an event is given up`), with its id and what the receiver answered. What was missed stands in `GET /v1/usage` and in the audit (`session_cost`).",
		Bad:     []Series{{`voicegw_webhook_events_total{webhook="a",outcome="given_up"}`, "0x5 1x30"}}, Good: []Series{{`voicegw_webhook_events_total{webhook="a",outcome="delivered"}`, "0+10x40"}, {`voicegw_webhook_events_total{webhook="a",outcome="dropped"}`, "1x40"}}, At: "10m"},
	{Name: "VoicegwWebhookBehind", Severity: "ticket", For: "15m",
		Expr:    `max by (webhook) (voicegw_webhook_waiting_events) > 100`,
		Summary: "{{ $value }} events wait for the webhook {{ $labels.webhook }}.",
		Runbook: "The receiver is down, slow, or refuses what it gets; nothing is lost for a day. The log says why (`an event was not delivered`): `it answers 401` or `403` is often a secret that only one side has changed (`old_secret`), `its address is not public` a name that leads into a private network (`private`).",
		Bad:     []Series{{`voicegw_webhook_waiting_events{webhook="a"}`, "500x40"}}, Good: []Series{{`voicegw_webhook_waiting_events{webhook="a"}`, "3x40"}}, At: "30m"},
	{Name: "VoicegwReloadRefused", Severity: "ticket", For: "0m",
		Expr:    `sum by (job, instance) (increase(voicegw_reloads_total{result="refused"}[15m])) > 0`,
		Summary: "{{ $labels.instance }} was told to read its configuration again, and could not use it.",
		Runbook: "Nothing has changed: the gateway goes on with the configuration before. But its next start would read the same files and fail. The log names each problem with its line (`the configuration cannot be used`), and so does the answer of `POST /v1/admin/reload`. Correct it, and reload again.",
		Bad:     []Series{{`voicegw_reloads_total{result="refused"}`, "0x5 1x30"}}, Good: []Series{{`voicegw_reloads_total{result="ok"}`, "0x5 1x30"}, {`voicegw_reloads_total{result="refused"}`, "1x40"}}, At: "10m"},
	{Name: "VoicegwCostBurn", Severity: "ticket", For: "15m",
		Expr:    `24 * ((sum(increase(voicegw_cost_usd_total[1h])) or vector(0)) + sum(increase(voicegw_chat_cost_usd_total[1h]))) > 1.5 * max(voicegw_cost_day_budget_usd) and max(voicegw_cost_day_budget_usd) > 0`,
		Summary: "The models cost {{ $value | humanize }} dollars a day at the pace of the last hour, more than one and a half times the budget (prices.day_budget).",
		Runbook: "Who spends it: `GET /v1/usage?since=…` by `user` and `key`, the panels of cost by model, of tokens (much uncached input is a prompt or a history that has grown), and of turns. A campaign or a new customer is a reason to raise the budget (`prices.day_budget`); one key or user is a reason for a limit of its own (`auth.keys.<name>.limits.cost_per_day`, `limits.user_day_cost`), which a reload takes over for keys; a loop of tools or callers that never hang up show in the length of sessions (`limits.session_cost`, `limits.session_length`). A key that was stolen: take it out of the configuration and reload. What is `unpriced` is not in the sum.",
		Bad:     []Series{{`voicegw_cost_usd_total{provider="openai"}`, "0+1x120"}, {`voicegw_chat_cost_usd_total`, "0+0.1x120"}, {`voicegw_cost_day_budget_usd`, "1000x120"}},
		Good:    []Series{{`voicegw_cost_usd_total{provider="openai"}`, "0+0.8x120"}, {`voicegw_chat_cost_usd_total`, "0+0.1x120"}, {`voicegw_cost_day_budget_usd`, "1000x120"}}, At: "100m"},
	{Name: "VoicegwUsageDropped", Severity: "ticket", For: "0m",
		Expr:    `sum by (job, instance) (increase(voicegw_usage_dropped_total[15m])) > 0`,
		Summary: "{{ $labels.instance }} does not count what some users and keys use.",
		Runbook: "Their limits do not hold for what is not counted, and what this gateway could not count is missing from `GET /v1/usage`. Either the store has taken nothing for long (`voicegw_usage_unwritten` grows; VoicegwStoreErrors says why), or more than 100,000 users and keys were active on one day: clients that make up a user for each session look like that. The audit has what each session has cost (`session_cost`).",
		Bad:     []Series{{`voicegw_usage_dropped_total`, "0x5 7x30"}}, Good: []Series{{`voicegw_usage_dropped_total`, "7x40"}}, At: "10m"},
	{Name: "VoicegwAuditDropping", Severity: "page", For: "0m",
		Expr:    `sum by (job, instance, sink) (increase(voicegw_audit_dropped_total[10m])) > 0`,
		Summary: "Records of the audit are lost ({{ $labels.sink }} of {{ $labels.instance }}).",
		Runbook: "The queue is full because the sink has taken nothing for long: `file` is a disk that is full or read-only, `stream` a store that is away. The other sink has the records, if it works. What was dropped is lost; the log has the count.",
		Bad:     []Series{{`voicegw_audit_dropped_total{sink="file"}`, "0x5 7x30"}}, Good: []Series{{`voicegw_audit_dropped_total{sink="file"}`, "7x40"}}, At: "10m"},
	{Name: "VoicegwAuditBehind", Severity: "ticket", For: "10m",
		Expr:    `voicegw_audit_waiting_records > 1000`,
		Summary: "{{ $value }} records of the audit are not written yet ({{ $labels.sink }} of {{ $labels.instance }}).",
		Runbook: "As VoicegwAuditDropping, before anything is lost (`voicegw_audit_lag_seconds` says for how long the oldest has waited): 65,536 records may wait for each sink, and what waits when the gateway ends is written within 5 s or lost.",
		Bad:     []Series{{`voicegw_audit_waiting_records{sink="file"}`, "2000x30"}}, Good: []Series{{`voicegw_audit_waiting_records{sink="file"}`, "20x30"}}, At: "20m"},
}

// Alerts returns the table of alerts.
func Alerts() []Alert { return alerts }
