package report

import (
	"math"
	"sync"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
)

// The range and the precision of a histogram: from a microsecond to ten minutes, with
// three significant digits. What is longer counts as ten minutes.
const (
	longest   = 10 * time.Minute
	precision = 3
)

// histogram is an HDR histogram that several goroutines use.
type histogram struct {
	mu sync.Mutex // guards the following fields
	h  *hdr.Histogram
	// min and max are exact: the histogram rounds.
	min, max time.Duration
}

func newHistogram() *histogram {
	return &histogram{h: hdr.New(1, longest.Microseconds(), precision)}
}

// record takes one value; below zero counts as zero.
func (h *histogram) record(d time.Duration) {
	d = min(max(d, 0), longest)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.max = max(h.max, d); d < h.min || h.h.TotalCount() == 0 {
		h.min = d
	}
	// The value has been brought into range.
	_ = h.h.RecordValue(d.Microseconds())
}

// reset forgets everything.
func (h *histogram) reset() {
	h.mu.Lock()
	h.h.Reset()
	h.min, h.max = 0, 0
	h.mu.Unlock()
}

// Summary is what a distribution comes to. Times are in ms.
type Summary struct {
	Count int64   `json:"count"`
	Mean  float64 `json:"mean"`
	Min   float64 `json:"min"`
	P50   float64 `json:"p50"`
	P90   float64 `json:"p90"`
	P95   float64 `json:"p95"`
	P99   float64 `json:"p99"`
	Max   float64 `json:"max"`
	// Interval are the confidence intervals of the percentiles.
	Interval Intervals `json:"interval"`
	// Curve is the value at each of the CurveQuantiles; empty without values.
	Curve []float64 `json:"curve,omitempty"`
}

// Intervals are the 95 % confidence intervals of a distribution's percentiles, as far
// as its values are independent of each other.
type Intervals struct {
	P50 Interval `json:"p50"`
	P95 Interval `json:"p95"`
	P99 Interval `json:"p99"`
}

// Interval is from Low to High, in ms.
type Interval struct {
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// CurveQuantiles returns where Summary.Curve is taken, from 0 to 1.
func CurveQuantiles() []float64 {
	out := []float64{0}
	for i := 1; i < 20; i++ {
		out = append(out, float64(i)*0.05)
	}
	return append(out, 0.96, 0.97, 0.98, 0.99, 0.995, 0.998, 0.999, 0.9999, 1)
}

// summary reads the histogram.
func (h *histogram) summary() Summary {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := h.h.TotalCount()
	if n == 0 {
		return Summary{}
	}
	s := Summary{
		Count: n, Mean: round(h.h.Mean() / 1000), Min: milliseconds(h.min), Max: milliseconds(h.max),
		P50: h.at(0.50), P90: h.at(0.90), P95: h.at(0.95), P99: h.at(0.99),
		Interval: Intervals{P50: h.interval(0.50), P95: h.interval(0.95), P99: h.interval(0.99)},
	}
	for _, q := range CurveQuantiles() {
		s.Curve = append(s.Curve, h.at(q))
	}
	return s
}

// at is the value at a quantile; the histogram is locked.
func (h *histogram) at(q float64) float64 {
	if q <= 0 {
		return milliseconds(h.min)
	}
	return min(ms(h.h.ValueAtPercentile(q*100)), milliseconds(h.max))
}

// interval is where the true quantile lies with a probability of 95 %: between two of
// the values in their order, by the normal approximation of how many are below it
// (W. J. Conover, "Practical Nonparametric Statistics", 3rd edition, section 3.2).
func (h *histogram) interval(q float64) Interval {
	n := float64(h.h.TotalCount())
	spread := 1.96 * math.Sqrt(n*q*(1-q))
	rank := func(r float64) float64 { return h.at(min(max(r, 1), n) / n) }
	return Interval{Low: rank(math.Floor(n*q - spread)), High: rank(math.Ceil(n*q+spread) + 1)}
}

// ms turns microseconds into milliseconds.
func ms(us int64) float64 { return round(float64(us) / 1000) }

// milliseconds is d in ms.
func milliseconds(d time.Duration) float64 { return round(float64(d) / float64(time.Millisecond)) }
