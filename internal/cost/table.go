package cost

import (
	"regexp"
	"slices"
	"strings"
	"time"
)

// Price is what a million tokens of one kind cost, in micro-dollars; Unknown if that is not known.
type Price int64

// Unknown is the price of a kind of token of which the table does not say a price.
const Unknown Price = -1

// mostPrice bounds a price: a thousand dollars for a million tokens.
const mostPrice = 1_000_000_000

// Prices are the prices of one model.
type Prices struct {
	InputText, InputAudio, InputImage    Price
	CachedText, CachedAudio, CachedImage Price
	OutputText, OutputAudio              Price
}

// row is the prices of a model from a day on.
type row struct {
	from   string // a day such as 2026-11-25, in UTC; empty means always
	prices Prices
}

// Table is a price table. The zero Table knows no price. It is not changed after Parse, so it may
// be used concurrently.
type Table struct {
	// Date is the day on which the table was put together, such as 2026-11-25.
	Date string
	// Version identifies the table's content: its date and, with prices of one's own, their sum.
	Version string

	models map[string][]row // the rows of a model, the latest first
}

// release matches what may stand behind the name of a model without making it another one: the day
// of a release, and what Google calls previews.
var release = regexp.MustCompile(`^-(?:\d{4}-\d{2}-\d{2}|latest|(?:exp|preview)(?:-\d{2}-\d{4}|-\d{4}-\d{2}-\d{2})?|\d{3})$`)

// Cost returns what u costs with a model at a time, rounded up to a whole micro-dollar. So a usage
// with a price is never free, and a sum of usages is exactly the sum of what was shown for each. If
// the model is not in the table, or a kind of token that u has is without a price, Cost returns an
// Amount that is unpriced. Without any token, nothing was used and the Amount is zero.
//
// The name may have the path of the provider's API before it (models/…), and the day of a release
// behind it.
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

// Prices returns a model's prices at a time; false if the table does not have the model.
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

// Models returns the names of the table's models, sorted.
func (t *Table) Models() []string {
	if t == nil {
		return nil
	}
	names := make([]string, 0, len(t.models))
	for name := range t.models {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// rows returns the rows of the model itself, or of the one that it is a release of.
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

// million is the number of tokens that a price is for.
const million = 1_000_000

// cost adds up exactly and rounds once. A kind that is cached and has no price for that costs as
// much as if it were not: a provider that does not name a discount gives none.
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
		{u.CachedText, or(p.CachedText, p.InputText)}, {u.CachedAudio, or(p.CachedAudio, p.InputAudio)}, {u.CachedImage, or(p.CachedImage, p.InputImage)},
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
