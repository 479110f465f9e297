package imagegenerate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	stdimage "image"
	"image/png"
	"strings"
	"testing"
	"time"

	"voicegw/internal/backends/image"
	"voicegw/registry"
	"voicegw/registry/registrytest"
	"voicegw/registry/spec"
)

// generator gives every request the same answer, and records it.
type generator struct {
	images []image.Generated
	err    error
	asked  image.Request
}

func (g *generator) Generate(_ context.Context, r image.Request) ([]image.Generated, error) {
	g.asked = r
	return g.images, g.err
}

// shelf keeps images in memory.
type shelf struct {
	kept [][]byte
	err  error
}

var ends = time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)

func (s *shelf) Keep(_ context.Context, data []byte, _ image.Info) (string, time.Time, error) {
	if s.err != nil {
		return "", time.Time{}, s.err
	}
	s.kept = append(s.kept, data)
	return "id" + strings.Repeat("x", len(s.kept)), ends, nil
}

// gallery records the shown images.
type gallery []registry.Image

func (g *gallery) Show(i registry.Image) { *g = append(*g, i) }

func picture(t *testing.T, width, height int) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, stdimage.NewGray(stdimage.Rect(0, 0, width, height))); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func run(t *testing.T, ctx context.Context, g *generator, s *shelf, a Args) (Answer, gallery, error) {
	t.Helper()
	studio, err := image.NewStudio(g, s)
	if err != nil {
		t.Fatal(err)
	}
	var shown gallery
	result, err := Execute(ctx, registry.Call[Args, Needs]{
		Args: a, Needs: Needs{Studio: studio, Gallery: &shown}, Session: registry.Session{UserID: "ada", Mode: spec.ModeText},
	})
	if err == nil {
		registrytest.Fits(t, "image-generate", result.Data)
	}
	answer, _ := result.Data.(Answer)
	return answer, shown, err
}

func args(count int64) Args { return Args{Prompt: " a fox ", Size: ArgsSize1536x1024, Count: count} }

// TestImagesAreShown: the model gets addresses and sizes but no bytes, the client gets the same images, and the
// provider does not learn the user.
func TestImagesAreShown(t *testing.T) {
	g := &generator{images: []image.Generated{{Data: picture(t, 48, 32)}, {Data: picture(t, 64, 64), Prompt: "a red fox"}}}
	answer, shown, err := run(t, t.Context(), g, &shelf{}, args(3))
	if err != nil {
		t.Fatal(err)
	}
	if g.asked.Prompt != "a fox" || g.asked.Width != 1536 || g.asked.Height != 1024 || g.asked.Count != 3 ||
		g.asked.User == "" || strings.Contains(g.asked.User, "ada") {
		t.Errorf("asked %+v", g.asked)
	}
	data, err := json.Marshal(answer)
	want := `{"images":[{"id":"idx","url":"/v1/images/idx","width":48,"height":32,"type":"image/png","expires_at":"2026-11-21T09:00:00.000Z"},` +
		`{"id":"idxx","url":"/v1/images/idxx","width":64,"height":64,"type":"image/png","prompt":"a red fox","expires_at":"2026-11-21T09:00:00.000Z"}],"missing":1}`
	if err != nil || string(data) != want {
		t.Errorf("%v\n%s\nwant\n%s", err, data, want)
	}
	if len(shown) != 2 || shown[0].URL != "/v1/images/idx" || shown[0].Prompt != "a fox" || shown[1].Prompt != "a red fox" ||
		shown[0].Width != 48 || !shown[1].ExpiresAt.Equal(ends) {
		t.Errorf("shown %+v", shown)
	}
}

// TestFailures: each has an error for the model; nothing is shown, and a provider's text is only passed on if it
// helps.
func TestFailures(t *testing.T) {
	for name, tc := range map[string]struct {
		err       error
		want      registry.ErrorType
		retryable bool
		says      string
	}{
		"key":       {&image.Error{Kind: image.KindAuth, Status: 401, Reason: "Incorrect API key sk-…"}, registry.ErrorAuth, false, "operator"},
		"limit":     {&image.Error{Kind: image.KindRateLimit, RetryAfter: 1500 * time.Millisecond}, registry.ErrorRateLimit, true, "retry_after_seconds:2"},
		"overload":  {&image.Error{Kind: image.KindTransient, Status: 503, Err: errors.New("10.0.0.1: refused")}, registry.ErrorTransient, true, "try again"},
		"lost":      {&image.Error{Kind: image.KindTransient, Unsure: true, Err: errors.New("10.0.0.1: reset")}, registry.ErrorTransient, true, "may have been created"},
		"refusal":   {&image.Error{Kind: image.KindRefused, Reason: "Violence is not drawn."}, registry.ErrorPermanent, false, "Violence is not drawn."},
		"no reason": {&image.Error{Kind: image.KindRefused}, registry.ErrorPermanent, false, "refused:true"},
		"request":   {&image.Error{Kind: image.KindRequest, Status: 404, Reason: "no such model"}, registry.ErrorPermanent, false, "no such model"},
		"no images": {nil, registry.ErrorPermanent, false, "sent no valid image"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &shelf{}
			_, shown, err := run(t, t.Context(), &generator{err: tc.err}, s, args(1))
			var e *registry.ToolError
			if !errors.As(err, &e) || e.Type != tc.want || e.Retryable != tc.retryable || e.PartialSideEffects != (name == "lost") {
				t.Fatalf("%v", err)
			}
			details := strings.ReplaceAll(strings.TrimPrefix(strings.Trim(toText(e.Details), "{}"), "null"), `"`, "")
			text := e.Message + " " + e.Suggestion + " " + details
			if !strings.Contains(text, tc.says) || strings.Contains(text, "sk-") || strings.Contains(text, "10.0.0.1") {
				t.Errorf("the model gets: %s", text)
			}
			if len(shown)+len(s.kept) != 0 {
				t.Error("an image was stored or shown")
			}
		})
	}
}

func toText(v any) string {
	data, _ := json.Marshal(v)
	return string(data)
}

// TestNotKept: an image that cannot be stored is a failure of the gateway.
func TestNotKept(t *testing.T) {
	full := errors.New("disk full")
	_, shown, err := run(t, t.Context(), &generator{images: []image.Generated{{Data: picture(t, 8, 8)}}}, &shelf{err: full}, args(1))
	var e *registry.ToolError
	if !errors.Is(err, full) || errors.As(err, &e) || len(shown) != 0 {
		t.Errorf("%v", err)
	}
}

func TestBlankPrompt(t *testing.T) {
	a := args(1)
	a.Prompt = " \u200b\n"
	_, _, err := run(t, t.Context(), &generator{}, &shelf{}, a)
	var e *registry.ToolError
	if !errors.As(err, &e) || e.Type != registry.ErrorValidation {
		t.Errorf("%v", err)
	}
}

// TestCancelled: a cancelled call is not the provider's fault.
func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err := run(t, ctx, &generator{err: &image.Error{Kind: image.KindTransient}}, &shelf{}, args(1))
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func TestOutputIsTheAnswer(t *testing.T) { registrytest.Describes[Answer](t, "image-generate") }
