package adapter

import "encoding/json"

// Looser lists the keywords that Gemini's form only describes.
func Looser(text json.RawMessage) []string {
	_, looser, _ := makeGemini(text)
	return looser
}
