// Package cost converts token usage to micro-dollars by a dated price table, without clock or I/O. Unpriced usage is
// counted apart: it isn't free.
package cost

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	"voicegw/transport"
)

// Micros is money in micro-dollars: 1,000,000 are one US dollar.
type Micros int64

// String returns dollars with six decimals, such as "$0.012300".
func (m Micros) String() string {
	sign, n := "", uint64(m)
	if m < 0 {
		sign, n = "-", -n
	}
	return fmt.Sprintf("%s$%d.%06d", sign, n/1e6, n%1e6)
}

// Dollars returns dollars for metrics and charts; add up Micros instead.
func (m Micros) Dollars() float64 { return float64(m) / 1e6 }

// Plus returns the sum, saturating at the limits.
func (m Micros) Plus(n Micros) Micros {
	sum := m + n
	switch {
	case n > 0 && sum < m:
		return math.MaxInt64
	case n < 0 && sum > m:
		return math.MinInt64
	}
	return sum
}

// Amount is the cost of usages. Its JSON form is stored and sent to clients.
type Amount struct {
	Micros    Micros `json:"micros"`
	Unpriced  int64  `json:"unpriced,omitempty"`
	Estimated int64  `json:"estimated,omitempty"`
}

// Plus returns a + b.
func (a Amount) Plus(b Amount) Amount {
	return Amount{Micros: a.Micros.Plus(b.Micros), Unpriced: a.Unpriced + b.Unpriced, Estimated: a.Estimated + b.Estimated}
}

// Minus returns a - b.
func (a Amount) Minus(b Amount) Amount {
	return a.Plus(Amount{Micros: -b.Micros, Unpriced: -b.Unpriced, Estimated: -b.Estimated})
}

// mostTokens bounds each count: eight kinds of this many tokens at mostPrice fit into 63 bits.
const mostTokens = 1_000_000_000

// mostSeconds bounds a duration; at mostMinute it costs less than a kind of token may.
const mostSeconds = 10_000_000

// Usage counts tokens by price category. No token counts twice: cached input counts as cached only.
type Usage struct {
	InputText   int64 `json:"input_text,omitempty"`
	InputAudio  int64 `json:"input_audio,omitempty"`
	InputImage  int64 `json:"input_image,omitempty"`
	CachedText  int64 `json:"cached_text,omitempty"`
	CachedAudio int64 `json:"cached_audio,omitempty"`
	CachedImage int64 `json:"cached_image,omitempty"`
	OutputText  int64 `json:"output_text,omitempty"`
	OutputAudio int64 `json:"output_audio,omitempty"`
	// Seconds is the time of connections to models that charge by time.
	Seconds int64 `json:"seconds,omitempty"`
}

// Plus returns u + v.
func (u Usage) Plus(v Usage) Usage {
	return Usage{
		InputText: u.InputText + v.InputText, InputAudio: u.InputAudio + v.InputAudio, InputImage: u.InputImage + v.InputImage,
		CachedText: u.CachedText + v.CachedText, CachedAudio: u.CachedAudio + v.CachedAudio, CachedImage: u.CachedImage + v.CachedImage,
		OutputText: u.OutputText + v.OutputText, OutputAudio: u.OutputAudio + v.OutputAudio, Seconds: u.Seconds + v.Seconds,
	}
}

// Minus returns u - v.
func (u Usage) Minus(v Usage) Usage {
	return u.Plus(Usage{
		InputText: -v.InputText, InputAudio: -v.InputAudio, InputImage: -v.InputImage,
		CachedText: -v.CachedText, CachedAudio: -v.CachedAudio, CachedImage: -v.CachedImage,
		OutputText: -v.OutputText, OutputAudio: -v.OutputAudio, Seconds: -v.Seconds,
	})
}

// UsageOf subtracts cached tokens from the input of their modality. Gemini's totals exceed the sum of their parts (by
// 25 to 51 tokens a turn with 3.8 Live: discuss.ai.google.dev/t/188765, read 2026-11-25). Tokens without a modality and
// thoughts count as text, images, video and documents as images.
func UsageOf(t transport.Tokens) Usage {
	text, audio, other := whole(t.InputText), whole(t.InputAudio), whole(t.InputOther)
	outText, outAudio := whole(t.OutputText), whole(t.OutputAudio)
	text = whole(text + max(whole(t.Input)-text-audio-other, 0))
	outText = whole(outText + max(whole(t.Output)-outText-outAudio, 0) + whole(t.OutputThought))
	u := Usage{
		CachedText: min(whole(t.CachedText), text), CachedAudio: min(whole(t.CachedAudio), audio),
		InputImage: other, OutputText: outText, OutputAudio: outAudio, Seconds: min(whole(t.Seconds), mostSeconds),
	}
	u.InputText, u.InputAudio = text-u.CachedText, audio-u.CachedAudio
	return u
}

// whole clamps a token count, which a provider may send in any form.
func whole(n int64) int64 { return min(max(n, 0), mostTokens) }

// IsZero reports whether no token was used.
func (u Usage) IsZero() bool { return u == Usage{} }

// Sum is usage over a period. Its JSON form is stored.
type Sum struct {
	Amount
	// Sessions counts started voice sessions, Turns finished turns by voice and text.
	Sessions int64 `json:"sessions,omitempty"`
	Turns    int64 `json:"turns,omitempty"`
	VoiceMS  int64 `json:"voice_ms,omitempty"`
	Tokens   Usage `json:"tokens"`
}

// Plus returns s + t.
func (s Sum) Plus(t Sum) Sum {
	return Sum{
		Amount: s.Amount.Plus(t.Amount), Sessions: s.Sessions + t.Sessions, Turns: s.Turns + t.Turns,
		VoiceMS: s.VoiceMS + t.VoiceMS, Tokens: s.Tokens.Plus(t.Tokens),
	}
}

// Talk is the amount of a conversation.
type Talk struct {
	// Heard is the user's speech, Spoken the model's.
	Heard, Spoken time.Duration
	// Read is text for the model, Written text by the model, in bytes.
	Read, Written int64
}

// Plus returns t + u.
func (t Talk) Plus(u Talk) Talk {
	return Talk{Heard: t.Heard + u.Heard, Spoken: t.Spoken + u.Spoken, Read: t.Read + u.Read, Written: t.Written + u.Written}
}

// One token is a tenth of a second of user speech, a twentieth of model speech
// (developers.openai.com/api/docs/guides/realtime-costs, read 2026-11-25), or four bytes of English text.
const (
	heardPerToken  = 100 * time.Millisecond
	spokenPerToken = 50 * time.Millisecond
	bytesPerToken  = 4
)

// Estimate estimates tokens for a model that reports none. Models read the whole conversation for each answer, so all
// before counts as uncached input. It is zero if the model has said nothing.
func Estimate(before, now Talk) transport.Tokens {
	per := func(d, token time.Duration) int64 { return int64((d + token - 1) / token) }
	text := func(bytes int64) int64 { return (bytes + bytesPerToken - 1) / bytesPerToken }
	t := transport.Tokens{OutputText: text(now.Written), OutputAudio: per(now.Spoken, spokenPerToken)}
	if t.Output = t.OutputText + t.OutputAudio; t.Output == 0 {
		return transport.Tokens{}
	}
	t.InputText = text(before.Read + before.Written + now.Read)
	t.InputAudio = per(before.Heard+now.Heard, heardPerToken) + per(before.Spoken, spokenPerToken)
	t.Input = t.InputText + t.InputAudio
	return t
}

// Price is the price of a million tokens of one kind in micro-dollars, or Unknown.
type Price int64

// Unknown is the price of a kind of token without a known price.
const Unknown Price = -1

// mostPrice bounds a price: a thousand dollars for a million tokens. mostMinute bounds that of a minute: five dollars.
const (
	mostPrice  = 1_000_000_000
	mostMinute = 5_000_000
)

// Prices are the prices of one model.
type Prices struct {
	InputText, InputAudio, InputImage    Price
	CachedText, CachedAudio, CachedImage Price
	OutputText, OutputAudio              Price
	// Second is for a million seconds.
	Second Price
}

// row is a model's prices from a day on.
type row struct {
	from   string // a UTC day such as 2026-11-25; empty means always
	prices Prices
}

// Table is a price table. The zero Table has no prices. It is immutable after Parse.
type Table struct {
	Date    string
	Version string

	models map[string][]row // a model's rows, latest first
}

// release matches suffixes that don't change the model: release dates and Google's previews.
var release = regexp.MustCompile(`^-(?:\d{4}-\d{2}-\d{2}|latest|(?:exp|preview)(?:-\d{2}-\d{4}|-\d{4}-\d{2}-\d{2})?|\d{3})$`)

// Cost is rounded up to a whole micro-dollar, so priced usage is never free. It is unpriced if the model or a used kind
// is unknown. The name may have an API path (models/…) and a release date.
func (t *Table) Cost(model string, at time.Time, u Usage) Amount {
	if u.IsZero() {
		return Amount{}
	}
	prices, ok := t.Prices(model, at)
	if !ok {
		return Amount{Unpriced: 1}
	}
	return prices.cost(u)
}

// Prices returns a model's prices at a time; false if it is unknown.
func (t *Table) Prices(model string, at time.Time) (Prices, bool) {
	if t == nil {
		return Prices{}, false
	}
	day := at.UTC().Format(time.DateOnly)
	for _, r := range t.rows(model) {
		if r.from <= day {
			return r.prices, true
		}
	}
	return Prices{}, false
}

// Models returns the models' names, sorted.
func (t *Table) Models() []string {
	if t == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(t.models))
}

// rows returns the rows of the model, or of the model it is a release of.
func (t *Table) rows(model string) []row {
	name := strings.ToLower(model[strings.LastIndexByte(model, '/')+1:])
	if rows, ok := t.models[name]; ok {
		return rows
	}
	for i := len(name) - 1; i > 0; i-- {
		if name[i] != '-' || !release.MatchString(name[i:]) {
			continue
		}
		if rows, ok := t.models[name[:i]]; ok {
			return rows
		}
	}
	return nil
}

const million = 1_000_000

// cost adds up exactly and rounds once. Cached tokens without a price cost as much as uncached ones.
func (p Prices) cost(u Usage) Amount {
	or := func(cached, price Price) Price {
		if cached == Unknown {
			return price
		}
		return cached
	}
	var sum int64
	for _, k := range [...]struct {
		tokens int64
		price  Price
	}{
		{u.InputText, p.InputText}, {u.InputAudio, p.InputAudio}, {u.InputImage, p.InputImage},
		{u.CachedText, or(p.CachedText, p.InputText)}, {u.CachedAudio, or(p.CachedAudio, p.InputAudio)},
		{u.CachedImage, or(p.CachedImage, p.InputImage)},
		{u.OutputText, p.OutputText}, {u.OutputAudio, p.OutputAudio}, {u.Seconds, p.Second},
	} {
		tokens := whole(k.tokens)
		switch {
		case tokens == 0:
		case k.price == Unknown:
			return Amount{Unpriced: 1}
		default:
			sum += tokens * int64(k.price)
		}
	}
	return Amount{Micros: Micros((sum + million - 1) / million)}
}

// ParseDollars parses an exact amount, such as 0.75: no sign or exponent, at most six decimals.
func ParseDollars(text string) (Micros, bool) {
	units, decimals, point := strings.Cut(text, ".")
	if units == "" || point && decimals == "" || len(decimals) > 6 {
		return 0, false
	}
	var n int64
	for _, c := range units + decimals + strings.Repeat("0", 6-len(decimals)) {
		if c < '0' || c > '9' || n > (math.MaxInt64-9)/10 {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return Micros(n), true
}
