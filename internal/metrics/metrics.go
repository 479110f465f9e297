// Package metrics exports Prometheus metrics. All families are in one table ([Families]). Other packages report events
// to functions passed to them, so they don't import Prometheus; everything else is read on each scrape ([Sources]). The
// number of series is bounded: labels have closed sets of values, any other becomes "other", and none holds a user,
// session, conversation, address or free text.
package metrics

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"voicegw/registry"
	"voicegw/registry/spec"
	"voicegw/store"
)

// Options configure a Metrics.
type Options struct {
	Native bool
	Logger *slog.Logger
}

// Metrics counts events. Its methods may be used concurrently.
type Metrics struct {
	// Immutable after New; models after Know. tools is replaced atomically.
	registry   *prometheus.Registry
	counters   map[string]*prometheus.CounterVec // of families filled by events, by name
	histograms map[string]*prometheus.HistogramVec
	models     map[string]string // by provider
	refused    set[prometheus.Counter]
	resumed    set[prometheus.Counter]
	returns    set[prometheus.Observer] // by outcome
	tools      atomic.Pointer[map[toolKey]*tool]
	opTimes    set[prometheus.Observer] // by operation
	opErrors   set[prometheus.Counter]
	texts      texts
	wrong      set[prometheus.Counter]
	reloads    set[prometheus.Counter]
	chatCost   prometheus.Counter
	waited     set[prometheus.Observer]              // by the person's answer
	claims     map[spec.Mode]set[prometheus.Counter] // by reason
	errors     promLogger

	mu       sync.Mutex                 // guards watchers
	watchers map[providerModel]*watcher // bounded, since both names come from closed sets
}

type providerModel struct{ provider, model string }

const (
	other   = "other"
	unknown = "unknown" // for the label tool
)

const nativeFactor = 1.1

// New returns a Metrics. Known series start at zero, because rate() misses the event that creates one.
func New(o Options) *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(), counters: map[string]*prometheus.CounterVec{},
		histograms: map[string]*prometheus.HistogramVec{},
		watchers:   map[providerModel]*watcher{}, errors: promLogger{o.Logger},
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
	m.claims = map[spec.Mode]set[prometheus.Counter]{}
	for _, mode := range modes {
		m.claims[mode] = counterSet(m.counters["claims_unmatched_total"], unmatched, string(mode))
	}
	m.chatCost = m.counters["chat_cost_usd_total"].WithLabelValues()
	m.wrong = counterSet(m.counters["auth_failures_total"], wrongs)
	return m
}

// Know must be called once, before Observe and Audited. Other providers and models count as "other", tools as
// "unknown".
func (m *Metrics) Know(providers map[string]string, tools *registry.Snapshot) {
	m.models = providers
	counters := m.toolCounters(tools)
	m.tools.Store(&counters)
	m.Observe("", "")
	for provider, model := range providers {
		m.Observe(provider, model)
	}
}

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

const (
	reloadOK      = "ok"
	reloadRefused = "refused"
)

// Reloaded counts a configuration reload.
func (m *Metrics) Reloaded(ok bool) {
	result := reloadRefused
	if ok {
		result = reloadOK
	}
	m.reloads.with(result).Inc()
}

func (m *Metrics) provider(name string) string {
	if _, ok := m.models[name]; ok {
		return name
	}
	return other
}

func (m *Metrics) model(provider, name string) string {
	if name != "" && m.models[provider] == name {
		return name
	}
	return other
}

// set is a family's series by one label with a closed set of values.
type set[T any] struct {
	of   map[string]T
	rest T // for all other values
}

func (s set[T]) with(value string) T {
	if c, ok := s.of[value]; ok {
		return c
	}
	return s.rest
}

func counterSet[T ~string](v *prometheus.CounterVec, values []T, before ...string) set[prometheus.Counter] {
	return newSet(func(l ...string) prometheus.Counter { return v.WithLabelValues(l...) }, values, before)
}

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

type promLogger struct{ to *slog.Logger }

func (l promLogger) Println(v ...any) {
	if l.to != nil {
		l.to.Warn("cannot write metrics", "error", v)
	}
}
