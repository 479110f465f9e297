package server

import (
	"cmp"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"voicegw/config"
	"voicegw/internal/backends/image"
	"voicegw/sim"
)

type images struct {
	// Fixed after openImages.
	studio *image.Studio
	files  *image.Files
	// temporary is a folder to remove at the end, or empty.
	temporary string
}

// openImages opens the image model and folder. Without image.dir and a data folder, images are removed when the
// process ends. sim may be nil.
func openImages(cfg *config.Config, dataDir string, sim *sim.Local, caps *capabilities, live *liveImages) error {
	generator, err := newImageGenerator(cfg, sim)
	if err != nil {
		return fmt.Errorf("image: %w", err)
	}
	live.now.Store(&generator)
	dir := string(cfg.Image.Dir)
	if dir == "" && dataDir != "" {
		dir = filepath.Join(dataDir, "images")
	}
	if dir == "" {
		if dir, err = os.MkdirTemp("", "voicegw-images-"); err != nil {
			return fmt.Errorf("image: %w", err)
		}
		caps.images.temporary = dir
	}
	caps.images.files, err = image.OpenFiles(image.FilesOptions{
		Dir: dir, Life: cfg.Image.Life, MaxCount: cfg.Image.MaxCount, MaxBytes: int64(cfg.Image.MaxMB) << 20,
		Logger: caps.logger.With("component", "images"),
	})
	if err != nil {
		return fmt.Errorf("image.dir: %w", err)
	}
	caps.images.studio, err = image.NewStudio(live, caps.images.files)
	return err
}

func (i images) close() error {
	if i.files != nil {
		if err := i.files.Close(); err != nil {
			return err
		}
	}
	if i.temporary != "" {
		return os.RemoveAll(i.temporary)
	}
	return nil
}

// imageService is an image model's server; wire is that of its provider.
type imageService struct {
	wire                string
	baseURL, key, model string
}

// imageServiceOf returns the server for images: the configured one, the simulator if it replaces the providers, or a
// provider with a key. A key is sent only to its own server.
func imageServiceOf(cfg *config.Config, sim *sim.Local) imageService {
	i := cfg.Image
	own := i.BaseURL != "" || i.APIKey.IsSet()
	if !own && sim != nil {
		return imageService{wire: wireOpenAI, baseURL: sim.OpenAIURL(), key: simKey}
	}
	p := cfg.Providers[i.Provider]
	if p == nil { // image.provider is auto
		p = restProvider(cfg)
	}
	s := imageService{wire: wireOpenAI, baseURL: i.BaseURL, key: i.APIKey.Reveal(), model: i.Model}
	if p != nil && (!own || i.Provider != config.ImageAuto) {
		s.wire = p.Wire
	}
	switch {
	case own || p == nil:
	case s.wire == wireGemini:
		s.baseURL, s.key = root(overHTTP(p.BaseURL)), p.APIKey.Reveal()
	default:
		s.baseURL, s.key = overHTTP(p.BaseURL), p.APIKey.Reveal()
	}
	return s
}

// newImageGenerator returns config.Problems as the error if the configuration names no usable model.
func newImageGenerator(cfg *config.Config, sim *sim.Local) (image.Generator, error) {
	switch s := imageServiceOf(cfg, sim); s.wire {
	case wireOpenAI:
		return image.NewOpenAI(image.ProviderOptions{BaseURL: s.baseURL, APIKey: cmp.Or(s.key, noKey), Model: s.model}), nil
	case wireGemini:
		if cfg.Image.BaseURL != "" && s.key == "" {
			return nil, config.Problems{{Where: "image.api_key",
				Message: "image.api_key is missing; image.base_url requires one, because a provider's key is sent only to that provider."}}
		}
		g, err := image.NewGoogle(image.ProviderOptions{BaseURL: s.baseURL, APIKey: cmp.Or(s.key, noKey), Model: s.model})
		if err != nil {
			return nil, err
		}
		return g, nil
	default:
		return nil, config.Problems{{Where: "image.provider",
			Message: fmt.Sprintf("image.provider is %s, which cannot make images (wire %s); name a provider with "+
				"the wire %s or %s.", cfg.Image.Provider, s.wire, wireOpenAI, wireGemini)}}
	}
}

func overHTTP(address string) string {
	if rest, ok := strings.CutPrefix(address, "ws"); ok {
		return "http" + rest
	}
	return address
}

// root removes the path of a URL; that of Gemini Live may name a method.
func root(address string) string {
	u, err := url.Parse(address)
	if err != nil || address == "" {
		return ""
	}
	return u.Scheme + "://" + u.Host
}
