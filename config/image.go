package config

import "time"

// Image is what image_generate works with.
type Image struct {
	// Provider is a provider's name, or ImageAuto.
	Provider string `key:"provider"`
	// BaseURL is the endpoint; empty means that of the provider, or the simulator.
	BaseURL string `key:"base_url"`
	APIKey  Secret `key:"api_key"`
	Model   string `key:"model"`
	// Dir is the folder in which images are kept; empty means images below the data
	// folder.
	Dir Path `key:"dir"`
	// Life is how long an image is kept, MaxCount and MaxMB (MiB) how much of them.
	Life     time.Duration `key:"life"`
	MaxCount int           `key:"max_count"`
	MaxMB    int           `key:"max_mb"`
}

// ImageAuto is the Image.Provider that takes the provider that is configured.
const ImageAuto = "auto"

// defaultImage is the Image that holds where nothing is configured.
func defaultImage() Image {
	return Image{Provider: ImageAuto, Life: 24 * time.Hour, MaxCount: 1000, MaxMB: 1024}
}

func (l *loader) validateImage() {
	i, p := l.config.Image, l.config.Providers
	l.oneOf("image.provider", i.Provider, ImageAuto, ProviderOpenAI, ProviderGemini)
	l.httpURL("image.base_url", i.BaseURL)
	l.duration("image.life", i.Life, time.Minute, 30*24*time.Hour)
	l.number("image.max_count", i.MaxCount, 1, 100_000)
	l.number("image.max_mb", i.MaxMB, 20, 1_000_000)
	if i.BaseURL != "" || i.APIKey.IsSet() {
		switch {
		case i.Provider == ImageAuto && i.BaseURL == "":
			l.problems.add(l.at("image.provider"), "image.provider must be openai or gemini, so that image.api_key is sent to the right one.")
		case i.Provider == ProviderGemini && !i.APIKey.IsSet():
			l.problems.add(l.at("image.api_key"), "image.api_key is missing; image.base_url needs one, and a provider's key is sent to no other server.")
		}
		return
	}
	services := l.config.Services()
	simulated := len(services) > 0 && services[0].Simulated
	configured := map[string]bool{
		ProviderOpenAI: p.OpenAI.APIKey.IsSet() || p.OpenAI.BaseURL != "",
		ProviderGemini: p.Gemini.APIKey.IsSet() || p.Gemini.BaseURL != "",
	}
	if there, named := configured[i.Provider]; named && !there && !simulated {
		l.problems.add(l.at("image.provider"), "image.provider is %s, which has no key; set image.api_key, or %s.", i.Provider, keyVariable(i.Provider))
	}
}
