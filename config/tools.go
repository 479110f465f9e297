package config

import (
	"maps"
	"reflect"
	"slices"
	"time"

	"voicegw/config/setting"
	"voicegw/registry/spec"
)

// Tools are the settings of each tool by its id.
type Tools map[string]*Tool

// Tool is the configuration of one tool.
type Tool struct {
	// Whether the tool exists. Settings of a disabled tool may be missing, and agents may still name it.
	Enabled bool `key:"enabled"`
	// Percentage of users who get this [canary version](tools-reference.md#variantof).
	Share int `key:"share"`

	variantOf string
	own       []ownSetting
}

type ownSetting struct {
	field
	name string
	has  bool // it has a value, or a default
}

const toolsPrefix = "tools."

// Values returns the values of the tool's own settings by name, with their declared types. It leaves out settings with
// neither a value nor a default.
func (t *Tool) Values() map[string]any {
	values := map[string]any{}
	for _, s := range t.own {
		if s.has {
			values[s.name] = s.value.Interface()
		}
	}
	return values
}

func (t *Tool) fields(id string) []field {
	all := fieldsOf(toolsPrefix+id+".", t)
	if t.variantOf == "" {
		all = slices.DeleteFunc(all, func(f field) bool { return f.key == toolsPrefix+id+".share" })
	}
	for _, s := range t.own {
		all = append(all, s.field)
	}
	return all
}

func (l *loader) knowTools() {
	l.config.Tools = Tools{}
	for _, d := range l.source.Tools {
		t := &Tool{Enabled: true, variantOf: d.VariantOf}
		for _, name := range slices.Sorted(maps.Keys(d.Settings)) {
			zero, value := ZeroSetting(d.Settings[name]), d.Settings[name].Value()
			if zero == nil {
				continue // of another version of the program
			}
			f := field{key: toolsPrefix + d.ToolID + "." + name, value: reflect.New(reflect.TypeOf(zero)).Elem()}
			if value != nil {
				f.value.Set(reflect.ValueOf(value))
			}
			t.own = append(t.own, ownSetting{field: f, name: name, has: value != nil})
		}
		l.config.Tools[d.ToolID] = t
		l.know(t.fields(d.ToolID))
	}
}

// settleTools records which settings of tools have a value. A missing one is not a problem of the configuration: the
// registry leaves that tool out, and the others work.
func (l *loader) settleTools() {
	l.settleShares()
	for _, t := range l.config.Tools {
		for i := range t.own {
			own := &t.own[i]
			own.has = own.has || l.where[own.key] != "" && !isEmpty(own.value)
		}
	}
}

func (l *loader) settleShares() {
	sums := map[string]int{}
	for _, d := range l.source.Tools {
		t, key := l.config.Tools[d.ToolID], toolsPrefix+d.ToolID+".share"
		if d.VariantOf == "" || l.refused(key) {
			continue
		}
		if t.Share < 0 || t.Share > 100 {
			l.bad(key, "%s is %d; it must be the percentage of users who get this version of %s, 0 to 100.", key, t.Share, d.VariantOf)
			continue
		}
		if before := sums[d.VariantOf]; t.Enabled && t.Share > 0 && before+t.Share > 100 {
			l.bad(key, "%s is %d, and other versions of %s have %d already: together they have at most 100.", key, t.Share,
				d.VariantOf, before)
		}
		if t.Enabled {
			sums[d.VariantOf] += t.Share
		}
	}
}

// isEmpty reports whether a value is an empty text or list, which counts as missing.
func isEmpty(v reflect.Value) bool {
	switch v.Interface().(type) {
	case string, setting.Secret, []string:
		return v.IsZero() || v.Kind() == reflect.Slice && v.Len() == 0
	}
	return false
}

// ZeroSetting returns the zero value of the type of [spec.Setting.Value]; nil for an unknown type.
func ZeroSetting(s spec.Setting) any {
	if s.Secret {
		return setting.Secret{}
	}
	return map[spec.SettingType]any{
		spec.SettingString: "", spec.SettingInteger: 0, spec.SettingNumber: 0.0, spec.SettingBoolean: false,
		spec.SettingDuration: time.Duration(0), spec.SettingList: []string{},
	}[s.Type]
}
