package server

import (
	"errors"
	"log/slog"
	"strings"
	"testing"

	"voicegw/config"
	"voicegw/config/setting"
)

// TestImagesWithoutAMaker: a provider that makes no images, or would need another provider's key, stops the start with an
// error that names the setting.
func TestImagesWithoutAMaker(t *testing.T) {
	for want, set := range map[string]func(*config.Config){
		"image.api_key is missing": func(c *config.Config) {
			c.Image.Provider, c.Image.BaseURL = "gemini", "https://x.example"
		},
		"cannot make images": func(c *config.Config) {
			c.Providers["third"] = &config.Provider{Wire: "third", APIKey: setting.NewSecret("k")}
			c.Image.Provider = "third"
		},
	} {
		cfg := config.Default()
		set(cfg)
		_, err := newImageGenerator(cfg, nil)
		var problems config.Problems
		if !errors.As(err, &problems) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// TestTheTextAgentsProvider: chat models and images come from the first provider that has them, whatever its name; Voice
// Live has none.
func TestTheTextAgentsProvider(t *testing.T) {
	cfg := config.Default()
	set := func(name, wire, key, url string) {
		cfg.Providers[name] = &config.Provider{Wire: wire, APIKey: setting.NewSecret(key), BaseURL: url, Settings: map[string]string{}}
	}
	check := func(key, url, images string) {
		t.Helper()
		if o := chatOptions(cfg, nil); o.APIKey != key || o.BaseURL != url {
			t.Errorf("the text agent uses %s with %s, want %s with %s", o.BaseURL, o.APIKey, url, key)
		}
		if s := imageServiceOf(cfg, nil); s.key != key || s.wire != images {
			t.Errorf("images come from %+v, want %s with %s", s, images, key)
		}
	}
	set("b-vertex", wireGemini, "g", "")
	check("g", geminiChatURL, wireGemini)
	set("a-live", wireOpenAI, "l", "https://x.services.ai.azure.com/voice-live")
	check("g", geminiChatURL, wireGemini)
	set("z-compatible", wireOpenAI, "z", "wss://z.example/v1")
	check("z", "https://z.example/v1", wireOpenAI)
	if _, err := newTransports(cfg, nil, nil, nil, slog.New(slog.DiscardHandler)); err != nil {
		t.Error(err)
	}
}
