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

// modelInUse is a model that this gateway uses, and the setting that names it.
type modelInUse struct{ setting, model string }

// modelsInUse lists the models that the gateway uses, by their providers' names. If the simulator
// stands in for a provider, only configured models count, because no other is used. sim may be
// nil.
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
	return append(list, modelInUse{"chat.model", chat}, modelInUse{"image.model", drawing}, modelInUse{"kb.embeddings.model", cfg.KB.Embeddings.Model})
}

// warnOfEnds warns of models whose end has been announced.
func warnOfEnds(logger *slog.Logger, models []modelInUse, now time.Time) {
	for _, m := range models {
		end, announced := transport.EndOfModel(m.model)
		if !announced {
			continue
		}
		words := "the end of a configured model is announced; change the setting before that day"
		if end.Past(now) {
			words = "the announced end of a configured model is past; change the setting"
		}
		logger.Warn(words, "setting", m.setting, "model", m.model, "ends", end.Date, "successor", end.Successor, "source", end.Source)
	}
}
