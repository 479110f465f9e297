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

// norace is the command of scripts/test-norace.sh: the names that it looks for in those of tests, and the packages.
var norace = regexp.MustCompile(`\ngo test .* -run '([^']+)' \\\n\t(.*)\n$`)

// TestWhatTheRaceDetectorLeavesOutRuns: each test that asks internal/testutil whether the race detector is on, to
// skip itself or some of its cases, is run without the detector by scripts/test-norace.sh; and whatever the
// script names belongs to such a test.
func TestWhatTheRaceDetectorLeavesOutRuns(t *testing.T) {
	script, err := os.ReadFile("scripts/test-norace.sh")
	if err != nil {
		t.Fatal(err)
	}
	command := norace.FindStringSubmatch(string(script))
	if command == nil {
		t.Fatal("scripts/test-norace.sh does not end with a go test command that has -run and, in the next line, packages")
	}
	names, packages := strings.Split(command[1], "|"), strings.Fields(command[2])
	needed := map[string]bool{}
	for _, file := range goFiles(t, func(path string) bool { return strings.HasSuffix(path, "_test.go") }) {
		pkg := "./" + path.Dir(file)
		for _, test := range asksForRaceDetector(t, file) {
			name := slices.IndexFunc(names, func(name string) bool { return regexp.MustCompile(name).MatchString(test) })
			if name < 0 || !slices.Contains(packages, pkg) {
				t.Errorf("%s of %s leaves something out under the race detector, and scripts/test-norace.sh does not run it", test, pkg)
				continue
			}
			needed[names[name]], needed[pkg] = true, true
		}
	}
	for _, word := range slices.Concat(names, packages) {
		if !needed[word] {
			t.Errorf("scripts/test-norace.sh names %s, where no test leaves anything out under the race detector", word)
		}
	}
}

// asksForRaceDetector returns the tests of a file that ask for the race detector.
func asksForRaceDetector(t *testing.T, file string) (tests []string) {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range parsed.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || !strings.HasPrefix(f.Name.Name, "Test") {
			continue
		}
		asks := false
		ast.Inspect(f, func(n ast.Node) bool {
			s, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			x, ok := s.X.(*ast.Ident)
			asks = asks || ok && x.Name == "testutil" && (s.Sel.Name == "RaceEnabled" || s.Sel.Name == "SampleUnderRace")
			return true
		})
		if asks {
			tests = append(tests, f.Name.Name)
		}
	}
	return tests
}
