package sim

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	_ "image/jpeg" // to decode the images
	"image/png"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	openaigo "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"google.golang.org/genai"

	"voicegw/sim/scenario"
	"voicegw/sim/wire"
)

const imageScript = `
rules:
  - when: {prompt: forbidden}
    do: [{refuse: That is forbidden.}]
  - when: {prompt: busy}
    do: [{fault: {do: http_error, code: 503, for: 2s}}]
  - when: {prompt: 'an? (?P<what>\w+)'}
    do: [{say: "A ${what}, as you wished."}]
`

func handler(t testing.TB) *Server {
	t.Helper()
	s, err := scenario.Parse("s", []byte(imageScript))
	if err != nil {
		t.Fatal(err)
	}
	return New(wire.Options{Scenario: s, Stats: &wire.Stats{}})
}

func serve(t *testing.T) (url string, client *http.Client, h *Server) {
	t.Helper()
	h = handler(t)
	srv := httptest.NewServer(h)
	client = srv.Client()
	t.Cleanup(func() {
		client.CloseIdleConnections()
		srv.Close()
	})
	return srv.URL, client, h
}

func postImages(h http.Handler, path, key, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+key)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// size decodes a picture.
func size(t *testing.T, b []byte) string {
	t.Helper()
	img, format, err := image.Decode(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%s %dx%d", format, img.Bounds().Dx(), img.Bounds().Dy())
}

func TestDraw(t *testing.T) {
	draw := func(prompt string, w, h, variant int) []byte {
		t.Helper()
		img, err := Draw(prompt, w, h, variant)
		if err != nil {
			t.Fatal(err)
		}
		b, err := Encode(img, "png")
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	one := draw("A lighthouse", 1024, 1024, 0)
	if !bytes.Equal(one, draw("A lighthouse", 1024, 1024, 0)) {
		t.Error("the same prompt is drawn in two ways")
	}
	if bytes.Equal(one, draw("A lighthouse", 1024, 1024, 1)) || bytes.Equal(one, draw("A castle", 1024, 1024, 0)) {
		t.Error("two pictures are the same")
	}
	for _, prompt := range []string{"", "   ", "x", strings.Repeat("very long ", 3000), strings.Repeat("W", 5000), "naïve 東京 \x00 \xff"} {
		for _, side := range [][2]int{{16, 16}, {16, 48}, {48, 16}, {1536, 512}} {
			if got := size(t, draw(prompt, side[0], side[1], 0)); got != fmt.Sprintf("png %dx%d", side[0], side[1]) {
				t.Errorf("%.10q: %s", prompt, got)
			}
		}
	}
	for _, side := range [][2]int{{15, 64}, {64, 0}, {-1, 64}, {4097, 64}} {
		if _, err := Draw("x", side[0], side[1], 0); err == nil {
			t.Errorf("%v is drawn", side)
		}
	}
	if _, err := Encode(image.NewGray(image.Rect(0, 0, 1, 1)), "webp"); err == nil {
		t.Error("webp is written")
	}
}

func TestOfficialOpenAIClient(t *testing.T) {
	url, hc, h := serve(t)
	c := openaigo.NewClient(option.WithBaseURL(url+"/v1/"), option.WithAPIKey("k"), option.WithHTTPClient(hc), option.WithMaxRetries(0))
	got, err := c.Images.Generate(t.Context(), openaigo.ImageGenerateParams{
		Model: "gpt-image-2", Prompt: "two cats", N: openaigo.Int(2), Size: "1536x864", Quality: "low",
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Data) != 2 || got.Data[0].B64JSON == got.Data[1].B64JSON || got.Usage.TotalTokens == 0 || string(got.Size) != "1536x864" || string(got.Quality) != "low" {
		t.Fatalf("%d pictures, %s", len(got.Data), got.Size)
	}
	var b []byte
	if err := json.Unmarshal([]byte(`"`+got.Data[1].B64JSON+`"`), &b); err != nil {
		t.Fatal(err)
	}
	if s := size(t, b); s != "png 1536x864" {
		t.Error(s)
	}
	if n := h.opts.Stats.Images.Load(); n != 2 {
		t.Errorf("%d images were counted", n)
	}

	_, err = c.Images.Generate(t.Context(), openaigo.ImageGenerateParams{Model: "gpt-image-2", Prompt: "something forbidden"})
	var api *openaigo.Error
	if !errors.As(err, &api) || api.StatusCode != 400 || api.Code != "moderation_blocked" || !strings.Contains(api.Message, "That is forbidden.") {
		t.Errorf("a refusal: %v", err)
	}
	_, err = c.Images.Generate(t.Context(), openaigo.ImageGenerateParams{Model: "gpt-image-2", Prompt: "busy"})
	if !errors.As(err, &api) || api.StatusCode != 503 || api.Response.Header.Get("Retry-After") != "2" {
		t.Errorf("an overload: %v", err)
	}
}

func google(t *testing.T, backend genai.Backend, url, key string, hc *http.Client) *genai.Client {
	t.Helper()
	c, err := genai.NewClient(t.Context(), &genai.ClientConfig{APIKey: key, Backend: backend, HTTPClient: hc, HTTPOptions: genai.HTTPOptions{BaseURL: url}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestOfficialGoogleClient(t *testing.T) {
	url, hc, _ := serve(t)
	for name, backend := range map[string]genai.Backend{"developer": genai.BackendGeminiAPI, "vertex": genai.BackendVertexAI} {
		t.Run(name, func(t *testing.T) {
			c := google(t, backend, url, "k", hc)
			draw := func(prompt string, modalities ...string) *genai.GenerateContentResponse {
				t.Helper()
				got, err := c.Models.GenerateContent(t.Context(), "gemini-2.5-flash-image", genai.Text(prompt),
					&genai.GenerateContentConfig{ResponseModalities: modalities, ImageConfig: &genai.ImageConfig{AspectRatio: "16:9"}})
				if err != nil {
					t.Fatal(err)
				}
				return got
			}
			got := draw("draw a boat", "TEXT", "IMAGE")
			parts := got.Candidates[0].Content.Parts
			if len(parts) != 2 || parts[0].Text != "A boat, as you wished." || parts[1].InlineData.MIMEType != "image/png" {
				t.Fatalf("%+v", parts)
			}
			if s := size(t, parts[1].InlineData.Data); s != "png 1344x768" {
				t.Error(s)
			}
			if got.Candidates[0].FinishReason != genai.FinishReasonStop || got.UsageMetadata.CandidatesTokenCount != 1290 {
				t.Errorf("%+v", got.UsageMetadata)
			}
			if parts := draw("boats", "IMAGE").Candidates[0].Content.Parts; len(parts) != 1 || parts[0].InlineData == nil {
				t.Errorf("only an image: %+v", parts)
			}
			if got := draw("forbidden", "IMAGE").Candidates[0]; got.FinishReason != genai.FinishReasonImageSafety ||
				got.FinishMessage != "That is forbidden." && backend == genai.BackendVertexAI { // the client drops it in the other mode
				t.Errorf("a refusal: %+v", got)
			}
		})
	}
}

func TestOfficialGoogleClientDrawsWithImagen(t *testing.T) {
	url, hc, _ := serve(t)
	c := google(t, genai.BackendVertexAI, url, "k", hc)
	got, err := c.Models.GenerateImages(t.Context(), "imagen-4.0-generate-001", "boats",
		&genai.GenerateImagesConfig{NumberOfImages: 2, AspectRatio: "3:4", OutputMIMEType: "image/jpeg"})
	if err != nil {
		t.Fatal(err)
	}
	if len(got.GeneratedImages) != 2 || got.GeneratedImages[0].Image.MIMEType != "image/jpeg" {
		t.Fatalf("%+v", got)
	}
	if s := size(t, got.GeneratedImages[1].Image.ImageBytes); s != "jpeg 864x1184" {
		t.Error(s)
	}
	for _, reason := range []bool{false, true} {
		got, err = c.Models.GenerateImages(t.Context(), "imagen-4.0-generate-001", "forbidden", &genai.GenerateImagesConfig{IncludeRAIReason: reason})
		if err != nil || reason != (len(got.GeneratedImages) == 1 && got.GeneratedImages[0].RAIFilteredReason == "That is forbidden.") {
			t.Errorf("with a reason %v: %v %+v", reason, err, got)
		}
	}
	for key, want := range map[string]int{"invalid": 400, "quota-1": 429} {
		_, err := google(t, genai.BackendVertexAI, url, key, hc).Models.GenerateImages(t.Context(), "imagen-4.0-generate-001", "x", nil)
		var api genai.APIError
		if !errors.As(err, &api) || api.Code != want {
			t.Errorf("%s: %v", key, err)
		}
	}
}

func TestImageRefusals(t *testing.T) {
	h := handler(t)
	const openAI, gemini, imagen = "/v1/images/generations", "/v1beta/models/gemini-2.5-flash-image:generateContent", "/v1beta/models/imagen-4.0-generate-001:predict"
	for _, c := range []struct {
		path, body string
		status     int
		text       string
	}{
		{openAI, `{`, 400, "could not parse"},
		{openAI, `{"model":"gpt-image-2","prompt":3}`, 400, "wrong type"},
		{openAI, `{"prompt":"x"}`, 400, "you must provide a model"},
		{openAI, `{"model":"gpt-image-1","prompt":"x"}`, 404, "model_not_found"}, // it was shut down
		{openAI, `{"model":"dall-e-3","prompt":"x"}`, 404, "model_not_found"},
		{openAI, `{"model":"gpt-image-2"}`, 400, "'prompt'"},
		{openAI, `{"model":"gpt-image-2","prompt":" "}`, 400, "empty string"},
		{openAI, `{"model":"gpt-image-2","prompt":"x","n":0}`, 400, "below minimum"},
		{openAI, `{"model":"gpt-image-2","prompt":"x","n":11}`, 400, "above maximum"},
		{openAI, `{"model":"gpt-image-2","prompt":"x","response_format":"url"}`, 400, "Unknown parameter: 'response_format'"},
		{openAI, `{"model":"gpt-image-2","prompt":"x","output_format":"webp"}`, 400, "'png' and 'jpeg'"},
		{openAI, `{"model":"gpt-image-2","prompt":"x","size":"1000x1000"}`, 400, "divisible by 16"},
		{openAI, `{"model":"gpt-image-2","prompt":"x","size":"160x1600"}`, 400, "1:3 and 3:1"},
		{openAI, `{"model":"gpt-image-1.5","prompt":"x","size":"1536x864"}`, 400, "Supported values are"},
		{openAI, `{"model":"gpt-image-2","prompt":"x","size":"big"}`, 400, "Invalid value: 'big'"},
		{openAI, `{"model":"gpt-image-2","prompt":"x","stream":true}`, 400, "not simulated"},
		{gemini, `{`, 400, "INVALID_ARGUMENT"},
		{gemini, `{}`, 400, "contents is not specified"},
		{gemini, `{"contents":[{"parts":[{}]}]}`, 400, "text parameter"},
		{gemini, `{"contents":[{"parts":[{"text":"x"}]}],"generationConfig":{"responseModalities":["TEXT"]}}`, 400, "response modalities (TEXT)"},
		{gemini, `{"contents":[{"parts":[{"text":"x"}]}],"generationConfig":{"candidateCount":2}}`, 400, "Multiple candidates"},
		{gemini, `{"contents":[{"parts":[{"text":"x"}]}],"generationConfig":{"imageConfig":{"aspectRatio":"5:1"}}}`, 400, "5:1"},
		{gemini, `{"contents":[{"parts":[{"text":"x"}]}],"generationConfig":{"imageConfig":{"imageSize":"8K"}}}`, 400, "8K"},
		{"/v1beta/models/gemini-2.5-flash:generateContent", `{}`, 400, "for models that draw"},
		{"/v1beta/models/palette-1:generateContent", `{}`, 404, "NOT_FOUND"},
		{"/v1beta/models/imagen-9:predict", `{}`, 404, "NOT_FOUND"},
		{imagen, `{}`, 400, "Prompt must not be empty"},
		{imagen, `{"instances":[{"prompt":"x"}],"parameters":{"sampleCount":5}}`, 400, "from 1 to 4"},
		{imagen, `{"instances":[{"prompt":"x"}],"parameters":{"outputOptions":{"mimeType":"image/gif"}}}`, 400, "image/gif"},
	} {
		w := postImages(h, c.path, "k", c.body)
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.text) {
			t.Errorf("%s %s: %d %.200s", c.path, c.body, w.Code, w.Body)
		}
	}
	if w := postImages(h, openAI, "quota", "{}"); w.Code != 429 || !strings.Contains(w.Body.String(), "insufficient_quota") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := postImages(h, "/openai/v1/images/generations", "k", `{"model":"ours","prompt":"x","size":"512x512","output_format":"jpeg"}`); w.Code != 200 {
		t.Errorf("a deployment: %d %.200s", w.Code, w.Body)
	}
}

// TestFaults: a fault of a request is its provider's error.
func TestFaults(t *testing.T) {
	s, err := scenario.ParseFaults("f", []byte("faults: [{at: chunk, n: 2, do: quota}]"))
	if err != nil {
		t.Fatal(err)
	}
	h := New(wire.Options{Faults: s})
	w := postImages(h, "/v1beta/models/imagen-4.0-generate-001:predict", "k", `{"instances":[{"prompt":"x"}],"parameters":{"sampleCount":2}}`)
	if w.Code != 429 || !strings.Contains(w.Body.String(), `"status":"RESOURCE_EXHAUSTED"`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func FuzzImagesRequest(f *testing.F) {
	f.Add([]byte(`{"model":"gpt-image-2","prompt":"x","size":"64x32","n":2}`))
	f.Add([]byte(`{"contents":[{"parts":[{"text":"x"}]}],"generationConfig":{"imageConfig":{"aspectRatio":"1:1","imageSize":"2k"}}}`))
	f.Add([]byte(`{"instances":[{"prompt":"x"}],"parameters":{"sampleCount":4}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		check := func(o imageOrder) {
			if o.count < 1 || o.count > maxPictures || min(o.width, o.height) < minSide || max(o.width, o.height) > maxSide || o.prompt == "" {
				t.Fatalf("%+v", o)
			}
		}
		if _, o, bad := parseOpenAI(body, "", false); bad == nil {
			check(o)
		}
		var g generateRequest
		if json.Unmarshal(body, &g) == nil {
			if o, bad := g.order(); bad == nil {
				check(o)
			}
		}
		var p predictRequest
		if json.Unmarshal(body, &p) == nil {
			if o, bad := p.order(); bad == nil {
				check(o)
			}
		}
	})
}

func FuzzDraw(f *testing.F) {
	f.Add("A lighthouse in the fog", uint16(64), uint16(32))
	f.Add(strings.Repeat("x ", 50), uint16(16), uint16(300))
	f.Fuzz(func(t *testing.T, prompt string, w, h uint16) {
		img, err := Draw(prompt, int(w%600), int(h%600), 0)
		if err != nil {
			return
		}
		b, err := Encode(img, "png")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := png.Decode(bytes.NewReader(b)); err != nil {
			t.Fatal(err)
		}
	})
}
