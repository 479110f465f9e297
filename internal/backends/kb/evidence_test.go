package kb

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func record() Record {
	return Record{
		ID: "person:ada_l", Type: TypePerson, Title: "Ada L", Text: "Ada writes programs.", URL: "https://example.com/ada",
		SourceType: "handbook", LastUpdated: time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC), Metadata: map[string]any{"room": "4"},
	}
}

func TestFieldsOfEvidence(t *testing.T) {
	bare := `"id":"person:ada_l","type":"person","title":"Ada L"`
	for name, tc := range map[string]struct {
		fields []Field
		want   string
	}{
		"nothing":   {nil, `{` + bare + `,"score":0.5}`},
		"snippet":   {[]Field{FieldSnippet}, `{` + bare + `,"snippet":"writes","score":0.5}`},
		"sources":   {[]Field{FieldSources}, `{` + bare + `,"score":0.5,"source_type":"handbook","last_updated":"2026-03-01T09:00:00.000Z"}`},
		"url twice": {[]Field{FieldURL, FieldURL}, `{` + bare + `,"score":0.5,"url":"https://example.com/ada"}`},
		"the rest":  {[]Field{FieldFullText, FieldMetadata}, `{` + bare + `,"score":0.5,"full_text":"Ada writes programs.","metadata":{"room":"4"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := json.Marshal(Fields{Wanted: tc.fields, MaxText: 1000}.Of(record(), "writes", 0.5))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, string(got)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestLongTextIsCut: a long text is cut at a word, remains valid, and is marked as cut.
func TestLongTextIsCut(t *testing.T) {
	r := record()
	for name, text := range map[string]string{
		"words":    strings.Repeat("wörter und ", 1000),
		"no words": strings.Repeat("ö", 5000),
	} {
		r.Text = text
		e := Fields{Wanted: []Field{FieldFullText}, MaxText: 1001}.Of(r, "", 1)
		if len(e.FullText) > 1001 || len(e.FullText) < 500 || !utf8.ValidString(e.FullText) || !strings.HasSuffix(e.FullText, "…") {
			t.Errorf("%s: %d bytes, valid %t: …%q", name, len(e.FullText), utf8.ValidString(e.FullText), e.FullText[len(e.FullText)-20:])
		}
		if diff := cmp.Diff([]string{"full_text"}, e.Shortened); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	if e := (Fields{Wanted: []Field{FieldFullText}}).Of(r, "", 1); e.FullText != "" || len(e.Shortened) != 1 {
		t.Errorf("with no room: %q %v", e.FullText, e.Shortened)
	}
}

// TestEvidenceFits: ten of the largest records are smaller than the limit of a tool's result.
func TestEvidenceFits(t *testing.T) {
	r := record()
	r.Text = strings.Repeat("\x01", MaxTextBytes) // six bytes of JSON each
	r.Metadata = map[string]any{"note": strings.Repeat("x", MaxMetadataBytes-20)}
	e := Fields{Wanted: []Field{FieldFullText, FieldMetadata, FieldSources, FieldURL, FieldSnippet}, MaxText: 16 << 10}.Of(r, strings.Repeat("y", 240), 1)
	data, err := json.Marshal(e)
	if err != nil || len(data) > maxBytes {
		t.Errorf("%d bytes, %v", len(data), err)
	}
	if e.FullText == "" || e.Metadata != nil {
		t.Errorf("%d bytes of text and %d of metadata are left", len(e.FullText), len(e.Metadata))
	}
	if diff := cmp.Diff([]string{"full_text", "metadata"}, e.Shortened); diff != "" {
		t.Error(diff)
	}
}

func TestMetadataThatIsNoJSON(t *testing.T) {
	r := record()
	r.Metadata = map[string]any{"x": math.NaN()}
	e := Fields{Wanted: []Field{FieldMetadata}}.Of(r, "", 1)
	if _, err := json.Marshal(e); err != nil {
		t.Errorf("%+v: %v", e, err)
	}
}
