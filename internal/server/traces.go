package server

import (
	"cmp"
	"log/slog"
	"net/url"
	"strconv"
	"strings"

	"voicegw/config"
	"voicegw/config/setting"
	"voicegw/internal/origin"
	"voicegw/internal/traces"
)

// openTraces returns the traces, or nil if they are off. Wrong settings or standard variables are a config.Problems.
func (h Host) openTraces(cfg *config.Config, logger *slog.Logger) (*traces.Traces, error) {
	set, env := cfg.Traces, traces.Environment(h.Variable)
	switch {
	case !set.Enabled:
		return nil, nil
	case env.Disabled():
		logger.Info("traces are off: OTEL_SDK_DISABLED is true")
		return nil, nil
	}
	o := traces.Options{
		Endpoint: set.Endpoint, Ratio: set.Ratio, Slow: set.Slow, Content: set.Content, Version: h.Version,
		Logger:   logger.With("component", "traces"),
		Resource: map[string]string{"service.name": "voicegw", "service.version": h.Version},
	}
	if set.Protocol != config.TracesAuto {
		o.Protocol = traces.Protocol(set.Protocol)
	}
	var err error
	if o.Headers, err = setting.ParsePairs(set.Headers.Reveal()); err != nil {
		return nil, config.Problems{{Where: "traces.headers", Message: "traces.headers " + err.Error() + "."}}
	}
	if err := env.Complete(&o); err != nil {
		return nil, config.Problems{{Where: "the environment", Message: err.Error() + "."}}
	}
	t, err := traces.New(o)
	if err != nil {
		return nil, config.Problems{{Where: "traces", Message: err.Error() + "."}}
	}
	host := "of the environment"
	if u, err := url.Parse(o.Endpoint); err == nil && u.Host != "" {
		host = u.Host
	}
	logger.Info("exporting traces", "collector", host, "protocol", string(o.Protocol), "ratio", o.Ratio, "content", o.Content)
	return t, nil
}

// TraceSecrets returns the secrets in the collector's headers, from settings and environment, for the log to hide.
func (h Host) TraceSecrets(cfg *config.Config) (all []string) {
	env, _ := traces.Environment(h.Variable).Headers() // openTraces reports the errors
	set, _ := setting.ParsePairs(cfg.Traces.Headers.Reveal())
	for _, headers := range []map[string]string{set, env} {
		for _, value := range headers {
			all = append(all, value)
			if _, credentials, ok := strings.Cut(value, " "); ok {
				all = append(all, credentials)
			}
		}
	}
	return all
}

func (s *Server) nameTraces() {
	if s.traces == nil {
		return
	}
	voices := map[string]traces.Model{}
	for _, service := range s.cfg.Services() {
		p := s.cfg.Providers[service.Name]
		address := p.BaseURL
		if service.Simulated {
			address = s.sim.URL(p.Wire)
		}
		voices[service.Name] = modelAt(p.Wire, address)
	}
	options := chatOptions(s.cfg, s.sim)
	writes := modelAt(wireOpenAI, options.BaseURL)
	writes.Name = options.Model
	s.traces.Know(voices, writes)
}

// modelAt describes the models served at an address, with the provider's name in the conventions (gen_ai.provider.name);
// empty for the wire's default.
func modelAt(wire, address string) traces.Model {
	m := traces.Model{System: "openai", Host: "api.openai.com", Port: 443}
	if wire == wireGemini {
		m = traces.Model{System: "gcp.gemini", Host: geminiHost, Port: 443}
	}
	u, err := url.Parse(address)
	if address == "" || err != nil || u.Hostname() == "" {
		return m
	}
	m.Host = u.Hostname()
	if m.Port, err = strconv.Atoi(u.Port()); err != nil {
		m.Port = int(cmp.Or(origin.DefaultPort(u.Scheme), 443))
	}
	switch host := strings.ToLower(m.Host); {
	case strings.HasSuffix(host, ".azure.com"):
		m.System = "azure.ai.openai"
	case strings.HasSuffix(host, "aiplatform.googleapis.com"):
		m.System = "gcp.vertex_ai"
	case host == geminiHost:
		m.System = "gcp.gemini"
	}
	return m
}
