package wire

import "strings"

// API is a provider's API whose paths begin with a version.
type API int

// The APIs whose paths begin with a version.
const (
	GeminiAPI API = iota // Google's Gemini Developer API
	VertexAI             // Google's Vertex AI
	OpenAIAPI            // OpenAI's, and the endpoints of others that are compatible with it
)

// versions has every version that an official client uses by default or the documentation recommends (the sources of the
// npm and Go packages, and the README of PyPI's google-genai, read 2026-11-29). The simulator serves only these.
var versions = map[API][]string{
	// npm @google/genai 3.3 uses v1, Go genai 1.77, PyPI's google-genai and npm @google/genai 2 use v1beta, and ephemeral
	// tokens and proactive audio v1alpha.
	GeminiAPI: {"v1", "v1beta", "v1alpha"},
	// v1 is for GOOGLE_GENAI_API_VERSION, and on Vertex' own pages.
	VertexAI: {"v1beta1", "v1"},
	// npm openai 7.59, Go openai-go 3.99 and npm @openai/agents-realtime 0.20; the same at Azure, and at Google.
	OpenAIAPI: {"v1", "openai/v1", "v1beta/openai"},
}

// Versions returns a regular expression without groups that matches the versions of some APIs.
func Versions(apis ...API) string {
	var all []string
	for _, api := range apis {
		all = append(all, versions[api]...)
	}
	return "(?:" + strings.Join(all, "|") + ")"
}
