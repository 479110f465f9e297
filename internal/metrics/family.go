package metrics

import (
	"slices"
	"time"

	"voicegw/internal/nonblock"
)

// Prefix is before the name of every family of this program.
const Prefix = "voicegw_"

// Kind is the type of a family.
type Kind uint8

// The kinds.
const (
	Counter Kind = iota + 1
	Gauge
	Histogram
)

// Family is one row of the table: a metric with all its series.
type Family struct {
	// Name is without Prefix. Its end tells the unit: _seconds, _ratio, _usd; a counter ends in _total.
	Name   string
	Kind   Kind
	Labels []string
	// Buckets are the upper bounds of a histogram, in the unit of its name.
	Buckets []float64
	Help    string

	// read reads the family when it is asked for, and readHistogram one without labels whose Buckets
	// are counted elsewhere. Both are nil if events fill the family.
	read          func(*Sources, emit)
	readHistogram func(*Sources) counts
}

// counts are the numbers of a histogram that another package keeps.
type counts struct {
	each []uint64 // by the buckets; the last one has what is above all of them
	sum  float64
}

// isRead reports whether the family is read when it is asked for.
func (f *Family) isRead() bool { return f.read != nil || f.readHistogram != nil }

// emit adds a series to the family that is being read, with the values of the family's labels in
// their order.
type emit func(value float64, labels ...string)

// FullName is the name as Prometheus has it.
func (f *Family) FullName() string { return Prefix + f.Name }

// Families returns the table.
func Families() []Family { return slices.Clone(families) }

func inSeconds(all []time.Duration) []float64 {
	var s []float64
	for _, d := range all {
		s = append(s, d.Seconds())
	}
	return s
}

// The buckets, in seconds unless a name says otherwise. 1.5 and 0.05 are the limits of the service
// levels in docs/alerts.md.
var (
	untilAudio = []float64{.01, .025, .05, .1, .2, .3, .5, .7, 1, 1.5, 2, 3, 5, 8, 15}
	fast       = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1}
	slow       = []float64{.01, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}
	gaps       = []float64{.05, .1, .2, .3, .5, 1, 5} // 0.3 is the most that nobody hears
	calling    = []float64{.05, .25, 1, 2.5, 5, 15}
	answering  = []float64{2, 5, 15, 60, 300} // of a person
	lengths    = []float64{10, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200}
	rounds     = inSeconds(nonblock.RoundBounds())
	coarse     = []float64{.1, 1, 10} // for a label with many values
	ratios     = []float64{.1, .25, .5, .75, .9, 1}
)
