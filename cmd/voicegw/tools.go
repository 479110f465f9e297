package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"voicegw/registry"
	"voicegw/registry/build"
	"voicegw/registry/spec"
)

// toolsFlags are the commands for authors of tools.
type toolsFlags struct {
	Build    toolsBuildFlags    `cmd:"" help:"Check all tools and build the registry and the Go code around their handlers."`
	New      toolsNewFlags      `cmd:"" help:"Write a new tool to start from."`
	Lint     toolsLintFlags     `cmd:"" help:"Check one tool, or all, and write nothing."`
	List     toolsListFlags     `cmd:"" help:"List the tools of this binary."`
	Describe toolsDescribeFlags `cmd:"" help:"Describe a tool of this binary."`
	Call     toolsCallFlags     `cmd:"" help:"Run one tool of this binary as a conversation would, and print its answer."`
	Start    toolsStartFlags    `cmd:"" hidden:"" help:"Load the tools of this binary, and say as JSON what is wrong: for tools build."`
}

type toolsBuildFlags struct {
	Dir   string `help:"The project: the directory that holds tools." default:"." placeholder:"DIR"`
	JSON  bool   `help:"Write the report as JSON." name:"json"`
	Check bool   `help:"Write nothing, and fail if a generated file is not what it should be."`
}

type toolsNewFlags struct {
	Name      string `arg:"" help:"Name of the tool's directory, as in weather-lookup."`
	Action    bool   `help:"Begin with a tool that does something and is approved before." xor:"category"`
	Retrieval bool   `help:"Begin with a tool that looks something up; so without any of these, too." xor:"category"`
	Utility   bool   `help:"Begin with a tool that only works on its arguments." xor:"category"`
	Dir       string `help:"The project: the directory that holds tools." default:"." placeholder:"DIR"`
}

type toolsLintFlags struct {
	Tool string `arg:"" optional:"" help:"Name of a tool, or its directory; all without."`
	Dir  string `help:"The project: the directory that holds tools." default:"." placeholder:"DIR"`
	JSON bool   `help:"Write the report as JSON." name:"json"`
}

type toolsStartFlags struct{}

// Run loads the tools with the types of what serve provides, which needs no configuration.
func (toolsStartFlags) Run(p Process) error {
	_, err := p.loadRegistry(registry.Options{Handlers: handlers(), ModeCapabilities: provided(), Settings: p.anySettings()})
	return p.printJSON(build.StartedOf(err))
}

// Run checks all tools, builds the registry, and starts the program with it once.
func (flags toolsBuildFlags) Run(ctx context.Context, p Process) error {
	now, err := build.TimeOf(variable(p.Environ, "SOURCE_DATE_EPOCH"))
	if err != nil {
		return usage(err)
	}
	report, err := build.Build(build.Options{Dir: flags.Dir, Check: flags.Check, Time: now, Commit: build.CommitOf(ctx, flags.Dir), Provided: provided()})
	if err != nil {
		return cannotBuild(flags.Dir, err)
	}
	otherwise := "nothing was written"
	if report.Errors() == 0 {
		if err := report.Start(ctx, flags.Dir, "tools", "start"); err != nil {
			return err
		}
		otherwise = "what was generated is as it should be, and the handlers are not"
	}
	return p.showReport(report, flags.JSON, otherwise)
}

// Run checks one tool, or all.
func (flags toolsLintFlags) Run(p Process) error {
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
	report, err := build.Lint(build.Options{Dir: dir, Provided: provided()}, names...)
	if err != nil {
		return cannotBuild(dir, err)
	}
	return p.showReport(report, flags.JSON, "")
}

// cannotBuild returns why the tools could not be read.
func cannotBuild(dir string, err error) error {
	if errors.Is(err, build.ErrNoTools) {
		return usage(fmt.Errorf("%w (%s); run it in the project, or name the project with --dir", err, dir))
	}
	return err
}

// showReport shows the problems that were found. If there are errors, it also says otherwise.
func (p Process) showReport(r *build.Report, asJSON bool, otherwise string) error {
	if asJSON {
		if err := r.WriteJSON(p.Stdout); err != nil || r.Errors() == 0 {
			return err
		}
		return told(exitFailure)
	}
	if err := r.WriteFindings(p.Stderr); err != nil {
		return told(exitFailure) // there is no other place to report it
	}
	if r.Errors() > 0 {
		return errors.New(r.Summary(otherwise))
	}
	return p.print(r.Summary(otherwise) + "\n")
}

// Run writes a new tool.
func (flags toolsNewFlags) Run(p Process) error {
	category := spec.CategoryRetrieval
	switch {
	case flags.Action:
		category = spec.CategoryAction
	case flags.Utility:
		category = spec.CategoryUtility
	}
	files, err := build.New(flags.Dir, flags.Name, category)
	switch {
	case errors.Is(err, build.ErrName):
		return usage(err)
	case errors.Is(err, build.ErrExists):
		return fmt.Errorf("%w; choose another name", err)
	case err != nil:
		return cannotBuild(flags.Dir, err)
	}
	return p.print(build.NextSteps(flags.Name, category, files))
}

// print writes the requested output.
func (p Process) print(text string) error {
	_, err := fmt.Fprint(p.Stdout, text)
	return err
}
