package completions

import (
	"net/http"
	"regexp"
	"time"

	"voicegw/sim/fault"
	"voicegw/sim/rest"
	"voicegw/sim/wire"
)

// Handler serves the API. It may be used concurrently.
type Handler struct {
	opts wire.Options
	// firstAfter is the time before the first word, between the time between two words.
	firstAfter, between time.Duration
}

// The speed of an ordinary model: about 65 tokens a second.
const (
	defaultFirst   = 200 * time.Millisecond
	defaultBetween = 15 * time.Millisecond
	// defaultSpeed is the speed of speech to which defaultBetween belongs: a simulator that
	// speaks twice as fast also writes twice as fast.
	defaultSpeed = 4
)

// New makes the chat side of the simulator.
func New(o wire.Options) *Handler {
	h := &Handler{opts: o.WithDefaults(), firstAfter: defaultFirst, between: defaultBetween}
	switch {
	case o.Speed < 0:
		h.between = 0
	case o.Speed > 0:
		h.between = time.Duration(float64(defaultBetween) * defaultSpeed / o.Speed)
	}
	switch {
	case o.FirstAudioMS < 0:
		h.firstAfter = 0
	case o.FirstAudioMS > 0:
		h.firstAfter = time.Duration(o.FirstAudioMS) * time.Millisecond
	}
	return h
}

// paths matches the paths of OpenAI, of Google's compatible endpoint, and of Azure's two forms.
var paths = regexp.MustCompile(`^/(?:v1(?:beta/openai)?|openai/v1|openai/deployments/([^/]+))/chat/completions$`)

var azurePath = regexp.MustCompile(`^/openai/`)

// Handles reports whether path, without a slash at its end, belongs to this API.
func Handles(path string) bool { return paths.MatchString(path) }

// ServeHTTP serves the paths for which Handles is true.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	at := paths.FindStringSubmatch(r.URL.Path)
	if at == nil {
		http.NotFound(w, r)
		return
	}
	key := rest.OpenAIKey(rest.OpenAIKeyOf(r))
	rest.Serve(w, r, &h.opts, fault.APIChat, rest.OpenAI, key, func(x *rest.Exchange, body []byte) error {
		req, bad := parse(body, at[1], azurePath.MatchString(r.URL.Path))
		if bad != nil {
			return bad
		}
		return h.answer(x, req)
	})
}
