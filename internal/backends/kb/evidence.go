package kb

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"voicegw/registry"
	"voicegw/registry/spec"
)

// Evidence is a record in a tool's answer, with the requested fields.
type Evidence struct {
	ID          string         `json:"id"`
	Type        Type           `json:"type"`
	Title       string         `json:"title"`
	Snippet     string         `json:"snippet,omitempty"`
	Score       float64        `json:"score,omitempty"` // above 0 and at most 1; absent without a search
	SourceType  string         `json:"source_type,omitempty"`
	LastUpdated string         `json:"last_updated,omitempty"` // RFC 3339 UTC with milliseconds
	URL         string         `json:"url,omitempty"`
	FullText    string         `json:"full_text,omitempty"`
	Metadata    map[string]any `json:"metadata,omitempty"`
	Shortened   []string       `json:"shortened,omitempty"` // names the fields that were too long, and are cut or absent
}

// Field is a part of a record that a model may request. The id, the type and the title are always present.
type Field string

// The fields.
const (
	FieldSnippet  Field = "snippet"
	FieldFullText Field = "full_text"
	FieldMetadata Field = "metadata"
	FieldSources  Field = "sources" // source_type and last_updated
	FieldURL      Field = "url"
)

// RequestedFields returns the fields with the given names, or byDefault if names is nil.
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
	Wanted  []Field // the requested fields
	MaxText int     // bounds FieldFullText in bytes
}

// MaxText is Fields.MaxText by mode, because models ignore parts of long texts.
var MaxText = map[spec.Mode]int{spec.ModeVoice: 4 << 10, spec.ModeText: 12 << 10}

const maxBytes = 24 << 10 // bounds the JSON of an Evidence. The largest result of a tool (256 KiB) has room for ten.

// Of returns the evidence of a record. It shares the record's metadata.
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

// fit removes the metadata, then half of the text repeatedly, until e is small enough.
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

// size returns the length of the JSON. If the metadata cannot be encoded, which no source allows, it returns too much.
func (e *Evidence) size() int {
	data, err := json.Marshal(e)
	if err != nil {
		return maxBytes + 1
	}
	return len(data)
}

// Cut returns at most n bytes of a text, to the end of a word if possible.
func Cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	const mark = "…"
	if n = cutAt(text, max(n-len(mark), 0)); n == 0 {
		return ""
	}
	return strings.TrimRight(text[:n], " \n") + mark
}

// EvidenceIDs returns the ids of the records in their order, for registry.Evidenced.
func EvidenceIDs(list []Evidence) []string {
	ids := make([]string, len(list))
	for i, e := range list {
		ids[i] = e.ID
	}
	return ids
}

// Unavailable is a tool's error if an index fails, or the error of ctx if it has ended.
func Unavailable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return &registry.ToolError{
		Type: registry.ErrorTransient, Message: "The knowledge base is unavailable.", Retryable: true,
		Suggestion: "Tell the user that you cannot look it up right now.", Err: err,
	}
}
