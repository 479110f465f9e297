package transport

import (
	"regexp"
	"strings"
	"time"
)

// ModelEnd is the announced end of a model.
type ModelEnd struct {
	// Date is the first day without the model, such as 2027-01-20.
	Date string `json:"date"`
	// Successor is the recommended replacement.
	Successor string `json:"successor"`
	// Source is the announcement and the date of reading.
	Source string `json:"source"`
}

// Past reports whether the day of the end has begun.
func (e ModelEnd) Past(now time.Time) bool { return now.UTC().Format(time.DateOnly) >= e.Date }

// The sources of the rows.
const (
	openaiPage = "developers.openai.com/api/docs/deprecations, read 2026-11-23"
	googlePage = "ai.google.dev/gemini-api/docs/deprecations, read 2026-11-23"
)

// modelEnds are the announced ends of models for voice, transcription, chat, images and embeddings. A name includes
// its dated releases. A release with another end has its own row, before its family's.
var modelEnds = []struct {
	names string // patterns, separated by blanks
	ModelEnd
}{
	{`gpt-realtime gpt-4o-realtime-preview`, ModelEnd{"2027-01-20", "gpt-realtime-2.1", openaiPage}},
	{`gpt-realtime-mini gpt-4o-mini-realtime-preview`, ModelEnd{"2027-01-20", "gpt-realtime-2.1-mini", openaiPage}},
	{`whisper-1 gpt-4o-transcribe gpt-4o-mini-transcribe gpt-4o-transcribe-diarize`,
		ModelEnd{"2027-02-26", "gpt-live-transcribe", openaiPage}},
	{`gpt-image-1`, ModelEnd{"2026-10-23", "gpt-image-2.6-flare", openaiPage}},
	{`gpt-image-1-mini gpt-image-1\.5 chatgpt-image-latest`, ModelEnd{"2026-12-01", "gpt-image-2.6-flare", openaiPage}},
	{`gpt-5`, ModelEnd{"2026-12-11", "gpt-6.1-sol", openaiPage}},
	{`gpt-5-mini`, ModelEnd{"2026-12-11", "gpt-6.1-terra", openaiPage}},
	{`gpt-4o gpt-4o-mini gpt-4\.1 gpt-4\.1-mini`, ModelEnd{"2027-01-14", "gpt-6-luna", openaiPage}},

	{`gemini-2\.0-flash-live-001 gemini-live-2\.5-flash-preview`, ModelEnd{"2025-12-09", "gemini-3.8-live", googlePage}},
	{`gemini-2\.5-pro`, ModelEnd{"2026-12-01", "gemini-3.8-flash", googlePage}},
	{`gemini-2\.5-flash`, ModelEnd{"2026-12-01", "gemini-3.5-flash-lite", googlePage}},
	{`gemini-2\.5-flash-image`, ModelEnd{"2026-10-02", "gemini-3.1-flash-image", googlePage}},
	{`imagen-[34]\.0-[a-z]+-[0-9]+ imagen-[34]\.0-[a-z]+-generate-[0-9]+`, ModelEnd{"2026-06-24", "gemini-3.1-flash-image", googlePage}},
	{`text-embedding-004`, ModelEnd{"2026-01-14", "gemini-embedding-001", googlePage}},
}

// pattern matches the whole name of a row's models, with or without a release's date.
var patterns = func() []*regexp.Regexp {
	list := make([]*regexp.Regexp, len(modelEnds))
	for i, r := range modelEnds {
		list[i] = regexp.MustCompile(`^(?:` + strings.ReplaceAll(r.names, " ", "|") + `)(?:-\d{4}-\d{2}-\d{2})?$`)
	}
	return list
}()

// EndOfModel returns the announced end of a model, by its name with or without a path (models/…, projects/…).
func EndOfModel(model string) (ModelEnd, bool) {
	name := strings.ToLower(model[strings.LastIndexByte(model, '/')+1:])
	for i, p := range patterns {
		if p.MatchString(name) {
			return modelEnds[i].ModelEnd, true
		}
	}
	return ModelEnd{}, false
}
