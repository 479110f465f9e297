package metrics

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"voicegw/chat"
	"voicegw/internal/agent"
	"voicegw/internal/audit"
	"voicegw/internal/cost"
	"voicegw/internal/meter"
	"voicegw/internal/nonblock"
	"voicegw/orchestrator"
	"voicegw/registry"
	"voicegw/registry/registrytest"
	"voicegw/registry/spec"
	"voicegw/session"
	"voicegw/transport"
	"voicegw/transport/textmodel"
)

// mostSeries is the maximum number of series of one gateway.
const mostSeries = 3700

// garbage is the prefix of all labels from outside the program.
const garbage = "written-by-somebody-"

// TestSeriesAreBounded counts every event repeatedly, with every value of the program's own and with thousands of unknown
// ones: of providers, models, tools, reasons, codes. The next scrape is limited, and has no unknown value.
func TestSeriesAreBounded(t *testing.T) {
	data, told := registrytest.Inspected(t, registrytest.Project(t))
	told.Settings = map[string]registry.ToolSettings{}
	for _, id := range agent.Tools() { // as they are unless agents.tools turns them on
		told.Settings[id] = registry.ToolSettings{Off: true}
	}
	tools, err := registry.Load(data, told)
	if err != nil {
		t.Fatal(err)
	}
	m := New(Options{})
	providers := map[string]string{"gemini": "gemini-live", "openai": "gpt-realtime"}
	m.Know(providers, tools.Snapshot())
	var all sync.WaitGroup
	for seed := range uint64(8) {
		all.Go(func() {
			r := rand.New(rand.NewPCG(seed, 1))
			for range 5000 {
				provider := pick(r, "gemini", "openai")
				tell := m.Observe(provider, pick(r, providers[provider]))
				tell(anything(r))
				m.Texted(chat.TurnOver{Status: pick(r, "completed", "failed"), Code: pick(r, textCodes...), Took: time.Second, First: time.Second, Usage: textmodel.Usage{Input: 5}})
				m.Refused(pick(r, wrongs...))
				m.Audited(audit.Record{
					Event: audit.Event(pick(r, string(audit.EventTool), string(audit.EventConfirmation))), ToolID: pick(r, ids(tools.Snapshot())...), Mode: spec.Mode(pick(r, "voice", "text")),
					OK: r.IntN(2) == 0, ErrorType: registry.ErrorType(pick(r, outcomes()...)), Approval: audit.Approval{Confirmation: pick(r, asked...), Waited: time.Minute}, PartialSideEffects: true, DurationMS: 5, Queued: time.Second,
					UserID: pick[string](r), SessionID: pick[string](r), Clamped: map[string]registry.Clamped{pick[string](r): {}},
				})
			}
		})
	}
	all.Wait()
	for route := range 80 { // more routes than the gateway has; their names are the program's own
		for code := range 6 {
			m.Answered(fmt.Sprint("GET /v1/", route), 100*code, time.Second)
		}
	}
	s := sources()
	s.Tools = tools.Stats
	s.Snapshot = tools.Snapshot
	s.Usage = func() meter.Figures { return meter.Figures{Refused: limitedOf(31)} }
	s.Loops = func() nonblock.Load { return nonblock.Load{Busy: make([]float64, 64), Rounds: make([]uint64, 10)} }
	text, _ := scrape(t, m, s)
	n := 0
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "#") {
			n++
		}
		if strings.Contains(line, garbage) {
			t.Fatalf("a label has a foreign value: %s", line)
		}
	}
	t.Logf("%d series of %d tools, %d bytes", n, len(ids(tools.Snapshot())), len(text))
	if n > mostSeries {
		t.Errorf("there are %d series, want at most %d", n, mostSeries)
	}
}

// limitedOf is the maximum number of series of a meter that counts refusals under n names: each name has one limit; only
// an operator can give a key all four.
func limitedOf(names int) map[meter.Limited]int64 {
	all := map[meter.Limited]int64{}
	for i := range names {
		all[meter.Limited{Limit: meter.Limits()[i%len(meter.Limits())], Key: fmt.Sprint("k", i)}] = 1
	}
	return all
}

func ids(tools *registry.Snapshot) []string {
	var all []string
	for _, t := range tools.All() {
		all = append(all, t.ToolID)
	}
	return all
}

// pick returns one of the values, or an unknown one.
func pick[T ~string](r *rand.Rand, known ...T) T {
	if i := r.IntN(len(known) + 1); i < len(known) {
		return known[i]
	}
	return T(fmt.Sprint(garbage, r.IntN(10_000)))
}

// anything returns some event.
func anything(r *rand.Rand) session.Event {
	took := time.Duration(r.Int64N(int64(time.Minute)))
	status := pick(r, statuses...)
	amount := cost.Amount{Micros: cost.Micros(r.Int64N(9)), Unpriced: r.Int64N(2)}
	tokens := transport.Tokens{Input: r.Int64N(100), InputAudio: r.Int64N(50), OutputText: r.Int64N(9), Output: r.Int64N(50)}
	all := []session.Event{
		session.Refused{Reason: pick(r, session.Reasons()...)},
		session.Started{Entry: pick(r, entries...), Total: took},
		session.Ended{Reason: pick(r, session.Reasons()...), Lasted: took},
		session.TurnOver{TurnEnded: orchestrator.TurnEnded{Status: status, Usage: tokens, Cost: amount, Latency: &orchestrator.Latency{Total: took}}},
		session.Failed{Code: pick(r, failures...)},
		session.Interrupted{By: pick(r, cutters...), After: took, HeardMS: 1, SentMS: 2},
		session.Charged{Cost: amount.Micros}, session.Nudged{}, session.Slow{},
		session.Rejected{Code: pick(r, rejections...)},
		session.Sound{Up: took, Down: took},
		session.Dialed{How: pick(r, hows...), Kind: transport.Kind(r.IntN(256)), Took: took},
		session.Broken{Kind: transport.Kind(r.IntN(256)), Code: pick(r, fmt.Sprint(r.IntN(6000)))},
		session.Reported{Kind: transport.KindIgnore},
		session.Skipped{Stats: transport.Stats{UnknownEvents: 1}},
		session.Relinked{Why: pick(r, triggers...), How: pick(r, hows...), Gap: took},
		session.Returned{Outcome: pick(r, returned...), Took: took},
	}
	return all[r.IntN(len(all))]
}
