package metrics

import (
	"slices"
	"time"

	"voicegw/internal/nonblock"
)

// Prefix begins each family's name.
const Prefix = "voicegw_"

// Kind is the type of a family.
type Kind uint8

// The kinds.
const (
	Counter Kind = iota + 1
	Gauge
	Histogram
)

// Family is one row of the table.
type Family struct {
	// Name is without Prefix and ends in its unit: _seconds, _ratio, _usd; counters end in _total.
	Name   string
	Kind   Kind
	Labels []string
	// Buckets are a histogram's upper bounds, in the unit of its name.
	Buckets []float64
	Help    string

	// read reads the family on a scrape; readHistogram reads one without labels whose Buckets are counted elsewhere.
	// Both are nil for families filled by events.
	read          func(*Sources, emit)
	readHistogram func(*Sources) counts
}

// counts are the values of a histogram kept by another package.
type counts struct {
	each []uint64 // by bucket; the last one is above all bounds
	sum  float64
}

// isRead reports whether the family is read on a scrape.
func (f *Family) isRead() bool { return f.read != nil || f.readHistogram != nil }

// emit adds a series to the family being read, with its label values in order.
type emit func(value float64, labels ...string)

// FullName is the name with Prefix.
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

// The buckets, in seconds unless named otherwise. 1.5 and 0.05 are the service level objectives in docs.
var (
	untilAudio = []float64{.01, .025, .05, .1, .2, .3, .5, .7, 1, 1.5, 2, 3, 5, 8, 15}
	fast       = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1}
	slow       = []float64{.01, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}
	gaps       = []float64{.05, .1, .2, .3, .5, 1, 5} // gaps up to 0.3 s are inaudible
	calling    = []float64{.05, .25, 1, 2.5, 5, 15}
	answering  = []float64{2, 5, 15, 60, 300} // for a person's reaction
	lengths    = []float64{10, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200}
	rounds     = inSeconds(nonblock.RoundBounds())
	coarse     = []float64{.1, 1, 10} // for families with many label values
	ratios     = []float64{.1, .25, .5, .75, .9, 1}
)
