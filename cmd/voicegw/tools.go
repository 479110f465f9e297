package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/alecthomas/kong"

	"voicegw/registry/build"
)

// toolsFlags are the commands for authors of tools.
type toolsFlags struct {
	Build    toolsBuildFlags    `cmd:"" help:"Check all tools and build the registry and the Go code around their handlers."`
	New      toolsNewFlags      `cmd:"" help:"Write a new tool to start from."`
	Lint     toolsLintFlags     `cmd:"" help:"Check one tool, or all, and write nothing."`
	List     toolsListFlags     `cmd:"" help:"List the tools of this binary."`
	Describe toolsDescribeFlags `cmd:"" help:"Describe a tool of this binary."`
	Call     toolsCallFlags     `cmd:"" help:"Run one tool of this binary as a conversation would, and print its answer."`
}

type toolsBuildFlags struct {
	Dir   string `help:"The project: the directory that holds tools." default:"." placeholder:"DIR"`
	JSON  bool   `help:"Write the report as JSON." name:"json"`
	Check bool   `help:"Write nothing, and fail if a generated file is not what it should be."`
}

type toolsNewFlags struct {
	Name string `arg:"" help:"Name of the tool's directory, as in weather-lookup."`
	Dir  string `help:"The project: the directory that holds tools." default:"." placeholder:"DIR"`
}

type toolsLintFlags struct {
	Tool string `arg:"" optional:"" help:"Name of a tool, or its directory; all without."`
	Dir  string `help:"The project: the directory that holds tools." default:"." placeholder:"DIR"`
	JSON bool   `help:"Write the report as JSON." name:"json"`
}

// tools runs a command for authors.
func (p Process) tools(ctx context.Context, flags toolsFlags, parsed *kong.Context) int {
	name, _, _ := strings.Cut(strings.TrimPrefix(parsed.Command(), "tools "), " ")
	switch name {
	case "build":
		return p.toolsBuild(ctx, flags.Build)
	case "new":
		return p.toolsNew(flags.New)
	case "lint":
		return p.toolsLint(flags.Lint)
	case "list":
		return p.toolsList(flags.List)
	case "describe":
		return p.toolsDescribe(flags.Describe)
	case "call":
		return p.toolsCall(ctx, flags.Call, parsed)
	default:
		p.complain("the command %s is not wired", parsed.Command())
		return exitFailure
	}
}

func (p Process) toolsBuild(ctx context.Context, flags toolsBuildFlags) int {
	now, err := build.TimeOf(variable(p.Environ, "SOURCE_DATE_EPOCH"))
	if err != nil {
		p.complain("%v", err)
		return exitUsage
	}
	report, err := build.Build(build.Options{Dir: flags.Dir, Check: flags.Check, Time: now, Commit: build.CommitOf(ctx, flags.Dir), Provided: provided()})
	if err != nil {
		return p.cannotBuild(flags.Dir, err)
	}
	return p.showReport(report, flags.JSON, "nothing was written")
}

func (p Process) toolsLint(flags toolsLintFlags) int {
	var names []string
	dir := flags.Dir
	if flags.Tool != "" {
		name := flags.Tool
		if strings.ContainsAny(name, `./\`) {
			var err error
			if dir, name, err = build.ToolDir(name); err != nil {
				p.complain("%v", err)
				return exitUsage
			}
		}
		names = []string{name}
	}
	report, err := build.Lint(build.Options{Dir: dir, Provided: provided()}, names...)
	if err != nil {
		return p.cannotBuild(dir, err)
	}
	return p.showReport(report, flags.JSON, "")
}

// cannotBuild reports why the tools could not be read.
func (p Process) cannotBuild(dir string, err error) int {
	if errors.Is(err, build.ErrNoTools) {
		p.complain("%v (%s); run it in the project, or name the project with --dir", err, dir)
		return exitUsage
	}
	p.complain("%v", err)
	return exitFailure
}

// showReport shows the problems that were found. If there are errors, it also says otherwise.
func (p Process) showReport(r *build.Report, asJSON bool, otherwise string) int {
	code := exitOK
	if r.Errors() > 0 {
		code = exitFailure
	}
	if asJSON {
		if err := r.WriteJSON(p.Stdout); err != nil {
			p.complain("%v", err)
			return exitFailure
		}
		return code
	}
	if err := r.WriteFindings(p.Stderr); err != nil {
		return exitFailure // there is no other place to report it
	}
	if code != exitOK {
		p.complain("%s", r.Summary(otherwise))
		return code
	}
	return p.print(r.Summary(otherwise) + "\n")
}

func (p Process) toolsNew(flags toolsNewFlags) int {
	files, err := build.New(flags.Dir, flags.Name)
	switch {
	case errors.Is(err, build.ErrName):
		p.complain("%v", err)
		return exitUsage
	case errors.Is(err, build.ErrExists):
		p.complain("%v; choose another name", err)
		return exitFailure
	case err != nil:
		return p.cannotBuild(flags.Dir, err)
	}
	return p.print(build.NextSteps(flags.Name, files))
}

// print writes the requested output.
func (p Process) print(text string) int {
	_, err := fmt.Fprint(p.Stdout, text)
	return p.shown(err)
}
