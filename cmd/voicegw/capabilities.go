package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"time"

	"voicegw/capability"
	"voicegw/config"
	"voicegw/kb"
	"voicegw/kb/local"
	"voicegw/registry"
)

// capabilities are what the tools of this process work with, the same for serve and
// for tools call.
type capabilities struct {
	// Fixed after openCapabilities.
	logger *slog.Logger
	kb     kb.Index
	source *kb.Source // keeps kb the same as its folder
	blocks *capability.MemoryBlocks
	voice  *capability.MemoryVoiceSessions
}

// openCapabilities opens what the configuration names. Close it.
func openCapabilities(ctx context.Context, cfg *config.Config, logger *slog.Logger) (*capabilities, error) {
	index, err := local.Open(ctx, local.Options{Logger: logger})
	if err != nil {
		return nil, fmt.Errorf("the knowledge base cannot be opened: %w", err)
	}
	source, err := kb.OpenSource(ctx, index, kb.SourceOptions{Path: string(cfg.KB.Path), Logger: logger})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("the knowledge base cannot be read (kb.path): %w", err), index.Close())
	}
	return &capabilities{
		logger: logger, kb: index, source: source,
		blocks: capability.NewMemoryBlocks(0), voice: capability.NewMemoryVoiceSessions("", 0),
	}, nil
}

// close waits for what runs in them.
func (c *capabilities) close() error {
	return errors.Join(c.source.Close(), c.kb.Close())
}

// registryOptions is what the registry needs of this process: the handlers, and the
// capabilities that their Needs name by type. A tool with a need that is not in here
// is refused when the registry is loaded, not when it is called.
func (c *capabilities) registryOptions(dev bool) registry.Options {
	return registry.Options{
		Handlers:            handlers(),
		Capabilities:        []any{c.kb, c.blocks, c.voice},
		SessionCapabilities: []reflect.Type{reflect.TypeFor[registry.Messenger]()},
		ModeCapabilities: map[registry.Mode][]reflect.Type{
			registry.ModeText: {reflect.TypeFor[capability.Inviter]()},
		},
		Dev: dev, Logger: c.logger,
	}
}

// blocked is session.Options.Blocked. Blocks that cannot be read shut nobody out.
func (c *capabilities) blocked(user string) (until time.Time, ok bool) {
	until, ok, err := c.blocks.Blocked(context.Background(), user)
	if err != nil {
		c.logger.Error("the blocks cannot be read; the user is let in", "error", err)
		return time.Time{}, false
	}
	return until, ok
}
