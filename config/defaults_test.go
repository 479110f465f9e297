package config

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
)

// ofConfigAlone are the settings whose default is only in config: for a zero option, the package has no limit, or no
// default of its own.
var ofConfigAlone = []string{"DrainTimeout", "SessionLength", "Idle", "ResumeGrace"}

// TestSharedDefaults: a default that config shares with the configured package is a constant of
// config/setting/defaults.go that both use, so that the documented value is the real one.
func TestSharedDefaults(t *testing.T) {
	users := map[string][]string{} // the packages that use each constant
	numbers := map[string]bool{}   // the settings whose default is a literal number in config
	err := fs.WalkDir(os.DirFS(".."), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "node_modules" || d.Name() == "bin" || strings.HasPrefix(d.Name(), ".") && name != "."):
			return fs.SkipDir
		case !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), "../"+name, nil, 0)
		if err != nil {
			return err
		}
		folder := path.Dir(name)
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ValueSpec:
				if name == "config/setting/defaults.go" {
					users[n.Names[0].Name] = append(users[n.Names[0].Name], folder)
				}
			case *ast.SelectorExpr:
				if from, ok := n.X.(*ast.Ident); ok && from.Name == "setting" && !slices.Contains(users[n.Sel.Name], folder) {
					users[n.Sel.Name] = append(users[n.Sel.Name], folder)
				}
			case *ast.FuncDecl:
				if folder == "config" && (n.Name.Name == "defaultFor" || n.Name.Name == "defaultImage") {
					numbered(n, numbers)
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(users) < 20 || len(numbers) == 0 {
		t.Fatalf("%d constants and %d numbers were read", len(users), len(numbers))
	}
	for name, folders := range users {
		if !slices.Contains(folders, "config/setting") {
			continue // a type of package setting
		}
		if !slices.Contains(folders, "config") || len(folders) < 3 {
			t.Errorf("setting.%s is used by %v, want config and the package with this option", name, folders)
		}
	}
	for name := range numbers {
		if !slices.Contains(ofConfigAlone, name) {
			t.Errorf("the default of %s is written in package config; if another package has it too, it belongs in config/setting, else in ofConfigAlone", name)
		}
	}
}

// numbered records the fields that a function sets to a literal number.
func numbered(f *ast.FuncDecl, names map[string]bool) {
	ast.Inspect(f, func(n ast.Node) bool {
		pair, ok := n.(*ast.KeyValueExpr)
		if !ok {
			return true
		}
		key, ok := pair.Key.(*ast.Ident)
		if _, nested := pair.Value.(*ast.CompositeLit); !ok || nested {
			return true
		}
		ast.Inspect(pair.Value, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.IndexExpr:
				return false
			case *ast.SelectorExpr:
				if n.Sel.Name == "Hour" || n.Sel.Name == "Minute" || n.Sel.Name == "Second" {
					names[key.Name] = true
				}
			case *ast.BasicLit:
				if n.Kind == token.INT {
					names[key.Name] = true
				}
			}
			return true
		})
		return true
	})
}
