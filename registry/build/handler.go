package build

import (
	"bytes"
	"errors"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"maps"
	"slices"

	"voicegw/registry/spec"
)

const (
	signature     = "func Execute(ctx context.Context, call registry.Call[Args, Needs]) (registry.Result, error)"
	workSignature = "func Work(ctx context.Context, work registry.Work[Payload, Needs]) (registry.Result, error)"
)

type functions struct{ check, work bool }

// handler checks the Go code of a tool without compiling it: its syntax, its package and which functions it has.
// [Report.Start] compiles it and finds wrong signatures and needs that nothing provides.
func (l *linter) handler(s *source, declared *spec.Spec) (has functions) {
	if s.handler == nil {
		return has
	}
	fset := token.NewFileSet()
	main, ok := l.parse(fset, s.file(handlerFile), s.handler)
	if !ok {
		return has
	}
	if !declares(main, "Execute") {
		l.add(s.file(handlerFile), 0, "", ruleHandler, "There is no function Execute; write\n    %s", signature)
	}
	if at := bytes.Index(s.handler, []byte(scaffolded)); at >= 0 {
		l.warn(s.file(handlerFile), lineAt(s.handler, at), "", ruleHandler,
			"The handler is still the one that voicegw tools new has written: it does nothing yet. Write what the tool does.")
	}
	files := []*ast.File{main}
	for _, name := range slices.Sorted(maps.Keys(s.others)) {
		if f, ok := l.parse(fset, s.file(name), s.others[name]); ok {
			files = append(files, f)
		}
	}
	for _, f := range files {
		if want := packageName(s.name); s.named && f.Name.Name != want {
			at := fset.Position(f.Name.Pos())
			l.add(at.Filename, at.Line, "", ruleHandler,
				"The package is %s and must be %s: the directory's name without dashes.", f.Name.Name, want)
		}
		has.check = has.check || declares(f, "Check")
		has.work = has.work || declares(f, "Work")
	}
	switch {
	case has.work && declared.Job == nil:
		l.add(s.file(handlerFile), 0, "", ruleHandler,
			"There is a function Work, and schema.json declares no \"job\": add it, or give the function another name.")
	case !has.work && declared.Job != nil:
		l.add(s.file(handlerFile), 0, "", ruleHandler,
			"schema.json declares a \"job\", and there is no function Work; write\n    %s", workSignature)
	}
	return has
}

func (l *linter) parse(fset *token.FileSet, name string, text []byte) (*ast.File, bool) {
	tree, err := parser.ParseFile(fset, name, text, parser.SkipObjectResolution)
	if err == nil {
		return tree, true
	}
	var list scanner.ErrorList
	if !errors.As(err, &list) {
		l.add(name, 0, "", ruleHandler, "The file is not valid Go: %v.", err)
		return nil, false
	}
	for _, e := range list {
		l.add(name, e.Pos.Line, "", ruleHandler, "The file is not valid Go: %s.", e.Msg)
	}
	return nil, false
}

func declares(file *ast.File, name string) bool {
	return slices.ContainsFunc(file.Decls, func(d ast.Decl) bool {
		f, ok := d.(*ast.FuncDecl)
		return ok && f.Recv == nil && f.Name.Name == name
	})
}
