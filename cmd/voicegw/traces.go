package main

import (
	"log/slog"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"voicegw/chat"
	"voicegw/config"
	"voicegw/internal/traces"
	"voicegw/session"
)

// tracesTime is how long the collector may take for the last spans.
const tracesTime = 2 * time.Second

// environment is what package traces reads of the environment.
func (p Process) environment() traces.Environment {
	return traces.Environment{Get: func(name string) string { return variable(p.Environ, name) }, ReadFile: os.ReadFile}
}

// openTraces returns what tells a collector of turns; nil if nobody is to be told. What is wrong with its
// settings, or with the standard variables, is a config.Problems.
func (p Process) openTraces(cfg *config.Config, logger *slog.Logger) (*traces.Traces, error) {
	set, env := cfg.Traces, p.environment()
	switch {
	case !set.Enabled:
		return nil, nil
	case env.Disabled():
		logger.Info("OTEL_SDK_DISABLED is true: there are no traces")
		return nil, nil
	}
	o := traces.Options{
		Endpoint: set.Endpoint, Ratio: set.Ratio, Slow: set.Slow, Content: set.Content, Version: versionOf(), Logger: logger.With("component", "traces"),
		Resource: map[string]string{"service.name": "voicegw", "service.version": versionOf(), "telemetry.sdk.name": "voicegw", "telemetry.sdk.language": "go", "telemetry.sdk.version": versionOf()},
	}
	switch set.Protocol {
	case config.TracesHTTP:
		o.Protocol = traces.HTTP
	case config.TracesGRPC:
		o.Protocol = traces.GRPC
	}
	var err error
	if o.Headers, err = traces.ParsePairs(set.Headers.Reveal()); err != nil {
		return nil, config.Problems{{Where: "traces.headers", Message: "traces.headers " + err.Error() + "."}}
	}
	if err := env.Complete(&o); err != nil {
		return nil, config.Problems{{Where: "the environment", Message: err.Error() + "."}}
	}
	t, err := traces.New(o)
	if err != nil {
		return nil, config.Problems{{Where: "traces", Message: err.Error() + "."}}
	}
	host := ""
	if u, err := url.Parse(o.Endpoint); err == nil {
		host = u.Host
	}
	logger.Info("telling a collector of turns", "collector", host, "protocol", string(o.Protocol), "ratio", o.Ratio, "content", o.Content)
	return t, nil
}

// traceSecrets returns what the log must not show of the headers for the collector, from the settings and from
// the environment.
func (p Process) traceSecrets(cfg *config.Config) (all []string) {
	var o traces.Options
	_ = p.environment().Complete(&o) // what is wrong is told when traces are opened
	set, err := traces.ParsePairs(cfg.Traces.Headers.Reveal())
	if err == nil {
		for _, headers := range []map[string]string{set, o.Headers} {
			for _, value := range headers {
				all = append(all, value)
				if _, credentials, ok := strings.Cut(value, " "); ok {
					all = append(all, credentials)
				}
			}
		}
	}
	return all
}

// follow returns what follows voice sessions; nil without traces.
func (s *server) follow() session.Follow {
	if s.traces == nil {
		return nil
	}
	return s.traces.Voice
}

// followTexts returns what follows turns in text; nil without traces.
func (s *server) followTexts() func(chat.Opening) chat.Followed {
	if s.traces == nil {
		return nil
	}
	return s.traces.Text
}

// nameTraces tells the traces what the configured models are.
func (s *server) nameTraces() {
	if s.traces == nil {
		return
	}
	voices := map[string]traces.Model{}
	for _, service := range s.cfg.Services() {
		p := s.cfg.Providers[service.Name]
		address := p.BaseURL
		if service.Simulated {
			address = s.sim.url(p.Wire)
		}
		voices[service.Name] = modelAt(p.Wire, address)
	}
	options := chatOptions(s.cfg, s.sim)
	writes := modelAt(wireOpenAI, options.BaseURL)
	writes.Name = options.Model
	s.traces.Know(voices, writes)
}

// The names that the conventions give to providers (gen_ai.provider.name), and where they are served unless
// another address is configured.
const (
	systemOpenAI = "openai"
	systemAzure  = "azure.ai.openai"
	systemGemini = "gcp.gemini"
	systemVertex = "gcp.vertex_ai"

	hostOpenAI = "api.openai.com"
	hostGemini = "generativelanguage.googleapis.com"
)

// modelAt returns what is told of models on a wire that are served at an address; empty for the wire's own.
func modelAt(wire, address string) traces.Model {
	m := traces.Model{System: systemOpenAI, Host: hostOpenAI, Port: 443}
	if wire == wireGemini {
		m = traces.Model{System: systemGemini, Host: hostGemini, Port: 443}
	}
	u, err := url.Parse(address)
	if address == "" || err != nil || u.Hostname() == "" {
		return m
	}
	m.Host = u.Hostname()
	if m.Port, err = strconv.Atoi(u.Port()); err != nil {
		m.Port = 443
		if u.Scheme == "http" || u.Scheme == "ws" {
			m.Port = 80
		}
	}
	switch host := strings.ToLower(m.Host); {
	case strings.HasSuffix(host, ".azure.com"):
		m.System = systemAzure
	case strings.HasSuffix(host, "aiplatform.googleapis.com"):
		m.System = systemVertex
	case host == hostGemini:
		m.System = systemGemini
	}
	return m
}
