package main

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
func (s *server) prepare(now *config.Config, to *config.Takeover) (take func(), err error) {
	next := to.Next
	s.fence.Know(slices.Concat(now.Secrets(), next.Secrets(), s.traceSecrets)...) // sessions may still use the old ones
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
	models, err := s.models.prepare(s, now, next)
	if err != nil {
		return nil, err
	}
	files, err := readAgents(next, agentWorld(next, s.tools.Snapshot(), models.transports))
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
	settings := sessionSettings(next, models.transports, prices)
	if err := s.sessions.CanReconfigure(settings); err != nil {
		return nil, err
	}
	useTools, err := s.configureTools(next)
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
		s.caps.flags.Store(next)
		s.metrics.KnowTools(s.tools.Snapshot())
		s.prices.Store(prices)
		s.dayBudget.Store(math.Float64bits(next.Prices.DayBudget))
		s.usage.Reconfigure(userLimits(next))
		s.webhooks.Reconfigure(endpoints(next))
		s.models.take(models)
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
		s.level.Set(levelOf(next.Log.Level))
	}, nil
}

func (s *server) gatewaySettings(cfg *config.Config) gateway.Settings {
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
	// transports are replaced by take, which only a reload calls.
	transports map[string]transport.Transport
}

type reached struct {
	transports map[string]transport.Transport
	text       textmodel.Model // nil for no change
	images     image.Generator // nil for no change
}

// prepare makes new models where keys have changed.
func (m *models) prepare(s *server, now, next *config.Config) (reached, error) {
	to := reached{transports: m.transports}
	if maps.EqualFunc(now.Providers, next.Providers, func(a, b *config.Provider) bool { return a.APIKey.Reveal() == b.APIKey.Reveal() }) {
		return to, nil
	}
	var err error
	if to.transports, err = newTransports(next, s.sim, s.loops, &s.models.text, s.logger); err != nil {
		return to, err
	}
	if to.text, err = textmodel.New(chatOptions(next, s.sim)); err != nil {
		return to, err
	}
	to.images, err = newImageGenerator(next, s.sim)
	return to, err
}

// take puts them into use. Requests in progress keep the old key.
func (m *models) take(to reached) {
	m.transports = to.transports
	if to.text != nil {
		m.text.now.Store(&to.text)
	}
	if to.images != nil {
		m.images.now.Store(&to.images)
	}
}

// liveText is the text agent's model with its current key. It implements chat.Model.
type liveText struct {
	now atomic.Pointer[textmodel.Model]
}

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
