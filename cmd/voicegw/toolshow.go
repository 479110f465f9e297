package main

import (
	"encoding/json"
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

// registryFile reads the registry that is built into this binary, without loading it, and adds the
// built-in tools.
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
	return p.shown(build.WriteList(p.Stdout, file, flags.JSON))
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
	return p.shown(build.WriteTool(p.Stdout, file.Tools[i], flags.JSON))
}

// shown returns the exit code after writing to standard output.
func (p Process) shown(err error) int {
	if err != nil {
		p.complain("%v", err)
		return exitFailure
	}
	return exitOK
}

func (p Process) printJSON(v any) int {
	enc := json.NewEncoder(p.Stdout)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return p.shown(enc.Encode(v))
}
