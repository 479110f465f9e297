// Package rest simulates the request/response APIs of the providers. Each can inject faults.
//
// Chat Completions (https://developers.openai.com/api/reference/resources/chat, read 2026-11-20), as OpenAI, Azure and
// compatible servers serve them: nothing is kept between requests. The request's messages are replayed through a
// scenario.Dialogue, which answers the last one, so one scenario works by voice and in text.
//
// Embeddings (https://developers.openai.com/api/reference/resources/embeddings, read 2026-11-20): words, their stems,
// pieces and pairs, and groups of related common words are hashed to places in the vector. Texts in similar words get
// similar vectors, the same on every machine.
//
// Speech of OpenAI (https://developers.openai.com/api/reference/resources/audio, read 2026-11-30): by sim/voice.
//
// Images of OpenAI (https://developers.openai.com/api/reference/resources/images), Gemini
// (https://ai.google.dev/api/generate-content) and Imagen (https://docs.cloud.google.com/vertex-ai/generative-ai/docs/
// model-reference/imagen-api, all read 2026-11-20): shapes and colours from a hash of the prompt.
package rest

import (
	"cmp"
	"net/http"
	"regexp"
	"strings"
	"time"

	"voicegw/sim/fault"
	"voicegw/sim/voice"
	"voicegw/sim/wire"
)

// Handler simulates the request/response APIs. It may be used concurrently.
type Handler struct {
	opts wire.Options
	// firstAfter is the time before the first word of a chat, between the time between two words.
	firstAfter, between time.Duration
	lines               voice.Cache
}

const (
	// defaultBetween is the speed of an ordinary model: about 65 tokens a second.
	defaultBetween = 15 * time.Millisecond
	// defaultSpeed is the speed of speech to which defaultBetween belongs: a simulator that speaks twice as fast also
	// writes twice as fast.
	defaultSpeed = 4
)

// New makes the handler.
func New(o wire.Options) *Handler {
	h := &Handler{opts: o.WithDefaults(), firstAfter: time.Duration(max(cmp.Or(o.FirstAudioMS, 200), 0)) * time.Millisecond}
	if speed := cmp.Or(o.Speed, defaultSpeed); speed > 0 {
		h.between = time.Duration(float64(defaultBetween) * defaultSpeed / speed)
	}
	return h
}

var (
	// openAIPath matches the paths of OpenAI's versions, and Azure's older ones, which name a deployment.
	openAIPath = regexp.MustCompile(`^/(?:` + Versions(OpenAIAPI) +
		`|openai/deployments/([^/]+))/(chat/completions|embeddings|images/generations|audio/speech)$`)
	// googlePath matches the path of the Gemini API, and of Vertex with and without a project.
	googlePath = regexp.MustCompile(`^/` + Versions(GeminiAPI, VertexAI) +
		`/(?:projects/[^/]+/locations/[^/]+/)?(?:publishers/google/)?models/([^/:]+):(generateContent|predict)$`)
)

// Handles reports whether path, without a slash at its end, belongs to these APIs.
func Handles(path string) bool { return openAIPath.MatchString(path) || googlePath.MatchString(path) }

func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if at := openAIPath.FindStringSubmatch(r.URL.Path); at != nil {
		api, handle := fault.APIChat, h.chat
		switch at[2] {
		case "embeddings":
			api, handle = fault.APIEmbeddings, h.embeddings
		case "images/generations":
			api, handle = fault.APIImages, h.imagesOfOpenAI
		case "audio/speech":
			api, handle = fault.APISpeech, h.speech
		}
		azure := strings.HasPrefix(r.URL.Path, "/openai/")
		serveOne(w, r, &h.opts, api, OpenAI, OpenAIKey(OpenAIKeyOf(r)), func(x *exchange, body []byte) *Error {
			return handle(x, body, at[1], azure)
		})
		return
	}
	at := googlePath.FindStringSubmatch(r.URL.Path)
	if at == nil {
		http.NotFound(w, r)
		return
	}
	handle := h.generateContent
	if at[2] == "predict" {
		handle = h.predict
	}
	serveOne(w, r, &h.opts, fault.APIImages, Google, GoogleKey(GoogleKeyOf(r)), func(x *exchange, body []byte) *Error {
		return handle(x, at[1], body)
	})
}
