package registry

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"

	"voicegw/config/setting"
	"voicegw/registry/document"
	"voicegw/registry/spec"
)

// ToolSettings is what the configuration says of one tool.
type ToolSettings struct {
	// Off leaves the tool out of snapshots.
	Off bool
	// Share is how many of 100 users get the tool, if it is a version beside another one: 0 to 100.
	Share int
	// Values are those of the tool's own settings by name, with the types of [spec.Setting.Value]. Those that
	// are missing have their default; a tool with a missing setting that has none is off (Snapshot.Unset).
	Values map[string]any
}

// Secret is the value of a setting that appears in no output: only its Reveal returns it.
type Secret = setting.Secret

// NewSecret hides a text, for tests of handlers.
func NewSecret(text string) Secret { return setting.NewSecret(text) }

// OwnSettings marks the type Settings that the build generates from the settings of a schema.json. A
// handler whose Needs have a field of that type finds the values there, those of the time of the call.
type OwnSettings interface{ OwnSettings() }

var ownSettings = reflect.TypeFor[OwnSettings]()

// liveSettings are the values of one tool's settings, as a value of its type Settings. They are replaced
// as a whole.
type liveSettings struct{ atomic.Pointer[reflect.Value] }

// Configure prepares other settings of the tools. take, which cannot fail, begins to use them: values count
// for every call that begins afterwards, and tools that are switched on or off for the snapshots that are
// taken afterwards. The error is a *[LoadError]. take must be called before Configure or Reload again.
func (r *Registry) Configure(settings map[string]ToolSettings) (take func(), err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l, err := r.load(r.data, settings)
	if err != nil {
		return nil, err
	}
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.settings = settings
		r.take(l)
	}, nil
}

// take begins to use what was loaded. The caller holds mu, unless nobody else knows r.
func (r *Registry) take(l *loader) {
	for id, v := range l.values {
		l.live[id].Store(&v)
	}
	r.current.Store(l.snapshot)
}

// Off returns the ids of the tools that the configuration has switched off or that lack a setting, sorted.
// They are in no list of the snapshot.
func (s *Snapshot) Off() []string { return slices.Clone(s.off) }

// Unset is a tool that is off because the configuration lacks settings that have no default.
type Unset struct {
	Tool string
	// Settings are the names of the missing settings, sorted.
	Settings []string
}

// String says which settings to give.
func (u Unset) String() string {
	return fmt.Sprintf("%s needs tools.%s.%s; give it, or switch the tool off with tools.%s.enabled: false",
		u.Tool, u.Tool, strings.Join(u.Settings, fmt.Sprintf(", tools.%s.", u.Tool)), u.Tool)
}

// Unset returns the tools that are off because they lack settings, sorted by tool. They are a part of Off.
func (s *Snapshot) Unset() []Unset { return slices.Clone(s.unset) }

// off reports whether a tool is left out of the snapshot. A missing setting leaves out that tool alone, so that
// one tool cannot keep the gateway from starting.
func (l *loader) off(s *spec.Spec) bool {
	if !l.settings[s.ToolID].Off {
		missing := missingSettings(s, l.settings[s.ToolID].Values)
		if len(missing) == 0 {
			return false
		}
		l.snapshot.unset = append(l.snapshot.unset, Unset{Tool: s.ToolID, Settings: missing})
	}
	l.snapshot.off = append(l.snapshot.off, s.ToolID)
	return true
}

// missingSettings returns the names of the settings that have neither a value nor a default, sorted.
func missingSettings(s *spec.Spec, given map[string]any) []string {
	var missing []string
	for _, name := range slices.Sorted(maps.Keys(s.Settings)) {
		if given[name] == nil && s.Settings[name].Value() == nil {
			missing = append(missing, name)
		}
	}
	return missing
}

// withSettings returns what provides the handler's needs, with the tool's own settings if it has any.
func (l *loader) withSettings(place document.Pointer, t *Tool, h Handler) map[spec.Mode][]provider {
	typ := h.settingsType()
	if typ == nil {
		return l.providers
	}
	v, err := settingsValue(typ, t.Settings, resolveSettings(&t.Spec, l.settings[t.ToolID].Values))
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

// resolveSettings returns the values of a tool's settings, with the defaults of those that are not given.
func resolveSettings(s *spec.Spec, given map[string]any) map[string]any {
	values := map[string]any{}
	for name, declared := range s.Settings {
		if value, has := given[name]; has {
			values[name] = value
		} else {
			values[name] = declared.Value()
		}
	}
	return values
}

// settingsType returns the type of the handler's own settings among its needs; nil if it has none.
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

// settingsValue fills in the type that was generated from a tool's settings.
func settingsValue(typ reflect.Type, settings map[string]spec.Setting, values map[string]any) (reflect.Value, error) {
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

// liveOf returns where the values of each tool's settings are, the same for all loads.
func liveOf(handlers map[string]Handler) map[string]*liveSettings {
	live := map[string]*liveSettings{}
	for id, h := range handlers {
		if h.settingsType() != nil {
			live[id] = &liveSettings{}
		}
	}
	return live
}
