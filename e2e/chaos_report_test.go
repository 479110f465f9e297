package e2e

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"voicegw/internal/audit"
	"voicegw/sim/scenario"
)

// report writes the counts of a run.
func (e *evidence) report(w io.Writer, faults map[scenario.FaultKind]int64) {
	row := func(name string, n any, rest string) { fmt.Fprintf(w, "  %-26s %8v   %s\n", name, n, rest) }
	fmt.Fprintln(w)

	ends, wires, errors := map[string]int{}, map[string]int{}, map[string]int{}
	turns, outcomes := map[string]int{}, map[string]int{}
	var gap time.Duration
	var heard, approvals int64
	began, returns, refused, snapshots, repeated := 0, 0, 0, 0, 0
	taken, again, twice := 0, 0, 0
	outages := map[string]int{}
	for _, v := range e.visits {
		wires[v.habits.provider]++
		ends[v.end()]++
		if v.session != "" {
			began++
		}
		add(errors, v.errors)
		add(outages, v.outages)
		returns, snapshots, repeated = returns+v.returns, snapshots+v.snapshots, repeated+v.repeats
		taken, again, twice = taken+v.taken, again+v.again, twice+v.endedTwice
		if !v.refusedAt.IsZero() {
			refused++
		}
		for _, t := range v.turns {
			turns[cmp.Or(t.status, "cut off")]++
		}
		for _, o := range v.questions {
			outcomes[cmp.Or(o, "left open")]++
		}
		gap, heard, approvals = max(gap, v.gap), heard+v.audioMS, approvals+int64(len(v.approvals))
	}
	row("sessions", began, list(wires)+fmt.Sprintf("; %d did not begin", len(e.visits)-began))
	row("  ended", "", list(ends))
	row("resumed", returns, list(outages)+fmt.Sprintf("; %d refused, %d snapshots, %d messages again", refused, snapshots, repeated))
	row("gateways ended", e.kills+e.drains, fmt.Sprintf("%d killed, %d drained; %d sessions moved, %d were taken by another gateway; %d turns repeated, %d ends of tools reported again",
		e.kills, e.drains, e.moved, taken, again, twice))
	row("models' connections", e.links.replaced(), "replaced: "+list(e.log.reasons()))
	row("turns", sum(turns), list(turns))
	row("errors sent to clients", sum(errors), list(errors))
	row("speech heard", fmt.Sprintf("%.0f s", float64(heard)/1000), fmt.Sprintf("the largest gap within an answer was %d ms; the machine's largest pause was %d ms", gap.Milliseconds(), e.pulse.pause().Milliseconds()))
	half, most := e.stored.usual()
	row("the store's writes", "", fmt.Sprintf("half took %v at most, nine tenths %v; no caller began for %v of the time, because they took longer", half.Round(time.Millisecond),
		most.Round(time.Millisecond), e.held.Round(100*time.Millisecond)))
	e.reportCalls(row)
	row("confirmations asked", sum(outcomes), list(outcomes)+fmt.Sprintf("; %d approvals sent", approvals))
	byKind := map[string]int{}
	for k, n := range faults {
		byKind[string(k)] = int(n)
	}
	row("faults of the provider", sum(byKind), list(byKind))
	moods := map[string]int{}
	for k, n := range e.moods.counts() {
		moods[string(k)] = n
	}
	row("bad moments of the ledger", sum(moods), list(moods))
	fmt.Fprintln(w)
}

// reportCalls writes the results of calls.
func (e *evidence) reportCalls(row func(string, any, string)) {
	announced, answered, cancelled := 0, 0, 0
	wires := map[string]int{}
	for _, l := range e.tap.lines {
		for _, c := range l.calls {
			wires[l.provider] += len(c.announced)
			announced, answered = announced+len(c.announced), answered+len(c.answered)
			if !c.cancelled.IsZero() {
				cancelled++
			}
		}
	}
	results, tools, kept, effects := map[string]int{}, map[string]int{}, map[string]int{}, map[string]int{}
	repeats := 0
	for _, r := range e.file {
		if r.Event != audit.EventTool {
			continue
		}
		tools[r.ToolID]++
		switch {
		case r.CacheHit || r.NotDelivered == "repeated":
			repeats++
		case r.OK:
			results["ok"]++
		default:
			results[strings.ToLower(string(r.ErrorType))]++
		}
		if !r.Delivered {
			kept[strings.ReplaceAll(r.NotDelivered, "_", " ")]++
		}
	}
	begun, kinds := map[string]int{}, map[string]int{}
	for _, r := range e.runs {
		spec, _ := named(r.tool)
		begun[string(spec.kind)]++
		if spec.writes && r.did {
			effects[r.tool]++
			kinds[string(spec.kind)]++
		}
	}
	row("calls on the wire", announced, fmt.Sprintf("%s; %d answered, %d withdrawn by the provider; %d delegations outlived a connection", list(wires), answered,
		cancelled, e.links.outlived()))
	row("calls audited", sum(tools), list(tools))
	row("  results", sum(results), list(results))
	row("  duplicates refused", repeats, "joined, repeated, or answered from the store")
	row("  not sent to the model", sum(kept), list(kept))
	row("handlers begun", sum(begun), list(begun))
	row("side effects", sum(kinds), list(effects)+"; of tools by kind: "+list(kinds)+"; none twice")
}

// end describes the end of a visit.
func (v *visit) end() string {
	switch {
	case v.reason != "":
		return strings.ReplaceAll(v.reason, "_", " ")
	case v.vanished:
		return "vanished"
	case v.session == "":
		return fmt.Sprint("refused with ", int(v.code))
	default:
		return fmt.Sprint("closed with ", int(v.code))
	}
}

func add(to, from map[string]int) {
	for k, n := range from {
		to[k] += n
	}
}

func sum(counts map[string]int) int {
	n := 0
	for _, c := range counts {
		n += c
	}
	return n
}

// list formats counts, the largest first.
func list(counts map[string]int) string {
	keys := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	for i, k := range keys {
		keys[i] = fmt.Sprint(counts[k], " ", k)
	}
	return strings.Join(keys, ", ")
}
