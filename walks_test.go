package voicegw_test

import (
	"go/ast"
	"go/token"
	"go/types"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/tools/go/packages"
)

// The limits of the walk of a tool call: a reader must open this much to follow it.
const (
	maxCallFunctions = 40
	maxCallFiles     = 18
	maxCallPackages  = 7
)

// step is one line of a walk.
type step struct {
	depth          int
	file, function string
	// started: another goroutine runs the function. The caller only names it.
	started bool
	// through is the name of the function value or parameter through which the caller reaches the function.
	through string
}

var stepLine = regexp.MustCompile("^((?:  )*)- `([a-z0-9_/-]+\\.go)` `([A-Za-z0-9_.]+)`(?: \\((on another goroutine|through `([A-Za-z0-9_]+)`)\\))?: \\S")

// TestWalks compares the walks of ARCHITECTURE.md with the code. Each function must be declared in its file. The
// caller of a step is the nearest step above it that is indented less: its body must call the function, directly or
// through an interface that the function's receiver implements. A step marked "on another goroutine" need only be
// named by its caller. For a step marked "through x", the caller must use the function value x, and some package of
// the walks must use the function as a value.
func TestWalks(t *testing.T) {
	for _, title := range []string{"A microphone frame", "A tool call"} {
		t.Run(title, func(t *testing.T) {
			var callers []step
			for _, s := range readWalk(t, title) {
				callee, _ := findFunction(t, s)
				if callee == nil {
					continue
				}
				if s.depth > len(callers) {
					t.Errorf("%s is indented too far", s.function)
					continue
				}
				callers = callers[:s.depth]
				if s.depth > 0 && !reaches(t, callers[s.depth-1], s, callee) {
					t.Errorf("%s does not call %s", callers[s.depth-1].function, s.function)
				}
				callers = append(callers, s)
			}
		})
	}
}

// reaches reports whether the body of caller calls callee, or names it in the way that the mark of s says.
func reaches(t *testing.T, caller, s step, callee *types.Func) bool {
	_, decl := findFunction(t, caller)
	if decl == nil {
		return false
	}
	info := packageOf(t, caller.file).TypesInfo
	found := false
	ast.Inspect(decl.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Ident:
			switch used := info.Uses[n].(type) {
			case *types.Func:
				found = found || s.started && used.Origin().FullName() == callee.FullName()
			case *types.Var:
				_, isFunc := used.Type().Underlying().(*types.Signature)
				found = found || s.through == n.Name && isFunc && usedAsValue(t, callee)
			}
		case *ast.CallExpr:
			if s.started || s.through != "" {
				break
			}
			if called, ok := calledBy(info, n); ok {
				found = found || called.Origin().FullName() == callee.FullName() || implements(called, callee)
			}
		}
		return !found
	})
	return found
}

// calledBy returns the function or method that a call names; ok is false for a function value.
func calledBy(info *types.Info, call *ast.CallExpr) (f *types.Func, ok bool) {
	fun := ast.Unparen(call.Fun)
	if index, isIndex := fun.(*ast.IndexExpr); isIndex {
		fun = index.X
	}
	switch fun := fun.(type) {
	case *ast.Ident:
		f, ok = info.Uses[fun].(*types.Func)
	case *ast.SelectorExpr:
		f, ok = info.Uses[fun.Sel].(*types.Func)
	}
	return f, ok
}

// implements reports whether called is a method of an interface, and callee the method of a type that implements it.
// Types of packages loaded apart are compared by their names.
func implements(called, callee *types.Func) bool {
	from, to := called.Signature().Recv(), callee.Signature().Recv()
	if from == nil || to == nil || called.Name() != callee.Name() || !types.IsInterface(from.Type()) {
		return false
	}
	methods := types.NewMethodSet(to.Type())
	for m := range from.Type().Underlying().(*types.Interface).Methods() {
		has := methods.Lookup(callee.Pkg(), m.Name())
		if has == nil || text(has.Obj().(*types.Func).Signature()) != text(m.Signature()) {
			return false
		}
	}
	return true
}

// usedAsValue reports whether a package of the walks names f other than to call it.
func usedAsValue(t *testing.T, f *types.Func) bool {
	all, err := walked()
	if err != nil {
		t.Fatal(err)
	}
	uses, calls := 0, 0
	for _, p := range all {
		for _, used := range p.TypesInfo.Uses {
			if used, ok := used.(*types.Func); ok && used.Origin().FullName() == f.FullName() {
				uses++
			}
		}
		for _, file := range p.Syntax {
			ast.Inspect(file, func(n ast.Node) bool {
				if call, ok := n.(*ast.CallExpr); ok {
					if called, ok := calledBy(p.TypesInfo, call); ok && called.Origin().FullName() == f.FullName() {
						calls++
					}
				}
				return true
			})
		}
	}
	return uses > calls
}

// text is a signature with the paths of packages and without the names of parameters.
func text(s *types.Signature) string {
	unnamed := func(in *types.Tuple) *types.Tuple {
		var vars []*types.Var
		for v := range in.Variables() {
			vars = append(vars, types.NewVar(token.NoPos, nil, "", v.Type()))
		}
		return types.NewTuple(vars...)
	}
	return types.TypeString(types.NewSignatureType(nil, nil, nil, unnamed(s.Params()), unnamed(s.Results()), s.Variadic()), nil)
}

// TestToolCallIsShort limits the length of a tool call's path.
func TestToolCallIsShort(t *testing.T) {
	functions, files, folders := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, s := range readWalk(t, "A tool call") {
		functions[path.Dir(s.file)+" "+s.function] = true
		files[s.file] = true
		folders[path.Dir(s.file)] = true
	}
	for _, c := range []struct {
		what      string
		has, most int
	}{
		{"functions", len(functions), maxCallFunctions},
		{"files", len(files), maxCallFiles},
		{"packages", len(folders), maxCallPackages},
	} {
		if c.has > c.most {
			t.Errorf("the walk of a tool call has %d %s, more than %d", c.has, c.what, c.most)
		}
	}
}

// readWalk reads the walk with a title from ARCHITECTURE.md.
func readWalk(t *testing.T, title string) []step {
	t.Helper()
	page, err := os.ReadFile("ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(page), "\n### "+title+"\n")
	if !ok {
		t.Fatalf("ARCHITECTURE.md has no section %q", title)
	}
	if i := strings.Index(section, "\n#"); i >= 0 {
		section = section[:i]
	}
	var walk []step
	for line := range strings.Lines(section) {
		if !strings.HasPrefix(strings.TrimLeft(line, " "), "- ") {
			continue // prose
		}
		m := stepLine.FindStringSubmatch(line)
		if m == nil {
			t.Fatalf("this line does not have the form of a step: %q", line)
		}
		walk = append(walk, step{len(m[1]) / 2, m[2], m[3], m[4] == "on another goroutine", m[5]})
	}
	if len(walk) < 5 {
		t.Fatalf("the walk has only %d steps; has its form changed?", len(walk))
	}
	return walk
}

// walked loads the packages of all walks with their types.
var walked = sync.OnceValues(func() (map[string]*packages.Package, error) {
	page, err := os.ReadFile("ARCHITECTURE.md")
	if err != nil {
		return nil, err
	}
	paths := []string{"./tools"} // binds the handlers
	for _, m := range regexp.MustCompile("(?m)^ *- `([a-z0-9_/-]+)/[a-z0-9_]+\\.go` `").FindAllStringSubmatch(string(page), -1) {
		paths = append(paths, "./"+m[1])
	}
	slices.Sort(paths)
	mode := packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports | packages.NeedExportFile |
		packages.NeedTypes | packages.NeedSyntax | packages.NeedTypesInfo
	loaded, err := packages.Load(&packages.Config{Mode: mode}, slices.Compact(paths)...)
	byFolder := map[string]*packages.Package{}
	for _, p := range loaded {
		byFolder[strings.TrimPrefix(p.PkgPath, module+"/")] = p
	}
	return byFolder, err
})

// packageOf returns the package that a file belongs to.
func packageOf(t *testing.T, file string) *packages.Package {
	t.Helper()
	all, err := walked()
	if err != nil {
		t.Fatal(err)
	}
	p := all[path.Dir(file)]
	if p == nil || len(p.Errors) > 0 {
		t.Fatalf("the package of %s cannot be loaded: %v", file, p)
	}
	return p
}

// findFunction returns the function of a step, and fails the test if its file does not declare it.
func findFunction(t *testing.T, s step) (*types.Func, *ast.FuncDecl) {
	t.Helper()
	p := packageOf(t, s.file)
	for _, file := range p.Syntax {
		if filepath.Base(p.Fset.File(file.Pos()).Name()) != path.Base(s.file) {
			continue
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && qualified(f) == s.function {
				return p.TypesInfo.Defs[f.Name].(*types.Func), f
			}
		}
	}
	t.Errorf("%s does not declare %s", s.file, s.function)
	return nil, nil
}

// qualified returns a function's name, with its receiver's type before it if it has one.
func qualified(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return f.Name.Name
	}
	typ := f.Recv.List[0].Type
	if star, ok := typ.(*ast.StarExpr); ok {
		typ = star.X
	}
	if generic, ok := typ.(*ast.IndexExpr); ok {
		typ = generic.X
	}
	if name, ok := typ.(*ast.Ident); ok {
		return name.Name + "." + f.Name.Name
	}
	return f.Name.Name
}
