package server

import (
	"testing"

	"voicegw/config"
	"voicegw/config/setting"
)

// TestImageMakers: a key is sent only to its own server.
func TestImageMakers(t *testing.T) {
	key := setting.NewSecret
	for name, tc := range map[string]struct {
		set  func(*config.Config)
		want imageService
	}{
		"openai's key": {func(c *config.Config) { c.Providers["openai"].APIKey = key("o") }, imageService{"openai", "", "o", ""}},
		"gemini's key": {func(c *config.Config) { c.Providers["gemini"].APIKey = key("g") }, imageService{"gemini", "", "g", ""}},
		"both": {func(c *config.Config) {
			c.Providers["openai"].APIKey, c.Providers["gemini"].APIKey = key("o"), key("g")
		}, imageService{"openai", "", "o", ""}},
		"both, gemini wanted": {func(c *config.Config) {
			c.Providers["openai"].APIKey, c.Providers["gemini"].APIKey = key("o"), key("g")
			c.Image.Provider, c.Image.Model = "gemini", "imagen-4"
		}, imageService{"gemini", "", "g", "imagen-4"}},
		"a proxy of the provider's": {func(c *config.Config) {
			c.Providers["openai"].APIKey, c.Providers["openai"].BaseURL = key("o"), "wss://proxy.example/v1"
		}, imageService{"openai", "https://proxy.example/v1", "o", ""}},
		"a method of gemini's": {func(c *config.Config) {
			c.Providers["gemini"].APIKey, c.Providers["gemini"].BaseURL = key("g"), "ws://proxy.example/ws/live"
		}, imageService{"gemini", "http://proxy.example", "g", ""}},
		"a server of its own": {func(c *config.Config) {
			c.Providers["openai"].APIKey, c.Image.BaseURL = key("o"), "http://images.example/v1"
		}, imageService{"openai", "http://images.example/v1", "", ""}},
		"a key of its own": {func(c *config.Config) {
			c.Providers["openai"].APIKey, c.Image.Provider, c.Image.APIKey = key("o"), "gemini", key("i")
		}, imageService{"gemini", "", "i", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			c := config.Default()
			tc.set(c)
			if got := imageServiceOf(c, nil); got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}
