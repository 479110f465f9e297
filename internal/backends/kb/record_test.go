package kb_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"voicegw/internal/backends/kb"
)

func TestMain(m *testing.M) {
	// genai depends on opencensus, which starts a goroutine at its import.
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("go.opencensus.io/stats/view.(*worker).start"))
}

var modified = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

func good() kb.Record {
	r := kb.Record{ID: "person:ada_l", Title: "Ada", LastUpdated: modified}
	r.Normalize()
	return r
}

func TestCheckReturnsAllProblems(t *testing.T) {
	r := kb.Record{ID: "robot:X", Type: "doc", Namespace: "here", Text: "a\xff", URL: "javascript:alert(1)", Metadata: map[string]any{"f": func() {}}}
	err := r.Check()
	if !errors.Is(err, kb.ErrRecord) {
		t.Fatal(err)
	}
	for _, part := range []string{"robot:X", "namespace", "title is missing", "UTF-8", "url must be", "last_updated", "metadata is not JSON"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q lacks %q", err, part)
		}
	}
}

func TestCheckKeepsTheLimits(t *testing.T) {
	tests := []struct {
		name   string
		change func(*kb.Record)
		want   string // empty: it is valid
	}{
		{"as it is", func(*kb.Record) {}, ""},
		{"every part at its limit", func(r *kb.Record) {
			r.ID = "person:" + strings.Repeat("a", kb.MaxIDBytes)
			r.Title = strings.Repeat("ä", kb.MaxTitleRunes)
			r.Text = strings.Repeat("a", kb.MaxTextBytes)
			r.URL = "https://example.org/" + strings.Repeat("a", kb.MaxURLBytes-20)
			r.Tags = []string{strings.Repeat("ä", kb.MaxTagRunes)}
		}, ""},
		{"mail", func(r *kb.Record) { r.URL = "mailto:a@example.org" }, ""},
		{"no id", func(r *kb.Record) { r.ID = "" }, "id is missing"},
		{"an id without a type", func(r *kb.Record) { r.ID = "ada" }, "not of the form"},
		{"an id with an upper case letter", func(r *kb.Record) { r.ID = "person:Ada" }, "not of the form"},
		{"an id with a path", func(r *kb.Record) { r.ID = "person:../a" }, "not of the form"},
		{"another type", func(r *kb.Record) { r.ID = "robot:a" }, "not one of project, person"},
		{"a type that is not the id's", func(r *kb.Record) { r.Type = kb.TypeDoc }, "not that of the id"},
		{"a long id", func(r *kb.Record) { r.ID = "person:" + strings.Repeat("a", kb.MaxIDBytes+1) }, "longer than"},
		{"a long title", func(r *kb.Record) { r.Title = strings.Repeat("ä", kb.MaxTitleRunes+1) }, "at most 200"},
		{"a long text", func(r *kb.Record) { r.Text = strings.Repeat("a", kb.MaxTextBytes+1) }, "split it"},
		{"a long tag", func(r *kb.Record) { r.Tags = []string{strings.Repeat("ä", kb.MaxTagRunes+1)} }, "tag"},
		{"many tags", func(r *kb.Record) { r.Tags = make([]string, kb.MaxTags+1) }, "tags; at most"},
		{"an author that is not a person", func(r *kb.Record) { r.Authors = []string{"doc:a"} }, "author"},
		{"many authors", func(r *kb.Record) { r.Authors = make([]string, kb.MaxAuthors+1) }, "authors; at most"},
		{"a long category", func(r *kb.Record) { r.Categories = []string{strings.Repeat("ä", kb.MaxCategoryRunes+1)} }, "category"},
		{"many categories", func(r *kb.Record) { r.Categories = make([]string, kb.MaxCategories+1) }, "categories; at most"},
		{"a URL without a host", func(r *kb.Record) { r.URL = "https:///a" }, "with a host"},
		{"a path for a URL", func(r *kb.Record) { r.URL = "a/b" }, "url must be"},
		{"not a URL", func(r *kb.Record) { r.URL = "http://%zz" }, "url is invalid"},
		{"a long URL", func(r *kb.Record) { r.URL = "https://a/" + strings.Repeat("a", kb.MaxURLBytes) }, "url has"},
		{"much metadata", func(r *kb.Record) { r.Metadata = map[string]any{"a": strings.Repeat("a", kb.MaxMetadataBytes)} }, "metadata has"},
		{"metadata in levels", func(r *kb.Record) { r.Metadata = map[string]any{"a": nested(15)} }, ""},
		{"too many levels", func(r *kb.Record) { r.Metadata = map[string]any{"a": nested(16)} }, "deeper than 16"},
		{"numbers", func(r *kb.Record) {
			r.Metadata = map[string]any{"a": []any{json.Number("-1.5e-300"), json.Number(strings.Repeat("9", 100))}}
		}, ""},
		{"a huge number", func(r *kb.Record) { r.Metadata = map[string]any{"a": json.Number("1E+301")} }, "the number"},
		{"a tiny number", func(r *kb.Record) { r.Metadata = map[string]any{"a": json.Number("1e-999")} }, "the number"},
		{"a long number", func(r *kb.Record) { r.Metadata = map[string]any{"a": json.Number(strings.Repeat("9", 101))} }, "the number"},
		{"the last year", func(r *kb.Record) { r.LastUpdated = time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC) }, ""},
		{"a year too late", func(r *kb.Record) { r.LastUpdated = time.Date(9999, 12, 31, 23, 0, 0, 0, time.FixedZone("", -7200)) }, "year 10000"},
	}
	for _, test := range tests {
		r := good()
		test.change(&r)
		err := r.Check()
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}

// nested is a list in a list, n deep.
func nested(levels int) any {
	if levels == 0 {
		return true
	}
	return []any{nested(levels - 1)}
}

func TestNormalize(t *testing.T) {
	r := kb.Record{ID: " doc:a ", Title: " a \n b ", Text: "\r\nx\r\ny\r\n", Tags: []string{" B", "a", "b", ""}, Authors: []string{" bo", "person:bo", "ada_l", ""}, Categories: []string{" Human \n Resources ", "HR", "HR"}, Metadata: map[string]any{},
		LastUpdated: time.Date(2026, 5, 1, 14, 0, 0, 1234567, time.FixedZone("", 7200))}
	r.Normalize()
	want := kb.Record{ID: "doc:a", Type: kb.TypeDoc, Namespace: kb.NamespaceStudio, Title: "a b", Text: "x\ny", Tags: []string{"a", "b"},
		Authors: []string{"person:ada_l", "person:bo"}, Categories: []string{"HR", "Human Resources"},
		LastUpdated: time.Date(2026, 5, 1, 12, 0, 0, 1e6, time.UTC)}
	if diff := cmp.Diff(want, r); diff != "" {
		t.Error(diff)
	}
	again := r
	again.Normalize()
	if diff := cmp.Diff(r, again); diff != "" {
		t.Errorf("twice is not once: %s", diff)
	}
}

func TestHashCoversEveryField(t *testing.T) {
	base := good()
	changes := map[string]func(*kb.Record){
		"id": func(r *kb.Record) { r.ID = "person:b" }, "namespace": func(r *kb.Record) { r.Namespace = kb.NamespacePublic },
		"title": func(r *kb.Record) { r.Title = "B" }, "text": func(r *kb.Record) { r.Text = "b" }, "tags": func(r *kb.Record) { r.Tags = []string{"b"} },
		"authors": func(r *kb.Record) { r.Authors = []string{"person:b"} }, "categories": func(r *kb.Record) { r.Categories = []string{"b"} },
		"url": func(r *kb.Record) { r.URL = "b" }, "source": func(r *kb.Record) { r.SourceType = "b" },
		"updated":  func(r *kb.Record) { r.LastUpdated = r.LastUpdated.Add(time.Millisecond) },
		"metadata": func(r *kb.Record) { r.Metadata = map[string]any{"b": 1} },
	}
	seen := map[string]string{base.Hash(): "nothing changed"}
	for name, change := range changes {
		r := good()
		change(&r)
		if other, ok := seen[r.Hash()]; ok {
			t.Errorf("%s: the same hash as %s", name, other)
		}
		seen[r.Hash()] = name
	}
	number := good()
	number.Metadata = map[string]any{"n": json.Number("1.50")}
	if number.Hash() == base.Hash() || len(number.Hash()) != 32 {
		t.Errorf("hash %q", number.Hash())
	}
}

func TestEmbeddingTextIsCutAtAWord(t *testing.T) {
	r := good()
	r.Tags, r.Text = []string{"x", "y"}, strings.Repeat("wörd ", 5000)
	text := r.EmbeddingText()
	if !strings.HasPrefix(text, "Ada\nx, y\n\nwörd") || !strings.HasSuffix(text, "wörd") || len(text) > 6000 {
		t.Errorf("%d bytes, %.30q … %q", len(text), text, text[len(text)-20:])
	}
	r.Text = strings.Repeat("ö", 5000)
	if text := r.EmbeddingText(); !strings.HasSuffix(text, "ö") || len(text) > 6000 || len(text) < 5900 {
		t.Errorf("%d bytes of one word", len(text))
	}
}

func TestProblemsNameTheirPlace(t *testing.T) {
	if got := (kb.Problem{File: "a/b.md", Line: 3, Message: "m"}).Error(); got != "a/b.md:3: m" {
		t.Error(got)
	}
	if got := (kb.Problem{File: "a", Message: "m"}).Error(); got != "a: m" {
		t.Error(got)
	}
}
