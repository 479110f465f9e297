package config

import (
	"time"
	"voicegw/config/setting"
)

func (v validator) validateImage() {
	i := v.config.Image
	v.oneOf("image.provider", i.Provider, append([]string{ImageAuto}, v.config.ProviderNames()...)...)
	if i.BaseURL != "" || i.APIKey.IsSet() {
		if i.Provider == ImageAuto && i.BaseURL == "" {
			v.bad("image.provider", "image.provider must name a provider, such as openai or gemini, so that image.api_key is "+
				"sent to the right one.")
		}
		return
	}
	services := v.config.Services()
	simulated := len(services) > 0 && services[0].Simulated
	if p := v.config.Providers[i.Provider]; p != nil && !p.Configured() && !simulated {
		v.bad("image.provider", "image.provider is %s, which has no key; set image.api_key, or %s.", i.Provider,
			v.config.HowToReach(i.Provider))
	}
}

// Image configures image_generate.
type Image struct {
	// Provider is a provider's name, or ImageAuto.
	Provider string `key:"provider"`
	// BaseURL is the endpoint; empty means the provider's own, or the simulator.
	BaseURL string         `key:"base_url" is:"url"`
	APIKey  setting.Secret `key:"api_key"`
	Model   string         `key:"model"`
	// Dir is the folder for images; empty means the folder images below the data folder.
	Dir setting.Path `key:"dir"`
	// Life is how long an image is kept; MaxCount and MaxMB (MiB) bound the images kept.
	Life     time.Duration `key:"life" from:"1m" to:"720h"`
	MaxCount int           `key:"max_count" from:"1" to:"100000"`
	MaxMB    int           `key:"max_mb" from:"20" to:"1000000"`
}

// ImageAuto means the configured provider in Image.Provider.
const ImageAuto = "auto"
