package build

import (
	"bytes"
	"errors"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"go/types"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"voicegw/registry/spec"
)

const (
	signature      = "func Execute(ctx context.Context, call registry.Call[Args, Needs]) (registry.Result, error)"
	workSignature  = "func Work(ctx context.Context, work registry.Work[Payload, Needs]) (registry.Result, error)"
	checkSignature = "func Check(ctx context.Context, call registry.Call[Args, Needs]) error"
)

// goFile is a parsed file of a tool.
type goFile struct {
	name string // in the project
	tree *ast.File
	// declared holds what the file declares at its top by name: *ast.FuncDecl, *ast.TypeSpec or
	// *ast.ValueSpec.
	declared map[string]ast.Node
}

func newGoFile(name string, tree *ast.File) goFile {
	f := goFile{name, tree, map[string]ast.Node{}}
	ast.Inspect(tree, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if n.Recv == nil {
				f.declared[n.Name.Name] = n
			}
			return false
		case *ast.TypeSpec:
			f.declared[n.Name.Name] = n
			return false
		case *ast.ValueSpec:
			for _, name := range n.Names {
				f.declared[name.Name] = n
			}
			return false
		}
		return true
	})
	return f
}

// handler checks the Go code of a tool as far as possible without compiling: the package,
// Execute with its signature, and Needs. It returns which functions there are beside Execute.
func (l *linter) handler(s *source, declared *spec.Spec) (has functions) {
	if !l.leftOuts(s) {
		return has
	}
	fset := token.NewFileSet()
	main, ok := l.parse(fset, s.file(handlerFile), s.handler)
	if !ok {
		return has
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
		l.warn(s.file(handlerFile), lineAt(s.handler, at), "", ruleHandler, "The handler is still the one that voicegw tools new has written: it does nothing yet. Write what the tool does.")
	}
	l.execute(fset, s, main)
	l.needs(fset, s, files, declared)
	l.byHand(fset, files, declared)
	return functions{check: l.checks(fset, files), work: l.works(fset, s, files, declared)}
}

// functions are those that a handler may have beside Execute.
type functions struct{ check, work bool }

// works looks for the function that does the tool's long work, and reports whether there is one.
func (l *linter) works(fset *token.FileSet, s *source, files []goFile, declared *spec.Spec) bool {
	found := false
	for _, f := range files {
		switch work := f.declared["Work"].(type) {
		case nil:
		case *ast.FuncDecl:
			found = true
			line := fset.Position(work.Pos()).Line
			switch {
			case declared.Job == nil:
				l.add(f.name, line, "", ruleHandler, "There is a function Work, and schema.json declares no \"job\": add it, or give the function another name.")
			case work.Type.TypeParams != nil || !slices.Equal(f.typesOf(work.Type.Results), []string{l.module + "/registry.Result", "error"}) ||
				!slices.Equal(f.typesOf(work.Type.Params), []string{"context.Context", l.module + "/registry.Work[Payload, Needs]"}):
				l.add(f.name, line, "", ruleHandler, "Work has the wrong signature; it must be\n    %s\nwith a type Payload of the tool's own.", workSignature)
			}
		default:
			found = true
			l.add(f.name, fset.Position(work.Pos()).Line, "", ruleHandler, "Work is not a function, so nothing does the tool's long work; it must be\n    %s\nor have another name.", workSignature)
		}
	}
	if !found && declared.Job != nil {
		l.add(s.file(handlerFile), 0, "", ruleHandler, "schema.json declares a \"job\", and there is no function Work; write\n    %s", workSignature)
	}
	return found
}

// checks looks for the optional function that says what is wrong with a call before a person
// is asked about it.
func (l *linter) checks(fset *token.FileSet, files []goFile) bool {
	found := false
	for _, f := range files {
		switch check := f.declared["Check"].(type) {
		case nil:
		case *ast.FuncDecl:
			if !l.takesCall(f, check, "error") {
				l.add(f.name, fset.Position(check.Pos()).Line, "", ruleHandler, "Check has the wrong signature; it must be\n    %s\nor have another name.", checkSignature)
			}
			found = true
		default:
			l.add(f.name, fset.Position(check.Pos()).Line, "", ruleHandler, "Check is not a function, so it is never called; it must be\n    %s\nor have another name.", checkSignature)
		}
	}
	return found
}

func (l *linter) parse(fset *token.FileSet, name string, text []byte) (goFile, bool) {
	tree, err := parser.ParseFile(fset, name, text, parser.SkipObjectResolution)
	if err == nil {
		return newGoFile(name, tree), true
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
	fn, ok := f.declared["Execute"].(*ast.FuncDecl)
	switch {
	case !ok:
		l.add(f.name, 0, "", ruleHandler, "There is no function Execute; write\n    %s%s", signature, s.elsewhere("Execute"))
	case !l.takesCall(f, fn, l.module+"/registry.Result", "error"):
		l.add(f.name, fset.Position(fn.Pos()).Line, "", ruleHandler, "Execute has the wrong signature; it must be\n    %s", signature)
	}
}

// takesCall reports whether a function takes a context and a call of the tool, and has results
// of these types.
func (l *linter) takesCall(f goFile, fn *ast.FuncDecl, results ...string) bool {
	return fn.Type.TypeParams == nil && slices.Equal(f.typesOf(fn.Type.Results), results) &&
		slices.Equal(f.typesOf(fn.Type.Params), []string{"context.Context", l.module + "/registry.Call[Args, Needs]"})
}

// typesOf writes the type of each parameter or result as qualified does.
func (f goFile) typesOf(list *ast.FieldList) []string {
	var all []string
	if list == nil {
		return nil
	}
	for _, field := range list.List {
		for range max(1, len(field.Names)) {
			all = append(all, f.qualified(field.Type))
		}
	}
	return all
}

// qualified writes a type with the path of its package, as in "net/http.Client".
func (f goFile) qualified(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.IndexListExpr:
		list := make([]string, len(e.Indices))
		for i, index := range e.Indices {
			list[i] = f.qualified(index)
		}
		return f.qualified(e.X) + "[" + strings.Join(list, ", ") + "]"
	case *ast.SelectorExpr:
		if pkg, ok := e.X.(*ast.Ident); ok {
			return f.importedAs(pkg.Name) + "." + e.Sel.Name
		}
	}
	return types.ExprString(e)
}

// importedAs returns the path of the package that the file calls name, or "".
func (f goFile) importedAs(name string) (found string) {
	for _, i := range f.tree.Imports {
		p, err := strconv.Unquote(i.Path.Value)
		if err == nil && (i.Name != nil && i.Name.Name == name || i.Name == nil && path.Base(p) == name) {
			found = p
		}
	}
	return found
}

// byHand refuses types of the author's own with names of generated ones.
func (l *linter) byHand(fset *token.FileSet, files []goFile, declared *spec.Spec) {
	names := []string{"Args"}
	if len(declared.Output) > 0 {
		names = append(names, outputType)
	}
	if len(declared.Settings) > 0 {
		names = append(names, settingsType)
	}
	for _, f := range files {
		for _, name := range names {
			if decl, ok := f.declared[name].(*ast.TypeSpec); ok {
				l.add(f.name, fset.Position(decl.Pos()).Line, "", ruleHandler,
					"%s is declared by hand. Remove it: it is generated from schema.json into %s.", name, ArgsFile)
			}
		}
	}
}
