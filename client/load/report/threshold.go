package report

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"voicegw/internal/textutil"
)

// Threshold is a condition that fails a run: "first_audio_p95>1200ms".
type Threshold struct {
	Text string

	name  string
	value value
	op    string
	limit float64 // in the value's unit
}

// ErrThreshold is wrapped by errors about an expression.
var ErrThreshold = errors.New("not a threshold")

// expression is name, comparison, number, unit.
var expression = regexp.MustCompile(`^\s*([A-Za-z0-9_]+)\s*(<=|>=|==|!=|<|>)\s*(-?[0-9]*\.?[0-9]+)\s*(\S*)\s*$`)

// ParseThreshold parses an expression such as first_audio_p95>1200ms, stale_frames>0 or rss_growth>5%. The run fails
// if it is true or the value is missing. The error wraps ErrThreshold.
func ParseThreshold(text string) (Threshold, error) {
	parts := expression.FindStringSubmatch(text)
	if parts == nil {
		return Threshold{}, fmt.Errorf("%w: %q; write it like first_audio_p95>1200ms or errors>0", ErrThreshold, text)
	}
	t := Threshold{Text: strings.TrimSpace(text), name: parts[1], op: parts[2]}
	var ok bool
	if t.value, ok = valueOf(parts[1]); !ok {
		hint := ""
		if n := textutil.Nearest(parts[1], names()); n != "" {
			hint = fmt.Sprintf(" (did you mean %s?)", n)
		}
		return Threshold{}, fmt.Errorf("%w: %q: %s is not measured%s; docs/load.md lists all values", ErrThreshold, text,
			parts[1], hint)
	}
	number, err := strconv.ParseFloat(parts[3], 64)
	if err != nil || math.IsInf(number, 0) {
		return Threshold{}, fmt.Errorf("%w: %q: %s is not a number", ErrThreshold, text, parts[3])
	}
	factor, err := t.value.unit.factor(parts[4])
	if err != nil {
		return Threshold{}, fmt.Errorf("%w: %q: %w", ErrThreshold, text, err)
	}
	t.limit = number * factor
	return t, nil
}

// unit is the unit of a value.
type unit struct {
	suffix string             // in words
	sizes  map[string]float64 // of the units in an expression
	wrong  string             // the error for another one
}

var (
	unitMS = &unit{" ms", map[string]float64{"us": 0.001, "µs": 0.001, "ms": 1, "s": 1000, "m": 60_000},
		"%q is not a unit of time; write 1200ms or 1.2s"}
	unitPercent   = &unit{" %", map[string]float64{"": 1, "%": 1}, "the unit is percent, not %q"}
	unitMB        = &unit{" MB", map[string]float64{"": 1, "MB": 1, "Mb": 1, "mB": 1, "mb": 1}, "the unit is MB, not %q"}
	unitCount     = &unit{"", map[string]float64{"": 1}, "a number has no unit such as %q"}
	unitPerMinute = &unit{" per minute", unitCount.sizes, unitCount.wrong}
)

func (u *unit) factor(suffix string) (float64, error) {
	factor, ok := u.sizes[suffix]
	switch {
	case ok:
		return factor, nil
	case u == unitMS && suffix == "":
		return 0, errors.New("a time needs its unit, such as 1200ms or 1.2s")
	default:
		return 0, fmt.Errorf(u.wrong, suffix)
	}
}

func (u *unit) inWords(v float64) string {
	if u == unitMS {
		return inMS(v) + u.suffix
	}
	return strconv.FormatFloat(round(v), 'f', -1, 64) + u.suffix
}

// Check compares a report with the threshold.
func (t Threshold) Check(r *Report) Check {
	v, ok := t.value.get(r)
	if !ok {
		return Check{FailIf: t.Text, Got: "nothing was measured", Failed: true}
	}
	l := t.limit
	failed := map[string]bool{"<": v < l, "<=": v <= l, ">": v > l, ">=": v >= l, "==": v == l, "!=": v != l}[t.op]
	return Check{FailIf: t.Text, Got: t.value.unit.inWords(v), Failed: failed}
}

// Judge applies thresholds to the report. Unmet expectations of the script and an invalid run always fail.
func (r *Report) Judge(thresholds []Threshold) {
	r.Checks = nil
	var fixed []Threshold
	if r.Counters["expectations"] > 0 {
		fixed = aboveZero("unmet")
	}
	if r.Audit != nil {
		fixed = append(fixed, aboveZero("audit_missing", "side_effects_twice")...)
	}
	r.Passed = r.Valid()
	for _, t := range append(fixed, thresholds...) {
		c := t.Check(r)
		r.Checks = append(r.Checks, c)
		r.Passed = r.Passed && !c.Failed
	}
}

// Of reports whether a threshold is about one of the figures or counters.
func (t Threshold) Of(names []string) bool {
	at := max(strings.LastIndexByte(t.name, '_'), 0)
	return slices.Contains(names, t.name) || slices.Contains(names, t.name[:at])
}

// DefaultThresholds returns the thresholds of a run without any: nothing is lost and nothing fails. Those about an
// unmeasured figure or counter are left out.
func DefaultThresholds(unmeasured []string) []Threshold {
	return slices.DeleteFunc(defaultThresholds(), func(t Threshold) bool { return t.Of(unmeasured) })
}

func defaultThresholds() []Threshold {
	return aboveZero("refused", "lost", "failed", "stuck", "errors", "stale_frames", "lost_audio", "lost_messages",
		"tools_open", "losses", "resumes_failed", "not_cut")
}

func aboveZero(names ...string) []Threshold {
	var out []Threshold
	for _, name := range names {
		t, err := ParseThreshold(name + ">0")
		if err != nil {
			panic(err)
		}
		out = append(out, t)
	}
	return out
}
