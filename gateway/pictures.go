package gateway

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"voicegw/transport/textmodel"
)

const (
	maxPictures     = 16
	maxPicture      = 5 << 20 // bytes of the decoded file
	maxPictureURL   = 8 << 10 // bytes of an https: URL
	maxPictureParts = 256     // in one content
)

// pictureTypes are the media types of chat models (developers.openai.com/api/docs/guides/images-vision, read
// 2026-11-23). image/jpg is unregistered, but used.
var pictureTypes = map[string]string{
	"image/png": "image/png", "image/jpeg": "image/jpeg", "image/jpg": "image/jpeg", "image/webp": "image/webp", "image/gif": "image/gif",
}

var pictureDetails = []string{"auto", "low", "high", "original"}

var partKinds = map[string][]string{
	"text":      {"type", "text"},
	"refusal":   {"type", "refusal"},
	"image_url": {"type", "image_url"},
}

type pictures struct {
	sees  bool
	count int
}

// content parses text, or parts of text and, from the user, images. parts is nil without images.
func (p *pictures) content(where, role string, raw json.RawMessage) (text string, parts []textmodel.Part, no *problem) {
	if len(raw) == 0 || string(raw) == "null" || json.Unmarshal(raw, &text) == nil {
		return text, nil, nil
	}
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		return "", nil, badField(where, "must be text, or a list of parts.")
	}
	if len(list) > maxPictureParts {
		return "", nil, badField(where, "has "+strconv.Itoa(len(list))+" parts; at most "+
			strconv.Itoa(maxPictureParts)+" are allowed.")
	}
	var texts []string
	seen := false
	for i, raw := range list {
		part, no := p.part(where+"["+strconv.Itoa(i)+"]", role, raw)
		if no != nil {
			return "", nil, no
		}
		parts = append(parts, part)
		if part.Image == "" {
			texts = append(texts, part.Text)
		}
		seen = seen || part.Image != ""
	}
	if !seen {
		parts = nil
	}
	return strings.Join(texts, "\n"), parts, nil
}

func (p *pictures) part(at, role string, raw json.RawMessage) (textmodel.Part, *problem) {
	wrong := func(name, message string) (textmodel.Part, *problem) {
		return textmodel.Part{}, badField(at+name, message)
	}
	var fields map[string]json.RawMessage
	var kind string
	if json.Unmarshal(raw, &fields) != nil || fields == nil {
		return wrong("", "must be an object with a type.")
	}
	if json.Unmarshal(fields["type"], &kind) != nil || kind == "" {
		return wrong(".type", "is missing; it must be a text.")
	}
	known, ok := partKinds[kind]
	switch {
	case !ok || kind == "refusal" && role != "assistant":
		return wrong(".type", "is "+strconv.Quote(clip(kind))+", which is not supported here; "+partAdvice(kind)+".")
	case kind == "image_url" && role != "user":
		return wrong("", "is an image, which only messages of the user may contain.")
	case kind == "image_url" && !p.sees:
		return textmodel.Part{}, wrongField(at, "unsupported_value",
			at+" is an image, but this gateway's model doesn't accept images (chat.vision); omit it, or describe it.")
	}
	if no := unknownField(at, fields, known, "is not supported in a part of the type "+kind+"."); no != nil {
		return textmodel.Part{}, no
	}
	if kind == "image_url" {
		return p.imageURL(at, fields["image_url"])
	}
	var text *string
	if json.Unmarshal(fields[kind], &text) != nil || text == nil {
		return wrong("."+kind, "is missing; it must be a text.")
	}
	return textmodel.Part{Text: *text}, nil
}

func unknownField(at string, fields map[string]json.RawMessage, known []string, wrong string) *problem {
	for name, value := range fields {
		if !slices.Contains(known, name) && string(value) != "null" {
			at += "." + clip(name)
			return wrongField(at, "unknown_parameter", at+" "+wrong)
		}
	}
	return nil
}

func (p *pictures) imageURL(at string, raw json.RawMessage) (textmodel.Part, *problem) {
	at += ".image_url"
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil || fields == nil {
		return textmodel.Part{}, badField(at, `must be {"url": "…", "detail": "auto"}.`)
	}
	if no := unknownField(at, fields, []string{"url", "detail"}, "is not supported; an image has url and detail."); no != nil {
		return textmodel.Part{}, no
	}
	var address, detail string
	if json.Unmarshal(fields["url"], &address) != nil || address == "" {
		return textmodel.Part{}, badField(at+".url", "is missing; it must be a data: or https: address.")
	}
	if value := fields["detail"]; len(value) > 0 &&
		(json.Unmarshal(value, &detail) != nil || detail != "" && !slices.Contains(pictureDetails, detail)) {
		return textmodel.Part{}, badField(at+".detail", "must be one of "+strings.Join(pictureDetails, ", ")+".")
	}
	return p.address(at+".url", address, "", detail)
}

func (p *pictures) file(at string, part uiPart) (textmodel.Part, *problem) {
	switch {
	case !strings.HasPrefix(strings.ToLower(part.MediaType), "image/"):
		return textmodel.Part{}, badField(at, "is a file of the media type "+strconv.Quote(clip(part.MediaType))+
			"; only images are allowed.")
	case !p.sees:
		return textmodel.Part{}, wrongField(at, "unsupported_value",
			at+" is an image, but this gateway's model doesn't accept images (chat.vision); omit it, or describe it.")
	case part.URL == "":
		return textmodel.Part{}, badField(at+".url", "is missing; it must be a data: or https: address.")
	}
	return p.address(at+".url", part.URL, strings.ToLower(part.MediaType), "")
}

func (p *pictures) address(at, address, kind, detail string) (textmodel.Part, *problem) {
	wrong := func(message string) (textmodel.Part, *problem) {
		return textmodel.Part{}, badField(at, message)
	}
	if p.count++; p.count > maxPictures {
		return wrong("is image " + strconv.Itoa(p.count) + " of the request; at most " + strconv.Itoa(maxPictures) + " are allowed.")
	}
	if !oneWord(address) {
		return wrong("must be a URL without spaces and control characters.")
	}
	scheme, rest, _ := strings.Cut(address, ":")
	switch strings.ToLower(scheme) {
	case "data":
		image, problem := dataImage(rest, kind)
		if problem != "" {
			return wrong(problem)
		}
		return textmodel.Part{Image: image, Detail: detail}, nil
	case "https":
		u, err := url.Parse(address)
		switch {
		case len(address) > maxPictureURL:
			return wrong("has more than " + strconv.Itoa(maxPictureURL>>10) + " KiB.")
		case err != nil || u.Hostname() == "":
			return wrong("is not a complete https: URL.")
		case u.User != nil:
			return wrong("contains a user name or password, which the model's provider would get.")
		}
		return textmodel.Part{Image: address, Detail: detail}, nil
	case "http":
		return wrong("uses http:, which is not allowed; use https:, or send the image as data:.")
	}
	return wrong("must start with data: or https:.")
}

// oneWord reports whether a URL is printable ASCII without spaces; base64 may have line breaks.
func oneWord(address string) bool {
	data := len(address) > 5 && strings.EqualFold(address[:5], "data:")
	return !strings.ContainsFunc(address, func(r rune) bool {
		return r > '~' || r <= ' ' && (!data || r != '\r' && r != '\n')
	})
}

// dataImage returns a data: URL (RFC 2397) in a form that all providers read. problem completes a sentence.
func dataImage(rest, kind string) (address, problem string) {
	head, payload, ok := strings.Cut(rest, ",")
	media, coded := strings.CutSuffix(strings.ToLower(strings.TrimSpace(head)), ";base64")
	media, _, _ = strings.Cut(media, ";") // parameters, such as a name
	if !ok || !coded {
		return "", "must be data:image/png;base64,… with the type of the image and its bytes in base64."
	}
	said, known := pictureTypes[media]
	if !known {
		return "", "is of the media type " + strconv.Quote(clip(media)) + "; the types are image/png, image/jpeg, image/webp and image/gif."
	}
	if kind != "" && kind != "image/*" && pictureTypes[kind] != said {
		return "", "is of the media type " + said + ", and mediaType says " + strconv.Quote(clip(kind)) + "."
	}
	raw, err := base64.StdEncoding.DecodeString(payload)
	if err != nil { // some clients omit the padding
		raw, err = base64.RawStdEncoding.DecodeString(payload)
	}
	switch {
	case err != nil:
		return "", "is not valid base64."
	case len(raw) == 0:
		return "", "is an image of zero bytes."
	case len(raw) > maxPicture:
		return "", "is an image of more than " + strconv.Itoa(maxPicture>>20) + " MiB; make it smaller, or give an https: address."
	}
	if is := http.DetectContentType(raw); is != said {
		if pictureTypes[is] == "" {
			return "", "says " + said + ", but its bytes are not such an image."
		}
		return "", "says " + said + ", but its bytes are " + is + "."
	}
	return "data:" + said + ";base64," + base64.StdEncoding.EncodeToString(raw), ""
}

func partAdvice(kind string) string {
	switch kind {
	case "input_audio":
		return "speech is taken at /v1/voice, and here its text"
	case "file":
		return "send the file's text, or an image as image_url"
	default:
		return "the types are text and, of the user's, image_url"
	}
}
