package main

import (
	"log/slog"

	"voicegw/registry"
)

// toolOptions is what the registry needs of this process, the same for serve and for
// tools call: the handlers, and the capabilities that their Needs name by type. A
// capability that serve alone has (the sessions of the process) is not in here; a tool
// that needs one is refused when the registry is loaded, not when it is called.
func toolOptions(logger *slog.Logger) registry.Options {
	return registry.Options{
		Handlers:     handlers(),
		Capabilities: []any{},
		Logger:       logger,
	}
}

// loadRegistry loads the registry that this binary was built with.
func loadRegistry(o registry.Options) (*registry.Registry, error) {
	data, err := registry.Embedded()
	if err != nil {
		return nil, err
	}
	return registry.Load(data, o)
}
