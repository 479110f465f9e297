package main

import (
	"maps"
	"slices"
	"time"

	"voicegw/config"
	"voicegw/internal/webhook"
	"voicegw/session"
)

// webhookTime limits the storing of webhook events at the end.
const webhookTime = 3 * time.Second

// openWebhooks starts sending webhook events.
func (s *server) openWebhooks() {
	s.webhooks = webhook.New(webhook.Options{
		Queue: s.caps.store.Webhooks(), Endpoints: endpoints(s.cfg), Logger: s.logger.With("component", "webhooks"),
	})
}

func endpoints(cfg *config.Config) []webhook.Endpoint {
	var all []webhook.Endpoint
	for _, name := range slices.Sorted(maps.Keys(cfg.Webhooks)) {
		w := cfg.Webhooks[name]
		all = append(all, webhook.Endpoint{
			Name: name, URL: w.URL.Reveal(), Secrets: w.Secrets(), Events: w.Events, Private: w.Private, Timeout: w.Timeout,
		})
	}
	return all
}

// sendSession sends a webhook event for the start or end of a session. It does not block.
func (s *server) sendSession(l session.Lifecycle) {
	data := webhook.Session{
		SessionID: l.SessionID, ConversationID: l.ConversationID, User: l.User, Principal: l.Principal, Entry: string(l.Entry),
		Agent: l.Agent, Provider: l.Provider, Model: l.Model, StartedAt: webhook.Time(l.Began),
	}
	kind, at := webhook.SessionStarted, l.Began
	if over := l.Over; over != nil {
		kind, at = webhook.SessionEnded, over.At
		data.End = &webhook.End{
			EndedAt: webhook.Time(over.At), DurationMS: over.At.Sub(l.Began).Milliseconds(), Reason: over.Reason, CloseCode: over.CloseCode,
			Turns: over.Turns, CostUSDMicros: int64(over.Cost.Micros), Unpriced: over.Cost.Unpriced,
		}
	}
	e, err := webhook.NewEvent(kind, at, data)
	if err != nil {
		s.logger.Error("queueing a webhook event failed", "type", kind, "session_id", l.SessionID, "error", err)
		return
	}
	s.webhooks.Tell(e)
}
