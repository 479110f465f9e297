package metrics

import (
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// series are those of a family filled by events.
type series struct {
	*Family
	*prometheus.MetricVec // of prometheus.Counter or prometheus.Histogram

	scope   string          // the series begin for each tool, for each provider, or with the program ("")
	last    []int           // the labels that the ends have
	allowed map[string]bool // the ends
}

const (
	ofTool     = "tool"
	ofProvider = "provider"
)

// scoped are the labels of each scope, which the ends do not have.
var scoped = map[string][]string{ofTool: {ofTool, "mode"}, ofProvider: {ofProvider, "model"}}

const nativeFactor = 1.1

func newSeries(f *Family, native bool) *series {
	s := &series{Family: f, allowed: map[string]bool{}}
	for scope := range scoped {
		if slices.Contains(f.Labels, scope) {
			s.scope = scope
		}
	}
	for i, label := range f.Labels {
		if !slices.Contains(scoped[s.scope], label) {
			s.last = append(s.last, i)
		}
	}
	for _, end := range f.ends {
		s.allowed[strings.Join(end, " ")] = true
	}
	if f.Kind == Counter {
		s.MetricVec = prometheus.NewCounterVec(prometheus.CounterOpts{Name: f.FullName(), Help: f.Help}, f.Labels).MetricVec
		return s
	}
	o := prometheus.HistogramOpts{Name: f.FullName(), Help: f.Help, Buckets: f.Buckets}
	if native {
		o.NativeHistogramBucketFactor, o.NativeHistogramMaxBucketNumber = nativeFactor, 100
	}
	s.MetricVec = prometheus.NewHistogramVec(o, f.Labels).MetricVec
	return s
}

// start begins the series of a scope. of has the values of its labels.
func (m *Metrics) start(scope string, of map[string]string) {
	for _, s := range m.filled {
		if s.scope != scope {
			continue
		}
		for _, end := range s.ends {
			labels := make([]string, len(s.Labels))
			for i, label := range s.Labels {
				labels[i] = of[label]
			}
			for i, value := range end {
				labels[s.last[i]] = value
			}
			s.metric(labels)
		}
	}
}

func (s *series) metric(labels []string) prometheus.Metric {
	m, err := s.GetMetricWithLabelValues(labels...)
	if err != nil {
		panic(err) // the number of labels is the table's
	}
	return m
}

// closed reports whether the family may have a series with these labels. A last label with another value becomes other.
func (s *series) closed(labels []string) bool {
	if len(s.ends) == 0 || s.hasEnd(labels) {
		return true
	}
	if len(s.last) > 0 {
		labels[s.last[len(s.last)-1]] = other
	}
	return s.hasEnd(labels)
}

func (s *series) hasEnd(labels []string) bool {
	end := make([]string, len(s.last))
	for i, at := range s.last {
		end[i] = labels[at]
	}
	return s.allowed[strings.Join(end, " ")]
}

// add adds to a counter. It ignores labels that the family cannot have, and a negative n.
func (m *Metrics) add(name string, n float64, labels ...string) {
	if s := m.filled[name]; n >= 0 && s.closed(labels) {
		s.metric(labels).(prometheus.Counter).Add(n)
	}
}

func (m *Metrics) count(name string, labels ...string) { m.add(name, 1, labels...) }

// observe is add for a histogram.
func (m *Metrics) observe(name string, value float64, labels ...string) {
	if s := m.filled[name]; s.closed(labels) {
		s.metric(labels).(prometheus.Observer).Observe(value)
	}
}
