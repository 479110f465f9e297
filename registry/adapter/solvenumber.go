package adapter

import (
	"encoding/json"
	"math/big"

	"voicegw/registry/jsontype"
)

// limit is a bound of numbers, and what sets it. A nil limit is no bound.
type limit struct {
	value *big.Rat
	open  bool // the bound itself is not allowed
	where string
}

// limits returns the bounds that the keywords of o set, and those of 64 bits if a handler gets
// the values as int64.
func limits(o *object, is64 bool) (low, high *limit) {
	if value, open := tightest(o, "minimum", "exclusiveMinimum", 1); value != nil {
		low = &limit{value, open, where(o, source(open, "exclusiveMinimum", "minimum"))}
	}
	if value, open := tightest(o, "maximum", "exclusiveMaximum", -1); value != nil {
		high = &limit{value, open, where(o, source(open, "exclusiveMaximum", "maximum"))}
	}
	if is64 {
		least := &limit{rat("-9223372036854775808"), false, "the least integer -9223372036854775808"}
		if low == nil || low.value.Cmp(least.value) < 0 {
			low = least
		}
		greatest := &limit{rat("9223372036854775807"), false, "the greatest integer 9223372036854775807"}
		if high == nil || high.value.Cmp(greatest.value) > 0 {
			high = greatest
		}
	}
	return low, high
}

// numbers searches for numbers, or for integers alone, by exact arithmetic.
func (f *finding) numbers(t jsontype.Set) (complete bool) {
	low, high := limits(f.o, typesOf(f.o)&^jsontype.Null == jsontype.Integer && !f.s.wide)
	step, whole := f.step(t)
	if low != nil && high != nil {
		order := low.value.Cmp(high.value)
		if order > 0 || order == 0 && (low.open || high.open) {
			f.because("%s and %s leave no number between them", low.where, high.where)
			return true
		}
	}
	found, complete := between(low, high, step, f.want+spare)
	for _, r := range found {
		if digits, exact := r.FloatPrec(); exact {
			f.try(json.Number(r.FloatString(digits)))
		} else {
			complete = false // no decimal fraction
		}
	}
	switch {
	case len(found) > 0 || !complete:
	case f.o.has("multipleOf"):
		f.because("no %s between %s and %s fits %s", whole, low.where, high.where, where(f.o, "multipleOf"))
	default:
		f.because("no %s is between %s and %s", whole, low.where, high.where)
	}
	return complete
}

// step returns what every number is a multiple of, nil for any number, and what the numbers are
// called.
func (f *finding) step(t jsontype.Set) (step *big.Rat, whole string) {
	if f.o.has("multipleOf") {
		step = bound(f.o, "multipleOf")
	}
	if t&jsontype.Fraction != 0 {
		return step, "number"
	}
	if step == nil {
		return big.NewRat(1, 1), "integer"
	}
	return new(big.Rat).SetInt(step.Num()), "integer" // in lowest terms, so it is the least common multiple with 1
}

// between returns up to want numbers within the bounds; complete says that there are no others.
func between(low, high *limit, step *big.Rat, want int) (found []*big.Rat, complete bool) {
	start, move := new(big.Rat), step
	switch {
	case step == nil:
		start, move = spread(low, high, want)
	case low != nil:
		start = nearest(low, step, 1)
	case high != nil:
		start, move = nearest(high, step, -1), new(big.Rat).Neg(step)
	}
	for range want + 1 {
		if low.before(start, 1) || high.before(start, -1) {
			if step != nil || len(found) > 0 {
				return found, step != nil
			}
		} else {
			found = append(found, new(big.Rat).Set(start))
		}
		start = new(big.Rat).Add(start, move)
	}
	return found, low != nil && high != nil && low.value.Cmp(high.value) == 0
}

// before reports whether r is outside of a bound below (sign 1) or above (-1).
func (l *limit) before(r *big.Rat, sign int) bool {
	if l == nil {
		return false
	}
	order := r.Cmp(l.value) * sign
	return order < 0 || order == 0 && l.open
}

// nearest is the multiple of step that is nearest to a bound, on the allowed side of it.
func nearest(l *limit, step *big.Rat, sign int64) *big.Rat {
	return new(big.Rat).Mul(next(new(big.Rat).Quo(l.value, step), l.open, sign), step)
}

// spread returns where to begin, and how far to go each time, to meet different numbers of an
// interval. The steps divide by powers of two, so that decimal fractions stay decimal.
func spread(low, high *limit, want int) (start, move *big.Rat) {
	parts := int64(2)
	for parts < int64(want)+1 {
		parts *= 2
	}
	switch {
	case low != nil && high != nil:
		width := new(big.Rat).Sub(high.value, low.value)
		return low.value, width.Mul(width, big.NewRat(1, parts))
	case low != nil:
		return low.value, big.NewRat(1, parts)
	case high != nil:
		return high.value, big.NewRat(-1, parts)
	default:
		return new(big.Rat), big.NewRat(1, parts)
	}
}
