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
	"voicegw/internal/auth"
	"voicegw/internal/backends/image"
	"voicegw/transport"
	"voicegw/transport/textmodel"
)

// prepare makes everything that a reload replaces. It changes nothing except the secrets that the log hides, and adds
// changed files to the takeover. take, which cannot fail, puts it into use.
func (s *Server) prepare(now *config.Config, to *config.Takeover) (take func(), err error) {
	next := to.Next
	s.log.Know(slices.Concat(now.Secrets(), next.Secrets(), s.traceSecrets)...) // sessions may still use the old ones
	prices, err := priceTable(next)
	if err != nil {
		return nil, config.Problems{{Where: "prices.file", Message: err.Error()}}
	}
	show := func() {}
	if s.certs != nil {
		if show, err = s.certs.Read(); err != nil {
			return nil, certificateProblems(err)
		}
	}
	if _, _, err := allowedHosts(next, s.listener.Addr(), s.certified()); err != nil {
		return nil, err
	}
	transports, useModels, err := s.prepareModels(now, next)
	if err != nil {
		return nil, err
	}
	files, err := readAgents(next, agentWorld(next, s.tools.Snapshot(), transports))
	if err != nil {
		return nil, err
	}
	if !reflect.DeepEqual(prices, s.prices.Load()) {
		to.Changed = append(to.Changed, "prices.file")
	}
	if !s.agents.catalog.SameFiles(files) {
		to.Changed = append(to.Changed, "agents.path")
	}
	slices.Sort(to.Changed)
	to.Changed = slices.Compact(to.Changed)
	settings := sessionSettings(next, transports, prices)
	if err := s.sessions.CanReconfigure(settings); err != nil {
		return nil, err
	}
	useTools, err := s.caps.configureTools(next, s.tools)
	if err != nil {
		return nil, err
	}
	calls, err := phoneSettings(next)
	if err != nil {
		return nil, err
	}
	who, err := s.authenticator(next)
	if err != nil {
		return nil, err
	}
	return func() {
		s.auth.Swap(who).Close()
		show()
		useTools()
		s.logToolSettings(next)
		s.caps.flags.Store(next)
		s.metrics.KnowTools(s.tools.Snapshot())
		s.prices.Store(prices)
		s.dayBudget.Store(math.Float64bits(next.Prices.DayBudget))
		s.usage.Reconfigure(userLimits(next))
		s.webhooks.Reconfigure(endpoints(next))
		useModels()
		s.agents.reload(files)
		logAgentWarnings(s.logger, files)
		if err := s.sessions.Reconfigure(settings); err != nil {
			s.logger.Error("the sessions keep their settings", "error", err) // CanReconfigure has been asked
		}
		s.bound.Limit(connectionLimits(next))
		s.gateway.Reconfigure(s.gatewaySettings(next))
		if s.phone != nil {
			s.phone.Reconfigure(calls)
		}
		if s.mcp != nil {
			s.mcp.Reconfigure(mcpSettings(next))
		}
		s.log.SetLevel(next.Log.Level)
	}, nil
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
