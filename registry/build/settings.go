package build

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"voicegw/registry/spec"
)

var settingTypes = map[spec.SettingType]string{
	spec.SettingString: "string", spec.SettingInteger: "int", spec.SettingNumber: "float64",
	spec.SettingBoolean: "bool", spec.SettingDuration: "time.Duration", spec.SettingList: "[]string",
}

func (w *argsWriter) settings(id string, all map[string]spec.Setting) {
	name := w.names.take("Settings")
	used := scope{}
	var b strings.Builder
	b.WriteString(comment("", fmt.Sprintf("%s are the tool's own settings, which the operator gives under tools.%s.", name, id)))
	fmt.Fprintf(&b, "type %s struct {\n", name)
	for _, key := range slices.Sorted(maps.Keys(all)) {
		s := all[key]
		about := strings.TrimSuffix(strings.TrimSpace(s.Description), ".") + "."
		typ := settingTypes[s.Type]
		switch {
		case s.Secret:
			typ, about = "registry.Secret", about+" It is printed nowhere; its Reveal gives the text."
		case s.Type == spec.SettingDuration:
			w.time = true
		}
		if len(s.Default) > 0 && !s.Secret {
			about += " Default: " + string(s.Default) + "."
		}
		b.WriteString(comment("\t", about))
		fmt.Fprintf(&b, "\t%s %s `setting:\"%s\"`\n", used.take(goName(key)), typ, key)
		w.registry = w.registry || s.Secret
	}
	fmt.Fprintf(&b, "}\n\n// OwnSettings marks the type for the registry, which fills it in where Needs has a field of "+
		"it.\nfunc (%s) OwnSettings() {}\n", name)
	w.decls = append(w.decls, b.String())
}

func (w *argsWriter) imports(module string) string {
	var std, own []string
	if w.raw {
		std = append(std, "encoding/json")
	}
	if w.time {
		std = append(std, "time")
	}
	if w.registry {
		own = append(own, module+"/registry")
	}
	var b strings.Builder
	switch all := slices.Concat(std, own); len(all) {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf("import %q\n\n", all[0])
	}
	b.WriteString("import (\n")
	for _, group := range [][]string{std, own} {
		for _, path := range group {
			fmt.Fprintf(&b, "\t%q\n", path)
		}
		b.WriteString("\n")
	}
	return b.String() + ")\n\n"
}
