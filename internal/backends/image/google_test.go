package image

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"voicegw/sim"
)

func TestMain(m *testing.M) {
	// genai depends on opencensus, which starts a goroutine at its import.
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("go.opencensus.io/stats/view.(*worker).start"))
}

// fakeGoogle gives the answers one after another, the last one repeatedly.
type fakeGoogle struct {
	*httptest.Server
	status int

	mu      sync.Mutex // guards the following fields
	answers []string
	paths   []string
	asked   map[string]any
	key     string
}

func newFakeGoogle(t *testing.T, status int, answers ...string) *fakeGoogle {
	t.Helper()
	f := &fakeGoogle{status: status, answers: answers}
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.paths, f.key = append(f.paths, r.URL.Path), r.Header.Get("X-Goog-Api-Key")
		f.asked = nil
		if err := json.NewDecoder(r.Body).Decode(&f.asked); err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(f.status)
		io.WriteString(w, f.answers[0])
		if len(f.answers) > 1 {
			f.answers = f.answers[1:]
		}
	}))
	t.Cleanup(f.Close)
	return f
}

func (f *fakeGoogle) generator(t *testing.T, model string) *Google {
	t.Helper()
	g, err := NewGoogle(ProviderOptions{BaseURL: f.URL, APIKey: "g-secret", Model: model, HTTPClient: f.Client()})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func fox(count int) Request {
	return Request{Prompt: "a fox", Width: 1536, Height: 1024, Count: count}
}

const picture = `{"candidates":[{"content":{"role":"model","parts":[{"text":"Here it is."},{"inlineData":{"mimeType":"image/png","data":"b25l"}}]},"finishReason":"STOP"}]}`

// TestGemini: one request for each image, with the requested shape.
func TestGemini(t *testing.T) {
	f := newFakeGoogle(t, 200, picture)
	images, err := f.generator(t, "").Generate(t.Context(), fox(3))
	if err != nil || len(images) != 3 || string(images[2].Data) != "one" {
		t.Fatalf("%v, %v", images, err)
	}
	want := map[string]any{
		"contents":         []any{map[string]any{"role": "user", "parts": []any{map[string]any{"text": "a fox"}}}},
		"generationConfig": map[string]any{"responseModalities": []any{"TEXT", "IMAGE"}, "imageConfig": map[string]any{"aspectRatio": "3:2"}},
	}
	if diff := cmp.Diff(want, f.asked); diff != "" {
		t.Error(diff)
	}
	if len(f.paths) != 3 || f.paths[0] != "/v1beta/models/"+DefaultGoogleModel+":generateContent" || f.key != "g-secret" {
		t.Errorf("%v with the key %s", f.paths, f.key)
	}
}

// TestImagen: all images in one request over :predict.
func TestImagen(t *testing.T) {
	f := newFakeGoogle(t, 200, `{"predictions":[{"bytesBase64Encoded":"b25l","mimeType":"image/png","prompt":"a red fox"},
		{"raiFilteredReason":"filtered"},{"bytesBase64Encoded":"dHdv","mimeType":"image/png"}]}`)
	images, err := f.generator(t, "imagen-4.0-generate-001").Generate(t.Context(), fox(3))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Generated{{Data: []byte("one"), Prompt: "a red fox"}, {Data: []byte("two")}}, images); diff != "" {
		t.Error(diff)
	}
	parameters, _ := f.asked["parameters"].(map[string]any)
	if len(f.paths) != 1 || !strings.HasSuffix(f.paths[0], "/imagen-4.0-generate-001:predict") ||
		parameters["sampleCount"] != 3.0 || parameters["aspectRatio"] != "4:3" || f.key != "g-secret" {
		t.Errorf("%v, %v", f.paths, f.asked)
	}
}

// TestSomeFail: some images are better than an error for the missing ones.
func TestSomeFail(t *testing.T) {
	f := newFakeGoogle(t, 200, `{"candidates":[]}`, picture)
	images, err := f.generator(t, "").Generate(t.Context(), fox(3))
	if err != nil || len(images) != 2 {
		t.Errorf("%d images, %v", len(images), err)
	}
}

// TestGoogleFailures: each failure has its kind, and is not retried.
func TestGoogleFailures(t *testing.T) {
	problem := func(code, message, details string) string {
		return `{"error":{"code":` + code + `,"message":"` + message + `","status":"X","details":[` + details + `]}}`
	}
	retry := `{"@type":"type.googleapis.com/google.rpc.Help"},{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"34.5s"}`
	for name, tc := range map[string]struct {
		model  string
		status int
		body   string
		want   Error
	}{
		"key":      {"", 400, problem("400", "API key not valid. Please pass g-secret.", ""), Error{Kind: KindAuth, Status: 400, Reason: "API key not valid. Please pass [key]."}},
		"denied":   {"", 403, problem("403", "No.", ""), Error{Kind: KindAuth, Status: 403, Reason: "No."}},
		"request":  {"", 400, problem("400", "Unknown size.", ""), Error{Kind: KindRequest, Status: 400, Reason: "Unknown size."}},
		"quota":    {"", 429, problem("429", "Quota.", retry), Error{Kind: KindRateLimit, Status: 429, RetryAfter: 34500 * time.Millisecond, Reason: "Quota."}},
		"overload": {"", 503, problem("503", "Overloaded.", ""), Error{Kind: KindTransient, Status: 503, Reason: "Overloaded."}},
		"blocked": {"", 200, `{"promptFeedback":{"blockReason":"PROHIBITED_CONTENT","blockReasonMessage":"Not this."}}`,
			Error{Kind: KindRefused, Reason: "Not this."}},
		"blocked without words": {"", 200, `{"promptFeedback":{"blockReason":"SAFETY"}}`, Error{Kind: KindRefused, Reason: "SAFETY"}},
		"image refused": {"", 200, `{"candidates":[{"finishReason":"IMAGE_SAFETY","finishMessage":"Unable to show it."}]}`,
			Error{Kind: KindRefused, Reason: "Unable to show it."}},
		"a refusal": {"", 200, `{"candidates":[{"content":{"parts":[{"text":"I cannot draw that."}]},"finishReason":"STOP"}]}`,
			Error{Kind: KindRefused, Reason: "I cannot draw that."}},
		"nothing":          {"", 200, `{"candidates":[{"finishReason":"STOP"}]}`, Error{Kind: KindAnswer}},
		"a thought":        {"", 200, `{"candidates":[{"content":{"parts":[{"thought":true,"inlineData":{"mimeType":"image/png","data":"b25l"}}]},"finishReason":"STOP"}]}`, Error{Kind: KindAnswer}},
		"no JSON":          {"", 200, `<html>`, Error{Kind: KindTransient}},
		"imagen filtered":  {"imagen-4", 200, `{"predictions":[{"raiFilteredReason":"Violence."}]}`, Error{Kind: KindRefused, Reason: "Violence."}},
		"imagen silent":    {"imagen-4", 200, `{}`, Error{Kind: KindRefused}},
		"imagen, no image": {"imagen-4", 200, `{"predictions":[{"mimeType":"image/png"}]}`, Error{Kind: KindAnswer}},
		"imagen limit":     {"imagen-4", 429, problem("429", "Quota.", ""), Error{Kind: KindRateLimit, Status: 429, Reason: "Quota."}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFakeGoogle(t, tc.status, tc.body)
			_, err := f.generator(t, tc.model).Generate(t.Context(), fox(1))
			var got *Error
			if !errors.As(err, &got) {
				t.Fatalf("%v", err)
			}
			if got.Kind != tc.want.Kind || got.Status != tc.want.Status || got.RetryAfter != tc.want.RetryAfter || got.Reason != tc.want.Reason {
				t.Errorf("got %+v, want %+v", *got, tc.want)
			}
			if len(f.paths) != 1 || strings.Contains(err.Error()+got.Reason, "g-secret") {
				t.Errorf("asked %d times: %v", len(f.paths), err)
			}
		})
	}
}

func TestGoogleUnreachable(t *testing.T) {
	f := newFakeGoogle(t, 200, picture)
	g := f.generator(t, "")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := g.Generate(ctx, fox(2)); !errors.Is(err, context.Canceled) {
		t.Errorf("called off: %v", err)
	}
	f.Close()
	_, err := g.Generate(t.Context(), fox(2))
	var got *Error
	if !errors.As(err, &got) || got.Kind != KindTransient || got.Unsure || strings.Contains(err.Error(), "g-secret") {
		t.Errorf("%v", err)
	}
	if _, err := NewGoogle(ProviderOptions{}); err == nil {
		t.Error("a Generator without a key")
	}
}

func TestShapes(t *testing.T) {
	for size, want := range map[[2]int][2]string{
		{1024, 1024}: {"1:1", "1:1"}, {1536, 1024}: {"3:2", "4:3"}, {1024, 1536}: {"2:3", "3:4"},
		{1920, 1080}: {"16:9", "16:9"}, {1080, 1920}: {"9:16", "9:16"}, {2100, 900}: {"21:9", "16:9"},
	} {
		if got := [2]string{nearest(size[0], size[1], geminiShapes), nearest(size[0], size[1], imagenShapes)}; got != want {
			t.Errorf("%v is %v, want %v", size, got, want)
		}
	}
}

// TestGoogleSimulator: the built-in simulator makes images for both.
func TestGoogleSimulator(t *testing.T) {
	local, err := sim.Start(t.Context(), "", sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer local.Close()
	for _, model := range []string{"", "imagen-4.0-generate-001"} {
		g, err := NewGoogle(ProviderOptions{
			BaseURL: strings.Replace(local.GeminiURL(), "ws://", "http://", 1), APIKey: "simulator", Model: model,
			HTTPClient: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}},
		})
		if err != nil {
			t.Fatal(err)
		}
		images, err := g.Generate(t.Context(), fox(2))
		if err != nil || len(images) != 2 {
			t.Fatalf("%s: %d images, %v", model, len(images), err)
		}
		for _, i := range images {
			if info, err := Inspect(i.Data); err != nil || info.Width <= info.Height {
				t.Errorf("%s: %+v, %v", model, info, err)
			}
		}
	}
}
