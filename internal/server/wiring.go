package server

import (
	"cmp"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"voicegw/config"
	"voicegw/gateway"
	"voicegw/internal/bounded"
	"voicegw/internal/cost"
	"voicegw/internal/nonblock"
	"voicegw/internal/user"
	"voicegw/orchestrator/calls"
	"voicegw/prompts"
	"voicegw/registry"
	"voicegw/registry/spec"
	"voicegw/session"
	"voicegw/sim"
	"voicegw/transport"
	"voicegw/transport/openai"
	"voicegw/transport/textmodel"
)

// Wires with chat models and images.
const (
	wireGemini = "gemini"
	wireOpenAI = "openai"
	wireLive   = "live"
)

// restProvider returns the provider of chat models and images: the first configured one, OpenAI before Gemini, or nil.
func restProvider(cfg *config.Config) *config.Provider {
	for _, p := range append(cfg.OfWire(wireOpenAI), cfg.OfWire(wireGemini)...) {
		if p.Wire == wireGemini || openai.ServesREST(p.BaseURL) {
			return p
		}
	}
	return nil
}

// textProvider returns the provider of the text model: that of restProvider, otherwise a Live one at OpenAI, whose key
// opens both; nil without either.
func textProvider(cfg *config.Config) *config.Provider {
	if p := restProvider(cfg); p != nil {
		return p
	}
	for _, p := range cfg.OfWire(wireLive) {
		if p.BaseURL == "" {
			return p
		}
	}
	return nil
}

// noKey is sent to the operator's own server without a key: most servers expect some key.
const noKey = "none"

// textUser is a voice model that needs a text model for its tools.
type textUser interface {
	UseText(model textmodel.Model, name string)
}

// newTransports makes the providers that clients may request. sim is needed only for simulated ones. loops read from
// their connections; nil means a goroutine for each connection. text may be nil if none is opened.
func newTransports(cfg *config.Config, sim *sim.Local, loops *nonblock.Loops, text textmodel.Model,
	logger *slog.Logger) (map[string]transport.Transport, error) {
	transports := map[string]transport.Transport{}
	client := nonblock.Client(&http.Client{Transport: bounded.NewTransport()}, loops)
	for _, service := range cfg.Services() {
		t, err := newTransport(cfg, service, sim, client, logger)
		if err != nil {
			return nil, fmt.Errorf("providers.%s: %w", service.Name, err)
		}
		if voice, ok := t.(textUser); ok {
			if !service.Simulated && cfg.Chat.BaseURL == "" && textProvider(cfg) == nil {
				return nil, fmt.Errorf("providers.%s: a text model answers what this voice model delegates: set chat.base_url, or the "+
					"api_key of an openai or gemini provider", service.Name)
			}
			voice.UseText(text, chatOptions(cfg, sim).Model)
		}
		transports[service.Name] = t
	}
	return transports, nil
}

func newTransport(cfg *config.Config, service config.Service, sim *sim.Local, client *http.Client,
	logger *slog.Logger) (transport.Transport, error) {
	c := cfg.Providers[service.Name]
	p := transport.Provider{
		Name: service.Name, APIKey: cmp.Or(c.APIKey.Reveal(), noKey), BaseURL: c.BaseURL,
		Model: c.Model, Voice: c.Voice, NoInterrupt: !c.Interrupt, Settings: c.Settings,
		HTTPClient: client, Logger: logger.With("provider", service.Name),
	}
	if service.Simulated {
		p.APIKey, p.BaseURL, p.Simulated = simKey, "http://127.0.0.1:0", true // on which nothing listens
	}
	if service.Simulated && sim != nil {
		p.BaseURL = sim.URL(c.Wire)
	}
	return cfg.WireOf(service.Name).New(p)
}

func voices(cfg *config.Config) map[string]string {
	voices := map[string]string{}
	for name, p := range cfg.Providers {
		if p.Voice != "" {
			voices[name] = p.Voice
		}
	}
	return voices
}

// instructions composes the system text for a mode, with an agent's playbook and budget, the tools, and the date in
// the user's time zone, or the calendar's if that is unknown. It is safe for concurrent use.
func instructions(cfg *config.Config, mode spec.Mode, playbook string, budget calls.Budget, tools *registry.Snapshot,
	own prompts.Mark, timeZone string) string {
	o := prompts.Options{
		Mode: prompts.Text, Core: string(cfg.Prompts.Core.Data), Behavior: string(cfg.Prompts.Text.Data),
		Instructions: playbook, RegistryVersion: tools.Version(), Mark: own.Text(),
		Now: time.Now().In(user.ZoneOr(timeZone, user.ZoneOr(cfg.Calendar.TimeZone, time.UTC))),
	}
	if mode == spec.ModeVoice {
		o.Mode, o.Behavior, o.SpokenConfirmation = prompts.Voice, string(cfg.Prompts.Voice.Data),
			cfg.Confirmation.Voice == config.ConfirmSpoken
	}
	o.Retrievals, o.TopK = budget.Retrieval, budget.TopK
	for _, t := range tools.Tools(mode) {
		if t.ByClient() {
			continue // client-provided text doesn't belong in the system text
		}
		o.Tools = append(o.Tools, prompts.ToolSummary{ID: t.ToolID, Category: string(t.Category), Summary: t.Summary})
	}
	return prompts.Compose(o)
}

// sessionSettings returns the options that may change while sessions run.
func sessionSettings(cfg *config.Config, transports map[string]transport.Transport, prices *cost.Table) session.Options {
	return session.Options{
		Transports: transports, Prices: prices, Policy: voicePolicy(cfg),
		Limits: session.Limits{
			Sessions: cfg.Limits.Sessions, PerAddress: cfg.Limits.SessionsPerAddress,
			NewPerSecond: cfg.Limits.NewPerSecond, ExemptLoopback: cfg.Limits.ExemptLoopback,
			Waiting: cfg.Limits.Waiting, WaitingPerAddress: cfg.Limits.WaitingPerAddress,
			ClientTools: cmp.Or(cfg.Limits.ClientTools, -1),
			AudioAhead:  cfg.Limits.AudioAhead, SlowClient: cfg.Limits.SlowClient,
		},
	}
}

func (s *Server) sessionOptions(speaker session.Speech) session.Options {
	cfg := s.cfg
	o := sessionSettings(cfg, s.models.transports, s.prices.Load())
	o.Provider, o.Fallback = cfg.Provider, cfg.Fallback
	o.Agent = session.Agent{
		Name: cfg.Agent.Name, Greeting: cfg.Agent.Greeting, Notice: cfg.Exact.Notice, Voices: voices(cfg),
		Language: cfg.Agent.Language, Instructions: cfg.Agent.Instructions,
	}
	o.Instructions = func(a *session.Agent, tools *registry.Snapshot, own prompts.Mark, timeZone string) string {
		return instructions(cfg, spec.ModeVoice, a.Instructions, a.Budget.Or(budget(cfg.AgentBudget().Voice)), tools, own, timeZone)
	}
	o.Credentials, o.Blocked, o.Usage, o.Checks = s.auth, s.caps.blocked, s.usage, s.checks
	o.Agents, o.Tools, o.Live, o.Executor = s.agents, s.tools.Snapshot, s.live, s.executor
	o.Handoffs, o.Cluster, o.Speech = s.caps.handoff, s.elsewhere, speaker
	o.Audit, o.Observe, o.Lifecycle, o.Logger = s.record, s.metrics.Observe, s.sendSession, s.logger
	o.SilenceMS, o.PrefixMS, o.JoinSilence = cfg.VAD.SilenceMS, cfg.VAD.PrefixMS, cfg.VAD.JoinSilence
	if s.traces != nil {
		o.Follow = s.traces.Voice
	}
	return o
}

func connectionLimits(cfg *config.Config) gateway.ConnectionLimits {
	l := cfg.Limits
	return gateway.ConnectionLimits{
		AtOnce: l.Connections, PerAddress: l.ConnectionsPerAddress, ExemptLoopback: l.ExemptLoopback, Exempt: cfg.Proxies(),
	}
}
