package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"voicegw/registry"
)

type toolsListFlags struct {
	JSON bool `help:"Write JSON." name:"json"`
}

type toolsDescribeFlags struct {
	Name string `arg:"" help:"Name or id of the tool."`
	JSON bool   `help:"Write JSON." name:"json"`
}

// registryFile reads the registry that this binary was built with, without loading it,
// and adds what is built in.
func (p Process) registryFile() (registry.File, bool) {
	var file registry.File
	data, err := p.registryData()
	if err == nil {
		err = json.Unmarshal(data, &file)
	}
	if err != nil {
		p.complain("%v", err)
		return file, false
	}
	p.warnIfOld(file.Version)
	file.Tools = append(file.Tools, registry.Builtins()...)
	slices.SortFunc(file.Tools, func(a, b registry.Entry) int { return strings.Compare(a.ToolID, b.ToolID) })
	return file, true
}

func (p Process) toolsList(flags toolsListFlags) int {
	file, ok := p.registryFile()
	if !ok {
		return exitFailure
	}
	if flags.JSON {
		return p.printJSON(struct {
			Version string     `json:"version"`
			Tools   []toolLine `json:"tools"`
		}{file.Version, toolLines(file)})
	}
	var b strings.Builder
	fmt.Fprintf(&b, "registry %s, %s\n\n", file.Version, count(len(file.Tools), "tool"))
	rows := [][]string{{"TOOL", "VERSION", "CATEGORY", "SIDE EFFECTS", "MODES", "BUDGET", "SUMMARY"}}
	for _, t := range toolLines(file) {
		effects := string(t.SideEffects)
		if t.RequiresConfirmation {
			effects += ", confirmed"
		}
		rows = append(rows, []string{t.ToolID, t.Version, string(t.Category), effects, modes(t.AllowedModes), fmt.Sprintf("%d ms", t.LatencyBudgetMS), t.Summary})
	}
	return p.print(b.String() + p.table(rows))
}

// toolLine is one tool of a list.
type toolLine struct {
	ToolID               string               `json:"toolId"`
	Version              string               `json:"version"`
	Category             registry.Category    `json:"category"`
	SideEffects          registry.SideEffects `json:"sideEffects"`
	RequiresConfirmation bool                 `json:"requiresConfirmation"`
	AllowedModes         []registry.Mode      `json:"allowedModes"`
	LatencyBudgetMS      int                  `json:"latencyBudgetMs"`
	Summary              string               `json:"summary"`
}

func toolLines(file registry.File) []toolLine {
	lines := []toolLine{}
	for _, t := range file.Tools {
		lines = append(lines, toolLine{t.ToolID, t.Version, t.Category, t.SideEffects, t.RequiresConfirmation, t.AllowedModes, t.LatencyBudgetMS, t.Summary})
	}
	return lines
}

func (p Process) toolsDescribe(flags toolsDescribeFlags) int {
	file, ok := p.registryFile()
	if !ok {
		return exitFailure
	}
	id := strings.ReplaceAll(flags.Name, "-", "_")
	i := slices.IndexFunc(file.Tools, func(t registry.Entry) bool { return t.ToolID == id })
	if i < 0 {
		p.complain("this binary has no tool %s; voicegw tools list tells all", id)
		return exitFailure
	}
	t := file.Tools[i]
	if flags.JSON {
		return p.printJSON(t)
	}
	rows := [][]string{
		{"Tool", t.ToolID + " " + t.Version},
		{"Category", string(t.Category)},
		{"Side effects", string(t.SideEffects)},
		{"Idempotent", yesNo(t.Idempotent)},
		{"Confirmation", yesNo(t.RequiresConfirmation)},
		{"Modes", modes(t.AllowedModes)},
		{"Latency budget", fmt.Sprintf("%d ms", t.LatencyBudgetMS)},
		{"Timeout", fmt.Sprintf("%d ms", t.TimeoutMS)},
	}
	for _, more := range [][]string{
		{"Behavior", t.Behavior}, {"Scheduling", t.Scheduling}, {"Idempotency key", t.IdempotencyKey}, {"Preview", t.Preview},
	} {
		if more[1] != "" {
			rows = append(rows, more)
		}
	}
	parameters := parameterRows(t.Parameters)
	text := p.table(rows) + "\n"
	if len(parameters) > 1 {
		text += p.table(parameters) + "\n"
	}
	return p.print(text + strings.TrimSpace(t.Guide) + "\n")
}

// parameterRows lists the arguments, those of inner objects with a dot.
func parameterRows(schema json.RawMessage) [][]string {
	rows := [][]string{{"PARAMETER", "TYPE", "DEFAULT", "DESCRIPTION"}}
	var walk func(prefix string, s schemaView, depth int)
	walk = func(prefix string, s schemaView, depth int) {
		names := make([]string, 0, len(s.Properties))
		for name := range s.Properties {
			names = append(names, name)
		}
		slices.SortFunc(names, func(a, b string) int {
			if r := slices.Contains(s.Required, b); r != slices.Contains(s.Required, a) {
				if r {
					return 1
				}
				return -1
			}
			return strings.Compare(a, b)
		})
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
		return rows // the registry has checked it: there is nothing to show
	}
	walk("", root, 0)
	return rows
}

// schemaView is what a table shows of a schema.
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

// table lays rows out in columns. On a terminal a line is cut at its width.
func (p Process) table(rows [][]string) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		// A strings.Builder takes everything.
		_, _ = fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	_ = w.Flush()
	width, ok := terminal(p.Stdout)
	if !ok {
		return b.String()
	}
	var cut strings.Builder
	for line := range strings.SplitSeq(strings.TrimSuffix(b.String(), "\n"), "\n") {
		if r := []rune(line); len(r) > width && width > 1 {
			line = string(r[:width-1]) + "…"
		}
		cut.WriteString(line + "\n")
	}
	return cut.String()
}

func (p Process) printJSON(v any) int {
	enc := json.NewEncoder(p.Stdout)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		p.complain("%v", err)
		return exitFailure
	}
	return exitOK
}

func modes(list []registry.Mode) string {
	names := make([]string, len(list))
	for i, m := range list {
		names[i] = string(m)
	}
	return strings.Join(names, ", ")
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
