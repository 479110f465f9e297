package sim

import (
	"cmp"
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"voicegw/sim/wire"
)

var (
	// geminiImages are Gemini's image models and imagens those of Imagen, as Google's model
	// pages name them (https://ai.google.dev/gemini-api/docs/models, read 2026-11-20).
	geminiImages = regexp.MustCompile(`^gemini-\d(?:\.\d)?-(?:flash|flash-lite|pro)-(?:image|preview-image-generation|` +
		`exp-image-generation)(?:-preview)?(?:-\d+)?$`)
	imagens = regexp.MustCompile(`^imagen-[34]\.0-(?:fast-|ultra-)?(?:generate|capability)(?:-preview)?-\d+(?:-\d+)?$`)
)

// sides are the sizes of a 1K picture by its aspect ratio.
var sides = map[string][2]int{
	"1:1": {1024, 1024}, "2:3": {832, 1248}, "3:2": {1248, 832}, "3:4": {864, 1184}, "4:3": {1184, 864},
	"4:5": {896, 1152}, "5:4": {1152, 896}, "9:16": {768, 1344}, "16:9": {1344, 768}, "21:9": {1536, 672},
}

// googleSize returns the size for an aspect ratio and a named size; empty means the default.
func googleSize(ratio, size string) (width, height int, bad *Error) {
	ratio = cmp.Or(ratio, "1:1")
	side, ok := sides[ratio]
	if !ok {
		return 0, 0, invalidArgument("aspect_ratio is invalid: " + ratio + ".")
	}
	factor := map[string]int{"": 1, "1K": 1, "2K": 2, "4K": 4}[strings.ToUpper(size)]
	if factor == 0 {
		return 0, 0, invalidArgument("image_size is invalid: " + size + ".")
	}
	width, height = side[0]*factor, side[1]*factor
	if longest := max(width, height); longest > maxSide { // 4K of a long shape
		width, height = width*maxSide/longest, height*maxSide/longest
	}
	return width, height, nil
}

func invalidArgument(message string) *Error {
	return &Error{Status: http.StatusBadRequest, Message: message}
}

func noSuchModel(name, method string) *Error {
	return &Error{Status: http.StatusNotFound, Message: "models/" + name +
		" is not found for API version v1beta, or is not supported for " + method +
		". Call ModelService.ListModels to see the list of available models and their supported methods."}
}

type generateRequest struct {
	Contents []struct {
		Parts []struct {
			Text string `json:"text"`
		} `json:"parts"`
	} `json:"contents"`
	Config struct {
		Modalities []string `json:"responseModalities"`
		Candidates int      `json:"candidateCount"`
		Image      struct {
			AspectRatio string `json:"aspectRatio"`
			Size        string `json:"imageSize"`
		} `json:"imageConfig"`
	} `json:"generationConfig"`
}

// pictureTokens is the cost of a 1K picture in tokens.
const pictureTokens = 1290

func (s *Server) generateContent(x *exchange, model string, body []byte) *Error {
	var r generateRequest
	if err := json.Unmarshal(body, &r); err != nil {
		return invalidArgument("Invalid JSON payload received. " + err.Error())
	}
	if !geminiImages.MatchString(model) {
		if strings.HasPrefix(model, "gemini-") { // (own): the simulator's Gemini writes through its compatible endpoint
			return invalidArgument("The simulator serves generateContent for models that draw, such as " +
				"gemini-3.1-flash-image; for text use /v1beta/openai/chat/completions.")
		}
		return noSuchModel(model, "generateContent")
	}
	o, bad := r.order()
	if bad != nil {
		return bad
	}
	d, bad := s.draw(x, o)
	if bad != nil || x.over {
		return bad
	}
	tokens := wire.TextTokens(o.prompt)
	content := object{"role", "model"}
	finish := object{"finishReason", "STOP"}
	usage := object{"promptTokenCount", tokens, "promptTokensDetails", []object{{"modality", "TEXT", "tokenCount", tokens}}}
	if d.refusal != "" {
		finish = object{"finishReason", "IMAGE_SAFETY", "finishMessage", d.refusal}
		usage = append(usage, "totalTokenCount", tokens)
	} else {
		var parts []object
		if len(r.Config.Modalities) == 0 || contains(r.Config.Modalities, "TEXT") {
			parts = append(parts, object{"text", cmp.Or(d.caption, "Here is your image.")})
		}
		parts = append(parts, object{"inlineData", object{"mimeType", "image/png", "data", d.pictures[0]}})
		content = append(object{"parts", parts}, content...)
		usage = append(usage, "candidatesTokenCount", pictureTokens, "totalTokenCount", tokens+pictureTokens,
			"candidatesTokensDetails", []object{{"modality", "IMAGE", "tokenCount", pictureTokens}})
	}
	x.JSON(object{
		"candidates", []object{append(object{"content", content, "index", 0}, finish...)},
		"usageMetadata", usage, "modelVersion", model, "responseId", x.IDs.Base62(22),
	})
	return nil
}

func contains(words []string, word string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.EqualFold(w, word) })
}

func (r *generateRequest) order() (imageOrder, *Error) {
	o := imageOrder{count: 1, format: "png"}
	if len(r.Contents) == 0 {
		return o, invalidArgument("* GenerateContentRequest.contents: contents is not specified")
	}
	var texts []string
	for _, p := range r.Contents[len(r.Contents)-1].Parts {
		if p.Text != "" {
			texts = append(texts, p.Text)
		}
	}
	o.prompt = strings.Join(texts, " ")
	switch {
	case strings.TrimSpace(o.prompt) == "":
		return o, invalidArgument("Unable to submit request because it must have a text parameter.")
	case len(r.Config.Modalities) > 0 && !contains(r.Config.Modalities, "IMAGE"):
		return o, invalidArgument("The requested combination of response modalities (" +
			strings.Join(r.Config.Modalities, ", ") + ") is not supported by the model.")
	case r.Config.Candidates > 1:
		return o, invalidArgument("Multiple candidates is not enabled for this model")
	}
	var bad *Error
	o.width, o.height, bad = googleSize(r.Config.Image.AspectRatio, r.Config.Image.Size)
	return o, bad
}

type predictRequest struct {
	Instances []struct {
		Prompt string `json:"prompt"`
	} `json:"instances"`
	Parameters struct {
		Count       *int   `json:"sampleCount"`
		AspectRatio string `json:"aspectRatio"`
		Size        string `json:"sampleImageSize"`
		RAIReason   bool   `json:"includeRaiReason"`
		Output      struct {
			MimeType string `json:"mimeType"`
		} `json:"outputOptions"`
	} `json:"parameters"`
}

const maxSamples = 4

func (s *Server) predict(x *exchange, model string, body []byte) *Error {
	var r predictRequest
	if err := json.Unmarshal(body, &r); err != nil {
		return invalidArgument("Invalid JSON payload received. " + err.Error())
	}
	if !imagens.MatchString(model) {
		return noSuchModel(model, "predict")
	}
	o, bad := r.order()
	if bad != nil {
		return bad
	}
	d, bad := s.draw(x, o)
	if bad != nil || x.over {
		return bad
	}
	if d.refusal != "" && !r.Parameters.RAIReason {
		x.JSON(object{})
		return nil
	}
	predictions := []object{}
	if d.refusal != "" {
		predictions = append(predictions, object{"raiFilteredReason", d.refusal})
	}
	for _, p := range d.pictures {
		one := object{"mimeType", "image/" + o.format, "bytesBase64Encoded", p}
		if d.caption != "" {
			one = append(one, "prompt", d.caption)
		}
		predictions = append(predictions, one)
	}
	x.JSON(object{"predictions", predictions})
	return nil
}

func (r *predictRequest) order() (imageOrder, *Error) {
	o := imageOrder{count: 1, format: "png"}
	if len(r.Instances) == 0 || strings.TrimSpace(r.Instances[0].Prompt) == "" {
		return o, invalidArgument("Image generation failed with the following error: Prompt must not be empty.")
	}
	o.prompt = r.Instances[0].Prompt
	if n := r.Parameters.Count; n != nil {
		o.count = *n
	}
	if o.count < 1 || o.count > maxSamples {
		return o, invalidArgument("The number of images must be from 1 to 4.")
	}
	switch r.Parameters.Output.MimeType {
	case "", "image/png":
	case "image/jpeg":
		o.format = "jpeg"
	default:
		return o, invalidArgument("The output mime type " + r.Parameters.Output.MimeType + " is not supported.")
	}
	var bad *Error
	o.width, o.height, bad = googleSize(r.Parameters.AspectRatio, r.Parameters.Size)
	return o, bad
}
