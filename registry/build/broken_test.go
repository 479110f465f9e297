package build

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

var update = flag.Bool("update", false, "rewrite the expected files: testdata/broken/*.txtar, zz_args_test.go and the zz_args.go of examples/tools")

// TestBroken builds each tool of testdata/broken. A file there has a description, the line "tool: NAME", the tool's
// files (link/NAME is a symbolic link with that target) and the expected findings, one a line.
func TestBroken(t *testing.T) {
	files, err := filepath.Glob("testdata/broken/*.txtar")
	if err != nil || len(files) < 40 {
		t.Fatalf("only %d broken tools: %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			want := unpack(t, archive, dir)
			report, err := Build(Options{Dir: dir})
			if err != nil {
				t.Fatal(err)
			}
			got := findingLines(report)
			if report.Errors() == 0 || report.Version != "" {
				t.Errorf("it was not refused")
			}
			if written := generatedIn(t, dir); len(written) > 0 {
				t.Errorf("written anyway: %v", written)
			}
			if *update {
				archive.Files[len(archive.Files)-1].Data = []byte(got)
				if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
		})
	}
}

// unpack writes the files of an archive as a tool of a project, and returns the expected report.
func unpack(t *testing.T, archive *txtar.Archive, dir string) (want string) {
	t.Helper()
	name := regexp.MustCompile(`(?m)^tool: (.+)$`).FindSubmatch(archive.Comment)
	if name == nil || archive.Files[len(archive.Files)-1].Name != "want" {
		t.Fatal("the archive lacks its line tool: NAME, or does not end in want")
	}
	tool := filepath.Join(dir, toolsDir, string(name[1]))
	if err := os.MkdirAll(tool, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, f := range archive.Files[:len(archive.Files)-1] {
		var err error
		if link, ok := strings.CutPrefix(f.Name, "link/"); ok {
			err = os.Symlink(strings.TrimSpace(string(f.Data)), filepath.Join(tool, link))
		} else {
			err = errors.Join(os.MkdirAll(filepath.Dir(filepath.Join(tool, f.Name)), 0o755), os.WriteFile(filepath.Join(tool, f.Name), f.Data, 0o644))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return string(archive.Files[len(archive.Files)-1].Data)
}

// findingLines writes each finding on a line.
func findingLines(r *Report) string {
	var b strings.Builder
	for _, f := range r.Findings {
		fmt.Fprintf(&b, "%s %s:%d #%s %s: %s\n", f.Severity, f.File, f.Line, f.Rule, f.Path, strings.ReplaceAll(f.Message, "\n", " "))
	}
	return b.String()
}

// generatedIn lists the files that a build has written into a project.
func generatedIn(t *testing.T, dir string) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err == nil && (strings.HasPrefix(d.Name(), "zz_") || strings.HasPrefix(d.Name(), ".zz") || d.Name() == "tool_registry.json") {
			all = append(all, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestFindingsPointSomewhere: every finding of the corpus has a rule of the list, a link to it, a sentence, and a
// place that exists.
func TestFindingsPointSomewhere(t *testing.T) {
	files, err := filepath.Glob("testdata/broken/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		unpack(t, archive, dir)
		report, err := Build(Options{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range report.Findings {
			seen[f.Rule] = true
			if !slices.Contains(everyRule(), f.Rule) || f.Link != Docs+"#"+f.Rule {
				t.Errorf("%s: rule %q, link %q", file, f.Rule, f.Link)
			}
			if !strings.HasSuffix(f.Message, ".") && !strings.HasSuffix(f.Message, "?") && f.Rule != ruleHandler {
				t.Errorf("%s: not a sentence: %s", file, f.Message)
			}
			if !strings.HasPrefix(f.File, toolsDir+"/"+f.Tool) || f.Tool == "" {
				t.Errorf("%s: file %q of tool %q", file, f.File, f.Tool)
			}
			data, err := os.ReadFile(filepath.Join(dir, f.File))
			if err == nil && f.Line > bytes.Count(data, []byte("\n"))+1 {
				t.Errorf("%s: line %d of %s, which has fewer", file, f.Line, f.File)
			}
		}
	}
	for _, rule := range everyRule() {
		// No other rule depends on cancellable; the other two rules need more than one broken tool.
		if !seen[rule] && rule != "cancellable" && rule != ruleGenerated && rule != ruleWrites {
			t.Errorf("no broken tool breaks the rule %s", rule)
		}
	}
}

// everyRule lists every rule, sorted: each is the anchor of a heading of [Docs].
func everyRule() []string {
	rules := []string{
		ruleDirectory, ruleFiles, ruleSchema, ruleForms, ruleGuide, ruleSummary,
		ruleExamples, ruleHandler, ruleGenerated, ruleWrites,
	}
	for _, f := range fields {
		rules = append(rules, strings.ToLower(f))
	}
	slices.Sort(rules)
	return rules
}
