package voicegw_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"strings"
	"testing"
)

// wherePair is a file of the table "Where is ...?" and a name that it declares.
var wherePair = regexp.MustCompile("`([a-z0-9_/-]+\\.go)` `([A-Za-z0-9_.]+)`")

// TestWhereIs: each name in the table "Where is ...?" of ARCHITECTURE.md is declared in the
// file that stands before it.
func TestWhereIs(t *testing.T) {
	page, err := os.ReadFile("ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(page), "\n## Where is ...?\n")
	if !ok {
		t.Fatal(`ARCHITECTURE.md has no section "Where is ...?"`)
	}
	table, _, _ = strings.Cut(table, "\n## ")
	pairs := wherePair.FindAllStringSubmatch(table, -1)
	for _, m := range pairs {
		if !declared(t, m[1])[m[2]] {
			t.Errorf("%s does not declare %s", m[1], m[2])
		}
	}
	if len(pairs) < 25 {
		t.Errorf("the table names only %d functions; has its form changed?", len(pairs))
	}
}

// declared returns the names that a file declares at its top; a method's has its receiver's
// type before it.
func declared(t *testing.T, name string) map[string]bool {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			names[qualified(d)] = true
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					names[s.Name.Name] = true
				case *ast.ValueSpec:
					for _, n := range s.Names {
						names[n.Name] = true
					}
				}
			}
		}
	}
	return names
}
