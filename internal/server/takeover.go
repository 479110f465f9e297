package server

import (
	"context"
	"maps"
	"math"
	"reflect"
	"slices"
	"sync/atomic"

	"voicegw/config"
	"voicegw/gateway"
	"voicegw/gateway/phone"
	"voicegw/internal/agent"
	"voicegw/internal/auth"
	"voicegw/internal/backends/image"
	"voicegw/internal/cost"
	"voicegw/session"
	"voicegw/transport"
	"voicegw/transport/textmodel"
)

// prepare makes everything that a reload replaces. It changes nothing except the secrets that the log hides, and adds
// changed files to the takeover. take, which cannot fail, puts it into use.
func (s *Server) prepare(now *config.Config, to *config.Takeover) (take func(), err error) {
	r := replacement{next: to.Next, showCerts: func() {}}
	s.log.Know(slices.Concat(now.Secrets(), r.next.Secrets(), s.traceSecrets)...) // sessions may still use the old ones
	if r.prices, err = priceTable(r.next); err != nil {
		return nil, config.Problems{{Where: "prices.file", Message: err.Error()}}
	}
	if s.certs != nil {
		if r.showCerts, err = s.certs.Read(); err != nil {
			return nil, certificateProblems(err)
		}
	}
	if _, _, err := allowedHosts(r.next, s.listener.Addr(), s.certified()); err != nil {
		return nil, err
	}
	transports, useModels, err := s.prepareModels(now, r.next)
	if err != nil {
		return nil, err
	}
	r.useModels, r.sessions = useModels, sessionSettings(r.next, transports, r.prices)
	if r.agents, err = readAgents(r.next, agentWorld(r.next, s.tools.Snapshot(), transports)); err != nil {
		return nil, err
	}
	if err := s.sessions.CanReconfigure(r.sessions); err != nil {
		return nil, err
	}
	if r.useTools, err = s.caps.configureTools(r.next, s.tools); err != nil {
		return nil, err
	}
	if r.phone, err = phoneSettings(r.next); err != nil {
		return nil, err
	}
	if r.auth, err = s.authenticator(r.next); err != nil {
		return nil, err
	}
	if !reflect.DeepEqual(r.prices, s.prices.Load()) {
		to.Changed = append(to.Changed, "prices.file")
	}
	if !s.agents.catalog.SameFiles(r.agents) {
		to.Changed = append(to.Changed, "agents.path")
	}
	slices.Sort(to.Changed)
	to.Changed = slices.Compact(to.Changed)
	return func() { s.use(r) }, nil
}

// replacement is a configuration with everything that was made of it.
type replacement struct {
	next                           *config.Config
	prices                         *cost.Table
	agents                         []agent.Agent
	sessions                       session.Options
	phone                          phone.Settings
	auth                           *auth.Authenticator
	showCerts, useModels, useTools func()
}

func (s *Server) use(r replacement) {
	s.auth.Swap(r.auth).Close()
	r.showCerts()
	r.useTools()
	s.logToolSettings(r.next)
	s.caps.flags.Store(r.next)
	s.metrics.KnowTools(s.tools.Snapshot())
	s.prices.Store(r.prices)
	s.dayBudget.Store(math.Float64bits(r.next.Prices.DayBudget))
	s.usage.Reconfigure(userLimits(r.next))
	s.webhooks.Reconfigure(endpoints(r.next))
	r.useModels()
	s.agents.reload(r.agents)
	logAgentWarnings(s.logger, r.agents)
	if err := s.sessions.Reconfigure(r.sessions); err != nil {
		s.logger.Error("the sessions keep their settings", "error", err) // CanReconfigure has been asked
	}
	s.bound.Limit(connectionLimits(r.next))
	s.gateway.Reconfigure(s.gatewaySettings(r.next))
	if s.phone != nil {
		s.phone.Reconfigure(r.phone)
	}
	if s.mcp != nil {
		s.mcp.Reconfigure(mcpSettings(r.next))
	}
	s.log.SetLevel(r.next.Log.Level)
}

func (s *Server) gatewaySettings(cfg *config.Config) gateway.Settings {
	hosts, origins, err := allowedHosts(cfg, s.listener.Addr(), s.certified())
	if err != nil {
		s.logger.Error("hosts and origins", "error", err) // cannot happen: Load has checked them
	}
	l := cfg.Limits
	return gateway.Settings{
		Hosts: hosts, Origins: origins, GuardCompletions: cfg.APIKey.IsSet(), Prices: s.prices.Load().Version,
		Turns: gateway.TurnLimits{AtOnce: l.Turns, PerAddress: l.TurnsPerAddress, PerUser: l.TurnsPerUser,
			NewPerSecond: l.NewTurnsPerSecond, ExemptLoopback: l.ExemptLoopback},
	}
}

func userLimits(cfg *config.Config) auth.Limits {
	l := cfg.Limits
	return auth.Limits{Sessions: l.UserSessions, NewPerSecond: l.UserNewPerSecond, MinutesPerDay: l.UserDayMinutes,
		CostPerDay: l.UserDayCost}
}

// models are the providers' models with their current keys.
type models struct {
	// Fixed after newServer's parts are open; their contents may be replaced.
	text   liveText
	images liveImages
	// transports are replaced only by a reload.
	transports map[string]transport.Transport
}

// prepareModels returns the transports of a new configuration and, where keys have changed, makes new models. take puts
// them into use; requests in progress keep the old key.
func (s *Server) prepareModels(now, next *config.Config) (transports map[string]transport.Transport, take func(), err error) {
	sameKey := func(a, b *config.Provider) bool { return a.APIKey.Reveal() == b.APIKey.Reveal() }
	if maps.EqualFunc(now.Providers, next.Providers, sameKey) {
		return s.models.transports, func() {}, nil
	}
	if transports, err = newTransports(next, s.sim, s.loops, &s.models.text, s.logger); err != nil {
		return nil, nil, err
	}
	text, err := textmodel.New(chatOptions(next, s.sim))
	if err != nil {
		return nil, nil, err
	}
	images, err := newImageGenerator(next, s.sim)
	return transports, func() {
		s.models.transports = transports
		s.models.text.use(text)
		s.models.images.now.Store(&images)
	}, err
}

// liveText is the text agent's model with its current key. It implements chat.Model.
type liveText struct {
	now atomic.Pointer[textmodel.Model]
}

func (m *liveText) use(model textmodel.Model) { m.now.Store(&model) }

func (m *liveText) Complete(ctx context.Context, p textmodel.Prompt, delta func(string)) (textmodel.Reply, error) {
	return (*m.now.Load()).Complete(ctx, p, delta) //nolint:wrapcheck // it is the same model
}

// liveImages is the image model with its current key. It implements image.Generator.
type liveImages struct {
	now atomic.Pointer[image.Generator]
}

func (m *liveImages) Generate(ctx context.Context, r image.Request) ([]image.Generated, error) {
	return (*m.now.Load()).Generate(ctx, r) //nolint:wrapcheck // it is the same model
}
