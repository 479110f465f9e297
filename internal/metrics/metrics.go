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
	registry *prometheus.Registry
	filled   map[string]*series // the families filled by events, by name
	models   map[string]string  // by provider
	tools    atomic.Pointer[map[toolKey]bool]
	errors   promLogger

	mu      sync.Mutex             // guards started
	started map[providerModel]bool // whose series have begun; bounded, since both names come from closed sets
}

type providerModel struct{ provider, model string }

const (
	other   = "other"
	unknown = "unknown" // for the label tool
)

// New returns a Metrics. Known series start at zero, because rate() misses the event that creates one.
func New(o Options) *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry(), filled: map[string]*series{}, started: map[providerModel]bool{},
		errors: promLogger{o.Logger}}
	for i := range families {
		if f := &families[i]; !f.isRead() {
			m.filled[f.Name] = newSeries(f, o.Native)
			m.registry.MustRegister(m.filled[f.Name])
		}
	}
	m.start("", nil)
	return m
}

// Know must be called once, before Observe and Audited. Other providers and models count as "other", tools as
// "unknown".
func (m *Metrics) Know(providers map[string]string, tools *registry.Snapshot) {
	m.models = providers
	m.tools.Store(&map[toolKey]bool{})
	m.KnowTools(tools)
	for provider, model := range providers {
		m.Observe(provider, model)
	}
}

// Stored counts an operation of the store; see store.Options.
func (m *Metrics) Stored(op store.Op, took time.Duration, failed bool) {
	m.observe("store_op_seconds", took.Seconds(), string(op))
	if failed {
		m.count("store_errors_total", string(op))
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
	m.count("reloads_total", result)
}

func (m *Metrics) known(name string) string {
	if _, ok := m.models[name]; ok {
		return name
	}
	return other
}

func (m *Metrics) knownModel(provider, name string) string {
	if name != "" && m.models[provider] == name {
		return name
	}
	return other
}

type promLogger struct{ to *slog.Logger }

func (l promLogger) Println(v ...any) {
	if l.to != nil {
		l.to.Warn("cannot write metrics", "error", v)
	}
}
