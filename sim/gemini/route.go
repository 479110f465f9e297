package gemini

import "regexp"

// route is the information in a path and its parameters.
type route struct {
	version string // v1beta, v1alpha, v1, v1beta1
	vertex  bool
}

// One official client, @google/genai, sends the path with a doubled leading
// slash if its base URL is set. The Constrained method is that of ephemeral tokens, which are taken
// like any key.
var (
	developerPath = regexp.MustCompile(`^/{1,2}ws/google\.ai\.generativelanguage\.(v1beta|v1alpha)\.GenerativeService\.BidiGenerateContent(?:Constrained)?$`)
	vertexPath    = regexp.MustCompile(`^/{1,2}ws/google\.cloud\.aiplatform\.(v1|v1beta1)\.LlmBidiService/BidiGenerateContent$`)
)

// Handles reports whether path belongs to this wire. A server that mounts
// several wires calls it before it passes a request to the Handler, with the
// raw path: http.ServeMux answers a doubled slash with a redirect, which no
// WebSocket client follows.
func Handles(path string) bool {
	_, live := parsePath(path)
	return live
}

// parsePath reads the path of a WebSocket request.
func parsePath(path string) (route, bool) {
	if m := developerPath.FindStringSubmatch(path); m != nil {
		return route{version: m[1]}, true
	}
	if m := vertexPath.FindStringSubmatch(path); m != nil {
		return route{version: m[1], vertex: true}, true
	}
	return route{}, false
}
