package main

import (
	"cmp"
	"log/slog"
	"time"

	"voicegw/config"
	"voicegw/internal/backends/image"
	"voicegw/session"
	"voicegw/transport"
)

// modelInUse is a model and the setting that names it.
type modelInUse struct{ setting, model string }

// modelsInUse lists the models that the gateway uses. For a simulated provider, only explicitly configured models
// count. sim may be nil.
func modelsInUse(cfg *config.Config, providers []session.Provider, sim *simulator) []modelInUse {
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

// warnOfEnds warns of models with an announced shutdown.
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
