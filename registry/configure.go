package registry

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"

	"voicegw/config/setting"
	"voicegw/registry/document"
	"voicegw/registry/spec"
)

// ToolSettings is a tool's configuration.
type ToolSettings struct {
	Off bool
	// Share is the percentage of users who get the tool, if it is a variant: 0 to 100.
	Share int
	// Values are the tool's own settings by name, with the types of [spec.Setting.Value]. Missing ones have their
	// default; a tool with a missing setting without default is disabled (Snapshot.Unset).
	Values map[string]any
}

// Secret is a setting's value that doesn't appear in output; Reveal returns it.
type Secret = setting.Secret

// NewSecret makes a Secret, for tests of handlers.
func NewSecret(text string) Secret { return setting.NewSecret(text) }

// OwnSettings marks the type Settings that the build generates from schema.json. Handlers whose Needs have a field of
// that type get the values at the time of the call there.
type OwnSettings interface{ OwnSettings() }

// AnySettings are the settings of a tool that is not Go code, by name.
type AnySettings struct{ Values map[string]any }

// OwnSettings implements the interface OwnSettings.
func (AnySettings) OwnSettings() {}

var ownSettings = reflect.TypeFor[OwnSettings]()

type liveSettings struct{ atomic.Pointer[reflect.Value] }

// Configure prepares new settings and foreign tools. take, which cannot fail, applies them to calls and snapshots from
// then on. The error is a *[LoadError]. take must be called before Configure or Reload is called again.
func (r *Registry) Configure(settings map[string]ToolSettings, foreign Foreign) (take func(), err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l, err := r.load(r.data, settings, foreign)
	if err != nil {
		return nil, err
	}
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.settings, r.foreign = settings, foreign
		r.take(l)
	}, nil
}

// take applies what was loaded. The caller must hold mu, unless r isn't shared yet.
func (r *Registry) take(l *loader) {
	for id, v := range l.values {
		l.live[id].Store(&v)
	}
	r.current.Store(l.snapshot)
}

// Off returns the sorted ids of the tools that are disabled or lack a setting. The snapshot doesn't list them.
func (s *Snapshot) Off() []string { return slices.Clone(s.off) }

// Unset is a disabled tool that lacks settings without default.
type Unset struct {
	Tool     string
	Settings []string
}

// String explains which settings to add.
func (u Unset) String() string {
	return fmt.Sprintf("%s needs tools.%s.%s; give it, or switch the tool off with tools.%s.enabled: false",
		u.Tool, u.Tool, strings.Join(u.Settings, fmt.Sprintf(", tools.%s.", u.Tool)), u.Tool)
}

// Unset returns the tools in Off that lack settings, sorted by tool.
func (s *Snapshot) Unset() []Unset { return slices.Clone(s.unset) }

// off reports whether a tool is disabled. A missing setting disables only that tool, so that the gateway still
// starts.
func (l *loader) off(s *spec.Spec) bool {
	if !l.settings[s.ToolID].Off {
		_, missing := resolveSettings(s, l.settings[s.ToolID].Values)
		if len(missing) == 0 {
			return false
		}
		l.snapshot.unset = append(l.snapshot.unset, Unset{Tool: s.ToolID, Settings: missing})
	}
	l.snapshot.off = append(l.snapshot.off, s.ToolID)
	return true
}

func (l *loader) withSettings(place document.Pointer, t *Tool, h Handler) map[spec.Mode][]provider {
	typ := h.settingsType()
	if typ == nil {
		return l.providers
	}
	values, _ := resolveSettings(&t.Spec, l.settings[t.ToolID].Values)
	v, err := settingsValue(typ, t.Settings, values)
	if err != nil {
		l.problem(place.With("settings"), "%s: %v. Run `voicegw tools build` and build the program again.", t.ToolID, err)
		return l.providers
	}
	l.values[t.ToolID] = v
	with := map[spec.Mode][]provider{}
	for mode, all := range l.providers {
		with[mode] = append(slices.Clone(all), provider{typ: typ, source: source{live: l.live[t.ToolID]}})
	}
	return with
}

// resolveSettings returns the values of a tool's settings, with defaults, and the sorted names of those without.
func resolveSettings(s *spec.Spec, given map[string]any) (values map[string]any, missing []string) {
	values = map[string]any{}
	for name, declared := range s.Settings {
		if values[name] = given[name]; values[name] == nil {
			values[name] = declared.Value()
		}
		if values[name] == nil {
			missing = append(missing, name)
		}
	}
	slices.Sort(missing)
	return values, missing
}

func (h Handler) settingsType() reflect.Type {
	if h.needs == nil || h.needs.Kind() != reflect.Struct {
		return nil
	}
	for field := range h.needs.Fields() {
		if field.IsExported() && field.Type.Kind() == reflect.Struct && field.Type.Implements(ownSettings) {
			return field.Type
		}
	}
	return nil
}

var errSettings = errors.New("the handler's type Settings was generated from another schema.json")

func settingsValue(typ reflect.Type, settings map[string]spec.Setting, values map[string]any) (reflect.Value, error) {
	if typ == reflect.TypeFor[AnySettings]() {
		return reflect.ValueOf(AnySettings{values}), nil
	}
	v := reflect.New(typ).Elem()
	filled := 0
	for field := range typ.Fields() {
		name, has := field.Tag.Lookup("setting")
		if !has {
			continue
		}
		value := reflect.ValueOf(values[name])
		switch _, known := settings[name]; {
		case !known || !value.IsValid():
			return v, fmt.Errorf("%w: it has %s, and there is no setting %q", errSettings, field.Name, name)
		case value.Type() != field.Type:
			return v, fmt.Errorf("%w: %s is %s, and the setting %q is %s", errSettings, field.Name, field.Type, name, value.Type())
		}
		v.FieldByIndex(field.Index).Set(value)
		filled++
	}
	if filled != len(settings) {
		return v, fmt.Errorf("%w: it has %d of %d settings", errSettings, filled, len(settings))
	}
	return v, nil
}

func liveOf(handlers map[string]Handler) map[string]*liveSettings {
	live := map[string]*liveSettings{}
	for id, h := range handlers {
		if h.settingsType() != nil {
			live[id] = &liveSettings{}
		}
	}
	return live
}
