package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"net/netip"
	"time"

	"voicegw/internal/audit"
	"voicegw/internal/metrics"
	"voicegw/internal/origin"
	"voicegw/transport"
)

// askStore limits the wait for the store's readiness.
const askStore = time.Second

// nameMetrics sets the model names that have their own metrics labels.
func (s *server) nameMetrics(transports map[string]transport.Transport) {
	models := make(map[string]string, len(transports))
	for name, t := range transports {
		models[name] = t.Model()
	}
	s.metrics.Know(models, s.tools.Snapshot())
}

// record writes an audit record and counts it.
func (s *server) record(r audit.Record) {
	s.metrics.Audited(r)
	s.audit.Write(r)
}

// serveMetrics makes the handler of GET /metrics. It returns nil if the metrics have their own address.
func (s *server) serveMetrics(ctx context.Context) (http.Handler, error) {
	h := s.metrics.Handler(metrics.Sources{
		Version: versionOf(), Ready: s.takesSessions, Sessions: s.sessions.Census,
		Traces: s.traces.Stats, Snapshot: s.tools.Snapshot, Tools: s.tools.Stats, Audit: s.audit.Stats, Loops: s.loops.Load,
		Certificates: s.certificateEnds, Webhooks: s.webhooks.Stats,
		Overload: s.overload.State, DayBudget: func() float64 { return math.Float64frombits(s.dayBudget.Load()) },
		Usage: s.usage.Figures,
	})
	if s.cfg.Metrics.Listen == "" {
		return h, nil
	}
	var err error
	s.scrapes, err = openScrapes(ctx, s.cfg.Metrics.Listen, s.namedHosts(h), s.logger)
	return nil, err
}

// namedHosts passes on requests whose Host is an IP address, a local name, or one of hosts. Otherwise a web page
// could reach the metrics by its own host name (DNS rebinding).
func (s *server) namedHosts(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		hosts, _, err := doors(s.caps.flags.Load(), nil, s.certified())
		hosts.Listen = netip.IPv4Unspecified()
		host, wrong := origin.ParseHost(r.Host)
		if err := errors.Join(err, wrong); err != nil || !hosts.Allow(host) {
			s.logger.Debug("rejected a metrics request because of its Host", "host", r.Host, "addr", r.RemoteAddr, "error", err)
			http.Error(w, "This host is not allowed; the operator can allow it with the setting hosts.", http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// certificateEnds returns the expiry of each host's certificate; nil without TLS.
func (s *server) certificateEnds() map[string]time.Time {
	if s.certs == nil {
		return nil
	}
	return s.certs.Expiry()
}

// takesSessions returns the state for GET /readyz.
func (s *server) takesSessions() bool {
	if s.sessions.Draining() || s.loops.Lateness().Behind || s.overload.State().Over() {
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), askStore)
	defer cancel()
	return s.caps.store.Ready(ctx) == nil
}

// openScrapes serves the metrics on their own address.
func openScrapes(ctx context.Context, address string, h http.Handler, logger *slog.Logger) (*sideServer, error) {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", h)
	b, err := listenSide(ctx, address, "metrics", &http.Server{
		Handler: mux, ReadHeaderTimeout: headerTime, ReadTimeout: headerTime, WriteTimeout: time.Minute,
		IdleTimeout: idleTime, MaxHeaderBytes: headerBytes,
		ErrorLog: slog.NewLogLogger(logger.Handler(), slog.LevelDebug),
	})
	if err != nil {
		return nil, fmt.Errorf("cannot serve the metrics on %s: %w; choose another address with metrics.listen", address, err)
	}
	b.serve(b.listener, logger, "stopped serving the metrics")
	logger.Info("serving the metrics", "addr", b.listener.Addr().String())
	return b, nil
}
