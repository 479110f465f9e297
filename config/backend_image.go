package config

import (
	"time"

	"voicegw/config/setting"
)

// Image configures image_generate.
type Image struct {
	// Provider is a provider's name, or ImageAuto.
	Provider string `key:"provider"`
	// BaseURL is the endpoint; empty means the provider's own, or the simulator.
	BaseURL string         `key:"base_url" is:"url"`
	APIKey  setting.Secret `key:"api_key"`
	Model   string         `key:"model"`
	// Dir is the folder in which images are kept; empty means the folder images below the data
	// folder.
	Dir setting.Path `key:"dir"`
	// Life is how long an image is kept; MaxCount and MaxMB (MiB) bound how many are kept.
	Life     time.Duration `key:"life" from:"1m" to:"720h"`
	MaxCount int           `key:"max_count" from:"1" to:"100000"`
	MaxMB    int           `key:"max_mb" from:"20" to:"1000000"`
}

// ImageAuto is the Image.Provider that means the provider that is configured.
const ImageAuto = "auto"
