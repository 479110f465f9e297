package main

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"voicegw/backends/image"
	"voicegw/backends/image/genai"
	"voicegw/backends/image/openai"
	"voicegw/config"
)

// images is where images come from and where they are kept.
type images struct {
	// Fixed after openImages.
	studio *image.Studio
	files  *image.Files
	// temporary is a folder that ends with the process; empty for one that stays.
	temporary string
}

// openImages opens what the configuration names. With neither image.dir nor a data folder,
// images end with the process. sim may be nil.
func openImages(ctx context.Context, cfg *config.Config, dataDir string, sim *simulator, caps *capabilities) error {
	generator, err := newImageGenerator(ctx, cfg, sim)
	if err != nil {
		return fmt.Errorf("image: %w", err)
	}
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
	caps.images.studio, err = image.NewStudio(generator, caps.images.files)
	return err
}

// close ends the sweeping.
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

// imageService is the image model that is asked, and how.
type imageService struct {
	provider            string
	baseURL, key, model string
}

// imageServiceOf says where images come from: what the image section names, else the
// simulator where it stands in for the providers, else a provider with a key. A key is
// sent only to the server that it was given for.
func imageServiceOf(cfg *config.Config, sim *simulator) imageService {
	i, p := cfg.Image, cfg.Providers
	own := i.BaseURL != "" || i.APIKey.IsSet()
	s := imageService{provider: i.Provider, model: i.Model}
	switch {
	case !own && sim != nil:
		return imageService{provider: config.ProviderOpenAI, baseURL: sim.openaiURL(), key: simKey}
	case i.Provider != config.ImageAuto:
	case own || p.OpenAI.APIKey.IsSet() || p.OpenAI.BaseURL != "":
		s.provider = config.ProviderOpenAI
	default:
		s.provider = config.ProviderGemini
	}
	switch {
	case own:
		s.baseURL, s.key = i.BaseURL, i.APIKey.Reveal()
	case s.provider == config.ProviderOpenAI:
		s.baseURL, s.key = overHTTP(p.OpenAI.BaseURL), p.OpenAI.APIKey.Reveal()
	default:
		s.baseURL, s.key = root(overHTTP(p.Gemini.BaseURL)), p.Gemini.APIKey.Reveal()
	}
	return s
}

func newImageGenerator(ctx context.Context, cfg *config.Config, sim *simulator) (image.Generator, error) {
	s := imageServiceOf(cfg, sim)
	if s.provider == config.ProviderOpenAI {
		return openai.New(openai.Options{BaseURL: s.baseURL, APIKey: cmp.Or(s.key, noKey), Model: s.model}), nil
	}
	g, err := genai.New(ctx, genai.Options{BaseURL: s.baseURL, APIKey: cmp.Or(s.key, noKey), Model: s.model})
	if err != nil {
		return nil, err
	}
	return g, nil
}

// overHTTP is the address of a server whose WebSocket address it is.
func overHTTP(address string) string {
	if rest, ok := strings.CutPrefix(address, "ws"); ok {
		return "http" + rest
	}
	return address
}

// root is an address without its path: that of Gemini Live may be a method's.
func root(address string) string {
	u, err := url.Parse(address)
	if err != nil || address == "" {
		return ""
	}
	return u.Scheme + "://" + u.Host
}
