package build

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

func TestGuide(t *testing.T) {
	g := parseGuide(strings.Join([]string{
		"", "   # kb_search ##", "", "  Finds things. ", "More of it.", "", "## Parameters", "```md", "## Examples", "```", "### Inner",
		"text", "## examples", "~~~~JSON", `{"a":`, "~~~", "1}", "~~~~  ", "    ## Watch Out", "##Watch Out", "```json", "{}",
	}, "\n"))
	if g.title != "kb_search" || g.titleLine != 2 || g.summary != "Finds things." || g.summaryLine != 4 || !g.continues {
		t.Errorf("title and summary: %+v", g)
	}
	if len(g.sections) != 2 || g.section("Examples") == nil || g.count("Examples") != 1 || !strings.Contains(g.section("Parameters").text, "Inner") {
		t.Fatalf("sections: %+v", g.sections)
	}
	blocks := g.section("Examples").blocks
	if len(blocks) != 2 || blocks[0] != (block{"json", 15, "{\"a\":\n~~~\n1}\n"}) || blocks[1].text != "{}\n" || g.unclosed != 21 {
		t.Errorf("blocks: %+v, unclosed %d", blocks, g.unclosed)
	}
}

func FuzzGuide(f *testing.F) {
	files, err := filepath.Glob("testdata/broken/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for _, one := range archive.Files {
			if one.Name == guideFile {
				f.Add(string(one.Data))
			}
		}
	}
	f.Add("# a\n\ntext\n## Examples\n~~~~json\n{}\n~~~~\n```")
	f.Fuzz(func(t *testing.T, text string) {
		g := parseGuide(text)
		lines := strings.Count(text, "\n") + 1
		if (g.summary == "") != (g.summaryLine == 0) || g.summaryLine > lines || g.titleLine > lines || g.unclosed > lines {
			t.Errorf("%q: %+v", text, g)
		}
		if strings.ContainsAny(g.summary, "\n") || !strings.Contains(text, g.summary) {
			t.Errorf("%q: summary %q", text, g.summary)
		}
		last := 0
		for _, s := range g.sections {
			if s.line <= last || s.line > lines {
				t.Errorf("%q: section at %d after %d", text, s.line, last)
			}
			last = s.line
			for _, b := range s.blocks {
				if b.line <= s.line || b.line > lines+1 || !strings.HasSuffix("\n"+b.text, "\n") {
					t.Errorf("%q: block %+v in section at %d", text, b, s.line)
				}
			}
		}
	})
}

func FuzzJSON(f *testing.F) {
	for _, seed := range []string{`{"a":[1,2.5,"x",null,true]}`, "{\n\"a\": 1,\n}", `[[[[]]]]`, `{"a":1}{`, ``, `"\ud800"`, `{"a":1,"a":2}`, "[1,\n2 3]"} {
		f.Add([]byte(seed))
	}
	if data, err := os.ReadFile("testdata/shapes.json"); err == nil {
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		lines := strings.Count(string(data), "\n") + 1
		if line, problem := syntaxProblem(data); problem != "" {
			if line < 1 || line > lines || json.Valid(data) {
				t.Errorf("%q: line %d: %s", data, line, problem)
			}
			return
		}
		if !json.Valid(data) {
			t.Errorf("%q is accepted", data)
		}
		if text := spaced(data); !json.Valid([]byte(text)) {
			t.Errorf("%q becomes %q", data, text)
		}
		if line := lineOf(data, "/a/0/b"); line < 1 || line > lines {
			t.Errorf("%q: line %d", data, line)
		}
	})
}

func TestLines(t *testing.T) {
	data := []byte("{\n  \"a\": {\n    \"b/c\":\n      [1,\n       {\"d~\": 2}]\n  }\n}\n")
	for pointer, want := range map[string]int{"": 1, "/a": 2, "/a/b~1c": 4, "/a/b~1c/0": 4, "/a/b~1c/1/d~0": 5, "/a/b~1c/7": 4, "/a/x/y": 2, "/z": 1} {
		if got := lineOf(data, pointer); got != want {
			t.Errorf("%q is in line %d, want %d", pointer, got, want)
		}
	}
}
