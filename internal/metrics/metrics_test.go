package metrics

import (
	"bytes"
	"fmt"
	"io"
	"net/http/httptest"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"voicegw/chat"
	"voicegw/gateway/phone"
	"voicegw/internal/audit"
	"voicegw/internal/checks"
	"voicegw/internal/cost"
	"voicegw/internal/mcp"
	"voicegw/internal/meter"
	"voicegw/internal/nonblock"
	"voicegw/internal/quota"
	"voicegw/internal/traces"
	"voicegw/internal/webhook"
	"voicegw/orchestrator"
	"voicegw/registry"
	"voicegw/registry/registrytest"
	"voicegw/registry/spec"
	"voicegw/session"
	"voicegw/store"
	"voicegw/transport"
	"voicegw/transport/textmodel"
)

// sources are those of a nearly idle gateway.
func sources() Sources {
	count := map[string]int{"gemini": 3, "openai": 1, "gone": 2}
	return Sources{
		Version: "1.2.3", Ready: func() bool { return true },
		Sessions: func() session.Census {
			return session.Census{Sessions: 6, Most: 100, Attached: count, Detached: map[string]int{"gemini": 1}, Linked: count, Backlog: 2 * time.Second}
		},
		Snapshot: func() *registry.Snapshot { return &registry.Snapshot{} },
		Tools: func() map[string]registry.ToolStats {
			return map[string]registry.ToolStats{registry.UnknownTool: {Running: 1}, "kb_search": {Abandoned: 2}}
		},
		Loops: func() nonblock.Load {
			return nonblock.Load{Busy: []float64{.25}, Rounds: []uint64{7, 0, 2, 0, 0, 0, 0, 0, 0, 1}, RoundTime: 3 * time.Second}
		},
		Traces: func() traces.Stats {
			return traces.Stats{Sent: 5, Dropped: 2, Waiting: 3, Decided: map[traces.Decision]int64{traces.KeptSlow: 4}}
		},
		Overload: func() quota.State { return quota.State{Reason: quota.Memory, Share: 0.9} },
		Certificates: func() map[string]time.Time {
			ends := map[string]time.Time{"unissued.example.com": {}}
			for i := range 40 {
				ends[fmt.Sprintf("%02d.example.com", i)] = time.Now().Add(time.Duration(i+1) * time.Hour)
			}
			return ends
		},
		Audit: func() audit.Stats {
			return audit.Stats{Stream: audit.SinkStats{Written: 5, Dropped: 1, GivenUp: 2, Lag: 1500 * time.Millisecond}}
		},
		Usage: func() meter.Figures {
			return meter.Figures{Unwritten: 5, Dropped: 7, Refused: map[meter.Limited]int64{{Limit: meter.LimitKeyCost, Key: "backend"}: 3}}
		},
		DayBudget: func() float64 { return 100 },
		Phone: func() map[phone.Outcome]uint64 {
			return map[phone.Outcome]uint64{{Carrier: "twilio", How: "hung_up"}: 3}
		},
		MCP:    func() []mcp.Status { return []mcp.Status{{Server: "crm", Up: true, Changed: 2}} },
		Checks: func() []checks.Count { return []checks.Count{{Check: "slurs", Result: "matched", N: 2}} },
		Webhooks: func() map[string]webhook.Stats {
			all := map[string]webhook.Stats{}
			for i := range 20 {
				all[fmt.Sprintf("hook-%d", i)] = webhook.Stats{Delivered: 7, Failed: 2, Dropped: 1, GivenUp: 3, Waiting: 4}
			}
			return all
		},
	}
}

func newMetrics() *Metrics {
	m := New(Options{})
	m.Know(map[string]string{"gemini": "gemini-live", "openai": "gpt-realtime-2.1"}, nil)
	return m
}

// scrape reads the metrics as Prometheus does.
func scrape(t *testing.T, m *Metrics, s Sources) (text string, families map[string]*dto.MetricFamily) {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler(s).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if w.Code != 200 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	text = w.Body.String()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return text, families
}

// expect fails unless the scrape has each line.
func expect(t *testing.T, text string, lines ...string) {
	t.Helper()
	all := strings.Split(text, "\n")
	for _, line := range lines {
		if !slices.Contains(all, line) {
			name, _, _ := strings.Cut(line, "{")
			var near []string
			for _, l := range all {
				if strings.HasPrefix(l, name) && !strings.HasSuffix(l, " 0") {
					near = append(near, l)
				}
			}
			t.Errorf("the line is missing: %s\nthere is\n%s", line, strings.Join(near, "\n"))
		}
	}
}

// TestEventsAreCounted counts every event once and reads the metrics.
func TestEventsAreCounted(t *testing.T) {
	m := newMetrics()
	g := m.Observe("gemini", "gemini-live")
	m.Observe("openai", "gpt-realtime-2.1")(session.Charged{Cost: 4_000_000})
	for _, e := range []session.Event{
		session.Started{Entry: session.EntryTicket, Waited: time.Second, Identified: time.Second, Connected: time.Second, Total: 3 * time.Second},
		session.TurnOver{TurnEnded: orchestrator.TurnEnded{Status: orchestrator.TurnCompleted, Cost: cost.Amount{Unpriced: 1},
			Usage:   transport.Tokens{Input: 100, InputText: 60, CachedText: 50, InputAudio: 30, Output: 9, OutputAudio: 7, OutputThought: 2},
			Latency: &orchestrator.Latency{Total: 900 * time.Millisecond, Detection: 500 * time.Millisecond, Provider: 380 * time.Millisecond, Gateway: 20 * time.Millisecond}}},
		session.Sound{Up: 2 * time.Second, Down: 3 * time.Second, Backlog: time.Second, Ahead: 4 * time.Second, Unheard: 5 * time.Second},
		session.Failed{Code: orchestrator.FailureNoAnswer},
		session.Interrupted{By: orchestrator.FlushUserSpeech, After: 200 * time.Millisecond, HeardMS: 400, SentMS: 500},
		session.Nudged{}, session.Rejected{Code: "audio_too_fast"}, session.Slow{},
		session.Dialed{How: orchestrator.LinkFresh, Took: time.Second}, session.Dialed{Kind: transport.KindQuota},
		session.AnswerFailed{Kind: transport.KindRateLimit}, session.Broken{Kind: transport.KindExpired, Code: "1001"}, session.Broken{Kind: transport.KindRetry, Code: "out of cheese"},
		session.Reported{Kind: transport.KindIgnore}, session.Skipped{Stats: transport.Stats{UnknownEvents: 3, MalformedEvents: 4}},
		session.Relinked{Why: orchestrator.LinkExpired, How: orchestrator.LinkResumed, Gap: time.Second}, session.Relinked{Why: orchestrator.LinkBroken},
		session.Ended{Reason: "idle", Lasted: time.Minute},
	} {
		g(e)
	}
	m.Stored(store.OpWrite, 3*time.Millisecond, true)
	m.Texted(chat.TurnOver{Status: "completed", Took: time.Second, First: 300 * time.Millisecond, Usage: textmodel.Usage{Input: 10, Cached: 4, Output: 5}})
	m.Texted(chat.TurnOver{Status: "failed", Code: "provider_busy"})
	m.Texted(chat.TurnOver{Status: "failed", Code: "cheese"})
	m.Texted(chat.TurnOver{Status: "failed"})
	m.Answered("GET /v1/tools", 404, time.Second)
	m.Answered("", 421, time.Second)
	m.Refused("key")
	none := m.Observe("", "")
	none(session.Refused{Reason: "full"})
	none(session.Returned{Outcome: session.ReturnedHere, Took: time.Millisecond})
	m.Observe("strange", "x")(session.Ended{Reason: "a sentence of somebody", Lasted: time.Second})
	text, _ := scrape(t, m, sources())
	expect(t, text,
		`voicegw_sessions_started_total{entry="ticket",model="gemini-live",provider="gemini"} 1`,
		`voicegw_session_start_seconds_sum{provider="gemini",stage="total"} 3`,
		`voicegw_turns_total{model="gemini-live",provider="gemini",status="completed"} 1`,
		`voicegw_turn_first_audio_seconds_bucket{model="gemini-live",part="total",provider="gemini",le="0.7"} 0`,
		`voicegw_turn_first_audio_seconds_bucket{model="gemini-live",part="total",provider="gemini",le="1"} 1`,
		`voicegw_turn_first_audio_seconds_bucket{model="gemini-live",part="gateway",provider="gemini",le="0.025"} 1`,
		`voicegw_tokens_total{cached="no",direction="input",modality="text",model="gemini-live",provider="gemini"} 10`,
		`voicegw_tokens_total{cached="yes",direction="input",modality="text",model="gemini-live",provider="gemini"} 50`,
		`voicegw_tokens_total{cached="no",direction="input",modality="audio",model="gemini-live",provider="gemini"} 30`,
		`voicegw_tokens_total{cached="no",direction="input",modality="other",model="gemini-live",provider="gemini"} 10`,
		`voicegw_tokens_total{cached="no",direction="output",modality="other",model="gemini-live",provider="gemini"} 2`,
		`voicegw_audio_seconds_total{direction="up",provider="gemini"} 2`,
		`voicegw_audio_dropped_seconds_total{direction="up",reason="ahead"} 4`,
		`voicegw_turn_failures_total{code="no_answer",provider="gemini"} 1`,
		`voicegw_interruptions_total{by="user_speech",provider="gemini"} 1`,
		`voicegw_bargein_seconds_sum{provider="gemini"} 0.2`,
		`voicegw_truncated_heard_ratio_sum{provider="gemini"} 0.8`,
		`voicegw_nudges_total{provider="gemini"} 1`,
		`voicegw_client_messages_rejected_total{code="audio_too_fast"} 1`,
		`voicegw_slow_clients_total{provider="gemini"} 1`,
		`voicegw_provider_connects_total{outcome="ok",provider="gemini"} 1`,
		`voicegw_provider_connects_total{outcome="quota",provider="gemini"} 1`,
		`voicegw_provider_closes_total{code="1001",kind="expired",provider="gemini"} 1`,
		`voicegw_provider_closes_total{code="other",kind="retry",provider="gemini"} 1`,
		`voicegw_provider_errors_total{kind="ignore",provider="gemini"} 1`,
		`voicegw_provider_events_skipped_total{provider="gemini",why="malformed"} 4`,
		`voicegw_rotations_total{outcome="resumed",provider="gemini",trigger="expiring"} 1`,
		`voicegw_rotations_total{outcome="failed",provider="gemini",trigger="lost"} 1`,
		`voicegw_sessions_ended_total{provider="gemini",reason="idle"} 1`,
		`voicegw_sessions_ended_total{provider="other",reason="other"} 1`,
		`voicegw_sessions_refused_total{reason="full"} 1`,
		`voicegw_resume_total{outcome="local"} 1`,
		`voicegw_resume_seconds_count{outcome="local"} 1`,
		`voicegw_sessions_active{provider="gemini",state="attached"} 3`,
		`voicegw_sessions_active{provider="other",state="attached"} 2`,
		`voicegw_tool_handlers_running{tool="unknown"} 1`,
		`voicegw_tool_handlers_abandoned_total{tool="kb_search"} 2`,
		`voicegw_audit_dropped_total{sink="stream"} 3`,
		`voicegw_trace_decisions_total{decision="slow"} 4`,
		`voicegw_trace_spans_total{outcome="dropped"} 2`,
		`voicegw_trace_waiting_spans 3`,
		`voicegw_ready 1`,
		`voicegw_auth_failures_total{why="key"} 1`,
		`voicegw_chat_turns_total{code="none",status="completed"} 1`,
		`voicegw_chat_turns_total{code="provider_busy",status="failed"} 1`,
		`voicegw_chat_turns_total{code="other",status="failed"} 1`,
		`voicegw_chat_turns_total{code="left",status="failed"} 1`,
		`voicegw_chat_first_text_seconds_count 1`,
		`voicegw_chat_tokens_total{cached="no",direction="input"} 6`,
		`voicegw_chat_tokens_total{cached="yes",direction="input"} 4`,
		`voicegw_http_requests_total{code="4xx",route="GET /v1/tools"} 1`,
		`voicegw_http_requests_total{code="4xx",route="refused"} 1`,
		`voicegw_http_request_seconds_count{route="GET /v1/tools"} 1`,
		`voicegw_cost_usd_total{model="gpt-realtime-2.1",provider="openai"} 4`,
		`voicegw_turns_unpriced_total{model="gemini-live",provider="gemini"} 1`,
		`voicegw_store_op_seconds_bucket{op="write",le="0.0025"} 0`,
		`voicegw_store_op_seconds_bucket{op="write",le="0.005"} 1`,
		`voicegw_store_errors_total{op="write"} 1`,
		`voicegw_loop_busy_ratio{loop="0"} 0.25`,
		`voicegw_loop_lag_seconds_bucket{le="0.005"} 7`,
		`voicegw_loop_lag_seconds_bucket{le="0.01"} 9`,
		`voicegw_loop_lag_seconds_bucket{le="+Inf"} 10`,
		`voicegw_loop_lag_seconds_sum 3`,
		`voicegw_overloaded{reason="memory"} 1`,
		`voicegw_overloaded{reason="store"} 0`,
		`voicegw_memory_used_ratio 0.9`,
	)
	if n := strings.Count(text, "\nvoicegw_tls_cert_expiry_seconds{"); n > mostHosts || !strings.Contains(text, `{host="00.example.com"}`) || strings.Contains(text, "unissued") {
		t.Errorf("%d names have a certificate's end, or not those that end first", n)
	}
	if strings.Contains(text, "cheese") || strings.Contains(text, "sentence") || strings.Contains(text, "strange") {
		t.Error("a label has a value that is in no closed set")
	}
}

// TestToolsThatAreOff: tools that are off have no series, until a reload switches them on.
func TestToolsThatAreOff(t *testing.T) {
	data, o := registrytest.Inspected(t, registrytest.Project(t))
	o.Settings = map[string]registry.ToolSettings{"kb_get": {Off: true}}
	tools, err := registry.Load(data, o)
	if err != nil {
		t.Fatal(err)
	}
	m := New(Options{})
	m.Know(nil, tools.Snapshot())
	// called counts a call, and returns the counts of successful voice calls, by tool.
	called := func() map[string]float64 {
		t.Helper()
		m.Audited(audit.Record{Event: audit.EventTool, ToolID: "kb_get", Mode: spec.ModeVoice, OK: true})
		all, err := m.registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		told := map[string]float64{}
		for _, family := range all {
			for _, s := range family.GetMetric() {
				labels := map[string]string{}
				for _, l := range s.GetLabel() {
					labels[l.GetName()] = l.GetValue()
				}
				if id := labels["tool"]; id != "" {
					told[id] += 0
					if labels["outcome"] == wentWell && labels["mode"] == string(spec.ModeVoice) {
						told[id] += s.GetCounter().GetValue()
					}
				}
			}
		}
		return told
	}
	told := called()
	if _, has := told["kb_get"]; has || told[unknown] != 1 {
		t.Errorf("while the tool is off: %v", told)
	}
	for i, off := range []bool{false, true} {
		take, err := tools.Configure(map[string]registry.ToolSettings{"kb_get": {Off: off}}, registry.Foreign{})
		if err != nil {
			t.Fatal(err)
		}
		take()
		m.KnowTools(tools.Snapshot())
		if told := called(); told["kb_get"] != float64(i+1) || told[unknown] != 1 {
			t.Errorf("after a reload, with the tool off: %t: %v", off, told)
		}
	}
}

// TestToolsAreCounted reads records of the audit.
func TestToolsAreCounted(t *testing.T) {
	m := newMetrics()
	for _, r := range []audit.Record{
		{Event: audit.EventTool, ToolID: "invented by a model", Mode: spec.ModeText, OK: true, DurationMS: 40, Queued: 3 * time.Second, Clamped: map[string]registry.Clamped{"top_k": {}}},
		{Event: audit.EventTool, ToolID: "x", Mode: spec.ModeVoice, OK: true, CacheHit: true},
		{Event: audit.EventTool, ToolID: "x", Mode: spec.ModeVoice, ErrorType: registry.ErrorConflict, PartialSideEffects: true},
		{Event: audit.EventConfirmation, ToolID: "x", Mode: spec.ModeVoice, Approval: audit.Approval{Confirmation: "denied", Waited: 4 * time.Second}},
		{Event: audit.EventTool, ToolID: "x", Mode: spec.ModeVoice, OK: true, Approval: audit.Approval{Confirmation: "approved", Waited: time.Minute}},
		{Event: audit.EventTurnCost, Mode: spec.ModeText, Usage: audit.Usage{Spent: &cost.Sum{Amount: cost.Amount{Micros: 2_500_000}}}},
		{Event: audit.EventDamage, ToolID: "x"},
	} {
		m.Audited(r)
	}
	text, _ := scrape(t, m, sources())
	expect(t, text,
		`voicegw_tool_calls_total{mode="text",outcome="ok",tool="unknown"} 1`,
		`voicegw_tool_calls_total{mode="voice",outcome="cached",tool="unknown"} 1`,
		`voicegw_tool_calls_total{mode="voice",outcome="CONFLICT",tool="unknown"} 1`,
		`voicegw_tool_seconds_count{part="run",tool="unknown"} 1`,
		`voicegw_tool_seconds_sum{part="queued",tool="unknown"} 3`,
		`voicegw_confirmation_wait_seconds_sum{outcome="denied"} 4`,
		`voicegw_confirmation_wait_seconds_bucket{outcome="approved",le="60"} 1`,
		`voicegw_confirmation_wait_seconds_bucket{outcome="approved",le="15"} 0`,
		`voicegw_chat_cost_usd_total 2.5`,
		`voicegw_cost_day_budget_usd 100`,
		`voicegw_audit_lag_seconds{sink="stream"} 1.5`,
		`voicegw_rate_limited_total{key="backend",limit="key-day-cost"} 3`,
		`voicegw_rate_limited_total{key="none",limit="user-sessions"} 0`,
		`voicegw_usage_unwritten 5`, `voicegw_usage_dropped_total 7`,
		`voicegw_tool_clamped_total{mode="text",tool="unknown"} 1`,
		`voicegw_confirmations_total{outcome="denied",tool="unknown"} 1`,
		`voicegw_ledger_conflicts_total{tool="unknown"} 1`,
	)
}

// TestTable: the rows follow the rules for names, and every row is in a scrape.
func TestTable(t *testing.T) {
	m := newMetrics()
	m.Observe("gemini", "gemini-live")(session.Broken{Kind: transport.KindRetry})
	m.Observe("gemini", "gemini-live")(session.AnswerFailed{Kind: transport.KindRateLimit})
	m.Observe("gemini", "gemini-live")(session.Charged{Cost: 1})
	m.Answered("GET /healthz", 200, time.Millisecond)
	text, scraped := scrape(t, m, sources())
	seen := map[string]bool{}
	for _, f := range Families() {
		if seen[f.Name] {
			t.Errorf("%s is in the table twice", f.Name)
		}
		seen[f.Name] = true
		if (f.Kind == Counter) != strings.HasSuffix(f.Name, "_total") {
			t.Errorf("%s: counters, and only they, end in _total", f.Name)
		}
		if (f.Kind == Histogram) != (len(f.Buckets) > 0) || !slices.IsSorted(f.Buckets) {
			t.Errorf("%s has the buckets %v", f.Name, f.Buckets)
		}
		if !strings.HasSuffix(f.Help, ".") {
			t.Errorf("%s: the help is not a sentence", f.Name)
		}
		for _, forbidden := range []string{"user", "session", "session_id", "conversation", "address", "addr", "origin", "call", "text"} {
			if slices.Contains(f.Labels, forbidden) {
				t.Errorf("%s has the label %s", f.Name, forbidden)
			}
		}
		if scraped[f.FullName()] == nil {
			t.Errorf("%s is in no scrape", f.FullName())
		}
	}
	t.Logf("%d families, %d series, %d bytes", len(families), strings.Count(text, "\n")-strings.Count(text, "# "), len(text))
}

// TestPromtool lets Prometheus's own tool check a scrape.
func TestPromtool(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is not installed (Debian's package prometheus)")
	}
	text, _ := scrape(t, newMetrics(), sources())
	check := exec.Command(promtool, "check", "metrics")
	check.Stdin = strings.NewReader(text)
	var out bytes.Buffer
	check.Stdout, check.Stderr = &out, &out
	if err := check.Run(); err != nil {
		t.Errorf("%v\n%s", err, &out)
	}
}

// BenchmarkScrape measures one reading of everything.
func BenchmarkScrape(b *testing.B) {
	h := newMetrics().Handler(sources())
	b.ReportAllocs()
	for b.Loop() {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
		_, _ = io.Copy(io.Discard, w.Body)
	}
}

// BenchmarkTurn measures the cost of counting a turn.
func BenchmarkTurn(b *testing.B) {
	take := newMetrics().Observe("gemini", "gemini-live")
	e := session.TurnOver{TurnEnded: orchestrator.TurnEnded{Status: orchestrator.TurnCompleted, Usage: transport.Tokens{Input: 10, InputAudio: 10}, Latency: &orchestrator.Latency{Total: time.Second}}}
	b.ReportAllocs()
	for b.Loop() {
		take(e)
	}
}
