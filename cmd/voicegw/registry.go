package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"voicegw/config"
	"voicegw/internal/misspelt"
	"voicegw/registry"
	"voicegw/registry/build"
)

// registryData is the tool_registry.json that the process works with: what it was
// given, else what it was built with. The error is registry.ErrEmpty where none was
// built.
func (p Process) registryData() ([]byte, error) {
	if p.Registry != nil {
		return p.Registry()
	}
	return registry.Embedded()
}

// loadRegistry loads the registry of the process.
func (p Process) loadRegistry(o registry.Options) (*registry.Registry, error) {
	data, err := p.registryData()
	if err != nil {
		return nil, err
	}
	return registry.Load(data, o)
}

// loadTools loads the registry that serve works with, and locks it. With dev that is
// the one of the project in the working directory, if there is one.
func (p Process) loadTools(caps *capabilities, dev bool) (*registry.Registry, *devRegistry, error) {
	o := caps.registryOptions(dev)
	var reload *devRegistry
	load := func() (*registry.Registry, error) { return p.loadRegistry(o) }
	if dev {
		reload = &devRegistry{file: filepath.FromSlash(build.RegistryFile), logger: caps.logger}
		if data, err := os.ReadFile(reload.file); err == nil {
			reload.seen = data
			load = func() (*registry.Registry, error) { return registry.Load(data, o) }
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil, nil, err
		}
	}
	tools, err := load()
	if err != nil {
		return nil, nil, err
	}
	tools.Lock()
	if reload != nil {
		reload.tools = tools
	}
	return tools, reload, nil
}

// checkRequired says which of the tools that confirmation.require names there are not.
// The error is config.Problems.
func checkRequired(ids []string, tools *registry.Snapshot) error {
	var problems config.Problems
	for _, id := range ids {
		if _, ok := tools.Tool(id); ok {
			continue
		}
		var known []string
		for _, t := range tools.All() {
			known = append(known, t.ToolID)
		}
		hint := ""
		if meant := misspelt.Nearest(id, known); meant != "" {
			hint = " Did you mean " + meant + "?"
		}
		problems = append(problems, config.Problem{
			Where:   "confirmation.require",
			Message: fmt.Sprintf("There is no tool %q.%s voicegw tools list tells all.", id, hint),
		})
	}
	if len(problems) > 0 {
		return problems
	}
	return nil
}

// devRegistry loads the project's registry again when it has changed.
type devRegistry struct {
	// Fixed after loadTools.
	file   string
	tools  *registry.Registry
	logger *slog.Logger

	// Owned by watch.
	seen []byte
}

// devPoll is how often the file is looked at.
const devPoll = time.Second

// watch looks at the file until ctx ends.
func (d *devRegistry) watch(ctx context.Context) {
	tick := time.NewTicker(devPoll)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			d.look()
		}
	}
}

// look loads the file if it has changed. What cannot be loaded is told once and
// leaves the tools as they are.
func (d *devRegistry) look() {
	data, err := os.ReadFile(d.file)
	if err != nil || bytes.Equal(data, d.seen) {
		return // not built, or just being replaced: the next look will see
	}
	d.seen = data
	if err := d.tools.Reload(data); err != nil {
		d.logger.Error("the changed registry cannot be used; the tools stay as they are", "file", d.file, "error", err)
		return
	}
	d.logger.Info("tools loaded again; running sessions keep theirs", "tools_version", d.tools.Snapshot().Version())
}
