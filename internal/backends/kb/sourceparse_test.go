package kb

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
)

var modified = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

const fullMarkdown = `---
id: project:a
namespace: public
title: A title
tags: [B, a]
url: https://example.org
source_type: wiki
last_updated: 2026-03-01T10:00:00+02:00
metadata:
  n: 1.50
  when: 2026-01-02
  deep: {list: [x, true, null], odd: 0x10}
---

# Not the title

Text.
`

func TestParseMarkdown(t *testing.T) {
	got, problems := parseMarkdown("a.md", []byte("\xef\xbb\xbf"+strings.ReplaceAll(fullMarkdown, "\n", "\r\n")), modified)
	if problems != nil {
		t.Fatal(problems)
	}
	want := Record{
		ID: "project:a", Type: TypeProject, Namespace: NamespacePublic, Title: "A title", Text: "# Not the title\n\nText.",
		Tags: []string{"a", "b"}, URL: "https://example.org", SourceType: "wiki", LastUpdated: time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC),
		Metadata: map[string]any{"n": json.Number("1.50"), "when": "2026-01-02",
			"deep": map[string]any{"list": []any{"x", true, nil}, "odd": "0x10"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestParseMarkdownFillsIn(t *testing.T) {
	got, problems := parseMarkdown("a.md", []byte("---\nid: doc:a\ntags: x, y\nlast_updated: 2026-03-01\nurl:\n---\n# The heading\nText."), modified)
	if problems != nil || got.Title != "The heading" || got.Namespace != NamespaceStudio || len(got.Tags) != 2 || got.LastUpdated.Format(time.RFC3339) != "2026-03-01T00:00:00Z" {
		t.Errorf("%+v, %v", got, problems)
	}
	got, problems = parseMarkdown("a.md", []byte("---\nid: doc:a\ntitle: A\n---"), modified)
	if problems != nil || !got.LastUpdated.Equal(modified) || got.Text != "" {
		t.Errorf("%+v, %v", got, problems)
	}
}

func TestMarkdownProblemsNameTheirLine(t *testing.T) {
	tests := []struct{ name, data, want string }{
		{"nothing", "", "a.md:1: the file does not begin with a line of three dashes"},
		{"no front matter", "# Head", "a.md:1: the file does not begin"},
		{"no end", "---\nid: doc:a\ntitle: A\n", "a.md:4: the front matter has no end"},
		{"no YAML", "---\nid: doc:a\ntitle: [A\n---\n", ": front matter: this is not YAML"},
		{"a tab", "---\nid: doc:a\n\ttitle: A\n---\n", "a.md:3: front matter: this is not YAML"},
		{"a text for the list", "---\nhello\n---\n", "a.md:2: front matter: the record must be a mapping"},
		{"empty", "---\n---\n", "a.md:1: front matter: the file is empty"},
		{"an unknown field", "---\nid: doc:a\ntitle: A\nauthor: x\n---\n", `a.md:4: front matter: the record has no key "author" (did you mean "authors"?)`},
		{"text in it", "---\nid: doc:a\ntitle: A\ntext: x\n---\n", `a.md:4: front matter: the record has no key "text"`},
		{"a field twice", "---\nid: doc:a\ntitle: A\nid: doc:b\n---\n", `a.md:4: front matter: the record has the key "id" twice`},
		{"a list for a text", "---\nid: doc:a\ntitle: [A]\n---\n", "a.md:3: front matter: title must be text, not a list"},
		{"a bad time", "---\nid: doc:a\ntitle: A\nlast_updated: yesterday\n---\n", "a.md:4: front matter: last_updated must be RFC 3339"},
		{"tags in tags", "---\nid: doc:a\ntitle: A\ntags:\n  - a\n  - [b]\n---\n", "a.md:6: front matter: an entry of tags must be text"},
		{"tags with values", "---\nid: doc:a\ntitle: A\ntags: {a: b}\n---\n", "a.md:4: front matter: tags must be text"},
		{"metadata", "---\nid: doc:a\ntitle: A\nmetadata: x\n---\n", "a.md:4: front matter: metadata must be"},
		{"metadata twice", "---\nid: doc:a\ntitle: A\nmetadata:\n  a: 1\n  a: 2\n---\n", `a.md:6: front matter: metadata has the key "a" twice`},
		{"an alias", "---\nid: doc:a\ntitle: A\nmetadata:\n  a: &x [1]\n  b: *x\n---\n", "a.md:5: front matter: anchors"},
		{"deep", "---\nid: doc:a\ntitle: A\nmetadata: {a: " + strings.Repeat("[", 50) + strings.Repeat("]", 50) + "}\n---\n", "nested more than 40 deep"},
		{"an incomplete record", "---\nid: doc:a\nnamespace: x\n---\nText", "a.md:1: namespace \"x\" is not one of"},
		{"a large front matter", "---\n" + strings.Repeat("x: y\n", maxFrontMatterBytes/5+10), "the front matter is longer"},
		{"a large file", "---\nid: doc:a\ntitle: A\n---\n" + strings.Repeat("x", maxMarkdownBytes), "a.md: the file has"},
	}
	for _, test := range tests {
		_, problems := parseMarkdown("a.md", []byte(test.data), modified)
		if len(problems) == 0 || !strings.Contains(problems[0].Error(), test.want) {
			t.Errorf("%s: %v lacks %q", test.name, problems, test.want)
		}
	}
	_, problems := parseMarkdown("a.md", []byte("---\nid: x\nlast_updated: x\nauthor: x\n---\n"), modified)
	if len(problems) != 2 {
		t.Errorf("some problems are missing: %v", problems)
	}
}

func TestParseJSONL(t *testing.T) {
	data := "\xef\xbb\xbf" + `{"id":"doc:a","title":"A","tags":["X"],"last_updated":"2026-03-01T10:00:00Z","metadata":{"n":1.50}}
// a remark

{"id":"doc:b","title":"B"}
nonsense
{"id":"doc:c","title":"C"} {"id":"doc:d"}
{"id":"doc:e","title":"E","author":"x"}
{"id":"doc:f"}
{"id":"doc:g","title":7}
["doc:h"]
{"id":"doc:i","title":"I","last_updated":"soon"}
{"id":"doc:j","title":"` + strings.Repeat("x", maxLineBytes) + `"}
{"id":"doc:k","title":"K"
{"id":"doc:z","title":"Z"}`
	records, problems := parseJSONL("a.jsonl", strings.NewReader(data), modified)
	var ids []string
	for _, r := range records {
		ids = append(ids, fmt.Sprintf("%d %s", r.line, r.record.ID))
	}
	if diff := cmp.Diff([]string{"1 doc:a", "4 doc:b", "14 doc:z"}, ids); diff != "" {
		t.Error(diff)
	}
	if n := records[0].record.Metadata["n"]; n != json.Number("1.50") {
		t.Errorf("the number is %v", n)
	}
	want := []string{
		"a.jsonl:5: is not a record in JSON: ", "a.jsonl:6: there is more after", "a.jsonl:7: is not a record in JSON: json: unknown field \"author\"",
		"a.jsonl:8: title is missing", "a.jsonl:9: is not a record in JSON: title cannot be a JSON number", "a.jsonl:10: is not a record in JSON: it is a JSON array",
		"a.jsonl:11: last_updated must be", "a.jsonl:12: the line has", "a.jsonl:13: is not a record in JSON: it is incomplete",
	}
	if len(problems) != len(want) {
		t.Fatalf("%d problems, of %d: %v", len(problems), len(want), problems)
	}
	for i, p := range problems {
		if !strings.HasPrefix(p.Error(), want[i]) {
			t.Errorf("problem %d is %v, not %q", i, p, want[i])
		}
	}
}

func TestProblemsOfOneFileAreBounded(t *testing.T) {
	_, problems := parseJSONL("a.jsonl", strings.NewReader(strings.Repeat("x\n", 500)), modified)
	if len(problems) != 101 || problems[100].Error() != "a.jsonl: and 400 more problems" {
		t.Errorf("%d problems, the last %v", len(problems), problems[len(problems)-1])
	}
}

// loadAll reads all records of a folder, sorted by id.
func loadAll(root fs.FS) ([]Record, []Problem) {
	all := (&scanner{root: root}).scan()
	var records []Record
	for _, id := range slices.Sorted(maps.Keys(all.records)) {
		records = append(records, all.records[id].record)
	}
	return records, all.problems
}

func TestLoad(t *testing.T) {
	file := func(data string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(data), ModTime: modified} }
	records, problems := loadAll(fstest.MapFS{
		"b.jsonl":         file(`{"id":"doc:b","title":"B"}` + "\n" + `{"id":"doc:b","title":"again"}`),
		"deep/er/a.MD":    file("---\nid: doc:a\ntitle: A\n---\n"),
		"deep/er/b.md":    file("---\nid: doc:b\ntitle: other\n---\n"),
		"bad.md":          file("oops"),
		"README.md":       file("how to write records"),
		"picture.png":     file("x"),
		".git/x.md":       file("x"),
		"_drafts/x.md":    file("x"),
		"deep/.hidden.md": file("x"),
	})
	var got []string
	for _, r := range records {
		got = append(got, r.ID+" "+r.Title)
	}
	if diff := cmp.Diff([]string{"doc:a A", "doc:b B"}, got); diff != "" {
		t.Error(diff)
	}
	var told []string
	for _, p := range problems {
		told = append(told, p.Error())
	}
	want := []string{
		"b.jsonl:2: doc:b is in b.jsonl:1 too; this record is ignored",
		"bad.md:1: the file does not begin with a line of three dashes; the front matter with id and title belongs between two of them",
		"deep/er/b.md:1: doc:b is in b.jsonl:1 too; this record is ignored",
	}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Error(diff)
	}
}

// TestDemo: the demo is complete, and references to a person are valid.
func TestDemo(t *testing.T) {
	records, problems := loadAll(demoFolder())
	for _, p := range problems {
		t.Error(p)
	}
	if len(records) < 55 {
		t.Errorf("%d records", len(records))
	}
	ids, types, namespaces := map[string]bool{}, map[Type]int{}, map[Namespace]int{}
	for _, r := range records {
		ids[r.ID] = true
		types[r.Type]++
		namespaces[r.Namespace]++
	}
	for _, r := range records {
		for _, key := range []string{"lead", "owner"} {
			if id, ok := r.Metadata[key].(string); ok && !ids[id] {
				t.Errorf("%s: its %s is %s, which does not exist", r.ID, key, id)
			}
		}
	}
	if len(types) != len(Types()) || len(namespaces) != len(Namespaces()) {
		t.Errorf("types %v, namespaces %v", types, namespaces)
	}
}

func FuzzParseMarkdown(f *testing.F) {
	f.Add([]byte(fullMarkdown))
	f.Add([]byte("---\nid: doc:a\ntags: x, y\nlast_updated: 2026-03-01\n---\n# H\n"))
	f.Add([]byte("---\nid: &a doc:a\ntitle: *a\nmetadata: {a: !!binary aGk=, b: .inf, <<: {c: d}}\n---\n"))
	f.Add([]byte("---\n? [a]\n: b\n---\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, problems := parseMarkdown("a.md", data, modified)
		if len(problems) == 0 {
			whole(t, r)
		}
	})
}

func FuzzParseJSONL(f *testing.F) {
	f.Add([]byte(`{"id":"doc:a","title":"A","tags":["x"],"last_updated":"2026-03-01","metadata":{"n":1e400,"n":[null]}}` + "\n//x\n\n{}"))
	f.Add([]byte("null\n[]\n\"x\"\n{\"id\":null}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		records, problems := parseJSONL("a.jsonl", strings.NewReader(string(data)), modified)
		lines := strings.Count(string(data), "\n") + 1
		for _, r := range records {
			if r.line < 1 || r.line > lines {
				t.Errorf("line %d of %d", r.line, lines)
			}
			whole(t, r.record)
		}
		for _, p := range problems {
			if p.Line > lines || p.Message == "" {
				t.Errorf("%v, of %d lines", p, lines)
			}
		}
	})
}

// whole checks that a record passes Check, and is the same after a round trip as JSON.
func whole(t *testing.T, r Record) {
	t.Helper()
	if err := r.Check(); err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	decoder := json.NewDecoder(strings.NewReader(string(data)))
	decoder.UseNumber()
	var back Record
	if err := decoder.Decode(&back); err != nil {
		t.Fatal(err)
	}
	back.Normalize()
	if back.Hash() != r.Hash() {
		t.Errorf("after a journey %+v is %+v", r, back)
	}
}
