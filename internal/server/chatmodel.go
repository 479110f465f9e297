package server

import (
	"cmp"
	"log/slog"
	"strings"
	"time"

	"voicegw/chat"
	"voicegw/config"
	"voicegw/internal/backends/image"
	"voicegw/prompts"
	"voicegw/registry"
	"voicegw/registry/spec"
	"voicegw/session"
	"voicegw/sim"
	"voicegw/transport"
	"voicegw/transport/textmodel"
)

// The default chat models and their URLs (developers.openai.com/api/docs/models and deprecations, and
// ai.google.dev/gemini-api/docs/deprecations, read 2026-11-23). OpenAI recommends gpt-6-astra and gpt-6.1-sol, but
// the text agent needs function tools over Chat Completions, which these don't support
// (developers.openai.com/api/docs/guides/latest-model). This is the newest model that does.
const (
	openaiChatModel = "gpt-5.6-terra"
	geminiChatModel = "gemini-3.8-flash"
	geminiHost      = "generativelanguage.googleapis.com"
	geminiChatURL   = "https://" + geminiHost + "/v1beta/openai"
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

// chatOptions returns the text agent's server: the configured one, a provider with a key, or the simulator.
func chatOptions(cfg *config.Config, sim *sim.Local) textmodel.Options {
	o := textmodel.Options{MaxOutput: cfg.Chat.MaxOutput, Model: cfg.Chat.Model}
	switch p := textProvider(cfg); {
	case cfg.Chat.BaseURL != "":
		o.BaseURL, o.APIKey = cfg.Chat.BaseURL, cfg.Chat.APIKey.Reveal()
	case sim != nil:
		o.BaseURL, o.APIKey, o.Model = sim.OpenAIURL(), simKey, openaiChatModel
	case p != nil && p.Wire != wireGemini:
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

func vision(cfg *config.Config, model string) bool {
	if cfg.Chat.Vision != "" {
		return cfg.Chat.Vision == "true"
	}
	return textmodel.Sees(model)
}

// newChat makes the text agent. It shares the tools' executor with voice sessions.
func (s *Server) newChat() (*chat.Agent, error) {
	cfg := s.cfg
	options := chatOptions(cfg, s.sim)
	model, err := textmodel.New(options)
	if err != nil {
		return nil, err
	}
	s.models.text.use(model)
	o := chat.Options{
		Model: &s.models.text, Executor: s.executor, Conversations: s.caps.store.Conversations,
		Approvals: s.caps.store.Approvals, Answers: s.caps.store.Answers, Jobs: s.jobs,
		Persona: chat.Persona{Name: cfg.Agent.Name, Instructions: cfg.Agent.Instructions}, Personas: s.agents.persona,
		Vision: vision(cfg, options.Model),
		Tools:  s.tools.Snapshot, Live: s.live,
		Instructions: func(p *chat.Persona, tools *registry.Snapshot, own prompts.Mark, timeZone string) string {
			return instructions(cfg, spec.ModeText, p.Instructions, p.Budget.Or(budget(cfg.AgentBudget().Text)), tools, own, timeZone)
		},
		Rules: toolRules(cfg, spec.ModeText), Claims: claimed(cfg), Checks: s.checks,
		Audit: s.record, Observe: s.metrics.Texted,
		Bill:   s.bill(options.Model),
		Logger: s.logger,
	}
	if s.traces != nil {
		o.Follow = s.traces.Text
	}
	return chat.New(o)
}

type modelInUse struct{ setting, model string }

// modelsInUse counts only configured models of a simulated provider. sim may be nil.
func modelsInUse(cfg *config.Config, providers []session.Provider, sim *sim.Local) []modelInUse {
	var list []modelInUse
	for _, p := range providers {
		list = append(list, modelInUse{"providers." + p.Name + ".model", p.Model})
	}
	for _, name := range cfg.ProviderNames() {
		list = append(list, modelInUse{"providers." + name + ".transcription_model", cfg.Providers[name].Settings["transcription_model"]})
	}
	chat, drawing := cfg.Chat.Model, cfg.Image.Model
	if sim == nil {
		chat = chatOptions(cfg, nil).Model
		if drawing == "" && imageServiceOf(cfg, nil).wire == wireOpenAI {
			drawing = image.DefaultOpenAIModel
		}
		drawing = cmp.Or(drawing, image.DefaultGoogleModel)
	}
	return append(list, modelInUse{"chat.model", chat}, modelInUse{"image.model", drawing},
		modelInUse{"kb.embeddings.model", cfg.KB.Embeddings.Model})
}

func warnOfEnds(logger *slog.Logger, models []modelInUse, now time.Time) {
	for _, m := range models {
		end, announced := transport.EndOfModel(m.model)
		if !announced {
			continue
		}
		words := "the provider will shut down a configured model; change the setting before that day"
		if end.Past(now) {
			words = "the provider has shut down a configured model; change the setting"
		}
		logger.Warn(words, "setting", m.setting, "model", m.model, "ends", end.Date, "successor", end.Successor, "source", end.Source)
	}
}
