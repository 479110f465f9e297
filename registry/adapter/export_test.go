package adapter

import "encoding/json"

// Looser names the keywords that Gemini's form says in words only.
func Looser(text json.RawMessage) []string {
	_, looser, _ := makeGemini(text)
	return looser
}
