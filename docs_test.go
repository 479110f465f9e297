package voicegw_test

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	// pageLink is a link of a page to another file or heading of the project.
	pageLink = regexp.MustCompile(`\]\(([^)\s]*)\)`)
	// pageHeading is a heading, from which GitHub makes an anchor.
	pageHeading = regexp.MustCompile(`^#{1,6} +(.*?)\s*$`)
	// pageCode is code in a line.
	pageCode = regexp.MustCompile("`[^`]+`")
	// makeTarget is a call of make in code, with its options and first target.
	makeTarget = regexp.MustCompile(`(?:^|[\s(])make +([a-z][a-z-]*)`)
	// scriptFile is a script of the project in code.
	scriptFile = regexp.MustCompile(`(?:^|[\s(./` + "`" + `])(scripts/[a-z][a-z0-9/.-]*[a-z0-9])`)
	// declaredTarget is the rule of a target in the Makefile.
	declaredTarget = regexp.MustCompile(`(?m)^([a-z][a-z-]*):`)
)

// docPages returns the Markdown pages for readers, by path: those of the root, docs, examples and web.
func docPages(t *testing.T) []string {
	t.Helper()
	var pages []string
	err := filepath.WalkDir(".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (slices.Contains([]string{"node_modules", ".git", "testdata", "bin"}, entry.Name())):
			return filepath.SkipDir
		case path.Ext(name) == ".md" && entry.Name() != "guide.md" && (!strings.Contains(name, "/") || strings.HasPrefix(name, "docs/") || strings.HasPrefix(name, "web/") || strings.HasPrefix(name, "examples/")):
			pages = append(pages, name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return pages
}

// pageText is a page in its parts.
type pageText struct {
	anchors map[string]bool
	links   []string // outside of code
	code    []string // lines of fenced blocks, and code in lines
}

// readPage reads a page. Of equal headings, the later ones get numbers, as on GitHub.
func readPage(t *testing.T, name string) pageText {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	page := pageText{anchors: map[string]bool{}}
	fence := ""
	for line := range strings.Lines(string(data)) {
		line = strings.TrimRight(line, "\n")
		trimmed := strings.TrimSpace(line)
		marks := trimmed[:len(trimmed)-len(strings.TrimLeft(trimmed, "`"))]
		switch {
		case fence != "":
			if trimmed == fence {
				fence = ""
			} else {
				page.code = append(page.code, line)
			}
			continue
		case len(marks) >= 3:
			fence = marks
			continue
		case strings.HasPrefix(line, "    ") && !strings.HasPrefix(trimmed, "- "):
			page.code = append(page.code, trimmed)
		}
		for _, code := range pageCode.FindAllString(line, -1) {
			page.code = append(page.code, strings.Trim(code, "`"))
		}
		if m := pageHeading.FindStringSubmatch(line); m != nil {
			page.anchors[anchorOf(m[1])] = true
		}
		for _, m := range pageLink.FindAllStringSubmatch(pageCode.ReplaceAllString(line, "x"), -1) {
			page.links = append(page.links, m[1])
		}
	}
	return page
}

// anchorOf is the anchor that GitHub gives a heading.
func anchorOf(heading string) string {
	heading = strings.ReplaceAll(strings.ToLower(heading), " ", "-")
	return regexp.MustCompile(`[^\p{L}\p{N}_-]`).ReplaceAllString(heading, "")
}

// TestPagesLinkToWhatExists checks links between pages, and to files and headings.
func TestPagesLinkToWhatExists(t *testing.T) {
	pages := map[string]pageText{}
	for _, name := range docPages(t) {
		pages[name] = readPage(t, name)
	}
	links := 0
	for name, page := range pages {
		for _, link := range page.links {
			if strings.Contains(link, "://") || strings.HasPrefix(link, "mailto:") {
				continue
			}
			links++
			file, anchor, _ := strings.Cut(link, "#")
			target := name
			if file != "" {
				target = path.Join(path.Dir(name), file)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s, which does not exist", name, link)
			} else if other, ok := pages[target]; ok && anchor != "" && !other.anchors[anchor] {
				t.Errorf("%s links to %s, and %s has no such heading", name, link, target)
			}
		}
	}
	if links < 200 {
		t.Errorf("the pages have only %d links; has their form changed?", links)
	}
}

// TestPagesRunWhatExists checks the make targets and scripts that pages name in code.
func TestPagesRunWhatExists(t *testing.T) {
	makefile, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	targets := map[string]bool{}
	for _, m := range declaredTarget.FindAllStringSubmatch(string(makefile), -1) {
		targets[m[1]] = true
	}
	found := 0
	for _, name := range docPages(t) {
		for _, code := range readPage(t, name).code {
			code, _, _ = strings.Cut(code, " # ")
			for _, m := range makeTarget.FindAllStringSubmatch(code, -1) {
				found++
				if !targets[m[1]] {
					t.Errorf("%s runs make %s, and the Makefile has no such target", name, m[1])
				}
			}
			for _, m := range scriptFile.FindAllStringSubmatch(code, -1) {
				found++
				if _, err := os.Stat(m[1]); err != nil {
					t.Errorf("%s names %s, which does not exist", name, m[1])
				}
			}
		}
	}
	if found < 30 {
		t.Errorf("the pages name only %d targets and scripts; has their form changed?", found)
	}
}

// TestPagesQuoteTheExamples: docs/clients.md shows the browser page that scripts/test-pack.sh runs, and README.md a handler.
func TestPagesQuoteTheExamples(t *testing.T) {
	page, err := os.ReadFile("docs/clients.md")
	if err != nil {
		t.Fatal(err)
	}
	example, err := os.ReadFile("examples/browser/index.html")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), "```html\n"+string(example)+"```\n") {
		t.Error("docs/clients.md does not show examples/browser/index.html as it is")
	}
	handler, err := os.ReadFile("examples/tools/price-tell/handler.go")
	if err != nil {
		t.Fatal(err)
	}
	_, shown, _ := strings.Cut(string(handler), "type Needs struct{}\n\n")
	if readme, err := os.ReadFile("README.md"); err != nil || !strings.Contains(string(readme), "```go\n"+shown+"```\n") {
		t.Errorf("README.md does not show the handler of price-tell as it is: %v", err)
	}
}
