package server

import (
	"context"
	"crypto/rand"
	"fmt"
	"math"
	"time"

	"voicegw/chat"
	"voicegw/config"
	"voicegw/internal/audit"
	"voicegw/internal/auth"
	"voicegw/internal/cost"
	"voicegw/internal/meter"
	"voicegw/registry/spec"
)

// priceTable returns the table of prices: the built-in one, with those of the operator's file.
func priceTable(cfg *config.Config) (*cost.Table, error) {
	table := cost.BuiltIn()
	path := string(cfg.Prices.File)
	if path == "" {
		return table, nil
	}
	data, err := readBounded(path)
	if err != nil {
		return nil, fmt.Errorf("the prices cannot be read (prices.file): %w", err)
	}
	own, err := cost.Parse(path, data)
	if err != nil {
		return nil, fmt.Errorf("the prices are wrong (prices.file):\n%w", err)
	}
	return table.With(own), nil
}

func (s *Server) openUsage(ctx context.Context) (err error) {
	prices, err := priceTable(s.cfg)
	if err != nil {
		return err
	}
	s.prices.Store(prices)
	s.dayBudget.Store(math.Float64bits(s.cfg.Prices.DayBudget))
	s.usage, err = meter.New(ctx, meter.Options{
		Store: s.caps.store.Usage, Node: rand.Text(), Logger: s.logger.With("component", "usage"),
		User: userLimits(s.cfg),
		Key:  func(id string) auth.Limits { return s.principal(id).Limits },
		Name: func(id string) string { return s.principal(id).Name },
	})
	if err != nil {
		return fmt.Errorf("what was used today cannot be read: %w", err)
	}
	return nil
}

// principal returns the key, or the issuer's user, with that ID, as configured now; zero for others.
func (s *Server) principal(id string) auth.Principal {
	p, _ := s.auth.Get().Find(id)
	return p
}

func dollars(d float64) cost.Micros { return cost.Micros(math.Round(d * 1e6)) }

// bill returns what counts the turns of a chat model.
func (s *Server) bill(model string) func(chat.Bill) cost.Amount {
	return func(b chat.Bill) cost.Amount {
		tokens := cost.Usage{InputText: max(b.Usage.Input-b.Usage.Cached, 0), CachedText: min(b.Usage.Cached, b.Usage.Input),
			OutputText: b.Usage.Output}
		now := time.Now()
		prices := s.prices.Load()
		a := prices.Cost(model, now, tokens)
		a.Estimated = b.Estimated
		s.usage.Turn(meter.Who{User: b.User.String(), Key: b.Key}, a, tokens)
		r := audit.Spent(now, audit.EventTurnCost, spec.ModeText, cost.Sum{Amount: a, Turns: 1, Tokens: tokens}, prices.Version, "")
		r.SessionID, r.ConversationID, r.UserID, r.KeyID, r.TurnID = "chat-"+b.ConversationID, b.ConversationID,
			b.User.String(), b.Key, b.Turn
		r.Agent, r.AgentVersion = b.Agent, b.AgentVersion
		s.record(r)
		return a
	}
}
