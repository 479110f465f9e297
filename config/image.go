package config

import (
	"voicegw/config/setting"
)

// defaultImage is the default backend.Image.
func defaultImage() Image {
	return Image{Provider: ImageAuto, Life: setting.ImageLife, MaxCount: setting.Images, MaxMB: setting.ImageMB}
}

func (l *loader) validateImage() {
	i := l.config.Image
	l.oneOf("image.provider", i.Provider, append([]string{ImageAuto}, l.config.ProviderNames()...)...)
	if i.BaseURL != "" || i.APIKey.IsSet() {
		if i.Provider == ImageAuto && i.BaseURL == "" {
			l.bad("image.provider", "image.provider must name a provider, such as openai or gemini, so that image.api_key is "+
				"sent to the right one.")
		}
		return
	}
	services := l.config.Services()
	simulated := len(services) > 0 && services[0].Simulated
	if p := l.config.Providers[i.Provider]; p != nil && !p.Configured() && !simulated {
		l.bad("image.provider", "image.provider is %s, which has no key; set image.api_key, or %s.", i.Provider,
			l.config.HowToReach(i.Provider))
	}
}
