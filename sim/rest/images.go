package rest

import (
	"net/http"
	"regexp"
	"strings"

	"voicegw/sim/fault"
	"voicegw/sim/scenario"
	"voicegw/sim/wire"
)

// Images serves the image APIs. It may be used concurrently.
type Images struct{ opts wire.Options }

// NewImages makes the image side of the simulator.
func NewImages(o wire.Options) *Images { return &Images{opts: o.WithDefaults()} }

var (
	openAIPath = OpenAIPaths("images/generations")
	googlePath = regexp.MustCompile(`^/` + Versions(GeminiAPI, VertexAI) +
		`/(?:projects/[^/]+/locations/[^/]+/)?(?:publishers/google/)?models/([^/:]+):(generateContent|predict)$`)
)

// HandlesImages reports whether path, without a slash at its end, belongs to these APIs.
func HandlesImages(path string) bool {
	return openAIPath.MatchString(path) || googlePath.MatchString(path)
}

// ServeHTTP serves the paths for which HandlesImages is true.
func (h *Images) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if openAIPath.MatchString(r.URL.Path) {
		ServeOpenAI(w, r, &h.opts, fault.APIImages, openAIPath, h.openAI)
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
	key := GoogleKey(GoogleKeyOf(r))
	Serve(w, r, &h.opts, fault.APIImages, Google, key, func(x *Exchange, body []byte) error {
		return handle(x, at[1], body)
	})
}

type imageOrder struct {
	prompt        string
	width, height int
	count         int
	format        string // png or jpeg
}

type drawn struct {
	pictures [][]byte // encoded; empty if the prompt was refused
	refusal  string   // the reason; empty if it was not refused
	caption  string   // the scenario's text that goes with the pictures
}

func (h *Images) draw(x *Exchange, o imageOrder) (drawn, error) {
	var d drawn
	if err := x.At(fault.Point{At: fault.AtTurn, N: 1, Turn: 1}); err != nil {
		return d, err
	}
	h.opts.Stats.Responses.Add(1)
	var said []string
	for _, step := range h.opts.Scenario.NewDialogue(h.opts.Seed).Draw(o.prompt).Steps {
		var err error
		switch s := step.(type) {
		case scenario.Wait:
			err = x.Pause(s.For)
		case scenario.Fault:
			err = x.Do([]fault.Action{s.Action})
		case scenario.Say:
			if s.Refusal {
				return drawn{refusal: s.Text}, nil
			}
			said = append(said, s.Text)
		case scenario.Calls, scenario.End: // rules for a prompt cannot contain these
		}
		if err != nil {
			return d, err
		}
	}
	d.caption = strings.Join(said, " ")
	for i := range o.count {
		if err := x.At(fault.Point{At: fault.AtChunk, N: i + 1, Turn: 1}); err != nil {
			return d, err
		}
		if err := x.Pause(0); err != nil { // the client may be gone
			return d, err
		}
		img, err := Draw(o.prompt, o.width, o.height, i)
		if err != nil {
			return d, err
		}
		b, err := Encode(img, o.format)
		if err != nil {
			return d, err
		}
		d.pictures = append(d.pictures, b)
	}
	h.opts.Stats.Images.Add(int64(o.count))
	return d, nil
}
