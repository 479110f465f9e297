// Package build is the author's side of the tools: it checks the directories of
// tools/, makes registry/tool_registry.json of them and the Go code that binds
// their handlers, and creates new tools.
//
// A tool is a directory tools/<dash-name>/ with schema.json, guide.md and
// handler.go. [Build] reads all of them and reports everything that is wrong at once
// as [Finding] values with file, line, JSON path and a link into docs/tools-reference.md. Only if
// nothing is wrong it writes three kinds of files: the registry, an Args struct for
// each tool (zz_args.go), and the table of handlers (tools/zz_tools.go). [New]
// writes a tool to start from.
//
// It reads regular files below the tool directories and go.mod, nothing else: it follows
// no symbolic link, opens no reference of a schema, and runs no program.
// It does not import the tools, so that it works even if they do not compile.
package build
