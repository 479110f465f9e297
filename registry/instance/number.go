package instance

import (
	"encoding/json"
	"math/big"
	"strconv"
	"strings"
)

// limit is a bound of numbers, and the place of its keyword.
type limit struct {
	value *big.Rat
	open  bool // the bound itself is not allowed
	where string
}

// numbers are bounds on numbers that apply together.
type numbers struct {
	low, high *limit
	step      *big.Rat // every number is a multiple of it; nil means any number
	steps     []string // the place of its keyword
}

// atLeast sets low to the stricter of low and l.
func (n *numbers) atLeast(l limit) {
	if n.low == nil || l.value.Cmp(n.low.value) > 0 || l.value.Cmp(n.low.value) == 0 && l.open {
		n.low = &l
	}
}

func (n *numbers) atMost(l limit) {
	if n.high == nil || l.value.Cmp(n.high.value) < 0 || l.value.Cmp(n.high.value) == 0 && l.open {
		n.high = &l
	}
}

// multiple allows only multiples of step.
func (n *numbers) multiple(step *big.Rat, where string) {
	if step.Sign() <= 0 {
		return // the meta-schema refuses it
	}
	n.steps = append(n.steps, where)
	if n.step == nil {
		n.step = step
		return
	}
	// The least common multiple of fractions in their lowest terms.
	above := lcm(n.step.Num(), step.Num())
	below := new(big.Int).GCD(nil, nil, n.step.Denom(), step.Denom())
	n.step = new(big.Rat).SetFrac(above, below)
}

func lcm(a, b *big.Int) *big.Int {
	gcd := new(big.Int).GCD(nil, nil, a, b)
	return new(big.Int).Mul(a, new(big.Int).Quo(b, gcd))
}

// values returns up to want numbers; complete says that there are no others.
func (n *numbers) values(want int) (found []*big.Rat, complete bool) {
	if n.low != nil && n.high != nil {
		switch cmp := n.low.value.Cmp(n.high.value); {
		case cmp > 0, cmp == 0 && (n.low.open || n.high.open):
			return nil, true
		case cmp == 0 && n.step == nil:
			return []*big.Rat{n.low.value}, true
		}
	}
	if n.step == nil {
		return n.anywhere(want), false
	}
	return n.multiples(want)
}

// multiples returns multiples of step, starting at the bound or at zero.
func (n *numbers) multiples(want int) (found []*big.Rat, complete bool) {
	step, from := n.step, new(big.Rat)
	switch {
	case n.low != nil:
		from = ceil(n.low.value, step)
		if n.low.open && from.Cmp(n.low.value) == 0 {
			from.Add(from, step)
		}
	case n.high != nil && n.high.value.Sign() <= 0: // downwards from the bound
		from = new(big.Rat).Neg(ceil(new(big.Rat).Neg(n.high.value), step))
		if n.high.open && from.Cmp(n.high.value) == 0 {
			from.Sub(from, step)
		}
		for range want {
			found = append(found, new(big.Rat).Set(from))
			from.Sub(from, step)
		}
		return found, false
	}
	for n.holds(from) {
		if len(found) == want {
			return found, false
		}
		found = append(found, new(big.Rat).Set(from))
		from.Add(from, step)
	}
	return found, n.low != nil
}

// anywhere returns numbers of an interval that has more than one.
func (n *numbers) anywhere(want int) []*big.Rat {
	var tries []*big.Rat
	one := big.NewRat(1, 1)
	base, width := new(big.Rat), one
	switch {
	case n.low != nil && n.high != nil:
		base, width = n.low.value, new(big.Rat).Sub(n.high.value, n.low.value)
	case n.low != nil:
		base = n.low.value
	case n.high != nil:
		base = new(big.Rat).Sub(n.high.value, one)
	}
	tries = append(tries, new(big.Rat), ceil(base, one), base, new(big.Rat).Add(base, width))
	parts := int64(2)
	for int64(want) >= parts {
		parts *= 2
	}
	for i := int64(1); i < parts; i++ {
		tries = append(tries, new(big.Rat).Add(base, new(big.Rat).Mul(width, big.NewRat(i, parts))))
	}
	var found []*big.Rat
	seen := map[string]bool{}
	for _, r := range tries {
		if len(found) < want && n.holds(r) && !seen[r.RatString()] {
			seen[r.RatString()] = true
			found = append(found, r)
		}
	}
	return found
}

// holds reports whether r is within the bounds.
func (n *numbers) holds(r *big.Rat) bool {
	within := func(l *limit, sign int) bool {
		cmp := 0
		if l != nil {
			cmp = r.Cmp(l.value) * sign
		}
		return l == nil || cmp > 0 || cmp == 0 && !l.open
	}
	return within(n.low, 1) && within(n.high, -1)
}

// ceil is the smallest multiple of step that is not below r.
func ceil(r, step *big.Rat) *big.Rat {
	q := new(big.Rat).Quo(r, step)
	n := new(big.Int).Div(q.Num(), q.Denom()) // Euclidean, so it is the floor
	if !q.IsInt() {
		n.Add(n, big.NewInt(1))
	}
	return new(big.Rat).Mul(new(big.Rat).SetInt(n), step)
}

// Numbers of a schema are refused beyond these, so that exact arithmetic stays cheap.
const (
	maxNumber   = 128 // characters
	maxExponent = 400
)

// rational returns the exact value of a JSON number; nil if it is not a number, or too long.
func rational(v any) *big.Rat {
	n, ok := v.(json.Number)
	if !ok || len(n) > maxNumber {
		return nil
	}
	if i := strings.IndexAny(string(n), "eE"); i >= 0 {
		if e, err := strconv.Atoi(string(n[i+1:])); err != nil || e > maxExponent || e < -maxExponent {
			return nil
		}
	}
	r, ok := new(big.Rat).SetString(string(n))
	if !ok {
		return nil
	}
	return r
}

// numeral writes r as JSON; false if r is not a decimal fraction.
func numeral(r *big.Rat) (json.Number, bool) {
	if r.IsInt() {
		return json.Number(r.Num().String()), true
	}
	digits, exact := r.FloatPrec()
	return json.Number(r.FloatString(digits)), exact
}
