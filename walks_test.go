package voicegw_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The most that the walk of a tool call may pass: what a reader has to open to follow it.
const (
	maxCallFunctions = 40
	maxCallFiles     = 25
	maxCallPackages  = 9
)

// step is one line of a walk: a function, and the names by which another one reaches it.
type step struct {
	file, function string
	reachedAs      []string
}

// stepLine reads a line of a walk: its number, its file, its function with the receiver's type,
// and, where the function is reached by another name, that name.
var stepLine = regexp.MustCompile("^[0-9]+\\. `([a-z0-9_/-]+\\.go)` `([A-Za-z0-9_.]+)`(?: as `([A-Za-z0-9_]+)`)?: \\S")

// TestWalks holds the walks of ARCHITECTURE.md against the code: each function is in its file,
// and an earlier one of the walk names it.
func TestWalks(t *testing.T) {
	for _, title := range []string{"A microphone frame", "A tool call", "A takeover"} {
		t.Run(title, func(t *testing.T) {
			walk := readWalk(t, title)
			named := map[string]bool{} // by the functions so far
			for i, s := range walk {
				body := functionIn(t, s)
				if body == nil {
					continue
				}
				if i > 0 && !slices.ContainsFunc(s.reachedAs, func(name string) bool { return named[name] }) {
					t.Errorf("step %d: no earlier step names %s, so the walk does not lead to %s", i+1, strings.Join(s.reachedAs, " or "), s.function)
				}
				ast.Inspect(body, func(n ast.Node) bool {
					switch n := n.(type) {
					case *ast.SelectorExpr:
						named[n.Sel.Name] = true
					case *ast.CallExpr:
						if name, ok := n.Fun.(*ast.Ident); ok {
							named[name.Name] = true
						}
					}
					return true
				})
			}
		})
	}
}

// TestToolCallIsShort bounds what a reader has to open to follow a tool call.
func TestToolCallIsShort(t *testing.T) {
	functions, files, packages := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, s := range readWalk(t, "A tool call") {
		functions[path.Dir(s.file)+" "+s.function] = true
		files[s.file] = true
		packages[path.Dir(s.file)] = true
	}
	for _, c := range []struct {
		what      string
		has, most int
	}{
		{"functions", len(functions), maxCallFunctions},
		{"files", len(files), maxCallFiles},
		{"packages", len(packages), maxCallPackages},
	} {
		if c.has > c.most {
			t.Errorf("the walk of a tool call passes %d %s, more than %d", c.has, c.what, c.most)
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
		if line == "" || line[0] < '0' || line[0] > '9' {
			continue // prose
		}
		m := stepLine.FindStringSubmatch(line)
		if m == nil {
			t.Fatalf("this line does not have the form of a step: %q", line)
		}
		_, method, isMethod := strings.Cut(m[2], ".")
		if !isMethod {
			method = m[2]
		}
		as := []string{method}
		if m[3] != "" {
			as = append(as, m[3])
		}
		walk = append(walk, step{m[1], m[2], as})
	}
	if len(walk) < 5 {
		t.Fatalf("the walk has only %d steps; has its form changed?", len(walk))
	}
	return walk
}

// functionIn returns the function of a step, and fails the test where its file lacks it.
func functionIn(t *testing.T, s step) *ast.FuncDecl {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), s.file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Error(err)
		return nil
	}
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && qualified(f) == s.function {
			return f
		}
	}
	t.Errorf("%s lacks %s", s.file, s.function)
	return nil
}

// qualified is a function's name, after its receiver's type if it has one.
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
