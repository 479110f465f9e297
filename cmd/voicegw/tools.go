package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"voicegw/internal/httptool"
	"voicegw/internal/jstool"
	"voicegw/internal/server"
	"voicegw/internal/textutil"
	"voicegw/registry"
	"voicegw/registry/build"
	"voicegw/registry/spec"
)

type toolsFlags struct {
	Build    toolsBuildFlags    `cmd:"" help:"Check all tools and generate the registry and the handlers' Go code."`
	New      toolsNewFlags      `cmd:"" help:"Create a new tool from a template."`
	Lint     toolsLintFlags     `cmd:"" help:"Check one or all tools without writing files."`
	List     toolsListFlags     `cmd:"" help:"List the built-in tools."`
	Describe toolsDescribeFlags `cmd:"" help:"Describe a built-in tool."`
	Call     toolsCallFlags     `cmd:"" help:"Call a built-in tool as a conversation would, and print its answer."`
	Start    toolsStartFlags    `cmd:"" hidden:"" help:"Load the built-in tools and print problems as JSON, for tools build."`
}

type toolsBuildFlags struct {
	Dir   string `help:"The project: the directory that holds tools." default:"." placeholder:"DIR"`
	JSON  bool   `help:"Write the report as JSON." name:"json"`
	Check bool   `help:"Write nothing, and fail if a generated file is out of date."`
}

type toolsNewFlags struct {
	Name      string `arg:"" help:"Name of the tool's directory, such as weather-lookup."`
	Action    bool   `help:"Create a tool with side effects that requires approval." xor:"category"`
	Retrieval bool   `help:"Create a tool that looks something up (the default)." xor:"category"`
	Utility   bool   `help:"Create a tool that only uses its arguments." xor:"category"`
	JS        bool   `help:"Create a tool in JavaScript, for tool_dirs." name:"js" xor:"kind"`
	HTTP      bool   `help:"Create a tool that is an HTTP request, for tool_dirs." name:"http" xor:"kind"`
	Dir       string `help:"The project, or with --js and --http a directory of tool_dirs." default:"." placeholder:"DIR"`
}

type toolsLintFlags struct {
	Tool     string   `arg:"" optional:"" help:"Name of a tool, or its directory (default: all)."`
	Dir      string   `help:"The project: the directory that holds tools." default:"." placeholder:"DIR"`
	ToolDirs []string `help:"Check a directory of tool_dirs instead; may be given several times." placeholder:"DIR" xor:"report" sep:"none"`
	JSON     bool     `help:"Write the report as JSON." name:"json" xor:"report"`
}

type toolsStartFlags struct{}

// Run loads the tools with the types that serve provides, without a configuration.
func (toolsStartFlags) Run(p Process) error {
	return p.printJSON(build.StartedOf(p.CheckRegistry()))
}

func (flags toolsBuildFlags) Run(ctx context.Context, p Process) error {
	now, err := build.TimeOf(p.Variable("SOURCE_DATE_EPOCH"))
	if err != nil {
		return usage(err)
	}
	report, err := build.Build(build.Options{Dir: flags.Dir, Check: flags.Check, Time: now, Commit: build.CommitOf(ctx, flags.Dir)})
	if err != nil {
		return cannotBuild(flags.Dir, err)
	}
	otherwise := "nothing was written"
	if report.Errors() == 0 {
		if err := report.Start(ctx, flags.Dir, "tools", "start"); err != nil {
			return err
		}
		otherwise = "the generated files are up to date, but the handlers have errors"
	}
	return p.showReport(report, flags.JSON, otherwise)
}

func (flags toolsLintFlags) Run(p Process) error {
	if len(flags.ToolDirs) > 0 {
		tools, warnings, err := server.CheckToolDirs(flags.ToolDirs)
		for _, w := range warnings {
			p.complain("warning: %s", w)
		}
		if err != nil {
			return usage(err)
		}
		return p.print(textutil.Count(tools, "tool") + ", no errors\n")
	}
	var names []string
	dir := flags.Dir
	if flags.Tool != "" {
		name := flags.Tool
		if strings.ContainsAny(name, `./\`) {
			var err error
			if dir, name, err = build.ToolDir(name); err != nil {
				return usage(err)
			}
		}
		names = []string{name}
	}
	report, err := build.Lint(build.Options{Dir: dir}, names...)
	if err != nil {
		return cannotBuild(dir, err)
	}
	return p.showReport(report, flags.JSON, "")
}

func cannotBuild(dir string, err error) error {
	if errors.Is(err, build.ErrNoTools) {
		return usage(fmt.Errorf("%w (%s); run it in the project, or use --dir", err, dir))
	}
	return err
}

// showReport shows the problems. If there are errors, it also shows otherwise.
func (p Process) showReport(r *build.Report, asJSON bool, otherwise string) error {
	if asJSON {
		if err := r.WriteJSON(p.Stdout); err != nil || r.Errors() == 0 {
			return err
		}
		return shown(exitFailure)
	}
	if err := r.WriteFindings(p.Stderr); err != nil {
		return shown(exitFailure) // no other place to report it
	}
	if r.Errors() > 0 {
		return errors.New(r.Summary(otherwise))
	}
	return p.print(r.Summary(otherwise) + "\n")
}

func (flags toolsNewFlags) Run(p Process) error {
	category := spec.CategoryRetrieval
	switch {
	case flags.Action:
		category = spec.CategoryAction
	case flags.Utility:
		category = spec.CategoryUtility
	}
	dir := ""
	var foreign []string // the handler's file of a tool that is not Go code
	switch {
	case flags.JS:
		foreign = []string{jstool.FileName}
	case flags.HTTP:
		foreign = []string{httptool.FileName}
	}
	files, err := build.New(flags.Dir, flags.Name, category, foreign...)
	switch {
	case errors.Is(err, build.ErrName):
		return usage(err)
	case errors.Is(err, build.ErrExists):
		return fmt.Errorf("%w; choose another name", err)
	case err != nil:
		return cannotBuild(flags.Dir, err)
	}
	if foreign != nil {
		if dir, err = filepath.Abs(flags.Dir); err != nil {
			return err
		}
	}
	return p.print(build.NextSteps(dir, flags.Name, category, files))
}

func (p Process) print(text string) error {
	_, err := fmt.Fprint(p.Stdout, text)
	return err
}

type toolsListFlags struct {
	JSON bool `help:"Write JSON." name:"json"`
}

type toolsDescribeFlags struct {
	Name string `arg:"" help:"Name or id of the tool."`
	JSON bool   `help:"Write JSON." name:"json"`
}

// registryFile parses the built-in registry without loading it, and adds the built-in tools.
func (p Process) registryFile() (registry.File, error) {
	file, err := p.BuiltIn()
	if err != nil {
		return file, err
	}
	p.warnIfOld(file.Version)
	file.Tools = append(file.Tools, registry.Builtins()...)
	slices.SortFunc(file.Tools, func(a, b registry.Entry) int { return strings.Compare(a.ToolID, b.ToolID) })
	return file, nil
}

func (flags toolsListFlags) Run(p Process) error {
	file, err := p.registryFile()
	if err != nil {
		return err
	}
	return build.WriteList(p.Stdout, file, flags.JSON)
}

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

type toolHostFlags struct{}

// Run runs tools in JavaScript for a gateway, which is the parent process.
func (toolHostFlags) Run(p Process) error { return jstool.Serve(p.Stdin, p.Stdout) }
