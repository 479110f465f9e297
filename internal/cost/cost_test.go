package cost

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"voicegw/transport"
)

// today is a day of the built-in table.
var today = time.Date(2026, 11, 25, 23, 59, 59, 0, time.UTC)

// TestUsageOf: each token is charged once, in any report of a provider.
func TestUsageOf(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		is   transport.Tokens
		want Usage
	}{
		"nothing": {},
		"OpenAI: cached tokens are a part of the input": {
			transport.Tokens{Input: 789, InputText: 313, InputAudio: 476, CachedText: 256, CachedAudio: 384, Output: 32, OutputText: 9, OutputAudio: 23},
			Usage{InputText: 57, InputAudio: 92, CachedText: 256, CachedAudio: 384, OutputText: 9, OutputAudio: 23},
		},
		"OpenAI: reasoning is in the total alone": {
			transport.Tokens{Input: 10, InputText: 10, Output: 60, OutputText: 10, OutputAudio: 22},
			Usage{InputText: 10, OutputText: 38, OutputAudio: 22},
		},
		"Gemini: the total has more than its parts, and thoughts come on top": {
			transport.Tokens{Input: 522, InputText: 332, InputAudio: 165, Output: 42, OutputAudio: 42, OutputThought: 136},
			Usage{InputText: 357, InputAudio: 165, OutputText: 136, OutputAudio: 42},
		},
		"images":                     {transport.Tokens{Input: 300, InputText: 42, InputOther: 258}, Usage{InputText: 42, InputImage: 258}},
		"totals alone":               {transport.Tokens{Input: 5, Output: 7}, Usage{InputText: 5, OutputText: 7}},
		"parts alone":                {transport.Tokens{InputAudio: 5, OutputAudio: 7}, Usage{InputAudio: 5, OutputAudio: 7}},
		"more cached than there was": {transport.Tokens{InputText: 5, CachedText: 50, CachedAudio: 3}, Usage{CachedText: 5}},
		"an impossible report":       {transport.Tokens{Input: -5, InputText: -1, CachedText: -7, Output: math.MinInt64, OutputThought: -3}, Usage{}},
		"too much":                   {transport.Tokens{Input: math.MaxInt64, InputAudio: math.MaxInt64}, Usage{InputAudio: mostTokens}},
	} {
		if diff := cmp.Diff(c.want, UsageOf(c.is)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestCost: prices calculated by hand, the rounding, and unpriced parts.
func TestCost(t *testing.T) {
	t.Parallel()
	table, err := Parse("t", []byte(`
version: 1
date: 2026-11-25
prices:
  - {models: [full], source: s, input: {text: 4, audio: 32, image: 5}, cached: {text: 0.4, audio: 0.4, image: 0.5}, output: {text: 16, audio: 64}}
  - {models: [plain], source: s, input: {text: 0.75, audio: 3}, output: {audio: 12}}
  - {models: [plain], source: s, from: 2027-01-01, input: {text: 1.5, audio: 3}, output: {audio: 12}}
  - {models: [gift], source: s, input: {text: 0}, output: {text: 0}}
  - {models: [tiny], source: s, input: {text: 0.000001}, output: {text: 0.000001}}
  - {models: [timed], source: s, minute: 0.05}
  - {models: [dear], source: s, input: {text: 1000, audio: 1000, image: 1000}, output: {text: 1000, audio: 1000}}
`))
	if err != nil {
		t.Fatal(err)
	}
	later := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name  string
		model string
		at    time.Time
		usage Usage
		want  Amount
	}{
		// 57*4 + 92*32 + 256*0.4 + 384*0.4 + 9*16 + 23*64 = 228+2944+102.4+153.6+144+1472
		{"all kinds", "full", today, Usage{InputText: 57, InputAudio: 92, CachedText: 256, CachedAudio: 384, OutputText: 9, OutputAudio: 23}, Amount{Micros: 5044}},
		{"images", "full", today, Usage{InputImage: 258, CachedImage: 4}, Amount{Micros: 1292}},
		{"rounded up", "plain", today, Usage{InputText: 1}, Amount{Micros: 1}},
		{"rounded once", "plain", today, Usage{InputText: 5}, Amount{Micros: 4}},
		{"exact", "plain", today, Usage{InputText: 4, OutputAudio: 1}, Amount{Micros: 15}},
		{"cached without a discount", "plain", today, Usage{CachedText: 4, CachedAudio: 1}, Amount{Micros: 6}},
		{"from a day on", "plain", later, Usage{InputText: 4}, Amount{Micros: 6}},
		{"before that day", "plain", later.Add(-time.Second), Usage{InputText: 4}, Amount{Micros: 3}},
		{"a kind without a price", "plain", today, Usage{InputText: 1e6, OutputText: 1}, Amount{Unpriced: 1}},
		{"a model without a price", "nobody", today, Usage{InputText: 1}, Amount{Unpriced: 1}},
		{"no model", "", today, Usage{InputText: 1}, Amount{Unpriced: 1}},
		{"no usage", "nobody", today, Usage{}, Amount{}},
		{"free, according to the table", "gift", today, Usage{InputText: 1e6}, Amount{}},
		{"never free by rounding", "tiny", today, Usage{InputText: 1}, Amount{Micros: 1}},
		{"a path before the name", "models/full", today, Usage{InputText: 1}, Amount{Micros: 4}},
		{"the largest", "dear", today, Usage{mostTokens, mostTokens, mostTokens, mostTokens, mostTokens, mostTokens, mostTokens, mostTokens, 0}, Amount{Micros: 8e12}},
		{"by the second", "timed", today, Usage{Seconds: 90}, Amount{Micros: 75_000}},
		{"a second", "timed", today, Usage{Seconds: 1}, Amount{Micros: 834}},
		{"seconds without a price", "full", today, Usage{Seconds: 1}, Amount{Unpriced: 1}},
		{"tokens of a model that is charged by the second", "timed", today, Usage{InputText: 1}, Amount{Unpriced: 1}},
		{"larger than the largest", "dear", today, Usage{InputText: math.MaxInt64}, Amount{Micros: 1e12}},
	} {
		if got := table.Cost(c.model, c.at, c.usage); got != c.want {
			t.Errorf("%s: %+v instead of %+v", c.name, got, c.want)
		}
	}
	for _, none := range []*Table{nil, {}} {
		if got := none.Cost("full", today, Usage{InputText: 1}); got != (Amount{Unpriced: 1}) {
			t.Errorf("a table without prices: %+v", got)
		}
	}
}

// TestReleases: a dated release and a preview have the price of their model; another model does not.
func TestReleases(t *testing.T) {
	t.Parallel()
	for name, known := range map[string]bool{
		"gpt-realtime":                                   true,
		"gpt-realtime-2025-08-28":                        true,
		"GPT-Realtime-2.1":                               true,
		"gpt-realtime-2.1-mini":                          true,
		"gpt-realtime-2.1-mini-2026-08-01":               true,
		"gpt-realtime-2.1-maxi":                          false,
		"gpt-realtime-3":                                 false,
		"gpt-realtime-":                                  false,
		"my-deployment":                                  false,
		"models/gemini-3.8-live":                         true,
		"gemini-3.1-flash-live-preview":                  true,
		"gemini-2.5-flash-native-audio-preview-09-2025":  true,
		"gemini-2.5-flash-native-audio-latest":           true,
		"publishers/google/models/gemini-3.8-flash-001":  true,
		"gemini-3.8-live-extended-thinking":              true,
		"gemini-3.8-live-extended-thinking-and-speaking": false,
		"gemini-3.8-live-preview-09-2025-somebody-elses": false,
	} {
		if _, ok := BuiltIn().Prices(name, today); ok != known {
			t.Errorf("%s: priced %v instead of %v", name, ok, known)
		}
	}
}

// TestMoney: sums never wrap around, and money is read and written exactly.
func TestMoney(t *testing.T) {
	t.Parallel()
	if got := Micros(math.MaxInt64).Plus(1); got != math.MaxInt64 {
		t.Errorf("a sum beyond the largest is %d", got)
	}
	if got := Micros(math.MinInt64).Plus(-1); got != math.MinInt64 {
		t.Errorf("a sum beyond the smallest is %d", got)
	}
	if got := (Amount{1, 2, 5}).Plus(Amount{3, 4, 6}); got != (Amount{4, 6, 11}) {
		t.Errorf("a sum is %+v", got)
	}
	for m, want := range map[Micros]string{0: "$0.000000", 1: "$0.000001", -1_500_000: "-$1.500000", 12_345_678_901: "$12345.678901", math.MinInt64: "-$9223372036854.775808"} {
		if got := m.String(); got != want {
			t.Errorf("%d is %s instead of %s", int64(m), got, want)
		}
	}
	for text, want := range map[string]Micros{"0": 0, "5": 5e6, "0.75": 750_000, "0.000001": 1, "007": 7e6, "9223372036854.775799": 9223372036854775799} {
		if got, ok := ParseDollars(text); !ok || got != want {
			t.Errorf("%q is %d, %v instead of %d", text, got, ok, want)
		}
	}
	for _, text := range []string{"", ".", "1.", ".5", "-1", "+1", "1e3", "1,5", "0.0000001", " 1", "9223372036855", "99999999999999999999", "١"} {
		if got, ok := ParseDollars(text); ok {
			t.Errorf("%q is read as %d", text, got)
		}
	}
}
