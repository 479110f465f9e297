package metrics

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"voicegw/internal/audit"
	"voicegw/internal/meter"
	"voicegw/internal/nonblock"
	"voicegw/internal/quota"
	"voicegw/internal/traces"
	"voicegw/internal/webhook"
	"voicegw/registry"
	"voicegw/session"
)

// Sources are what is read when the metrics are asked for. All are required, are called
// concurrently, and must not wait for long.
type Sources struct {
	// Version is that of the program.
	Version string
	// Ready reports whether new sessions are taken.
	Ready func() bool
	// Sessions counts the voice sessions.
	Sessions func() session.Census
	// Snapshot returns the tools, and Tools their counters.
	Snapshot func() *registry.Snapshot
	Tools    func() map[string]registry.ToolStats
	// Loops tells how much the loops have to do that read from connections.
	Loops func() nonblock.Load
	// Overload says whether the gateway has more to do than it can.
	Overload func() quota.State
	// Certificates says when the certificate of each configured name ends.
	Certificates func() map[string]time.Time
	// Webhooks returns the counters of each receiver of events, by its name.
	Webhooks func() map[string]webhook.Stats
	// Traces returns the counters of the traces.
	Traces func() traces.Stats
	// Audit returns the counters of the audit.
	Audit func() audit.Stats
	// Usage tells what has become of the usage that is counted, and how often limits have refused somebody.
	Usage func() meter.Figures
	// DayBudget is what all gateways together are meant to cost a day, in US dollars; zero if nothing
	// is said.
	DayBudget func() float64

	// Set for one reading.
	census session.Census
	m      *Metrics
}

func (s *Sources) toolsVersion() string { return s.Snapshot().Version() }

// providers returns a count by provider with the values that the label may have.
func (s *Sources) providers(count map[string]int) map[string]float64 {
	all := make(map[string]float64, len(count))
	for name, n := range count {
		all[s.m.provider(name)] += float64(n)
	}
	return all
}

// reader reads the families of the table that are not filled by events. It implements
// prometheus.Collector.
type reader struct {
	// Fixed after Handler.
	m       *Metrics
	sources Sources
	descs   map[string]*prometheus.Desc // by the name of the family
}

// Describe implements prometheus.Collector.
func (r *reader) Describe(out chan<- *prometheus.Desc) {
	for _, d := range r.descs {
		out <- d
	}
}

// Collect implements prometheus.Collector: it reads every family once.
func (r *reader) Collect(out chan<- prometheus.Metric) {
	s := r.sources // a copy, since readings may overlap
	s.m, s.census = r.m, s.Sessions()
	for i := range families {
		f := &families[i]
		switch {
		case f.readHistogram != nil:
			out <- histogram(f, r.descs[f.Name], f.readHistogram(&s))
			continue
		case f.read == nil:
			continue
		}
		kind := prometheus.GaugeValue
		if f.Kind == Counter {
			kind = prometheus.CounterValue
		}
		f.read(&s, func(v float64, labels ...string) {
			out <- prometheus.MustNewConstMetric(r.descs[f.Name], kind, v, labels...)
		})
	}
}

// histogram makes the only series of a family from counts that were read.
func histogram(f *Family, desc *prometheus.Desc, c counts) prometheus.Metric {
	below, all := make(map[float64]uint64, len(f.Buckets)), uint64(0)
	for i, n := range c.each {
		all += n
		if i < len(f.Buckets) {
			below[f.Buckets[i]] = all
		}
	}
	return prometheus.MustNewConstHistogram(desc, all, c.sum, below)
}

// Handler returns what answers GET /metrics, in the text format that Prometheus reads. It may be
// called once for each Metrics.
func (m *Metrics) Handler(s Sources) http.Handler {
	r := &reader{m: m, sources: s, descs: map[string]*prometheus.Desc{}}
	for i := range families {
		if f := &families[i]; f.isRead() {
			r.descs[f.Name] = prometheus.NewDesc(f.FullName(), f.Help, f.Labels, nil)
		}
	}
	m.registry.MustRegister(r, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{MaxRequestsInFlight: maxReadings, ErrorLog: m.errors})
}

// maxReadings bounds the scrapes that are answered at once. More are refused with 503.
const maxReadings = 4

// readOverload reads why no new session is taken.
func readOverload(s *Sources, add emit) {
	is := s.Overload().Reason
	for _, reason := range []quota.Reason{quota.Memory, quota.Store} {
		add(truth(is == reason), string(reason))
	}
}
