package gateway

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"voicegw/chat"
	"voicegw/internal/user"
	"voicegw/transport/textmodel"
)

// The beginnings of images, which the gateway checks.
var (
	pngBytes  = "\x89PNG\r\n\x1a\n0000"
	jpegBytes = "\xff\xd8\xff\xe0JFIF"
	webpBytes = "RIFF\x04\x00\x00\x00WEBPVP8 "
	gifBytes  = "GIF89a....;"
)

// asData returns a data: URL.
func asData(kind, raw string) string {
	return "data:" + kind + ";base64," + base64.StdEncoding.EncodeToString([]byte(raw))
}

// shows is a user's message with an image.
func shows(address string) string {
	text, _ := json.Marshal(address) // a string: it cannot fail
	return `{"role":"user","content":[{"type":"text","text":"What is it?"},{"type":"image_url","image_url":{"url":` + string(text) + `,"detail":"low"}}]}`
}

// TestImagesReachTheModel: images of each accepted type and URL reach the agent at their place among the texts, on all
// three endpoints.
func TestImagesReachTheModel(t *testing.T) {
	for sent, want := range map[string]string{
		asData("image/png", pngBytes):                                                    "",
		asData("image/jpeg", jpegBytes):                                                  "",
		asData("image/webp", webpBytes):                                                  "",
		asData("image/gif", gifBytes):                                                    "",
		"https://example.com/a%20b.png?x=1&sig=%2F":                                      "",
		asData("image/jpg", jpegBytes):                                                   asData("image/jpeg", jpegBytes),
		"DATA:Image/PNG;BASE64," + asData("image/png", pngBytes)[22:]:                    asData("image/png", pngBytes),
		strings.TrimRight(asData("image/png", pngBytes), "="):                            asData("image/png", pngBytes),
		asData("image/png", pngBytes)[:30] + "\r\n" + asData("image/png", pngBytes)[30:]: asData("image/png", pngBytes),
	} {
		if want == "" {
			want = sent
		}
		parts := []textmodel.Part{{Text: "What is it?"}, {Image: want, Detail: "low"}}
		kept := chat.Request{User: user.Must("192.0.2.7"), Message: "What is it?", Parts: parts}
		ours := kept
		ours.History = []textmodel.Message{{Role: textmodel.RoleUser, Text: "What is it?", Parts: parts}, {Role: textmodel.RoleAssistant, Text: "A fox."}}
		message := shows(sent)
		talk := `{"messages":[` + message + `,{"role":"assistant","content":"A fox."},` + message + `]}`
		_, content, _ := strings.Cut(message, `"content":`)
		for path, c := range map[string]struct {
			body string
			want chat.Request
		}{
			"/v1/chat/completions": {talk, ours},
			"/v1/chat":             {talk, ours},
			"/v1/chat?":            {`{"message":` + strings.TrimSuffix(content, "}") + `}`, kept},
		} {
			a := &fakeAgent{}
			s, _ := chatServer(t, a, nil)
			if w := send(s, path, c.body, nil); w.Code != http.StatusOK {
				t.Errorf("%s %.60q: %d %s", path, sent, w.Code, w.Body)
			}
			if diff := cmp.Diff([]chat.Request{c.want}, a.requests(), messages); diff != "" {
				t.Errorf("%s %.60q: %s", path, sent, diff)
			}
		}
	}
}

// TestImagesOfUseChat: an image file of the AI SDK reaches the agent, and no other file does.
func TestImagesOfUseChat(t *testing.T) {
	png := asData("image/png", pngBytes)
	body := func(file string) string {
		return `{"id":"a","trigger":"submit-message","messages":[{"id":"1","role":"user","parts":[{"type":"text","text":"Look"},` + file + `]}]}`
	}
	file := func(kind, address string) string {
		return fmt.Sprintf(`{"type":"file","mediaType":%q,"filename":"x","url":%q}`, kind, address)
	}
	for sent, says := range map[string]string{
		file("image/png", png):                               "",
		file("image/*", "https://example.com/x.png"):         "",
		file("application/pdf", "https://example.com/x.pdf"): "messages[0].parts[1] is a file of the media type",
		file("image/jpeg", png):                              "messages[0].parts[1].url is of the media type image/png",
		file("image/png", ""):                                "messages[0].parts[1].url is missing",
		file("image/png", "blob:https://example.com/1"):      "messages[0].parts[1].url must start with data: or https:",
		`{"type":"tool-x"}`:                                  "messages[0].parts[1] is of the type",
	} {
		a := &fakeAgent{}
		s, _ := chatServer(t, a, nil)
		w := send(s, "/v1/chat?protocol=ui-message-stream", body(sent), nil)
		if says == "" {
			if got := a.requests(); w.Code != http.StatusOK || len(got) != 1 || len(got[0].Parts) != 2 || got[0].Parts[0].Text != "Look" || got[0].Parts[1].Image == "" || got[0].Message != "Look" {
				t.Errorf("%s: %d %s %+v", sent, w.Code, w.Body, got)
			}
			continue
		}
		if _, message := problemOf(t, w); w.Code != http.StatusBadRequest || !strings.Contains(message, says) || len(a.requests()) > 0 {
			t.Errorf("%s: %d %s", sent, w.Code, w.Body)
		}
	}
}

// TestImagesAreRefusedByName: an invalid image is refused with the path of the problem, and does not reach the agent.
func TestImagesAreRefusedByName(t *testing.T) {
	const part = "messages[0].content[1]"
	large := "data:image/png;base64," + strings.Repeat("A", base64.StdEncoding.EncodedLen(maxPicture+1))
	tests := []struct{ body, param, says string }{}
	for address, says := range map[string]string{
		"data:image/png;base64,!!!!":         "not valid base64",
		"data:image/png;base64,":             "zero bytes",
		"data:image/png," + pngBytes[1:4]:    "in base64",
		"data:image/png;base64":              "in base64",
		asData("image/svg+xml", "<svg/>"):    "image/svg+xml",
		asData("image/bmp", "BM"):            "image/bmp",
		asData("text/plain", "Hello"):        "text/plain",
		asData("", pngBytes):                 "media type",
		asData("image/png", jpegBytes):       "its bytes are image/jpeg",
		asData("image/jpeg", pngBytes):       "its bytes are image/png",
		asData("image/gif", "<html>"):        "not such an image",
		large:                                "more than 5 MiB",
		"http://example.com/x.png":           "http:",
		"HTTP://example.com/x.png":           "http:",
		"ftp://example.com/x.png":            "must start",
		"file:///etc/passwd":                 "must start",
		"javascript:alert(1)":                "must start",
		"x.png":                              "must start",
		"https://":                           "not a complete",
		"https://ada:pass@example.com/x.png": "password",
		"https://example.com/" + strings.Repeat("x", maxPictureURL): "8 KiB",
		"https://example.com/a b":                                   "spaces",
		"https://example.com/\u0007":                                "control",
	} {
		tests = append(tests, struct{ body, param, says string }{`[` + shows(address) + `]`, part + ".image_url.url", says})
	}
	content := func(role, parts string) string {
		last := ""
		if role != "user" {
			last = `,{"role":"user","content":"x"}`
		}
		return `[{"role":"` + role + `","content":[{"type":"text","text":"x"},` + parts + `]}` + last + `]`
	}
	const image = `{"type":"image_url","image_url":{"url":"https://example.com/x"}}`
	tests = append(tests, []struct{ body, param, says string }{
		{content("user", `{"type":"image_url"}`), part + ".image_url", "url"},
		{content("user", `{"type":"image_url","image_url":"https://example.com/x"}`), part + ".image_url", "url"},
		{content("user", `{"type":"image_url","image_url":{}}`), part + ".image_url.url", "missing"},
		{content("user", `{"type":"image_url","image_url":{"url":7}}`), part + ".image_url.url", "missing"},
		{content("user", `{"type":"image_url","image_url":{"url":"https://example.com/x","detail":"best"}}`), part + ".image_url.detail", "auto"},
		{content("user", `{"type":"image_url","image_url":{"url":"https://example.com/x","size":1}}`), part + ".image_url.size", "supported"},
		{content("user", `{"type":"image_url","image_url":{"url":"https://example.com/x"},"cache_control":{}}`), part + ".cache_control", "supported"},
		{content("user", `{"type":"text","text":"x","cache_control":{}}`), part + ".cache_control", "supported"},
		{content("user", `{"type":"input_audio","input_audio":{}}`), part + ".type", "/v1/voice"},
		{content("user", `{"type":"file","file":{}}`), part + ".type", "text"},
		{content("user", `{"type":7}`), part + ".type", "missing"},
		{content("user", `null`), part, "object"},
		{content("assistant", image), part, "only messages of the user"},
		{content("system", image), part, "only messages of the user"},
		{content("user", strings.Repeat(image+",", maxPictures)+image), "messages[0].content[17].image_url.url", "at most 16"},
		{content("user", strings.Repeat(`{"type":"text","text":"x"},`, maxPictureParts)+image), "messages[0].content", "at most 256"},
	}...)
	for _, test := range tests {
		a := &fakeAgent{}
		s, _ := chatServer(t, a, nil)
		w := send(s, "/v1/chat/completions", `{"messages":`+test.body+`}`, header("Authorization", "Bearer k"))
		var reply struct {
			Error struct{ Message, Param, Code string }
		}
		if err := json.Unmarshal(w.Body.Bytes(), &reply); err != nil {
			t.Errorf("%.90s: %v", test.body, err)
		}
		e := reply.Error
		if w.Code != http.StatusBadRequest || e.Param != test.param || e.Code == "" || !strings.Contains(e.Message, test.says) || !strings.Contains(e.Message, strings.TrimSuffix(test.param, ".type")) || len(e.Message) > 400 {
			t.Errorf("%.90s: %d %s", test.body, w.Code, w.Body)
		}
		if len(a.requests()) > 0 {
			t.Errorf("%.90s: the agent was asked", test.body)
		}
		// /v1/chat answers with the same text.
		w = send(s, "/v1/chat", `{"messages":`+test.body+`}`, nil)
		if _, message := problemOf(t, w); w.Code != http.StatusBadRequest || message != e.Message {
			t.Errorf("/v1/chat %.90s: %d %q", test.body, w.Code, message)
		}
	}
}

// TestBlindModels: a model without vision gets no image on any endpoint.
func TestBlindModels(t *testing.T) {
	a := &fakeAgent{blind: true}
	s, _ := chatServer(t, a, nil)
	body := `{"messages":[` + shows("https://example.com/x") + `]}`
	w := send(s, "/v1/chat/completions", body, nil)
	if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), `"param":"messages[0].content[1]"`) || !strings.Contains(w.Body.String(), "chat.vision") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	for path, body := range map[string]string{
		"/v1/chat":                            body,
		"/v1/chat?protocol=ui-message-stream": `{"messages":[{"role":"user","parts":[{"type":"file","mediaType":"image/png","url":"https://example.com/x"}]}]}`,
	} {
		w := send(s, path, body, nil)
		if _, message := problemOf(t, w); w.Code != http.StatusBadRequest || !strings.Contains(message, "accept images") {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
	if len(a.requests()) > 0 {
		t.Error("the agent was asked")
	}
}

// FuzzImagePart: any part is a text, an image in a form that providers read, or a refusal that names it.
func FuzzImagePart(f *testing.F) {
	for _, address := range []string{asData("image/png", pngBytes), asData("image/jpeg", pngBytes), "https://example.com/x", "http://x", "data:,"} {
		text, _ := json.Marshal(address) // a string: it cannot fail
		f.Add(`{"type":"image_url","image_url":{"url":`+string(text)+`,"detail":"high"}}`, "user", "")
		f.Add(address, "file", "image/png")
	}
	f.Add(`{"type":"text","text":"x"}`, "assistant", "")
	f.Fuzz(func(t *testing.T, raw, role, kind string) {
		p := &pictures{sees: true}
		var part textmodel.Part
		var no *problem
		if role == "file" {
			part, no = p.file("at", uiPart{Type: "file", MediaType: kind, URL: raw})
		} else {
			part, no = p.part("at", role, json.RawMessage(raw))
		}
		switch {
		case no != nil:
			if !strings.HasPrefix(no.param, "at") || no.code == "" || !strings.HasPrefix(no.message, "at") || len(no.message) > 600 || part != (textmodel.Part{}) {
				t.Errorf("%+v %+v", no, part)
			}
		case part.Image == "":
		case !strings.HasPrefix(part.Image, "data:image/") && !strings.HasPrefix(strings.ToLower(part.Image), "https://"):
			t.Errorf("%q", part.Image)
		case strings.ContainsFunc(part.Image, func(r rune) bool { return r <= ' ' || r > '~' }):
			t.Errorf("%q", part.Image)
		}
	})
}
