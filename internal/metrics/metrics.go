package metrics

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"voicegw/registry"
	"voicegw/store"
)

// Options configure a Metrics.
type Options struct {
	// Native also makes native histograms, which Prometheus 2.40 and later takes if it is told to.
	Native bool
	// Logger gets a line if the metrics cannot be written. Nil means no logging.
	Logger *slog.Logger
}

// Metrics counts. Its methods may be used concurrently.
type Metrics struct {
	// Fixed after New, models after Know. tools are replaced as a whole.
	registry   *prometheus.Registry
	counters   map[string]*prometheus.CounterVec // of the families that events fill, by name
	histograms map[string]*prometheus.HistogramVec
	models     map[string]string // of the providers
	refused    set[prometheus.Counter]
	resumed    set[prometheus.Counter]
	returns    set[prometheus.Observer] // by the outcome
	tools      atomic.Pointer[map[toolKey]*tool]
	opTimes    set[prometheus.Observer] // by the operation
	opErrors   set[prometheus.Counter]
	texts      texts
	wrong      set[prometheus.Counter]
	reloads    set[prometheus.Counter]
	chatCost   prometheus.Counter
	waited     set[prometheus.Observer] // by what a person has answered
	errors     promLogger

	mu       sync.Mutex                 // guards watchers
	watchers map[providerModel]*watcher // bounded, since both names are of closed sets
}

type providerModel struct{ provider, model string }

// The values of labels for whatever is not in their closed set.
const (
	other   = "other"
	unknown = "unknown" // of the label tool
)

// nativeFactor is how much wider each bucket of a native histogram is than the one before.
const nativeFactor = 1.1

// New returns a Metrics with all series that can be named in advance, at zero: a series that
// first appears with its first event hides that event from rate().
func New(o Options) *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(), counters: map[string]*prometheus.CounterVec{}, histograms: map[string]*prometheus.HistogramVec{},
		watchers: map[providerModel]*watcher{}, errors: promLogger{o.Logger},
	}
	for i := range families {
		if f := &families[i]; !f.isRead() {
			m.add(f, o.Native)
		}
	}
	m.refused = counterSet(m.counters["sessions_refused_total"], refusals())
	m.resumed = counterSet(m.counters["resume_total"], resumeOutcomes())
	m.returns = observerSet(m.histograms["resume_seconds"], returned)
	m.opTimes = observerSet(m.histograms["store_op_seconds"], ops)
	m.opErrors = counterSet(m.counters["store_errors_total"], ops)
	m.texts = m.newTexts()
	m.reloads = counterSet(m.counters["reloads_total"], []string{reloadOK, reloadRefused})
	m.waited = observerSet(m.histograms["confirmation_wait_seconds"], answered)
	m.chatCost = m.counters["chat_cost_usd_total"].WithLabelValues()
	m.wrong = counterSet(m.counters["auth_failures_total"], wrongs)
	return m
}

// Know names what is counted under its own name: the configured providers, with the name of each
// one's model, and the tools, nil without any. Every other provider and model counts as "other", every
// other tool as "unknown". It must be called once, before Observe and Audited.
func (m *Metrics) Know(providers map[string]string, tools *registry.Snapshot) {
	m.models = providers
	counters := m.toolCounters(tools)
	m.tools.Store(&counters)
	m.Observe("", "")
	for provider, model := range providers {
		m.Observe(provider, model)
	}
}

// add makes a family that events fill.
func (m *Metrics) add(f *Family, native bool) {
	if f.Kind == Histogram {
		o := prometheus.HistogramOpts{Name: f.FullName(), Help: f.Help, Buckets: f.Buckets}
		if native {
			o.NativeHistogramBucketFactor, o.NativeHistogramMaxBucketNumber = nativeFactor, 100
		}
		m.histograms[f.Name] = prometheus.NewHistogramVec(o, f.Labels)
		m.registry.MustRegister(m.histograms[f.Name])
		return
	}
	m.counters[f.Name] = prometheus.NewCounterVec(prometheus.CounterOpts{Name: f.FullName(), Help: f.Help}, f.Labels)
	m.registry.MustRegister(m.counters[f.Name])
}

// Stored counts an operation of the store; see store.Options.
func (m *Metrics) Stored(op store.Op, took time.Duration, failed bool) {
	m.opTimes.with(string(op)).Observe(took.Seconds())
	if failed {
		m.opErrors.with(string(op)).Inc()
	}
}

// The results of reloads.
const (
	reloadOK      = "ok"
	reloadRefused = "refused"
)

// Reloaded counts a reading of the configuration while the gateway runs.
func (m *Metrics) Reloaded(ok bool) {
	result := reloadRefused
	if ok {
		result = reloadOK
	}
	m.reloads.with(result).Inc()
}

// provider returns the value of the label provider for a name.
func (m *Metrics) provider(name string) string {
	if _, ok := m.models[name]; ok {
		return name
	}
	return other
}

// model returns the value of the label model for the name of a provider's model.
func (m *Metrics) model(provider, name string) string {
	if name != "" && m.models[provider] == name {
		return name
	}
	return other
}

// set is the series of one family by one label, with a closed set of values.
type set[T any] struct {
	of   map[string]T
	rest T // for all values that are not in the set
}

func (s set[T]) with(value string) T {
	if c, ok := s.of[value]; ok {
		return c
	}
	return s.rest
}

// counterSet makes the series of a family: its labels have the values of before, and the last one
// each of values.
func counterSet[T ~string](v *prometheus.CounterVec, values []T, before ...string) set[prometheus.Counter] {
	return newSet(func(l ...string) prometheus.Counter { return v.WithLabelValues(l...) }, values, before)
}

// observerSet is counterSet for a histogram.
func observerSet[T ~string](v *prometheus.HistogramVec, values []T, before ...string) set[prometheus.Observer] {
	return newSet(func(l ...string) prometheus.Observer { return v.WithLabelValues(l...) }, values, before)
}

func newSet[S any, T ~string](get func(...string) S, values []T, before []string) set[S] {
	labels := append(append([]string{}, before...), "")
	at := func(value string) S {
		labels[len(before)] = value
		return get(labels...)
	}
	s := set[S]{of: make(map[string]S, len(values))}
	for _, v := range values {
		s.of[string(v)] = at(string(v))
	}
	s.rest = at(other)
	return s
}

// promLogger logs what the library cannot write.
type promLogger struct{ to *slog.Logger }

// Println implements promhttp.Logger.
func (l promLogger) Println(v ...any) {
	if l.to != nil {
		l.to.Warn("the metrics could not be written", "error", v)
	}
}
