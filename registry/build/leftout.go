package build

import (
	"bytes"
	"go/ast"
	gobuild "go/build"
	"go/build/constraint"
	"go/parser"
	"go/token"
	"io"
	"maps"
	"slices"
	"strings"
)

// leftOut says why the go command excludes a Go file from the gateway, which is built
// without cgo; empty if it does not.
func leftOut(name string, text []byte) string {
	switch {
	case strings.HasPrefix(name, "_"), strings.HasPrefix(name, "."):
		return "its name begins with " + name[:1]
	case strings.HasSuffix(name, "_test.go"):
		return "its name ends in _test.go, so it belongs to the tests alone"
	case !built(name, []byte("package p\n")):
		return "its name ends in that of another system or processor"
	case importsC(text):
		return `it imports "C", and the gateway is built without cgo`
	case !built(name, text):
		return "its build constraint " + constraintOf(text) + " is not met"
	}
	return ""
}

// built applies the go command's own rules, for this system.
func built(name string, text []byte) bool {
	context := gobuild.Default
	context.CgoEnabled = false
	context.OpenFile = func(string) (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text)), nil }
	match, err := context.MatchFile(".", name)
	return match || err != nil // an invalid Go file is reported elsewhere
}

func importsC(text []byte) bool {
	file, err := parser.ParseFile(token.NewFileSet(), "", text, parser.ImportsOnly)
	return err == nil && slices.ContainsFunc(file.Imports, func(i *ast.ImportSpec) bool { return i.Path.Value == `"C"` })
}

// constraintOf returns the line that says when a file is built; empty without such a line.
func constraintOf(text []byte) string {
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if constraint.IsGoBuild(line) || constraint.IsPlusBuild(line) {
			return line
		}
		if line != "" && !strings.HasPrefix(line, "//") {
			break
		}
	}
	return ""
}

// leftOuts reports the Go files that are in the directory and not in the gateway. It returns
// false if handler.go is one of them.
func (l *linter) leftOuts(s *source) bool {
	for _, name := range slices.Sorted(maps.Keys(s.left)) {
		why := leftOut(name, s.left[name])
		switch {
		case strings.HasSuffix(name, "_test.go"), strings.HasPrefix(name, "_"), strings.HasPrefix(name, "."):
		case importsC(s.left[name]):
			l.add(s.file(name), 0, "", ruleHandler, "The go command leaves this file out: %s. Write it in Go.", why)
		default:
			l.warn(s.file(name), 0, "", ruleHandler, "The go command leaves this file out: %s. What it declares is not in the gateway.", why)
		}
	}
	if s.handler == nil {
		for _, files := range []map[string][]byte{s.others, s.left} {
			for _, name := range slices.Sorted(maps.Keys(files)) {
				if declares(files[name], "Execute") {
					l.add(s.file(name), 0, "", ruleHandler, "Execute stands here, and must stand in handler.go%s.", because(name, files[name]))
				}
			}
		}
		return false
	}
	if why := leftOut(handlerFile, s.handler); why != "" {
		l.add(s.file(handlerFile), 0, "", ruleHandler, "The go command leaves this file out: %s. So the tool has no handler; a handler is built everywhere.", why)
		return false
	}
	if line := constraintOf(s.handler); line != "" {
		l.warn(s.file(handlerFile), 0, "", ruleHandler, "The build constraint %s leaves this file out on other systems, where the gateway then cannot be built. Remove it.", line)
	}
	return true
}

// elsewhere says which excluded file declares a name, as the end of a sentence.
func (s *source) elsewhere(name string) string {
	for _, file := range slices.Sorted(maps.Keys(s.left)) {
		if declares(s.left[file], name) {
			return " (It is declared in " + file + ", which the go command leaves out: " + leftOut(file, s.left[file]) + ".)"
		}
	}
	return ""
}

func because(name string, text []byte) string {
	if why := leftOut(name, text); why != "" {
		return "; the go command leaves this file out: " + why
	}
	return ""
}

// declares reports whether a Go file declares a function or a type of that name.
func declares(text []byte, name string) bool {
	file, err := parser.ParseFile(token.NewFileSet(), "", text, parser.SkipObjectResolution)
	if err != nil {
		return false
	}
	switch newGoFile("", file).declared[name].(type) {
	case *ast.FuncDecl, *ast.TypeSpec:
		return true
	}
	return false
}
