package e2e

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// chaosScenario is the model's script: a caller's text determines the tools to call. A text is a verb, the name of the
// wish, and a slot.
func chaosScenario() string {
	var b strings.Builder
	b.WriteString("name: chaos\nrules:\n")
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	wish := func(verb string) {
		line(`  - when: {text: '^%s (?P<how>\w+) (?P<ref>\w+) (?P<slot>\w+)'}`, verb)
		line(`    do:`)
	}
	// call formats a call; more has further keys.
	call := func(tool, more string) string {
		return fmt.Sprintf(`{tool: %s, args: {ref: "${ref}", how: "${how}", slot: "${slot}"}%s}`, tool, more)
	}
	calls := func(all ...string) {
		line(`      - call: [%s]`, strings.Join(all, ", "))
	}
	spoken := func() {
		line(`      - then: [{say: Done.}]`)
		line(`      - on_error: [{say: "Sorry, no."}]`)
	}

	line(`  - {when: {utterance: 1}, heard: note ok spoken s0}`)
	line(`  - {when: {utterance: 2}, heard: talk}`)
	line(`  - {when: {utterance: 3}, heard: batch ok spoken s1}`)
	line(`  - {when: {utterance: any}, do: [{say: [Yes., I hear you.]}]}`)
	line(`  - {when: {text: '^\[voicegw:\w+\]'}, do: [{say: [All right., So be it.]}]}`)
	line(`  - {when: {text: '^short'}, do: [{say: [Yes., No., Perhaps.]}]}`)
	line(`  - {when: {text: '^talk'}, do: [{say: I will talk for a while now so that there is something to interrupt.}]}`)
	line(`  - {when: {text: '^nothing'}, do: nothing}`)
	line(`  - {when: {text: '^mute'}, do: [{silence: 400ms}]}`)
	for _, tool := range chaosTools {
		wish(tool.id)
		calls(call(tool.id, ""))
		spoken()
	}
	wish("preamble")
	line(`      - say: One moment.`)
	calls(call("wait_for", ""), call("note", ""))
	spoken()
	wish("lookups") // two are within the budget, two are not
	calls(call("look_up", ""), `{tool: look_up, args: {ref: "${ref}", how: ok, slot: b, top_k: 40}}`,
		`{tool: look_up, args: {ref: "${ref}", how: ok, slot: c}}`, `{tool: look_up, args: {ref: "${ref}", how: ok, slot: d}}`)
	spoken()
	wish("batch")
	calls(call("look_up", ""), call("note", ""), call("book", ""))
	spoken()
	wish("repeat") // the same call, with the same id, three times
	calls(call("note", ", repeat: 2"))
	spoken()
	wish("same") // the same wish with two ids
	calls(call("note", ""), call("note", ""))
	spoken()
	wish("noid") // the same without ids
	calls(call("note", ", without_id: true"), call("note", ", without_id: true"))
	spoken()
	wish("late")
	calls(call("note", ", late: 300ms"))
	spoken()
	wish("wrong")
	calls(`{tool: book, args: {ref: 7, slot: []}}`, `{tool: ghost, args: {ref: "${ref}"}}`)
	spoken()
	wish("chain") // one after another until the budget is exhausted
	in := "      "
	for _, tool := range []string{"look_up", "note", "book", "wait_for", "note"} {
		line(`%s- call: %s`, in, call(tool, ""))
		line(`%s- then:`, in)
		in += "    "
	}
	line(`%s- say: That was long.`, in)
	line(`  - {when: {tool: any, error: any}, do: [{say: It failed.}]}`)
	line(`  - {when: {text: any}, do: [{say: "What?"}]}`)
	line(`otherwise: auto`)
	return b.String()
}

// verbs are a caller's verbs with their weights.
var verbs = weighted[string]{
	{"short", 6}, {"talk", 8}, {"nothing", 2}, {"mute", 1},
	{"look_up", 5}, {"note", 8}, {"book", 10}, {"pay", 8}, {"shop__order", 8}, {"wait_for", 5}, {"shop__watch", 4}, {"goodbye", 2},
	{"preamble", 4}, {"lookups", 4}, {"batch", 6}, {"repeat", 5}, {"same", 4}, {"noid", 4}, {"late", 4}, {"wrong", 3}, {"chain", 4},
}

// weighted draws its values in proportion to their weights.
type weighted[T any] []struct {
	value  T
	weight int
}

func (w weighted[T]) draw(rng *rand.Rand) T {
	sum := 0
	for _, e := range w {
		sum += e.weight
	}
	n := rng.IntN(sum)
	for _, e := range w {
		if n -= e.weight; n < 0 {
			return e.value
		}
	}
	panic("unreachable: n was below the sum")
}

// There are few slots, so that the callers of a user have equal wishes.
const slots = 12

// chaosText draws a caller's text. ref is the name of the wish.
func chaosText(rng *rand.Rand, ref string) string {
	return fmt.Sprintf("%s %s %s s%d", verbs.draw(rng), hows[rng.IntN(len(hows))], ref, rng.IntN(slots))
}

// chaosFaults draws the faults of the provider's wires: each kind has half to one and a half times its usual
// probability.
func chaosFaults(rng *rand.Rand) string {
	var b strings.Builder
	b.WriteString("faults:\n")
	add := func(at string, usual float64, what string) {
		fmt.Fprintf(&b, "  - {at: %s, probability: %.5f, do: %s}\n", at, usual*(0.5+rng.Float64()), what)
	}
	add("connect", 0.02, "delay, for: 50ms, jitter: 300ms")
	add("connect", 0.01, "quota")
	add("connect", 0.01, "drop")
	add("setup", 0.05, "slow_read, for: 1ms, jitter: 4ms")
	add("setup", 0.01, "drop")
	add("turn", 0.02, "silence, for: 500ms, jitter: 2s")
	add("turn", 0.005, "silence")
	add("turn", 0.01, "goaway, for: 1s")
	add("turn", 0.01, "goaway, for: 0s")
	add("turn", 0.04, "goaway, for: 30s")
	add("turn", 0.01, "goaway, for: 300s")
	for _, code := range []int{1007, 1008, 1011} {
		add("setup", 0.06, fmt.Sprintf("refuse_resume, code: %d", code))
	}
	add("setup", 0.06, "amnesia")
	add("setup", 0.01, "deaf")
	add("setup", 0.06, "late_handle, for: 100ms, jitter: 2s")
	add("setup", 0.03, "no_handle")
	add("setup", 0.06, "busy_handle")
	add("turn", 0.005, "expire")
	add("turn", 0.005, "quota")
	for _, code := range []int{1000, 1001, 1007, 1008, 1011} {
		add("turn", 0.004, fmt.Sprintf("close, code: %d, reason: chaos", code))
	}
	add("chunk", 0.03, "delay, for: 10ms, jitter: 150ms")
	add("chunk", 0.004, "drop")
	add("call", 0.12, "duplicate_call")
	add("call", 0.06, "late_call, for: 100ms, jitter: 500ms")
	add("call", 0.12, "cancel_call, for: 0ms, jitter: 400ms")
	add("call", 0.08, "missing_id")
	add("turn", 0.03, "no_audio, for: 200ms, jitter: 2s, api: openai_live")
	add("turn", 0.005, "no_audio, api: openai_live")
	add("turn", 0.03, "unplaced, api: openai_live")
	add("call", 0.06, "undelegated, api: openai_live")
	add("connect", 0.1, "delay, for: 100ms, jitter: 1500ms, api: chat")
	add("connect", 0.03, "http_error, code: 500, api: chat")
	add("frame", 0.003, "unknown_event")
	add("frame", 0.003, "malformed")
	return b.String()
}

// mood is a period of store failures.
type mood struct {
	from, to time.Duration // since the start
	kind     moodKind
}

type moodKind string

// The store's failures.
const (
	moodSlow    moodKind = "slow"    // slow
	moodRefuses moodKind = "refuses" // has no effect and reports an error
	moodLoses   moodKind = "loses"   // has its effect and reports an error
)

// chaosMoods draws the store's failures, about a quarter of the time.
func chaosMoods(rng *rand.Rand, lasting time.Duration) []mood {
	kinds := []moodKind{moodSlow, moodRefuses, moodLoses}
	var all []mood
	for at := between(rng, time.Second, 3*time.Second); at < lasting; at += between(rng, time.Second, 5*time.Second) {
		m := mood{from: at, to: at + between(rng, 300*time.Millisecond, 1500*time.Millisecond), kind: kinds[rng.IntN(len(kinds))]}
		all = append(all, m)
		at = m.to
	}
	return all
}

func between(rng *rand.Rand, least, most time.Duration) time.Duration {
	return least + time.Duration(rng.Int64N(int64(most-least)))
}
