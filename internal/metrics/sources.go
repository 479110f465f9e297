package metrics

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"voicegw/gateway/phone"
	"voicegw/internal/audit"
	"voicegw/internal/checks"
	"voicegw/internal/mcp"
	"voicegw/internal/meter"
	"voicegw/internal/nonblock"
	"voicegw/internal/quota"
	"voicegw/internal/traces"
	"voicegw/internal/webhook"
	"voicegw/registry"
	"voicegw/session"
)

// Sources are read on each scrape. All are required, called concurrently, and must not block for long.
type Sources struct {
	Version      string
	Ready        func() bool
	Sessions     func() session.Census
	Snapshot     func() *registry.Snapshot
	Tools        func() map[string]registry.ToolStats
	Loops        func() nonblock.Load
	Overload     func() quota.State
	Certificates func() map[string]time.Time
	Webhooks     func() map[string]webhook.Stats
	MCP          func() []mcp.Status
	Phone        func() map[phone.Outcome]uint64
	Traces       func() traces.Stats
	Audit        func() audit.Stats
	Usage        func() meter.Figures
	DayBudget    func() float64
	Checks       func() []checks.Count

	// Set for one scrape.
	census session.Census
	m      *Metrics
}

func (s *Sources) providers(count map[string]int) map[string]float64 {
	all := make(map[string]float64, len(count))
	for name, n := range count {
		all[s.m.known(name)] += float64(n)
	}
	return all
}

// reader reads the families that are not filled by events. It implements prometheus.Collector.
type reader struct {
	m       *Metrics
	sources Sources
	descs   map[string]*prometheus.Desc // by family name
}

func (r *reader) Describe(out chan<- *prometheus.Desc) {
	for _, d := range r.descs {
		out <- d
	}
}

func (r *reader) Collect(out chan<- prometheus.Metric) {
	s := r.sources // a copy, since scrapes may overlap
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

// Handler answers GET /metrics in the Prometheus text format. It may be called once.
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

// maxReadings bounds concurrent scrapes; others get 503.
const maxReadings = 4

func readOverload(s *Sources, add emit) {
	is := s.Overload().Reason
	for _, reason := range []quota.Reason{quota.Memory, quota.Store} {
		add(truth(is == reason), string(reason))
	}
}

func readChecks(s *Sources, add emit) {
	for _, c := range s.Checks() {
		add(float64(c.N), c.Check, c.Result)
	}
}
