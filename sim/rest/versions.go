package rest

import (
	"regexp"
	"strings"
)

// API is a provider's API whose paths begin with a version.
type API int

// The APIs.
const (
	GeminiAPI API = iota // Google's Gemini Developer API
	VertexAI             // Google's Vertex AI
	OpenAIAPI            // OpenAI's, and the endpoints of others that are compatible with it
)

// versions has every version that an official client uses by default or the documentation recommends, with the newest
// client that does (the sources of the npm and Go packages, and the README of PyPI's google-genai, read 2026-11-29).
// The simulator serves only these.
var versions = []struct {
	api     API
	version string
	client  string
}{
	{GeminiAPI, "v1", "npm @google/genai 3.3"},
	{GeminiAPI, "v1beta", "Go genai 1.77, PyPI google-genai, npm @google/genai 2"},
	{GeminiAPI, "v1alpha", "the same, for ephemeral tokens and proactive audio"},
	{VertexAI, "v1beta1", "npm @google/genai 3.3, Go genai 1.77, PyPI google-genai"},
	{VertexAI, "v1", "the same with GOOGLE_GENAI_API_VERSION; Vertex' own pages"},
	{OpenAIAPI, "v1", "npm openai 7.59, Go openai-go 3.99, npm @openai/agents-realtime 0.20"},
	{OpenAIAPI, "openai/v1", "the same at Azure"},
	{OpenAIAPI, "v1beta/openai", "the same at Google's compatible endpoint"},
}

// Versions returns a regular expression without groups that matches the versions of some APIs.
func Versions(apis ...API) string {
	var all []string
	for _, api := range apis {
		for _, v := range versions {
			if v.api == api {
				all = append(all, regexp.QuoteMeta(v.version))
			}
		}
	}
	return "(?:" + strings.Join(all, "|") + ")"
}
