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
	"strconv"

	"voicegw/registry"
)

const (
	signature      = "func Execute(ctx context.Context, call registry.Call[Args, Needs]) (registry.Result, error)"
	checkSignature = "func Check(ctx context.Context, call registry.Call[Args, Needs]) error"
)

// goFile is a parsed file of a tool.
type goFile struct {
	name string // in the project
	tree *ast.File
}

// handler checks the Go code of a tool as far as possible without compiling: the package,
// Execute with its signature, and Needs. It returns whether there is a function Check.
func (l *linter) handler(s *source, modes []registry.Mode) (checked bool) {
	if !l.leftOuts(s) {
		return false
	}
	fset := token.NewFileSet()
	main, ok := l.parse(fset, s.file(handlerFile), s.handler)
	if !ok {
		return false
	}
	files := []goFile{main}
	for _, name := range slices.Sorted(maps.Keys(s.others)) {
		if f, ok := l.parse(fset, s.file(name), s.others[name]); ok {
			files = append(files, f)
		}
	}
	for _, f := range files {
		if want := packageName(s.name); s.named && f.tree.Name.Name != want {
			l.add(f.name, fset.Position(f.tree.Name.Pos()).Line, "", ruleHandler,
				"The package is %s and must be %s: the directory's name without dashes.", f.tree.Name.Name, want)
		}
	}
	if at := bytes.Index(s.handler, []byte(scaffolded)); at >= 0 {
		l.warn(s.file(handlerFile), lineAt(s.handler, at), "", ruleHandler, "The handler is still the one that voicegw tools new has written: it finds nothing. Write what the tool does.")
	}
	l.execute(fset, s, main)
	l.needs(fset, s, files, modes)
	l.noArgs(fset, files)
	return l.checks(fset, files)
}

// checks looks for the optional function that says what is wrong with a call before a person
// is asked about it.
func (l *linter) checks(fset *token.FileSet, files []goFile) bool {
	for _, f := range files {
		for _, d := range f.tree.Decls {
			if line := declaredOtherwise(fset, d, "Check"); line > 0 {
				l.add(f.name, line, "", ruleHandler, "Check is not a function, so it is never called; it must be\n    %s\nor have another name.", checkSignature)
			}
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Name.Name != "Check" || fn.Recv != nil {
				continue
			}
			results := typesOf(fn.Type.Results)
			if !l.takesCall(f.tree, fn) || len(results) != 1 || !isIdent(results[0], "error") {
				l.add(f.name, fset.Position(fn.Pos()).Line, "", ruleHandler, "Check has the wrong signature; it must be\n    %s\nor have another name.", checkSignature)
			}
			return true
		}
	}
	return false
}

// declaredOtherwise returns the line at which d declares a variable, a constant or a type of
// that name; 0 if it does not.
func declaredOtherwise(fset *token.FileSet, d ast.Decl, name string) int {
	gen, ok := d.(*ast.GenDecl)
	if !ok {
		return 0
	}
	for _, spec := range gen.Specs {
		var names []*ast.Ident
		switch spec := spec.(type) {
		case *ast.ValueSpec:
			names = spec.Names
		case *ast.TypeSpec:
			names = []*ast.Ident{spec.Name}
		}
		for _, n := range names {
			if n.Name == name {
				return fset.Position(n.Pos()).Line
			}
		}
	}
	return 0
}

func (l *linter) parse(fset *token.FileSet, name string, text []byte) (goFile, bool) {
	tree, err := parser.ParseFile(fset, name, text, parser.SkipObjectResolution)
	if err == nil {
		return goFile{name, tree}, true
	}
	var list scanner.ErrorList
	if !errors.As(err, &list) {
		l.add(name, 0, "", ruleHandler, "The file is not valid Go: %v.", err)
		return goFile{}, false
	}
	for _, e := range list {
		l.add(name, e.Pos.Line, "", ruleHandler, "The file is not valid Go: %s.", e.Msg)
	}
	return goFile{}, false
}

// execute looks for the function that runs the tool.
func (l *linter) execute(fset *token.FileSet, s *source, f goFile) {
	for _, d := range f.tree.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Name.Name != "Execute" || fn.Recv != nil {
			continue
		}
		if !l.signed(f.tree, fn) {
			l.add(f.name, fset.Position(fn.Pos()).Line, "", ruleHandler, "Execute has the wrong signature; it must be\n    %s", signature)
		}
		return
	}
	l.add(f.name, 0, "", ruleHandler, "There is no function Execute; write\n    %s%s", signature, s.elsewhere("Execute"))
}

// signed checks the signature of Execute.
func (l *linter) signed(f *ast.File, fn *ast.FuncDecl) bool {
	results := typesOf(fn.Type.Results)
	return l.takesCall(f, fn) && len(results) == 2 &&
		isFrom(f, results[0], l.module+"/registry", "Result") && isIdent(results[1], "error")
}

// takesCall reports whether a function takes a context and a call of the tool.
func (l *linter) takesCall(f *ast.File, fn *ast.FuncDecl) bool {
	params := typesOf(fn.Type.Params)
	if fn.Type.TypeParams != nil || len(params) != 2 {
		return false
	}
	call, ok := params[1].(*ast.IndexListExpr)
	return ok && isFrom(f, params[0], "context", "Context") &&
		isFrom(f, call.X, l.module+"/registry", "Call") &&
		len(call.Indices) == 2 && isIdent(call.Indices[0], "Args") && isIdent(call.Indices[1], "Needs")
}

// typesOf lists the type of each parameter or result.
func typesOf(list *ast.FieldList) []ast.Expr {
	var all []ast.Expr
	if list == nil {
		return nil
	}
	for _, f := range list.List {
		for range max(1, len(f.Names)) {
			all = append(all, f.Type)
		}
	}
	return all
}

func isIdent(e ast.Expr, name string) bool {
	id, ok := e.(*ast.Ident)
	return ok && id.Name == name
}

// isFrom reports whether e is the name of that package, as the file imports it.
func isFrom(f *ast.File, e ast.Expr, importPath, name string) bool {
	sel, ok := e.(*ast.SelectorExpr)
	if !ok || sel.Sel.Name != name {
		return false
	}
	pkg, ok := sel.X.(*ast.Ident)
	if !ok {
		return false
	}
	for _, i := range f.Imports {
		p, err := strconv.Unquote(i.Path.Value)
		if err != nil || p != importPath {
			continue
		}
		local := lastElement(p)
		if i.Name != nil {
			local = i.Name.Name
		}
		if local == pkg.Name {
			return true
		}
	}
	return false
}

// noArgs refuses a hand-written type Args.
func (l *linter) noArgs(fset *token.FileSet, files []goFile) {
	for _, f := range files {
		if spec := typeSpec(f.tree, "Args"); spec != nil {
			l.add(f.name, fset.Position(spec.Pos()).Line, "", ruleHandler,
				"Args is declared by hand. Remove it: it is generated from schema.json into %s.", ArgsFile)
		}
	}
}

func typeSpec(f *ast.File, name string) *ast.TypeSpec {
	for _, d := range f.Decls {
		gen, ok := d.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, s := range gen.Specs {
			if t, ok := s.(*ast.TypeSpec); ok && t.Name.Name == name {
				return t
			}
		}
	}
	return nil
}
