package prompts_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
)

// wordFields names, for each type with values that reach a model, the fields with sentences.
var wordFields = map[string][]string{
	"voicegw/registry.Error":              {"Message", "Suggestion"},
	"voicegw/registry.ToolError":          {"Message", "Suggestion"},
	"voicegw/registry/spec.Spec":          {"Description"},
	"voicegw/registry.Entry":              {"Summary", "Guide"},
	"voicegw/transport.UserText":          {"Text"},
	"voicegw/transport.Tool":              {"Description"},
	"voicegw/transport/textmodel.Message": {"Text"},
	"voicegw/internal/conversation.Entry": {"Text"},
}

// wordFunctions are functions with arguments that reach a model, by name.
var wordFunctions = []string{"Errorf of voicegw/registry", "Invalid of voicegw/registry", "sendNotice", "noted", "Notice"}

// silent are the folders without texts for people: a sentence in them is for a model.
var silent = []string{"orchestrator", "session/handoff"}

// elsewhere are the folders without the rule: prompts itself, tools and their backends, the simulator, which acts as the
// model, clients, and code for tests or the authors of tools.
var elsewhere = regexp.MustCompile(`^(prompts|tools|internal/backends|internal/agent|examples|sim|client|e2e|scripts|web|bin|registry/build)(/|$)|test$|testdata$|node_modules$|^\.`)

var (
	word     = regexp.MustCompile(`\pL{3,}|\pL{2,} \pL{2,}`)
	jsonName = regexp.MustCompile(`"\w+":`)
	sentence = regexp.MustCompile(`^\p{Lu}.* .* |\. |\.$`)
)

func TestAllSentencesAreHere(t *testing.T) {
	found, files := outside(t, os.DirFS(".."))
	if files < 200 {
		t.Fatalf("only %d files were read", files)
	}
	for _, f := range found {
		t.Errorf("%s: a model reads this; move it to package prompts", f)
	}
}

// TestTheSearchFindsWords: the search finds each of these sentences.
func TestTheSearchFindsWords(t *testing.T) {
	const head = "import (\n\"fmt\"\n\"voicegw/transport/textmodel\"\n\"voicegw/internal/conversation\"\n\"voicegw/prompts\"\nreg \"voicegw/registry\"\n\"voicegw/transport\"\n)\n"
	bad := map[string]string{
		"a field":            `var e = reg.Error{Message: "It did not work"}`,
		"a pointer":          `var e = &reg.Error{Type: "X", Suggestion: "Try again."}`,
		"put together":       `func f(s string) any { return reg.ToolError{Message: "Not " + s} }`,
		"formatted":          `func f(s string) any { return reg.ToolError{Message: fmt.Sprintf("Not %s", s)} }`,
		"a constant":         "const words = \"Not now\"\nvar e = reg.Error{Message: words}",
		"a table":            "var words = map[string]string{\"a\": \"Not now\"}\nfunc f(s string) any { return reg.Error{Message: words[s]} }",
		"a variable":         `func f() any { words := "Not now"; return reg.Error{Message: words} }`,
		"an assigned field":  `func f(e *reg.Error) { e.Suggestion = "Try again." }`,
		"an added text":      `func f() any { text := prompts.ByVoice; text += " [cut]"; return textmodel.Message{Text: text} }`,
		"typed text":         `var c = transport.UserText{Text: "Go on."}`,
		"a list's element":   `var m = []textmodel.Message{{Text: "Go on."}}`,
		"an entry":           `var m = conversation.Entry{Text: "The user was away"}`,
		"a declaration":      `var m = transport.Tool{Description: "Ends the call"}`,
		"without the fields": `var e = reg.Error{"X", "It did not work"}`,
		"Errorf":             `var e = reg.Errorf("X", "It did not work")`,
		"Invalid":            `var e = reg.Invalid(nil, "It did not work")`,
		"a notice":           `func f(t interface{ noted(string) }) { t.noted("It was done") }`,
	}
	for name, text := range bad {
		if found, _ := outside(t, fstest.MapFS{"gateway/a.go": {Data: []byte("package gateway\n" + head + text)}}); len(found) == 0 {
			t.Errorf("%s is not found: %s", name, text)
		}
	}
	silent := `package execute
func f(say func(string)) { say("Tell the user that it does not work.") }`
	if found, _ := outside(t, fstest.MapFS{"orchestrator/execute/a.go": {Data: []byte(silent)}}); len(found) == 0 {
		t.Error("a sentence in the orchestrator is not found")
	}
	good := `
		var e = reg.Error{Type: "TRANSIENT", Message: prompts.NudgeNotice}
		func f(tool string, c conversation.Entry) any { return []textmodel.Message{{Role: "user", Text: prompts.AskedToApprove(tool, "approved")}, {Text: c.Text}} }
		func g(tool string) any { return reg.Errorf("X", "%s", tool) }`
	if found, _ := outside(t, fstest.MapFS{"gateway/a.go": {Data: []byte("package gateway\n" + head + good)}}); len(found) > 0 {
		t.Errorf("this is not a word to a model: %s", found)
	}
}

// outside lists the sentences for a model in the Go files of a tree, and the number of files.
func outside(t *testing.T, tree fs.FS) (found []string, files int) {
	t.Helper()
	packages := map[string]map[string]*ast.File{}
	fset := token.NewFileSet()
	err := fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != "." && elsewhere.MatchString(name):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		data, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(fset, name, data, 0)
		if err != nil {
			return err
		}
		folder := path.Dir(name)
		if packages[folder] == nil {
			packages[folder] = map[string]*ast.File{}
		}
		packages[folder][name] = file
		files++
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for folder, list := range packages {
		s := search{folder: folder, fset: fset, names: map[string][]ast.Expr{}}
		for _, file := range list {
			s.declared(file)
		}
		for _, file := range list {
			s.file(file)
		}
		found = append(found, s.found...)
	}
	slices.Sort(found)
	return slices.Compact(found), files
}

// search searches one package.
type search struct {
	folder  string
	fset    *token.FileSet
	imports map[string]string     // of the current file
	names   map[string][]ast.Expr // the values assigned to the names of the package, local ones too
	found   []string
}

// declared records the values of each name of a file. Names of different functions are one.
func (s *search) declared(file *ast.File) {
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ValueSpec:
			for _, name := range n.Names {
				s.names[name.Name] = append(s.names[name.Name], n.Values...)
			}
		case *ast.AssignStmt:
			for _, left := range n.Lhs {
				if name, ok := left.(*ast.Ident); ok {
					s.names[name.Name] = append(s.names[name.Name], n.Rhs...)
				}
			}
		}
		return true
	})
}

func (s *search) file(file *ast.File) {
	s.imports = map[string]string{}
	for _, i := range file.Imports {
		from, _ := strconv.Unquote(i.Path.Value)
		s.imports[path.Base(from)] = from
		if i.Name != nil {
			s.imports[i.Name.Name] = from
		}
	}
	quiet := slices.ContainsFunc(silent, func(f string) bool { return s.folder == f || strings.HasPrefix(s.folder, f+"/") })
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CompositeLit:
			s.literal(n, n.Type)
		case *ast.AssignStmt:
			for i, left := range n.Lhs {
				if field, ok := left.(*ast.SelectorExpr); ok && len(n.Lhs) == len(n.Rhs) && field.Sel.Name == "Suggestion" {
					s.words(n.Rhs[i], nil)
				}
			}
		case *ast.CallExpr:
			if slices.Contains(wordFunctions, s.called(n)) {
				for _, a := range n.Args {
					s.words(a, nil)
				}
			}
		case *ast.BasicLit:
			if text, err := strconv.Unquote(n.Value); quiet && err == nil && n.Kind == token.STRING && sentence.MatchString(text) {
				s.find(n, text)
			}
		}
		return true
	})
}

// literal searches a literal of the given type, which is missing within another one.
func (s *search) literal(n *ast.CompositeLit, of ast.Expr) {
	var within ast.Expr
	switch of := of.(type) {
	case *ast.ArrayType:
		within = of.Elt
	case *ast.MapType:
		within = of.Value
	}
	fields := wordFields[s.typeName(of)]
	for _, e := range n.Elts {
		value, key := e, ""
		if pair, ok := e.(*ast.KeyValueExpr); ok {
			value = pair.Value
			if name, ok := pair.Key.(*ast.Ident); ok {
				key = name.Name
			}
		}
		if inner, ok := value.(*ast.CompositeLit); ok && inner.Type == nil && within != nil {
			s.literal(inner, within)
		}
		if slices.Contains(fields, key) || key == "" && fields != nil {
			s.words(value, nil)
		}
	}
}

// typeName is a type with the path of its package, such as voicegw/registry.Error.
func (s *search) typeName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return s.typeName(e.X)
	case *ast.Ident:
		return "voicegw/" + s.folder + "." + e.Name
	case *ast.SelectorExpr:
		if from, ok := e.X.(*ast.Ident); ok {
			return s.imports[from.Name] + "." + e.Sel.Name
		}
	}
	return ""
}

// called is the function of a call in the form of wordFunctions.
func (s *search) called(c *ast.CallExpr) string {
	switch f := c.Fun.(type) {
	case *ast.Ident:
		if f.Name == "Errorf" {
			return "Errorf of voicegw/" + s.folder
		}
		return f.Name
	case *ast.SelectorExpr:
		if from, ok := f.X.(*ast.Ident); ok && s.imports[from.Name] != "" {
			return f.Sel.Name + " of " + s.imports[from.Name]
		}
		return f.Sel.Name
	}
	return ""
}

// words finds the sentences written in an expression, or in the values of its names.
func (s *search) words(e ast.Expr, seen []string) {
	ast.Inspect(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BasicLit:
			if text, err := strconv.Unquote(n.Value); err == nil && n.Kind == token.STRING && word.MatchString(jsonName.ReplaceAllString(text, "")) {
				s.find(n, text)
			}
		case *ast.Ident:
			if !slices.Contains(seen, n.Name) {
				for _, given := range s.names[n.Name] {
					s.words(given, append(slices.Clone(seen), n.Name))
				}
			}
		case *ast.CallExpr: // its arguments are not part of its results, except for these
			return s.called(n) == "Sprintf of fmt" || s.called(n) == "Join of strings" || slices.Contains(wordFunctions, s.called(n))
		case *ast.SelectorExpr, *ast.FuncLit:
			return false
		case *ast.CompositeLit:
			for _, inner := range n.Elts {
				if pair, ok := inner.(*ast.KeyValueExpr); ok {
					inner = pair.Value
				}
				s.words(inner, seen)
			}
			return false
		case *ast.IndexExpr:
			s.words(n.X, seen)
			return false
		}
		return true
	})
}

func (s *search) find(at ast.Node, text string) {
	s.found = append(s.found, fmt.Sprintf("%s: %q", s.fset.Position(at.Pos()), text))
}
