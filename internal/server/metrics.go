package server

import (
	"context"
	"errors"
	"math"
	"net/http"
	"net/netip"
	"time"

	"voicegw/internal/audit"
	"voicegw/internal/metrics"
	"voicegw/internal/origin"
	"voicegw/transport"
)

const askStore = time.Second

func (s *Server) nameMetrics(transports map[string]transport.Transport) {
	models := make(map[string]string, len(transports))
	for name, t := range transports {
		models[name] = t.Model()
	}
	s.metrics.Know(models, s.tools.Snapshot())
}

func (s *Server) record(r audit.Record) {
	s.metrics.Audited(r)
	s.audit.Write(r)
}

// serveMetrics makes the handler of GET /metrics. It returns nil if the metrics have their own address.
func (s *Server) serveMetrics(ctx context.Context) (http.Handler, error) {
	h := s.metrics.Handler(metrics.Sources{
		Version: s.host.Version, Ready: s.takesSessions, Sessions: s.sessions.Census,
		Traces: s.traces.Stats, Snapshot: s.tools.Snapshot, Tools: s.tools.Stats, Audit: s.audit.Stats, Loops: s.loops.Load,
		Certificates: s.certs.Expiry, Webhooks: s.webhooks.Stats, MCP: s.caps.mcp.Status, Phone: s.phone.Stats,
		Overload: s.overload.State, DayBudget: func() float64 { return math.Float64frombits(s.dayBudget.Load()) },
		Usage: s.usage.Figures, Checks: s.checks.Counts,
	})
	if s.cfg.Metrics.Listen == "" {
		return h, nil
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", s.namedHosts(h))
	b, err := listenSide(ctx, s.cfg.Metrics.Listen, "metrics", "serve the metrics", "metrics.listen", mux, s.logger)
	if err != nil {
		return nil, err
	}
	b.http.ReadTimeout, b.http.WriteTimeout, s.scrapes = headerTime, time.Minute, b
	b.serve(b.listener, s.logger, "stopped serving the metrics")
	s.logger.Info("serving the metrics", "addr", b.listener.Addr().String())
	return nil, nil
}

// namedHosts passes on requests whose Host is an IP address, a local name, or one of hosts. Otherwise a web page
// could reach the metrics by its own host name (DNS rebinding).
func (s *Server) namedHosts(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		hosts, _, err := allowedHosts(s.caps.flags.Load(), nil, s.certified())
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

func (s *Server) takesSessions() bool {
	if s.sessions.Draining() || s.loops.Lateness().Behind || s.overload.State().Over() {
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), askStore)
	defer cancel()
	return s.caps.store.Ready(ctx) == nil
}
