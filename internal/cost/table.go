package cost

import (
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Price is the price of a million tokens of one kind in micro-dollars, or Unknown.
type Price int64

// Unknown is the price of a kind of token without a known price.
const Unknown Price = -1

// mostPrice bounds a price: a thousand dollars for a million tokens.
const mostPrice = 1_000_000_000

// Prices are the prices of one model.
type Prices struct {
	InputText, InputAudio, InputImage    Price
	CachedText, CachedAudio, CachedImage Price
	OutputText, OutputAudio              Price
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
		{u.OutputText, p.OutputText}, {u.OutputAudio, p.OutputAudio},
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
