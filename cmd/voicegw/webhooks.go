package main

import (
	"maps"
	"slices"
	"time"

	"voicegw/config"
	"voicegw/internal/webhook"
	"voicegw/session"
)

// webhookTime bounds what is still kept at the end for receivers of webhooks.
const webhookTime = 3 * time.Second

// openWebhooks begins to tell others of sessions.
func (s *server) openWebhooks() {
	s.webhooks = webhook.New(webhook.Options{
		Queue: s.caps.store.Webhooks(), Endpoints: endpoints(s.cfg), Logger: s.logger.With("component", "webhooks"),
	})
}

// endpoints returns the receivers of a configuration.
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

// tellSession tells the receivers of webhooks that a session has begun or is over. It does not wait.
func (s *server) tellSession(l session.Lifecycle) {
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
		s.logger.Error("an event cannot be sent", "type", kind, "session_id", l.SessionID, "error", err)
		return
	}
	s.webhooks.Tell(e)
}
