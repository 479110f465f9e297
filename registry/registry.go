package registry

import (
	"cmp"
	"context"
	"log/slog"
	"reflect"
	"sync"
	"sync/atomic"

	"voicegw/registry/spec"
)

// Options are the process's parts for [Load].
type Options struct {
	Handlers map[string]Handler
	// Capabilities satisfy handlers' needs in every call, matched by type: the one with the field's exact type,
	// otherwise the only assignable one. They must be safe for concurrent use. The call's *[Snapshot] is always among
	// them.
	Capabilities []any
	// SessionCapabilities are the types of values passed to every [Prepared.Run], matched before Capabilities.
	SessionCapabilities []reflect.Type
	// ModeCapabilities are passed only to calls of one mode. A tool that needs one must not allow another mode.
	ModeCapabilities map[spec.Mode][]reflect.Type
	// Settings are the tools' settings by id; see [Registry.Configure].
	Settings map[string]ToolSettings
	// Feature reports whether a feature that an availability names is on for an agent. It must not block and must be
	// safe for concurrent use. Nil means that all are off.
	Feature func(agent, name string) bool
	Dev     bool
	// Logger gets a line for each failed and each slow call, and at debug level for applied defaults; nil disables
	// logging. Arguments, results and messages of [ToolError] are never logged.
	Logger *slog.Logger
}

// MaxDataBytes limits the JSON of a result's data.
const MaxDataBytes = 256 << 10

// Registry holds the loaded tools. It is safe for concurrent use.
type Registry struct {
	// Fixed after Load.
	opts  Options
	stats *stats
	live  map[string]*liveSettings // for tools with own settings, by tool

	current  atomic.Pointer[Snapshot]
	switches kept[*Tool] // agent_switch by its targets

	mu       sync.Mutex // guards the fields below, and serialises Reload and Configure
	locked   bool
	data     []byte // the last loaded file
	settings map[string]ToolSettings
}

// Load loads a tool_registry.json: it verifies the version and every spec, compiles each schema once, and checks that
// tools and handlers match, handlers' arguments fit the schemas, and their needs are provided. The error is
// [ErrEmpty] or a *[LoadError] with all problems.
func Load(data []byte, opts Options) (*Registry, error) {
	opts.complete()
	r := &Registry{opts: opts, stats: newStats(), live: liveOf(opts.Handlers), data: data, settings: opts.Settings}
	l, err := r.load(data, opts.Settings)
	if err != nil {
		return nil, err
	}
	r.take(l)
	return r, nil
}

func (o *Options) complete() {
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
}

// Lock makes Reload fail from now on, unless Options.Dev.
func (r *Registry) Lock() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.locked = true
}

// Reload replaces the tools for future snapshots. On an error nothing changes. The error is [ErrLocked] or one of
// Load.
func (r *Registry) Reload(data []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.locked && !r.opts.Dev {
		return ErrLocked
	}
	l, err := r.load(data, r.settings)
	if err != nil {
		return err
	}
	r.data = data
	r.take(l)
	return nil
}

// Snapshot returns the current tools.
func (r *Registry) Snapshot() *Snapshot { return r.current.Load() }

// Stats returns a copy of the counters of all tools called since Load, by id; unknown tools are counted as
// [UnknownTool].
func (r *Registry) Stats() map[string]ToolStats { return r.stats.copy() }

// Wait waits until no handler is running, including abandoned ones, or until ctx ends. No new calls may start.
func (r *Registry) Wait(ctx context.Context) error { return r.stats.wait(ctx) }
