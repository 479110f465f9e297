package kb

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"
)

// Evidence is one record as a model sees it. Fields that were not requested are absent.
type Evidence struct {
	ID      string `json:"id"`
	Type    Type   `json:"type"`
	Title   string `json:"title"`
	Snippet string `json:"snippet,omitempty"`
	// Score is above 0 and at most 1; absent if there was no search.
	Score      float64 `json:"score,omitempty"`
	SourceType string  `json:"source_type,omitempty"`
	// LastUpdated is a time in RFC 3339, UTC, with milliseconds.
	LastUpdated string         `json:"last_updated,omitempty"`
	URL         string         `json:"url,omitempty"`
	FullText    string         `json:"full_text,omitempty"`
	Metadata    map[string]any `json:"metadata,omitempty"`
	// Shortened names the fields that were cut or left out because they are too long.
	Shortened []string `json:"shortened,omitempty"`
}

// Field is one of the parts of a record that a model may request; the id, the type
// and the title are always present.
type Field string

// The fields.
const (
	FieldSnippet  Field = "snippet"
	FieldFullText Field = "full_text"
	FieldMetadata Field = "metadata"
	FieldSources  Field = "sources" // source_type and last_updated
	FieldURL      Field = "url"
)

// RequestedFields returns the fields that a model asks for by name, or those by default if it names none.
func RequestedFields[Name ~string](names []Name, byDefault ...Field) []Field {
	if names == nil {
		return byDefault
	}
	fields := make([]Field, len(names))
	for i, name := range names {
		fields[i] = Field(name)
	}
	return fields
}

// Fields turn records into evidence.
type Fields struct {
	// Wanted are the fields to fill in.
	Wanted []Field
	// MaxText bounds FieldFullText in bytes.
	MaxText int
}

// maxBytes bounds one piece of evidence as JSON: ten of them fit into the largest result
// of a tool (256 KiB).
const maxBytes = 24 << 10

// Of returns the evidence of a record. It shares the record's metadata without copying it.
func (f Fields) Of(r Record, snippet string, score float64) Evidence {
	e := Evidence{ID: r.ID, Type: r.Type, Title: r.Title, Score: score}
	for _, field := range f.Wanted {
		switch field {
		case FieldSnippet:
			e.Snippet = snippet
		case FieldFullText:
			if e.FullText = Cut(r.Text, f.MaxText); e.FullText != r.Text {
				e.shorten(FieldFullText)
			}
		case FieldMetadata:
			e.Metadata = r.Metadata
		case FieldSources:
			e.SourceType = r.SourceType
			if !r.LastUpdated.IsZero() {
				e.LastUpdated = r.LastUpdated.UTC().Format("2006-01-02T15:04:05.000Z07:00")
			}
		case FieldURL:
			e.URL = r.URL
		}
	}
	e.fit()
	return e
}

func (e *Evidence) shorten(field Field) {
	if !slices.Contains(e.Shortened, string(field)) {
		e.Shortened = append(e.Shortened, string(field))
	}
}

// fit removes parts that are too large: the metadata, then half of the text, repeatedly.
func (e *Evidence) fit() {
	if e.size() > maxBytes && e.Metadata != nil {
		e.Metadata = nil
		e.shorten(FieldMetadata)
	}
	for e.FullText != "" && e.size() > maxBytes {
		e.FullText = Cut(e.FullText, len(e.FullText)/2)
		e.shorten(FieldFullText)
	}
}

// size returns the length as JSON. It returns too much if the evidence cannot be encoded:
// no source gives a record such metadata.
func (e *Evidence) size() int {
	data, err := json.Marshal(e)
	if err != nil {
		return maxBytes + 1
	}
	return len(data)
}

// Cut returns at most n bytes of a text, up to the end of a word if possible.
func Cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	const mark = "…"
	n -= len(mark)
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	if n <= 0 {
		return ""
	}
	if space := strings.LastIndexAny(text[:n], " \n"); space > n/2 {
		n = space
	}
	return strings.TrimRight(text[:n], " \n") + mark
}

// EvidenceIDs returns the ids of the records, in their order: a tool's answer returns them as
// registry.Evidenced.
func EvidenceIDs(list []Evidence) []string {
	ids := make([]string, len(list))
	for i, e := range list {
		ids[i] = e.ID
	}
	return ids
}
