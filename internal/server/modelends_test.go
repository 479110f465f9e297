package server

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"voicegw/config"
	"voicegw/config/setting"
	"voicegw/session"
	"voicegw/transport"
)

// TestEndsAreWarnedOf: the warning names each configured model with an announced end, its setting, the date and the
// successor; a past date is reported as past.
func TestEndsAreWarnedOf(t *testing.T) {
	cfg := config.Default()
	cfg.Providers["openai"].APIKey = setting.NewSecret("k")
	cfg.Providers["openai"].Settings["transcription_model"] = "gpt-4o-mini-transcribe"
	cfg.Chat.Model, cfg.Image.Model, cfg.KB.Embeddings.Model = "gpt-5-mini", "gpt-image-1-mini", "text-embedding-004"
	var log strings.Builder
	logger := slog.New(slog.NewTextHandler(&log, nil))
	models := modelsInUse(cfg, []session.Provider{{Name: "openai", Model: "gpt-realtime"}, {Name: "gemini", Model: "gemini-3.8-live"}}, nil)
	warnOfEnds(logger, models, time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC))
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	for i, want := range []string{
		`setting=providers.openai.model model=gpt-realtime ends=2027-01-20 successor=gpt-realtime-2.1`,
		`setting=providers.openai.transcription_model model=gpt-4o-mini-transcribe ends=2027-02-26`,
		`setting=chat.model model=gpt-5-mini ends=2026-12-11`,
		`setting=image.model model=gpt-image-1-mini ends=2026-12-01`,
		`has shut down a configured model; change the setting" setting=kb.embeddings.model model=text-embedding-004 ends=2026-01-14`,
	} {
		if i >= len(lines) || !strings.Contains(lines[i], want) || !strings.Contains(lines[i], "level=WARN") {
			t.Fatalf("line %d of\n%s\nlacks %s", i, log.String(), want)
		}
	}
	if len(lines) != 5 {
		t.Errorf("%d lines:\n%s", len(lines), log.String())
	}
}

// TestNoDefaultHasAnAnnouncedEnd: no default model of either provider has an announced end.
func TestNoDefaultHasAnAnnouncedEnd(t *testing.T) {
	for _, provider := range []string{wireOpenAI, wireGemini} {
		cfg := config.Default()
		cfg.Provider = provider
		cfg.Providers[provider].APIKey = setting.NewSecret("k")
		transports, err := newTransports(cfg, nil, nil, nil, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		model := transports[provider].Model()
		models := modelsInUse(cfg, []session.Provider{{Name: provider, Model: model}}, nil)
		seen := 0
		for _, m := range models {
			if end, announced := transport.EndOfModel(m.model); announced {
				t.Errorf("%s is %s, which ends on %s", m.setting, m.model, end.Date)
			}
			if m.model != "" {
				seen++
			}
		}
		if seen != 3 {
			t.Errorf("with %s, %+v: want a model for voice, chat and images", provider, models)
		}
	}
}

// TestUnsupportedModelSettings: a setting that its model does not support stops the start, with an error that names its
// place.
func TestUnsupportedModelSettings(t *testing.T) {
	cfg := config.Default()
	cfg.Providers["openai"].APIKey, cfg.Providers["gemini"].APIKey = setting.NewSecret("k"), setting.NewSecret("k")
	cfg.Providers["openai"].Model, cfg.Providers["openai"].Settings["reasoning"] = "gpt-realtime", "low"
	if _, err := newTransports(cfg, nil, nil, nil, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "providers.openai") || !strings.Contains(err.Error(), "does not reason") {
		t.Errorf("%v", err)
	}
	cfg.Providers["openai"].Settings["reasoning"], cfg.Providers["gemini"].Settings["thinking"] = "", "low"
	if _, err := newTransports(cfg, nil, nil, nil, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "providers.gemini") || !strings.Contains(err.Error(), "leave it out") {
		t.Errorf("%v", err)
	}
}

// TestReasoningOfTheTextAgent: reasoning is switched off for models that otherwise accept no tools.
func TestReasoningOfTheTextAgent(t *testing.T) {
	cfg := config.Default()
	cfg.Providers["openai"].APIKey = setting.NewSecret("k")
	for _, test := range []struct{ model, configured, want string }{
		{"", "", "none"}, {"gpt-5.6-sol", "", "none"}, {"gpt-5.6-sol", "low", "low"}, {"gpt-5.4-mini", "", ""}, {"llama", "", ""},
	} {
		cfg.Chat.Model, cfg.Chat.Reasoning = test.model, test.configured
		if got := chatOptions(cfg, nil).Reasoning; got != test.want {
			t.Errorf("%q with %q: %q, want %q", test.model, test.configured, got, test.want)
		}
	}
}

// TestVisionOfTheTextAgent: the configuration decides, and otherwise the known features of the model.
func TestVisionOfTheTextAgent(t *testing.T) {
	cfg := config.Default()
	for _, test := range []struct {
		configured, model string
		want              bool
	}{{"", "gpt-5.6-terra", true}, {"", "llama", false}, {"true", "llama", true}, {"false", "gpt-5.6-terra", false}} {
		cfg.Chat.Vision = test.configured
		if got := vision(cfg, test.model); got != test.want {
			t.Errorf("%q with %q: %v", test.model, test.configured, got)
		}
	}
}
