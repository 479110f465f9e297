package spec

import (
	"encoding/json"
	"maps"
	"math"
	"regexp"
	"slices"
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

const (
	// maxSettings limits a tool's settings.
	maxSettings = 32
	// maxSettingName limits a setting's name, in bytes.
	maxSettingName = 40
	// settingEnabled is a setting of all tools.
	settingEnabled = "enabled"
)

// Setting is a tool's own setting. The operator sets it with tools.<toolId>.<name>.
type Setting struct {
	Type SettingType `json:"type"`
	// Secret means that the value, a string, is hidden everywhere.
	Secret bool `json:"secret,omitempty"`
	// Description is for operators.
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

// read converts a value for the handler; why describes the expected type if it doesn't match.
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

// settingTypes lists all types.
var settingTypes = []string{
	string(SettingString), string(SettingInteger), string(SettingNumber), string(SettingBoolean), string(SettingDuration),
	string(SettingList),
}

var (
	settingForm = regexp.MustCompile(`^[a-z][a-z0-9]*(_[a-z0-9]+)*$`)
	settingKeys = []string{"default", "description", "secret", "type"}
)

// settings parses the tool's own settings.
func (r *specReader) settings(raw json.RawMessage) map[string]Setting {
	v, has := r.object["settings"]
	if !has {
		return nil
	}
	byName, ok := v.(map[string]any)
	if !ok || len(byName) == 0 || len(byName) > maxSettings {
		r.problem(document.Pointer{"settings"},
			"\"settings\" is an object of 1 to %d settings by name, such as {\"base_url\": {\"type\": \"string\", "+
				"\"description\": \"Where the service is.\"}}; without any, leave it out.", maxSettings)
		return nil
	}
	var texts map[string]map[string]json.RawMessage
	_ = json.Unmarshal(raw, &texts) // other values are reported below
	settings := map[string]Setting{}
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		place := document.Pointer{"settings", name}
		switch {
		case name == settingEnabled:
			r.problem(place, "Every tool has the setting \"enabled\" by itself, with which an operator switches it off; "+
				"choose another name.")
		case !settingForm.MatchString(name) || len(name) > maxSettingName:
			r.problem(place, "A setting's name has small letters, digits and single underscores, a letter first, at "+
				"most %d, got %s.", maxSettingName, document.Show(name))
		default:
			settings[name] = r.setting(place, byName[name], texts[name]["default"])
		}
	}
	return settings
}

// setting parses a setting; byDefault is its default as written.
func (r *specReader) setting(place document.Pointer, v any, byDefault json.RawMessage) Setting {
	object, ok := v.(map[string]any)
	if !ok {
		r.problem(place, "A setting is an object with %s, got %s.", strings.Join(settingKeys, ", "), document.Describe(v))
		return Setting{}
	}
	r.onlyKeys(place, object, "a setting", settingKeys)
	for key, what := range map[string]string{"type": strings.Join(settingTypes, ", "),
		"description": "a sentence that tells an operator what it is for"} {
		if _, has := object[key]; !has {
			r.problem(place.With(key), "The key %q is missing; add it: %s.", key, what)
		}
	}
	one := &specReader{object: object}
	s := Setting{
		Type:        SettingType(one.word("type", false, settingTypes...)),
		Secret:      one.flag("secret", false),
		Description: one.text("description", false, MaxDescription),
	}
	for _, p := range one.problems {
		r.problems = append(r.problems, document.Problem{Path: place.String() + p.Path, Message: p.Message})
	}
	if s.Secret && s.Type != SettingString && s.Type != "" {
		r.problem(place.With("secret"), "A secret is a string; make \"type\" \"string\", or remove \"secret\".")
	}
	given, has := object["default"]
	switch value, why := s.read(given); {
	case !has || s.Type == "":
	case why != "":
		r.problem(place.With("default"), "The default is %s, got %s.", why, document.Show(given))
	case s.Secret && given != "":
		r.problem(place.With("default"), "A secret does not stand in schema.json, which everybody who has the code reads. "+
			"Remove the default, or write \"\" if the tool works without the secret.")
	default:
		if text, is := value.(string); is && strings.ContainsFunc(text, func(c rune) bool { return c < ' ' }) {
			r.problem(place.With("default"), "The default holds a control character; remove it.")
		}
		s.Default = byDefault
	}
	return s
}
