package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"text/tabwriter"
	"unicode"
)

const longLine = 140

type sizes struct {
	lines, files, long, words int
	packages, roots           map[string]bool
	fields, methods           map[string]int // by package path and type
}

// count prints the size of the code: production Go (no tests, testdata, examples or generated files), packages, root
// folders, the largest struct, the type with the most methods, long lines, and words of documentation (no prompts, no
// demo data).
func count(out io.Writer) error {
	s := sizes{packages: map[string]bool{}, roots: map[string]bool{}, fields: map[string]int{}, methods: map[string]int{}}
	if err := s.walk(os.DirFS(".")); err != nil {
		return fmt.Errorf("count: %w", err)
	}
	structName, fields := largest(s.fields)
	typ, methods := largest(s.methods)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, row := range []struct {
		name       string
		has, limit int
		which      string
	}{
		{"lines of production Go", s.lines, 115_000, ""},
		{"packages", len(s.packages), 100, ""},
		{"folders at the root", len(s.roots), 22, ""},
		{"fields of the largest struct", fields, 40, structName},
		{"methods of one type", methods, 60, typ},
		{fmt.Sprintf("lines over %d characters", longLine), s.long, 0, ""},
		{"words of documentation", s.words, 45_000, ""},
	} {
		_, _ = fmt.Fprintf(w, "%d\tof %d\t\t%s %s\n", row.has, row.limit, row.name, row.which)
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("count: %w", err)
	}
	return nil
}

func (s *sizes) walk(tree fs.FS) error {
	return fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := path.Base(name)
		if d.IsDir() {
			if name == "." {
				return nil
			}
			if base[0] == '.' || base[0] == '_' || base == "testdata" || base == "vendor" || base == "node_modules" ||
				name == "bin" || name == "dist" {
				return fs.SkipDir
			}
			if !strings.Contains(name, "/") {
				s.roots[name] = true
			}
			return nil
		}
		switch {
		case strings.HasSuffix(base, ".go") && !strings.HasSuffix(base, "_test.go") && !strings.HasPrefix(name, "examples/"):
			return s.countGo(tree, name)
		case strings.HasSuffix(base, ".md") && base != "guide.md" && !strings.HasPrefix(name, "internal/backends/") &&
			!strings.HasPrefix(name, "prompts/") && !strings.HasPrefix(name, "registry/"):
			return s.countWords(tree, name)
		}
		return nil
	})
}

func (s *sizes) countGo(tree fs.FS, name string) error {
	source, err := fs.ReadFile(tree, name)
	if err != nil {
		return err
	}
	file, err := parser.ParseFile(token.NewFileSet(), name, source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	if ast.IsGenerated(file) {
		return nil
	}
	folder := path.Dir(name)
	s.files++
	s.packages[folder] = true
	for line := range bytes.Lines(source) {
		s.lines++
		if len([]rune(strings.ReplaceAll(strings.TrimRight(string(line), "\n"), "\t", "    "))) > longLine {
			s.long++
		}
	}
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv != nil {
				s.methods[folder+"."+receiver(d.Recv.List[0].Type)]++
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				typ, ok := spec.(*ast.TypeSpec)
				if !ok {
					continue
				}
				if of, ok := typ.Type.(*ast.StructType); ok {
					s.fields[folder+"."+typ.Name.Name] = of.Fields.NumFields()
				}
			}
		}
	}
	return nil
}

func (s *sizes) countWords(tree fs.FS, name string) (err error) {
	file, err := tree.Open(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	words := bufio.NewScanner(file)
	words.Split(bufio.ScanWords)
	for words.Scan() {
		if bytes.ContainsFunc(words.Bytes(), func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) {
			s.words++ // not the bars of a table
		}
	}
	return words.Err()
}

func receiver(typ ast.Expr) string {
	switch typ := typ.(type) {
	case *ast.StarExpr:
		return receiver(typ.X)
	case *ast.IndexExpr:
		return receiver(typ.X)
	case *ast.IndexListExpr:
		return receiver(typ.X)
	case *ast.Ident:
		return typ.Name
	}
	return ""
}

func largest(of map[string]int) (name string, most int) {
	for n, count := range of {
		if count > most || count == most && n < name {
			name, most = n, count
		}
	}
	return name, most
}
