package sim

import (
	"io"
	"net/http"
	"regexp"
	"strings"

	"voicegw/sim/gemini"
	"voicegw/sim/live"
	"voicegw/sim/scenario"
	"voicegw/sim/wire"
)

var (
	realtimePath = regexp.MustCompile(`^(/openai)?/v1/realtime(/.*)?$`)
	// openAIPath matches the paths of OpenAI's versions, and Azure's older ones, which name a deployment.
	openAIPath = regexp.MustCompile(`^/(?:` + wire.Versions(wire.OpenAIAPI) +
		`|openai/deployments/([^/]+))/(chat/completions|embeddings|images/generations|audio/speech)$`)
	// googlePath matches the path of the Gemini API, and of Vertex with and without a project.
	googlePath = regexp.MustCompile(`^/` + wire.Versions(wire.GeminiAPI, wire.VertexAI) +
		`/(?:projects/[^/]+/locations/[^/]+/)?(?:publishers/google/)?models/([^/:]+):(generateContent|predict)$`)
)

// ServeHTTP routes by the raw path, without http.ServeMux, which would redirect the double slash that one official
// client sends. For paths that no wire knows it answers 404 with an explanation.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := "/" + strings.Trim(r.URL.Path, "/")
	openAI, google := openAIPath.FindStringSubmatch(path), googlePath.FindStringSubmatch(path)
	switch {
	case realtimePath.MatchString(path):
		s.openai.ServeHTTP(w, at(r, path))
	case live.Handles(path):
		s.live.ServeHTTP(w, at(r, path))
	case openAI != nil:
		s.serveOpenAI(w, r, openAI[2], openAI[1], strings.HasPrefix(path, "/openai/"))
	case google != nil:
		s.serveGoogle(w, r, google[2], google[1])
	case gemini.Handles(r.URL.Path):
		s.gemini.ServeHTTP(w, r)
	case path == "/healthz":
		// The write fails only if the client is gone.
		_, _ = io.WriteString(w, "ok\n")
	default:
		http.Error(w, "The simulator has nothing at "+r.URL.Path+". It serves:\n"+
			"  /v1/realtime            OpenAI Realtime (WebSocket), and /v1/realtime/client_secrets\n"+
			"  /v1/live/sessions       OpenAI Live (WebSocket)\n"+
			"  /v1/chat/completions    OpenAI Chat Completions, with /v1/embeddings and /v1/images/generations\n"+
			"  /openai/v1/realtime     the same as Azure serves it, and /openai/v1/live/sessions\n"+
			"  /ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent   Gemini Live (WebSocket)\n"+
			"  /v1alpha/auth_tokens    Gemini's ephemeral tokens\n"+
			"  /v1beta/models/{model}:generateContent, :predict   images of Gemini and Imagen\n", http.StatusNotFound)
	}
}

func at(r *http.Request, path string) *http.Request {
	r = r.Clone(r.Context())
	r.URL.Path = path
	return r
}

// serveOpenAI serves a request of OpenAI's APIs. deployment is that of Azure's older paths.
func (s *Server) serveOpenAI(w http.ResponseWriter, r *http.Request, name, deployment string, azure bool) {
	api, handle := scenario.APIChat, s.chat
	switch name {
	case "embeddings":
		api, handle = scenario.APIEmbeddings, s.embeddings
	case "images/generations":
		api, handle = scenario.APIImages, s.imagesOfOpenAI
	case "audio/speech":
		api, handle = scenario.APISpeech, s.speech
	}
	key := wire.OpenAIKey(wire.OpenAIKeyOf(r))
	serveOne(w, r, &s.opts, api, wire.OpenAIError, key, func(x *exchange, body []byte) *Error {
		return handle(x, body, deployment, azure)
	})
}

// serveGoogle serves a request for images of Google's APIs.
func (s *Server) serveGoogle(w http.ResponseWriter, r *http.Request, method, model string) {
	handle := s.generateContent
	if method == "predict" {
		handle = s.predict
	}
	key := wire.GoogleKey(wire.GoogleKeyOf(r))
	serveOne(w, r, &s.opts, scenario.APIImages, wire.GoogleError, key, func(x *exchange, body []byte) *Error {
		return handle(x, model, body)
	})
}
