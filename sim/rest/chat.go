package rest

import (
	"cmp"
	"net/http"
	"time"

	"voicegw/sim/fault"
	"voicegw/sim/wire"
)

// Chat simulates OpenAI's Chat Completions API. It may be used concurrently.
type Chat struct {
	opts wire.Options
	// firstAfter is the time before the first word, between the time between two words.
	firstAfter, between time.Duration
}

// The speed of an ordinary model: about 65 tokens a second.
const (
	defaultBetween = 15 * time.Millisecond
	// defaultSpeed is the speed of speech to which defaultBetween belongs: a simulator that
	// speaks twice as fast also writes twice as fast.
	defaultSpeed = 4
)

// NewChat makes the chat side of the simulator.
func NewChat(o wire.Options) *Chat {
	h := &Chat{opts: o.WithDefaults(), firstAfter: time.Duration(max(cmp.Or(o.FirstAudioMS, 200), 0)) * time.Millisecond}
	if speed := cmp.Or(o.Speed, defaultSpeed); speed > 0 {
		h.between = time.Duration(float64(defaultBetween) * defaultSpeed / speed)
	}
	return h
}

var chatPaths = OpenAIPaths("chat/completions")

// HandlesChat reports whether path, without a slash at its end, belongs to this API.
func HandlesChat(path string) bool { return chatPaths.MatchString(path) }

// ServeHTTP serves the paths for which HandlesChat is true.
func (h *Chat) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ServeOpenAI(w, r, &h.opts, fault.APIChat, chatPaths, func(x *Exchange, body []byte, deployment string, azure bool) error {
		req, bad := parseChat(body, deployment, azure)
		if bad != nil {
			return bad
		}
		return h.answer(x, req)
	})
}
