package main

import (
	"cmp"
	"strings"

	"voicegw/chat"
	"voicegw/chat/completions"
	"voicegw/config"
	"voicegw/orchestrator/execute"
	"voicegw/prompts"
	"voicegw/registry"
	"voicegw/registry/spec"
)

// The default chat models and their URLs (developers.openai.com/api/docs/models and deprecations, and
// ai.google.dev/gemini-api/docs/deprecations, read 2026-11-23). OpenAI recommends gpt-6-astra and gpt-6.1-sol, but
// the text agent needs function tools over Chat Completions, which these don't support
// (developers.openai.com/api/docs/guides/latest-model). This is the newest model that does.
const (
	openaiChatModel = "gpt-5.6-terra"
	geminiChatModel = "gemini-3.8-flash"
	geminiChatURL   = "https://generativelanguage.googleapis.com/v1beta/openai"
)

// usualReasoning returns the default reasoning effort of a model; empty for the provider's default. gpt-5.6 models
// reject tools over Chat Completions with any effort except none, which isn't their default (BerriAI/litellm#34569
// and livekit/agents#7169, read 2026-11-23).
func usualReasoning(model string) string {
	if strings.HasPrefix(model, "gpt-5.6") {
		return "none"
	}
	return ""
}

// chatOptions returns the server of the text agent's model: the configured one, a provider with a key, or the
// simulator.
func chatOptions(cfg *config.Config, sim *simulator) completions.Options {
	o := completions.Options{MaxOutput: cfg.Chat.MaxOutput, Model: cfg.Chat.Model}
	switch p := restProvider(cfg); {
	case cfg.Chat.BaseURL != "":
		o.BaseURL, o.APIKey = cfg.Chat.BaseURL, cfg.Chat.APIKey.Reveal()
	case sim != nil:
		o.BaseURL, o.APIKey, o.Model = sim.openaiURL(), simKey, openaiChatModel
	case p != nil && p.Wire == wireOpenAI:
		o.BaseURL, o.APIKey = overHTTP(p.BaseURL), cmp.Or(p.APIKey.Reveal(), noKey)
		o.Model = cmp.Or(o.Model, openaiChatModel)
	default:
		o.BaseURL, o.Model = geminiChatURL, cmp.Or(o.Model, geminiChatModel)
		if p != nil {
			o.APIKey = p.APIKey.Reveal()
		}
	}
	o.Reasoning = cmp.Or(cfg.Chat.Reasoning, usualReasoning(o.Model))
	return o
}

// vision reports whether the text agent's model accepts images: as configured, or by its name.
func vision(cfg *config.Config, model string) bool {
	if cfg.Chat.Vision != "" {
		return cfg.Chat.Vision == "true"
	}
	return completions.Sees(model)
}

// newChat makes the text agent. It shares the tools' executor with voice sessions.
func (s *server) newChat(executor *execute.Executor) (*chat.Agent, error) {
	cfg := s.cfg
	options := chatOptions(cfg, s.sim)
	model, err := completions.New(options)
	if err != nil {
		return nil, err
	}
	s.models.take(reached{transports: s.models.transports, text: model})
	return chat.New(chat.Options{
		Model: &s.models.text, Executor: executor, Conversations: s.caps.store.Conversations(),
		Approvals: s.caps.store.Approvals(), Answers: s.caps.store.Answers(), Jobs: s.jobs,
		Persona: chat.Persona{Name: cfg.Agent.Name, Instructions: cfg.Agent.Instructions}, Personas: s.agents.persona,
		Vision: vision(cfg, options.Model),
		Tools:  s.tools.Snapshot, Live: s.live,
		Instructions: func(p *chat.Persona, tools *registry.Snapshot, own prompts.Mark, timeZone string) string {
			return instructions(cfg, spec.ModeText, p.Instructions, p.Budget.Or(budget(cfg.AgentBudget().Text)), tools, own, timeZone)
		},
		Rules: textRules(cfg),
		Audit: s.record, Observe: s.metrics.Texted, Follow: s.followTexts(),
		Bill:   s.bill(options.Model),
		Logger: s.logger,
	})
}
