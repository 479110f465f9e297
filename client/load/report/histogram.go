package report

import (
	"math"
	"sync"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
)

// The range and precision of a histogram: a microsecond to ten minutes, with three significant digits. Longer times
// count as ten minutes.
const (
	longest   = 10 * time.Minute
	precision = 3
)

type histogram struct {
	mu sync.Mutex // guards the following fields
	h  *hdr.Histogram
	// min and max are exact; the histogram rounds.
	min, max time.Duration
}

func newHistogram() *histogram {
	return &histogram{h: hdr.New(1, longest.Microseconds(), precision)}
}

// record adds a value; a negative one counts as zero.
func (h *histogram) record(d time.Duration) {
	d = min(max(d, 0), longest)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.max = max(h.max, d); d < h.min || h.h.TotalCount() == 0 {
		h.min = d
	}
	// The value is in range.
	_ = h.h.RecordValue(d.Microseconds())
}

func (h *histogram) reset() {
	h.mu.Lock()
	h.h.Reset()
	h.min, h.max = 0, 0
	h.mu.Unlock()
}

// Summary has the statistics of a distribution. Times are in ms.
type Summary struct {
	Count int64   `json:"count"`
	Mean  float64 `json:"mean"`
	Min   float64 `json:"min"`
	P50   float64 `json:"p50"`
	P90   float64 `json:"p90"`
	P95   float64 `json:"p95"`
	P99   float64 `json:"p99"`
	Max   float64 `json:"max"`
	// Interval has the confidence intervals of the percentiles.
	Interval Intervals `json:"interval"`
	// Curve has the value at each of the CurveQuantiles; empty without values.
	Curve []float64 `json:"curve,omitempty"`
}

// Intervals are the 95 % confidence intervals of a distribution's percentiles, assuming independent values.
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

// CurveQuantiles returns the quantiles of Summary.Curve, from 0 to 1.
func CurveQuantiles() []float64 {
	out := []float64{0}
	for i := 1; i < 20; i++ {
		out = append(out, float64(i)*0.05)
	}
	return append(out, 0.96, 0.97, 0.98, 0.99, 0.995, 0.998, 0.999, 0.9999, 1)
}

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

// at returns the value at a quantile; the caller holds the lock.
func (h *histogram) at(q float64) float64 {
	if q <= 0 {
		return milliseconds(h.min)
	}
	return min(round(float64(h.h.ValueAtPercentile(q*100))/1000), milliseconds(h.max))
}

// interval returns the 95 % confidence interval of a quantile, between two order statistics by the normal
// approximation (W. J. Conover, "Practical Nonparametric Statistics", 3rd edition, section 3.2).
func (h *histogram) interval(q float64) Interval {
	n := float64(h.h.TotalCount())
	spread := 1.96 * math.Sqrt(n*q*(1-q))
	rank := func(r float64) float64 { return h.at(min(max(r, 1), n) / n) }
	return Interval{Low: rank(math.Floor(n*q - spread)), High: rank(math.Ceil(n*q+spread) + 1)}
}

func milliseconds(d time.Duration) float64 { return round(float64(d) / float64(time.Millisecond)) }
