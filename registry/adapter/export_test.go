package adapter

import "encoding/json"

// Looser lists the keywords that Gemini's form only describes.
func Looser(text json.RawMessage) []string {
	g := &gemini{}
	_, _ = g.parameters(text)
	return g.looser
}
