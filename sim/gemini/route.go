package gemini

import (
	"regexp"

	"voicegw/sim/rest"
)

// route is the information in a path and its parameters.
type route struct {
	version     string // of rest.GeminiAPI or rest.VertexAI
	vertex      bool
	constrained bool // the method for ephemeral tokens
}

// One official client, @google/genai, sends the path with a doubled leading
// slash if its base URL is set.
var (
	developerPath = regexp.MustCompile(`^/{1,2}ws/google\.ai\.generativelanguage\.(` + rest.Versions(rest.GeminiAPI) + `)\.GenerativeService\.BidiGenerateContent(Constrained)?$`)
	vertexPath    = regexp.MustCompile(`^/{1,2}ws/google\.cloud\.aiplatform\.(` + rest.Versions(rest.VertexAI) + `)\.LlmBidiService/BidiGenerateContent$`)
	tokensPath    = regexp.MustCompile(`^/{1,2}` + rest.Versions(rest.GeminiAPI) + `/(?:auth_tokens|authTokens)$`)
)

// Handles reports whether path belongs to this wire. A server that mounts
// several wires calls it before it passes a request to the Handler, with the
// raw path: http.ServeMux answers a doubled slash with a redirect, which no
// WebSocket client follows.
func Handles(path string) bool {
	_, live := parsePath(path)
	return live || tokensPath.MatchString(path)
}

// parsePath reads the path of a WebSocket request.
func parsePath(path string) (route, bool) {
	if m := developerPath.FindStringSubmatch(path); m != nil {
		return route{version: m[1], constrained: m[2] != ""}, true
	}
	if m := vertexPath.FindStringSubmatch(path); m != nil {
		return route{version: m[1], vertex: true}, true
	}
	return route{}, false
}
