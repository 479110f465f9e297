package image

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	stdimage "image"
	"image/png"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"voicegw/sim"
)

// fakeOpenAI answers every request with a status, headers and a body, and records the request.
type fakeOpenAI struct {
	*httptest.Server
	asked  map[string]any
	header http.Header
	calls  int
}

func newFakeOpenAI(t *testing.T, status int, body string, headers ...string) *fakeOpenAI {
	t.Helper()
	f := &fakeOpenAI{}
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.calls++
		f.header = r.Header
		if r.Method != http.MethodPost || r.URL.Path != "/v1/images/generations" {
			t.Errorf("%s %s", r.Method, r.URL.Path)
		}
		if err := json.NewDecoder(r.Body).Decode(&f.asked); err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", "application/json")
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
		io.WriteString(w, body)
	}))
	t.Cleanup(f.Close)
	return f
}

func (f *fakeOpenAI) generator(o ProviderOptions) *OpenAI {
	o.BaseURL, o.APIKey, o.HTTPClient = f.URL+"/v1", "sk-secret", f.Client()
	return NewOpenAI(o)
}

var openAIFox = Request{Prompt: "a fox", Width: 1536, Height: 1024, Count: 2, User: "hash"}

// TestRequest: the request for each kind of model.
func TestRequest(t *testing.T) {
	body := `{"created":1,"data":[{"b64_json":"b25l"},{"b64_json":"dHdv","revised_prompt":"a red fox"},{"b64_json":"dGhyZWU="}],
		"output_format":"png","quality":"high","size":"1536x1024","usage":{"input_tokens":3,"output_tokens":1000,"total_tokens":1003}}`
	for model, want := range map[string]map[string]any{
		"":            {"model": DefaultOpenAIModel, "prompt": "a fox", "n": 2.0, "size": "1536x1024", "safety_identifier": "hash"},
		"gpt-image-2": {"model": "gpt-image-2", "prompt": "a fox", "n": 2.0, "size": "1536x1024", "safety_identifier": "hash"},
		"flux":        {"model": "flux", "prompt": "a fox", "n": 2.0, "size": "1536x1024", "response_format": "b64_json"},
	} {
		f := newFakeOpenAI(t, http.StatusOK, body)
		images, err := f.generator(ProviderOptions{Model: model}).Generate(t.Context(), openAIFox)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, f.asked); diff != "" {
			t.Errorf("%s\n%s", model, diff)
		}
		if f.header.Get("Authorization") != "Bearer sk-secret" {
			t.Errorf("%v", f.header)
		}
		if diff := cmp.Diff([]Generated{{Data: []byte("one")}, {Data: []byte("two"), Prompt: "a red fox"}}, images); diff != "" {
			t.Errorf("%s\n%s", model, diff)
		}
	}
}

// TestOpenAIFailures: each failure has its kind and is not retried; the key is never shown.
func TestOpenAIFailures(t *testing.T) {
	problem := func(code, message string) string {
		return `{"error":{"message":"` + message + `","type":"x","param":null,"code":"` + code + `"}}`
	}
	for name, tc := range map[string]struct {
		status  int
		body    string
		headers []string
		want    Error
	}{
		"key": {401, problem("invalid_api_key", "Incorrect API key provided: sk-secret."), nil,
			Error{Kind: KindAuth, Status: 401, Reason: "Incorrect API key provided: [key]."}},
		"not verified": {403, problem("", "Your organization must be verified."), nil,
			Error{Kind: KindAuth, Status: 403, Reason: "Your organization must be verified."}},
		"moderation": {400, problem("moderation_blocked", "Your request was rejected by the safety system."), nil,
			Error{Kind: KindRefused, Status: 400, Reason: "Your request was rejected by the safety system."}},
		"policy": {400, problem("content_policy_violation", "No."), nil, Error{Kind: KindRefused, Status: 400, Reason: "No."}},
		"size":   {400, problem("invalid_value", "Invalid size."), nil, Error{Kind: KindRequest, Status: 400, Reason: "Invalid size."}},
		"model":  {404, problem("model_not_found", "No such model."), nil, Error{Kind: KindRequest, Status: 404, Reason: "No such model."}},
		"limit": {429, problem("rate_limit_exceeded", "Slow down."), []string{"Retry-After", "12"},
			Error{Kind: KindRateLimit, Status: 429, RetryAfter: 12 * time.Second, Reason: "Slow down."}},
		"quota":    {429, problem("insufficient_quota", "Pay."), nil, Error{Kind: KindRateLimit, Status: 429, Reason: "Pay."}},
		"billing":  {400, problem("billing_hard_limit_reached", "Pay."), nil, Error{Kind: KindRateLimit, Status: 400, Reason: "Pay."}},
		"overload": {503, problem("", "Overloaded."), nil, Error{Kind: KindTransient, Status: 503, Reason: "Overloaded."}},
		"no JSON":  {502, "<html>bad gateway</html>", nil, Error{Kind: KindTransient, Status: 502}},
		"empty":    {200, `{"created":1,"data":[]}`, nil, Error{Kind: KindAnswer}},
		"address":  {200, `{"created":1,"data":[{"url":"http://169.254.169.254/x"}]}`, nil, Error{Kind: KindAnswer}},
		"base64":   {200, `{"created":1,"data":[{"b64_json":"%%%"}]}`, nil, Error{Kind: KindAnswer}},
		"half":     {200, `{"created":1,"data":[{"b64`, nil, Error{Kind: KindTransient}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFakeOpenAI(t, tc.status, tc.body, tc.headers...)
			_, err := f.generator(ProviderOptions{}).Generate(t.Context(), openAIFox)
			var got *Error
			if !errors.As(err, &got) {
				t.Fatalf("%v", err)
			}
			if got.Kind != tc.want.Kind || got.Status != tc.want.Status || got.RetryAfter != tc.want.RetryAfter || got.Reason != tc.want.Reason {
				t.Errorf("got %+v, want %+v", *got, tc.want)
			}
			if f.calls != 1 {
				t.Errorf("asked %d times", f.calls)
			}
			if strings.Contains(err.Error()+got.Reason, "sk-secret") {
				t.Errorf("the key is shown: %v", err)
			}
		})
	}
}

// TestTooLong: an endless answer is not read to its end.
func TestTooLong(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"data":[{"b64_json":"`)
		block := bytes.Repeat([]byte("A"), 1<<20)
		for range MaxAnswer>>20 + 8 {
			if _, err := w.Write(block); err != nil {
				return
			}
		}
	}))
	defer srv.Close()
	_, err := NewOpenAI(ProviderOptions{BaseURL: srv.URL, HTTPClient: srv.Client()}).Generate(t.Context(), openAIFox)
	var got *Error
	if !errors.As(err, &got) || got.Kind != KindAnswer || !errors.Is(err, ErrSize) {
		t.Errorf("%v", err)
	}
}

// TestOpenAIUnreachable: an unreachable server, and a cancelled call.
func TestOpenAIUnreachable(t *testing.T) {
	f := newFakeOpenAI(t, 200, "")
	g := f.generator(ProviderOptions{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := g.Generate(ctx, openAIFox); !errors.Is(err, context.Canceled) {
		t.Errorf("called off: %v", err)
	}
	f.Close()
	_, err := g.Generate(t.Context(), openAIFox)
	var got *Error
	if !errors.As(err, &got) || got.Kind != KindTransient || got.Unsure || strings.Contains(err.Error(), "sk-secret") {
		t.Errorf("%v", err)
	}
}

// TestOpenAISimulator: the built-in simulator makes real images of the requested size.
func TestOpenAISimulator(t *testing.T) {
	local, err := sim.Start(t.Context(), "", sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer local.Close()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	images, err := NewOpenAI(ProviderOptions{BaseURL: local.OpenAIURL(), APIKey: "simulator", HTTPClient: client}).Generate(t.Context(), openAIFox)
	if err != nil || len(images) != 2 {
		t.Fatalf("%d images, %v", len(images), err)
	}
	for _, i := range images {
		drawn, err := png.Decode(bytes.NewReader(i.Data))
		if err != nil || drawn.Bounds() != stdimage.Rect(0, 0, 1536, 1024) {
			t.Errorf("%v", err)
		}
	}
	if base64.StdEncoding.EncodeToString(images[0].Data) == base64.StdEncoding.EncodeToString(images[1].Data) {
		t.Error("both images are one")
	}
}

// TestNothingWasSent: a timeout before the connection means no request and no cost; after it the cost is unknown.
func TestNothingWasSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for sent, dial := range map[bool]func(context.Context) (net.Conn, error){
			false: func(ctx context.Context) (net.Conn, error) { <-ctx.Done(); return nil, ctx.Err() },
			true: func(context.Context) (net.Conn, error) {
				ours, theirs := net.Pipe()
				go func() { _, _ = io.Copy(io.Discard, theirs) }() // ends with the connection
				return ours, nil
			},
		} {
			transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) }}
			g := NewOpenAI(ProviderOptions{BaseURL: "http://image.test/v1", HTTPClient: &http.Client{Transport: transport}})
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			_, err := g.Generate(ctx, openAIFox)
			cancel()
			transport.CloseIdleConnections()
			if e, ok := errors.AsType[*Error](err); ok == sent || ok && e.Kind != KindTransient || sent && !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("sent %t: %v", sent, err)
			}
		}
	})
}

// TestLostAnswer: a request without a complete answer may have cost money.
func TestLostAnswer(t *testing.T) {
	for name, answer := range map[string]string{
		"cut off in the header": "",
		"cut off in the body":   "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{\"data\":[",
		"ended too early":       "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{\"data\":[",
	} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = io.WriteString(conn, answer)
			_ = conn.Close()
		}))
		transport := &http.Transport{DisableKeepAlives: true}
		_, err := NewOpenAI(ProviderOptions{BaseURL: srv.URL, HTTPClient: &http.Client{Transport: transport}}).Generate(t.Context(), openAIFox)
		srv.Close()
		if e, ok := errors.AsType[*Error](err); !ok || e.Kind != KindTransient || !e.Unsure {
			t.Errorf("%s: %v", name, err)
		}
	}
}
