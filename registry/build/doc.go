// Package build is for authors of tools: it checks the directories in tools/, generates registry/tool_registry.json
// and the Go code that binds the handlers, and creates new tools.
//
// A tool is a directory tools/<dash-name>/ with schema.json, guide.md and handler.go. [Build] reports all problems as
// [Finding]s with file, line, JSON path and a link into docs/tools-reference.md. Without errors it writes the
// registry, an Args struct for each tool (zz_args.go), and the table of handlers (tools/zz_tools.go). [New] creates a
// tool from a template.
//
// It reads only regular files in the tool directories and go.mod: it follows no symbolic links and no references of
// schemas, and runs no programs. It doesn't import the tools, so it works even if they don't compile.
package build
