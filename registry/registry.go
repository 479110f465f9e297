// Package registry defines, loads, validates and runs the gateway's tools.
//
// A tool is a folder tools/<dash-name>/ with schema.json (a [spec.Spec]), guide.md and handler.go (a function bound
// with [Bind]). The build combines all of them in tool_registry.json (a [File]), whose version is a hash of its
// content. [Load] checks that file and the process's handlers, compiles every schema once, and returns a [Registry].
// A session keeps one immutable [Snapshot] of it and runs calls through it:
//
//	p, refused := snapshot.Prepare("kb_search", spec.ModeVoice, args)
//	if refused != nil { /* NOT_FOUND, MODE_RESTRICTED or VALIDATION */ }
//	p.Clamp(nil)
//	envelope := p.Run(ctx, session)
//
// Every call returns one [Envelope], regardless of the model and the handler. Arguments are decoded strictly,
// completed with defaults and validated before a handler gets them as a Go struct generated from the schema.
//
// Package spec parses schema.json, and package document compiles its JSON Schemas. This package is independent of
// models, providers and networks, and opens no files: schemas with external references are rejected.
package registry

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
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
	// Foreign are the tools that are not part of the program; see [Registry.Configure].
	Foreign Foreign
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
	foreign  Foreign
}

// Foreign are tools that are not part of the program. Their handlers belong to the entries, and their ids must not be
// those of other tools.
type Foreign struct {
	Entries  []Entry
	Handlers map[string]Handler
}

// Load loads a tool_registry.json: it verifies the version and every spec, compiles each schema once, and checks that
// tools and handlers match, handlers' arguments fit the schemas, and their needs are provided. The error is
// [ErrEmpty] or a *[LoadError] with all problems.
func Load(data []byte, opts Options) (*Registry, error) {
	opts.complete()
	r := &Registry{opts: opts, stats: newStats(), live: liveOf(opts.Handlers), data: data, settings: opts.Settings,
		foreign: opts.Foreign}
	l, err := r.load(data, opts.Settings, opts.Foreign)
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
	l, err := r.load(data, r.settings, r.foreign)
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

// built holds tool_registry.json if that file existed when the program was compiled, and
// always tool_registry.md, so that the embed directive matches at least one file.
//
//go:embed tool_registry.*
var built embed.FS

// Embedded returns the built-in tool_registry.json. The error is [ErrEmpty] if there was none at compile time.
func Embedded() ([]byte, error) {
	data, err := built.ReadFile("tool_registry.json")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrEmpty
	}
	if err != nil {
		return nil, fmt.Errorf("registry: reading what was embedded: %w", err)
	}
	return data, nil
}
