package build

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestDocsHaveEveryAnchor: the page that findings link to has a heading for each rule.
func TestDocsHaveEveryAnchor(t *testing.T) {
	data, err := os.ReadFile("../../" + Docs)
	if err != nil {
		t.Fatal(err)
	}
	anchors := map[string]int{}
	fence := ""
	for line := range strings.Lines(string(data)) {
		line = strings.TrimRight(line, "\n")
		if fence != "" {
			if closesFence(line, fence) {
				fence = ""
			}
			continue
		}
		fence, _ = opensFence(line)
		if _, heading := headingOf(line); heading != "" {
			anchors[anchor(heading)]++
		}
	}
	for _, rule := range everyRule() {
		if anchors[rule] != 1 {
			t.Errorf("%s has %d headings with the anchor #%s; findings link there", Docs, anchors[rule], rule)
		}
	}
	for _, link := range regexp.MustCompile(`\]\(#([^)]+)\)`).FindAllStringSubmatch(string(data), -1) {
		if anchors[link[1]] == 0 {
			t.Errorf("%s links to #%s, but has no such heading", Docs, link[1])
		}
	}
}

// anchor is GitHub's anchor of a heading.
func anchor(heading string) string {
	return regexp.MustCompile(`[^a-z0-9 _-]`).ReplaceAllString(strings.ReplaceAll(strings.ToLower(heading), " ", "-"), "")
}

// TestDocsHaveTheLimits compares numbers of the page with the code.
func TestDocsHaveTheLimits(t *testing.T) {
	data, err := os.ReadFile("../../" + Docs)
	if err != nil {
		t.Fatal(err)
	}
	if maxSchema != 64<<10 || maxGuide != 64<<10 || maxName != 64 {
		t.Error("a limit has changed: update " + Docs)
	}
	for _, field := range fields {
		if !strings.Contains(string(data), "\n### "+field+"\n") {
			t.Errorf("%s has no heading for the field %s", Docs, field)
		}
	}
}
