package sim

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"voicegw/internal/openaiwire"
	"voicegw/sim/wire"
)

const (
	maxPrompt   = 32000 // characters
	maxPictures = 10
)

// openAIModels are the models that the API had on 2026-11-20, according to the notes of OpenAI's Go client 3.95:
// gpt-image-1 was shut down on 2026-10-23, DALL·E earlier. Models of the second generation draw in any size.
var (
	openAIModels = regexp.MustCompile(`^(?:gpt-image-1-mini|gpt-image-1\.5|gpt-image-2(?:\.\d-(?:sunburst|flare))?|` +
		`chatgpt-image-latest)(?:-\d{4}-\d{2}-\d{2})?$`)
	anySize = regexp.MustCompile(`^gpt-image-2`)
)

var standardSizes = []string{"1024x1024", "1024x1536", "1536x1024", "auto"}

var openAIParameters = strings.Fields(`background complexity frame_count frame_duration_ms model moderation n
	output_compression output_format partial_images prompt quality safety_identifier size stream svg user`)

type openAIRequest struct {
	Model   string  `json:"model"`
	Prompt  *string `json:"prompt"`
	N       *int    `json:"n"`
	Size    *string `json:"size"`
	Quality string  `json:"quality"`
	Format  *string `json:"output_format"`
	Stream  bool    `json:"stream"`
}

func (s *Server) imagesOfOpenAI(x *exchange, body []byte, deployment string, azure bool) *Error {
	r, o, bad := parseOpenAI(body, deployment, azure)
	if bad != nil {
		return bad
	}
	d, bad := s.draw(x, o)
	if bad != nil || x.over {
		return bad
	}
	if d.refusal != "" {
		return &Error{Status: http.StatusBadRequest, Type: "image_generation_user_error", Code: "moderation_blocked",
			Message: "Your request was rejected by the safety system. " + d.refusal}
	}
	x.JSON(r.answer(o, d))
	return nil
}

func parseOpenAI(body []byte, deployment string, azure bool) (r openAIRequest, o imageOrder, bad *Error) {
	var top map[string]json.RawMessage
	if json.Unmarshal(body, &top) != nil || top == nil {
		return r, o, openaiwire.Invalid("", "", "We could not parse the JSON body of your request.")
	}
	for _, name := range slices.Sorted(maps.Keys(top)) {
		if !slices.Contains(openAIParameters, name) { // including response_format and style, which ended with DALL·E
			return r, o, openaiwire.Invalid("unknown_parameter", name, "Unknown parameter: '%s'.", name)
		}
	}
	if err := json.Unmarshal(body, &r); err != nil {
		return r, o, openaiwire.Invalid("invalid_type", "", "The request has a parameter of the wrong type: %v", err)
	}
	r.Model = cmp.Or(r.Model, deployment)
	switch {
	case r.Model == "":
		return r, o, noModel()
	case !azure && !openAIModels.MatchString(r.Model):
		return r, o, modelNotFound(r.Model)
	case r.Stream: // (own)
		return r, o, openaiwire.Invalid("unsupported_parameter", "stream", "Streams of images are not simulated; ask without stream.")
	case r.Prompt == nil:
		return r, o, openaiwire.Missing("prompt")
	case strings.TrimSpace(*r.Prompt) == "":
		return r, o, openaiwire.Invalid("empty_string", "prompt",
			"Invalid 'prompt': empty string. Expected a string with minimum length 1, but got an empty string instead.")
	case len([]rune(*r.Prompt)) > maxPrompt:
		return r, o, openaiwire.Invalid("string_above_max_length",
			"prompt", "Invalid 'prompt': string too long. Expected a string with maximum length %d, but got a string with "+
				"length %d instead.", maxPrompt, len([]rune(*r.Prompt)))
	}
	o = imageOrder{prompt: *r.Prompt, count: 1, format: "png"}
	if r.Format != nil {
		o.format = *r.Format
	}
	if r.N != nil {
		o.count = *r.N
	}
	if bad = inRange("n", &o.count, 1, maxPictures); bad != nil {
		return r, o, bad
	}
	if o.format != "png" && o.format != "jpeg" {
		return r, o, openaiwire.Invalid("invalid_value", "output_format",
			"Invalid value: '%s'. The simulator draws 'png' and 'jpeg'.", o.format) // (own)
	}
	o.width, o.height, bad = r.size(azure)
	return r, o, bad
}

// size returns the requested size: a standard one, or for the newer models any whose sides are
// multiples of 16, from 1:3 to 3:1, up to 3840x2160.
func (r *openAIRequest) size(azure bool) (width, height int, bad *Error) {
	if r.Size == nil || *r.Size == "auto" {
		return 1024, 1024, nil
	}
	w, h, _ := strings.Cut(*r.Size, "x")
	width, errW := strconv.Atoi(w)
	height, errH := strconv.Atoi(h)
	switch {
	case slices.Contains(standardSizes, *r.Size):
		return width, height, nil
	case errW != nil || errH != nil, !azure && !anySize.MatchString(r.Model):
		return 0, 0, openaiwire.BadValue("size", *r.Size, "1024x1024", "1024x1536", "1536x1024", "auto")
	case width < 16 || height < 16 || width%16 != 0 || height%16 != 0 || width > 3*height || height > 3*width ||
		max(width, height) > 3840 || width*height > 3840*2160:
		return 0, 0, openaiwire.Invalid("invalid_value",
			"size", "Invalid value: '%s'. Width and height must be divisible by 16, the aspect ratio between 1:3 and 3:1, and "+
				"the size at most 3840x2160.", *r.Size)
	}
	return width, height, nil
}

// outputTokens are the approximate costs of a 1024 by 1024 picture at each quality.
var outputTokens = map[string]int{"low": 272, "medium": 1056, "high": 4160, "xhigh": 6240, "max": 8320}

func (r *openAIRequest) answer(o imageOrder, d drawn) object {
	quality := "medium"
	if outputTokens[r.Quality] > 0 {
		quality = r.Quality
	}
	var data []object
	for _, p := range d.pictures {
		data = append(data, object{"b64_json", p})
	}
	in, out := wire.TextTokens(o.prompt), o.count*outputTokens[quality]*o.width*o.height/(1024*1024)
	return object{
		"created", time.Now().Unix(), "background", "opaque", "data", data, "output_format", o.format, "quality", quality,
		"size", fmt.Sprintf("%dx%d", o.width, o.height), "usage", object{
			"input_tokens", in, "input_tokens_details", object{"image_tokens", 0, "text_tokens", in},
			"output_tokens", out, "output_tokens_details", object{"image_tokens", out, "text_tokens", 0}, "total_tokens", in + out,
		},
	}
}
