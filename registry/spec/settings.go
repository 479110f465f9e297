package spec

import (
	"encoding/json"
	"math"
	"strings"
	"time"

	"voicegw/config/setting"
	"voicegw/registry/document"
)

// SettingType is the type of a tool's setting.
type SettingType string

// Setting types. A duration is written as in Go ("1m30s"); a list contains strings.
const (
	SettingString   SettingType = "string"
	SettingInteger  SettingType = "integer"
	SettingNumber   SettingType = "number"
	SettingBoolean  SettingType = "boolean"
	SettingDuration SettingType = "duration"
	SettingList     SettingType = "list"
)

// Setting is a tool's own setting. The operator sets it with tools.<toolId>.<name>.
type Setting struct {
	Type SettingType `json:"type"`
	// Secret means that the value, a string, is hidden everywhere.
	Secret      bool   `json:"secret,omitempty"`
	Description string `json:"description"`
	// Default is the default value; nil means that the operator must set it.
	Default json.RawMessage `json:"default,omitempty"`
}

// Value returns the default: a string, [setting.Secret], int, float64, bool, time.Duration or []string; nil without
// one.
func (s Setting) Value() any {
	if len(s.Default) == 0 {
		return nil
	}
	v, _, _ := document.Decode(s.Default, maxSpecBytes, document.MaxSpecDepth)
	value, _ := s.read(v) // validated by the spec's reader
	return value
}

func (s Setting) read(v any) (value any, why string) {
	switch s.Type {
	case SettingString:
		if text, ok := v.(string); ok {
			if s.Secret {
				return setting.NewSecret(text), ""
			}
			return text, ""
		}
	case SettingInteger:
		if n, ok := wholeNumber(v); ok {
			return n, ""
		}
	case SettingNumber:
		if number, ok := v.(json.Number); ok {
			if f, err := number.Float64(); err == nil && !math.IsInf(f, 0) {
				return f, ""
			}
		}
	case SettingBoolean:
		if b, ok := v.(bool); ok {
			return b, ""
		}
	case SettingDuration:
		if text, ok := v.(string); ok {
			if d, err := time.ParseDuration(text); err == nil {
				return d, ""
			}
		}
		return nil, "a duration with its unit, such as \"2s\""
	case SettingList:
		list, ok := v.([]any)
		texts := []string{}
		for _, item := range list {
			text, is := item.(string)
			ok = ok && is
			texts = append(texts, text)
		}
		if ok {
			return texts, ""
		}
		return nil, "a list of texts"
	}
	return nil, "a value of the type " + string(s.Type)
}

var settingTypes = []string{
	string(SettingString), string(SettingInteger), string(SettingNumber), string(SettingBoolean), string(SettingDuration),
	string(SettingList),
}

var settingForm = matching(`[a-z][a-z0-9]*(_[a-z0-9]+)*`, 40)

func (r *reader) settings(s *Spec, raw json.RawMessage) {
	var written map[string]struct{ Default json.RawMessage }
	_ = json.Unmarshal(raw, &written) // other values are reported already
	for name, one := range s.Settings {
		place := document.Pointer{"settings", name}
		switch {
		case name == "enabled":
			r.problem(place, "Every tool already has the setting \"enabled\", which operators use to disable it; choose another name.")
		case name == "share" && s.VariantOf != "":
			r.problem(place, "Every version of another tool already has the setting \"share\", the percentage of users who get "+
				"it; choose another name.")
		case !settingForm(name):
			r.problem(place, "A setting's name has lower-case letters, digits and single underscores, begins with a letter, "+
				"and has at most 40, got %s.",
				document.Show(name))
		case r.fine(place...):
			r.setting(place, one)
		}
		one.Default = written[name].Default
		s.Settings[name] = one
	}
}

func (r *reader) setting(place document.Pointer, s Setting) {
	if s.Secret && s.Type != SettingString {
		r.problem(place.With("secret"), "A secret must be a string; make \"type\" \"string\", or remove \"secret\".")
	}
	given, _, has := document.Decode(s.Default, maxSpecBytes, document.MaxSpecDepth)
	switch value, why := s.read(given); {
	case !has:
	case why != "":
		r.problem(place.With("default"), "The default is %s, got %s.", why, document.Show(given))
	case s.Secret && given != "":
		r.problem(place.With("default"), "A secret must not be in schema.json, which everyone with the code can read. "+
			"Remove the default, or write \"\" if the tool works without the secret.")
	default:
		if text, is := value.(string); is && strings.ContainsFunc(text, func(c rune) bool { return c < ' ' }) {
			r.problem(place.With("default"), "The default has a control character; remove it.")
		}
	}
}
