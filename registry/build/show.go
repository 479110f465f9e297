package build

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"voicegw/internal/textutil"
	"voicegw/registry"
	"voicegw/registry/spec"
)

// WriteList writes a registry's tools as a table or as a JSON object.
func WriteList(w io.Writer, file registry.File, asJSON bool) error {
	if asJSON {
		lines := []toolLine{}
		for _, t := range file.Tools {
			lines = append(lines, toolLine{t.ToolID, t.Version, t.Category, t.SideEffects, t.RequiresConfirmation,
				t.AllowedModes, t.LatencyBudgetMS, t.Summary})
		}
		return writeJSON(w, struct {
			Version string     `json:"version"`
			Tools   []toolLine `json:"tools"`
		}{file.Version, lines})
	}
	rows := [][]string{{"TOOL", "VERSION", "CATEGORY", "SIDE EFFECTS", "MODES", "BUDGET", "SUMMARY"}}
	for _, t := range file.Tools {
		effects := string(t.SideEffects)
		if t.RequiresConfirmation {
			effects += ", confirmed"
		}
		rows = append(rows, []string{t.ToolID, t.Version, string(t.Category), effects, strings.Join(spec.ModeNames(t.AllowedModes), ", "),
			fmt.Sprintf("%d ms", t.LatencyBudgetMS), t.Summary})
	}
	_, err := fmt.Fprintf(w, "registry %s, %s\n\n%s", file.Version, textutil.Count(len(file.Tools), "tool"), textutil.Table(w, rows))
	return err
}

// WriteTool writes a tool's fields, parameters and guide, or a JSON object.
func WriteTool(w io.Writer, t registry.Entry, asJSON bool) error {
	if asJSON {
		return writeJSON(w, t)
	}
	rows := [][]string{
		{"Tool", t.ToolID + " " + t.Version},
		{"Category", string(t.Category)},
		{"Side effects", string(t.SideEffects)},
		{"Idempotent", textutil.YesNo(t.Idempotent)},
		{"Confirmation", textutil.YesNo(t.RequiresConfirmation)},
		{"Modes", strings.Join(spec.ModeNames(t.AllowedModes), ", ")},
		{"Latency budget", fmt.Sprintf("%d ms", t.LatencyBudgetMS)},
		{"Timeout", fmt.Sprintf("%d ms", t.TimeoutMS)},
	}
	var rate, job, available string
	if t.RateLimit != nil {
		rate = t.RateLimit.String() + " for each user"
	}
	if t.Job != nil {
		job = t.Job.String()
	}
	if t.Availability != nil {
		available = t.Availability.String()
	}
	var asked []string
	for _, c := range t.ConfirmWhen {
		asked = append(asked, c.String())
	}
	for _, more := range [][]string{
		{"Title", t.Title}, {"Tags", strings.Join(t.Tags, ", ")}, {"Requires", strings.Join(t.Requires, ", ")},
		{"Asked when", strings.Join(asked, ", or ")}, {"Rate limit", rate}, {"Available", available}, {"Job", job},
		{"Behavior", t.Behavior}, {"Scheduling", t.Scheduling}, {"Idempotency key", t.IdempotencyKey}, {"Preview", t.Preview},
	} {
		if more[1] != "" {
			rows = append(rows, more)
		}
	}
	text := textutil.Table(w, rows) + "\n"
	if parameters := parameterRows("PARAMETER", t.Parameters); len(parameters) > 1 {
		text += textutil.Table(w, parameters) + "\n"
	}
	if len(t.Output) > 0 {
		text += textutil.Table(w, parameterRows("DATA", t.Output)) + "\n"
	}
	if len(t.Settings) > 0 {
		text += textutil.Table(w, settingRows(t.ToolID, t.Settings)) + "\n"
	}
	_, err := io.WriteString(w, text+strings.TrimSpace(t.Guide)+"\n")
	return err
}

func settingRows(id string, settings map[string]spec.Setting) [][]string {
	rows := [][]string{{"SETTING", "TYPE", "DEFAULT", "DESCRIPTION"}}
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		s := settings[name]
		kind, byDefault := string(s.Type), string(s.Default)
		if s.Secret {
			kind = "secret"
		}
		if byDefault == "" {
			byDefault = "(required)"
		}
		rows = append(rows, []string{"tools." + id + "." + name, kind, byDefault, s.Description})
	}
	return rows
}

type toolLine struct {
	ToolID               string           `json:"toolId"`
	Version              string           `json:"version"`
	Category             spec.Category    `json:"category"`
	SideEffects          spec.SideEffects `json:"sideEffects"`
	RequiresConfirmation bool             `json:"requiresConfirmation"`
	AllowedModes         []spec.Mode      `json:"allowedModes"`
	LatencyBudgetMS      int              `json:"latencyBudgetMs"`
	Summary              string           `json:"summary"`
}

func parameterRows(heading string, schema json.RawMessage) [][]string {
	rows := [][]string{{heading, "TYPE", "DEFAULT", "DESCRIPTION"}}
	var walk func(prefix string, s schemaView, depth int)
	walk = func(prefix string, s schemaView, depth int) {
		place := func(name string) string { // required ones first
			return strconv.FormatBool(!slices.Contains(s.Required, name)) + name
		}
		names := slices.SortedFunc(maps.Keys(s.Properties), func(a, b string) int { return strings.Compare(place(a), place(b)) })
		for _, name := range names {
			child := s.Properties[name]
			byDefault := string(child.Default)
			if slices.Contains(s.Required, name) {
				byDefault = "(required)"
			}
			rows = append(rows, []string{prefix + name, child.kind(), byDefault, child.Description})
			if depth < 8 {
				walk(prefix+name+".", child, depth+1)
			}
		}
	}
	var root schemaView
	if err := json.Unmarshal(schema, &root); err != nil {
		return rows // cannot happen: validated by the registry
	}
	walk("", root, 0)
	return rows
}

type schemaView struct {
	Type        json.RawMessage       `json:"type"`
	Description string                `json:"description"`
	Default     json.RawMessage       `json:"default"`
	Enum        []json.RawMessage     `json:"enum"`
	Properties  map[string]schemaView `json:"properties"`
	Required    []string              `json:"required"`
	Items       *schemaView           `json:"items"`
}

func (s schemaView) kind() string {
	kind := strings.NewReplacer(`"`, "", "[", "", "]", "", ",", " or ").Replace(string(s.Type))
	if len(s.Enum) > 0 {
		values := make([]string, len(s.Enum))
		for i, v := range s.Enum {
			values[i] = strings.Trim(string(v), `"`)
		}
		return strings.Join(values, "|")
	}
	if s.Items != nil {
		return kind + " of " + s.Items.kind()
	}
	return kind
}
