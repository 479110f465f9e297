package config

import (
	"reflect"
	"slices"
	"time"

	"voicegw/config/setting"
)

// ToolDeclaration is a tool of the program, with its own settings.
type ToolDeclaration struct {
	ID string
	// VariantOf is the tool whose other version it is; empty for a tool that is not a version.
	VariantOf string
	// Settings are in the order in which problems name them.
	Settings []ToolSetting
}

// ToolSetting is one setting of a tool's own. Its key is tools.<id>.<name>.
type ToolSetting struct {
	Name string
	// Type is the type of its values: a nil pointer to a string, setting.Secret, int, float64, bool,
	// time.Duration or []string.
	Type any
	// Default has that type; nil means that the tool is off until the operator sets a value.
	Default     any
	Description string
}

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
		for _, s := range d.Settings {
			f := field{key: toolsPrefix + d.ID + "." + s.Name, value: reflect.New(reflect.TypeOf(s.Type).Elem()).Elem()}
			if s.Default != nil {
				f.value.Set(reflect.ValueOf(s.Default))
			}
			t.own = append(t.own, ownSetting{field: f, name: s.Name, has: s.Default != nil})
		}
		l.config.Tools[d.ID] = t
		l.know(t.fields(d.ID))
	}
}

// settleTools records which settings of tools have a value. A missing one is no problem of the configuration: the
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
		t, key := l.config.Tools[d.ID], toolsPrefix+d.ID+".share"
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

// The types of a tool's own settings, for [ToolSetting.Type].
var (
	TypeString   = (*string)(nil)
	TypeSecret   = (*setting.Secret)(nil)
	TypeInteger  = (*int)(nil)
	TypeNumber   = (*float64)(nil)
	TypeBoolean  = (*bool)(nil)
	TypeDuration = (*time.Duration)(nil)
	TypeList     = (*[]string)(nil)
)
