package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"voicegw/registry"
	"voicegw/registry/build"
)

type toolsListFlags struct {
	JSON bool `help:"Write JSON." name:"json"`
}

type toolsDescribeFlags struct {
	Name string `arg:"" help:"Name or id of the tool."`
	JSON bool   `help:"Write JSON." name:"json"`
}

// registryFile parses the built-in registry without loading it, and adds the built-in tools.
func (p Process) registryFile() (registry.File, error) {
	var file registry.File
	data, err := p.registryData()
	if err == nil {
		err = json.Unmarshal(data, &file)
	}
	if err != nil {
		return file, err
	}
	p.warnIfOld(file.Version)
	file.Tools = append(file.Tools, registry.Builtins()...)
	slices.SortFunc(file.Tools, func(a, b registry.Entry) int { return strings.Compare(a.ToolID, b.ToolID) })
	return file, nil
}

// Run lists the tools.
func (flags toolsListFlags) Run(p Process) error {
	file, err := p.registryFile()
	if err != nil {
		return err
	}
	return build.WriteList(p.Stdout, file, flags.JSON)
}

// Run describes a tool.
func (flags toolsDescribeFlags) Run(p Process) error {
	file, err := p.registryFile()
	if err != nil {
		return err
	}
	id := strings.ReplaceAll(flags.Name, "-", "_")
	i := slices.IndexFunc(file.Tools, func(t registry.Entry) bool { return t.ToolID == id })
	if i < 0 {
		return fmt.Errorf("no tool %s; see voicegw tools list", id)
	}
	return build.WriteTool(p.Stdout, file.Tools[i], flags.JSON)
}

func (p Process) printJSON(v any) error {
	enc := json.NewEncoder(p.Stdout)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}
