package build

import (
	"go/ast"
	"go/token"
	"path"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"voicegw/registry"
)

// needs checks the struct of capabilities, and whether something provides each of them.
func (l *linter) needs(fset *token.FileSet, s *source, files []goFile, modes []registry.Mode) {
	for _, f := range files {
		spec := typeSpec(f.tree, "Needs")
		if spec == nil {
			continue
		}
		fields, ok := spec.Type.(*ast.StructType)
		if !ok || spec.Assign.IsValid() || spec.TypeParams != nil {
			l.add(f.name, fset.Position(spec.Pos()).Line, "", ruleHandler,
				"Needs must be a struct of its own; its exported fields are the capabilities that the handler gets.")
			return
		}
		for _, field := range fields.Fields.List {
			l.need(fset, f, files, field, modes)
		}
		return
	}
	l.add(files[0].name, 0, "", ruleHandler, "There is no type Needs; write type Needs struct{}, with a field for each capability that the handler uses.%s", s.elsewhere("Needs"))
}

// need checks one field of Needs.
func (l *linter) need(fset *token.FileSet, f goFile, files []goFile, field *ast.Field, modes []registry.Mode) {
	line := fset.Position(field.Pos()).Line
	names := []string{embeddedName(field.Type)}
	if len(field.Names) > 0 {
		names = nil
		for _, name := range field.Names {
			names = append(names, name.Name)
		}
	}
	hidden := false
	for _, name := range names {
		if !token.IsExported(name) {
			hidden = true
			l.add(f.name, line, "", ruleHandler, "The field %s of Needs begins with a small letter, so nothing can be put into it and it would be nil. Write it with a capital.", name)
		}
	}
	if hidden || l.provided == nil {
		return
	}
	text := typeText(field.Type)
	named, local := l.resolve(f, files, field.Type, 0)
	if local {
		return // an interface of the tool's own: matched only when the program starts
	}
	var without []string
	for _, mode := range modes {
		if !slices.ContainsFunc(l.provided[mode], func(t reflect.Type) bool { return l.nameOf(t) == named }) {
			without = append(without, string(mode))
		}
	}
	switch {
	case len(without) == 0:
	case len(without) < len(modes) || l.providedSomewhere(named):
		l.add(f.name, line, "", ruleHandler, "Nobody provides %s (%s) in %s mode. Take the mode out of allowedModes, or the field out of Needs.", names[0], text, strings.Join(without, " and "))
	default:
		l.add(f.name, line, "", ruleHandler, "Nobody provides %s (%s). A field of Needs has one of the types %s.", names[0], text, strings.Join(l.providedNames(), ", "))
	}
}

func (l *linter) providedSomewhere(named string) bool {
	for _, types := range l.provided {
		if slices.ContainsFunc(types, func(t reflect.Type) bool { return l.nameOf(t) == named }) {
			return true
		}
	}
	return false
}

// providedNames returns the types that Needs may name, as a Go file writes them.
func (l *linter) providedNames() []string {
	var all []string
	for _, types := range l.provided {
		for _, t := range types {
			all = append(all, t.String())
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// nameOf returns a type with the path of its package, in the project's module.
func (l *linter) nameOf(t reflect.Type) string {
	star := ""
	if t.Kind() == reflect.Pointer {
		star, t = "*", t.Elem()
	}
	ours := path.Dir(reflect.TypeFor[registry.Spec]().PkgPath())
	pkg := t.PkgPath()
	if rest, ok := strings.CutPrefix(pkg, ours+"/"); ok {
		pkg = l.module + "/" + rest
	}
	return star + pkg + "." + t.Name()
}

// resolve returns the name of a type as nameOf does, after following the tool's own aliases.
// local says that it is an interface of the tool's own, with methods.
func (l *linter) resolve(f goFile, files []goFile, e ast.Expr, depth int) (name string, local bool) {
	switch e := e.(type) {
	case *ast.ParenExpr:
		return l.resolve(f, files, e.X, depth)
	case *ast.StarExpr:
		name, _ = l.resolve(f, files, e.X, depth)
		return "*" + name, false
	case *ast.SelectorExpr:
		pkg, ok := e.X.(*ast.Ident)
		if !ok {
			return "", false
		}
		return importedAs(f.tree, pkg.Name) + "." + e.Sel.Name, false
	case *ast.InterfaceType:
		return "", len(e.Methods.List) > 0
	case *ast.Ident:
		for _, other := range files {
			spec := typeSpec(other.tree, e.Name)
			if spec == nil || depth > 10 {
				continue
			}
			if _, isInterface := spec.Type.(*ast.InterfaceType); isInterface || spec.Assign.IsValid() || isSelector(spec.Type) {
				name, local = l.resolve(other, files, spec.Type, depth+1)
				// A type declared from another is a different type, unless both are interfaces, which
				// cannot be determined here.
				return name, local || !spec.Assign.IsValid() && isSelector(spec.Type)
			}
		}
	}
	return "", false
}

func isSelector(e ast.Expr) bool { _, ok := e.(*ast.SelectorExpr); return ok }

// importedAs returns the path of the package that a file calls name, or "".
func importedAs(f *ast.File, name string) string {
	for _, i := range f.Imports {
		p, err := strconv.Unquote(i.Path.Value)
		if err != nil {
			continue
		}
		if i.Name != nil && i.Name.Name == name || i.Name == nil && lastElement(p) == name {
			return p
		}
	}
	return ""
}

// embeddedName returns the field name that follows from an embedded type.
func embeddedName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return embeddedName(e.X)
	case *ast.SelectorExpr:
		return e.Sel.Name
	case *ast.Ident:
		return e.Name
	}
	return "_"
}

// typeText writes a type, for a message.
func typeText(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return "*" + typeText(e.X)
	case *ast.SelectorExpr:
		return typeText(e.X) + "." + e.Sel.Name
	case *ast.Ident:
		return e.Name
	}
	return "a type without a name"
}
