package build

import (
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"voicegw/registry"
	"voicegw/registry/spec"
)

// needs checks the struct of capabilities, and whether something provides each of them.
func (l *linter) needs(fset *token.FileSet, s *source, files []goFile, declared *spec.Spec) {
	for _, f := range files {
		decl, ok := f.declared["Needs"].(*ast.TypeSpec)
		if !ok {
			continue
		}
		fields, ok := decl.Type.(*ast.StructType)
		if !ok || decl.Assign.IsValid() || decl.TypeParams != nil {
			l.add(f.name, fset.Position(decl.Pos()).Line, "", ruleHandler,
				"Needs must be a struct of its own; its exported fields are the capabilities that the handler gets.")
			return
		}
		own := false
		for _, field := range fields.Fields.List {
			own = own || len(declared.Settings) > 0 && types.ExprString(field.Type) == settingsType
			l.need(fset, f, files, field, declared)
		}
		if len(declared.Settings) > 0 && !own {
			l.warn(f.name, fset.Position(decl.Pos()).Line, "", ruleHandler, "schema.json declares settings, and the handler does not get them: Needs has no field of the type %s, as in\n    %s %s", settingsType, settingsType, settingsType)
		}
		return
	}
	l.add(files[0].name, 0, "", ruleHandler, "There is no type Needs; write type Needs struct{}, with a field for each capability that the handler uses.%s", s.elsewhere("Needs"))
}

// settingsType is the generated type of a tool's own settings.
const settingsType = "Settings"

// typeName matches the name of a type, or of a pointer to it.
var typeName = regexp.MustCompile(`^\**[\pL_][\pL\d_.]*$`)

// need checks one field of Needs.
func (l *linter) need(fset *token.FileSet, f goFile, files []goFile, field *ast.Field, declared *spec.Spec) {
	line := fset.Position(field.Pos()).Line
	text := types.ExprString(field.Type)
	var names []string
	for _, name := range field.Names {
		names = append(names, name.Name)
	}
	if names == nil { // an embedded type gives the field its name
		names = []string{text[strings.LastIndexAny(text, "*.")+1:]}
	}
	hidden := false
	for _, name := range names {
		if !token.IsExported(name) {
			hidden = true
			l.add(f.name, line, "", ruleHandler, "The field %s of Needs begins with a small letter, so nothing can be put into it and it would be nil. Write it with a capital.", name)
		}
	}
	if hidden || text == settingsType && len(declared.Settings) > 0 {
		return
	}
	if text == settingsType && !slices.ContainsFunc(files, func(f goFile) bool { return f.declared[settingsType] != nil }) {
		l.add(f.name, line, "", ruleHandler, "The type Settings is generated from \"settings\" of schema.json, which declares none. Declare them there, or take the field out of Needs.")
		return
	}
	if l.provided == nil {
		return
	}
	modes := declared.AllowedModes
	wanted, mayBeMissing := l.optional(f, field.Type)
	if !typeName.MatchString(types.ExprString(wanted)) {
		text = "a type without a name"
	}
	named, local := l.resolve(f, files, wanted, 0)
	if local {
		return // an interface of the tool's own: matched only when the program starts
	}
	var without []string
	for _, mode := range modes {
		if !l.provides(mode, named) {
			without = append(without, string(mode))
		}
	}
	somewhere := slices.ContainsFunc(slices.Collect(maps.Keys(l.provided)), func(mode spec.Mode) bool { return l.provides(mode, named) })
	switch {
	case len(without) == 0, somewhere && mayBeMissing:
	case somewhere:
		l.add(f.name, line, "", ruleHandler, "Nobody provides %s (%s) in %s mode. Take the mode out of allowedModes, or the field out of Needs.", names[0], text, strings.Join(without, " and "))
	default:
		l.add(f.name, line, "", ruleHandler, "Nobody provides %s (%s). A field of Needs has one of the types %s.", names[0], text, strings.Join(l.providedNames(), ", "))
	}
}

// optional returns the type that a registry.Optional is of, and true; any other type as it is.
func (l *linter) optional(f goFile, e ast.Expr) (ast.Expr, bool) {
	of, ok := e.(*ast.IndexExpr)
	beside := l.nameOf(reflect.TypeFor[registry.Snapshot]()) // of the same package
	if !ok || f.qualified(of.X) != strings.TrimSuffix(beside, "Snapshot")+"Optional" {
		return e, false
	}
	return of.Index, true
}

// provides reports whether a field of Needs of that type is filled in a mode.
func (l *linter) provides(mode spec.Mode, named string) bool {
	return slices.ContainsFunc(l.provided[mode], func(t reflect.Type) bool { return l.nameOf(t) == named })
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
	ours := path.Dir(reflect.TypeFor[registry.Snapshot]().PkgPath())
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
	case *ast.InterfaceType:
		return "", len(e.Methods.List) > 0
	case *ast.Ident:
		for _, other := range files {
			spec, ok := other.declared[e.Name].(*ast.TypeSpec)
			if !ok || depth > 10 {
				continue
			}
			_, isInterface := spec.Type.(*ast.InterfaceType)
			_, isForeign := spec.Type.(*ast.SelectorExpr)
			if isInterface || isForeign || spec.Assign.IsValid() {
				name, local = l.resolve(other, files, spec.Type, depth+1)
				// A type declared from another is a different type, unless both are interfaces, which
				// cannot be determined here.
				return name, local || !spec.Assign.IsValid() && isForeign
			}
		}
		return "", false
	}
	return f.qualified(e), false
}
