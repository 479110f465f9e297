package textmodel

import (
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// secretKey must not be seen in any error.
const secretKey = "sk-completions-secret-0123456789"

// response is what the provider of a test answers a request with.
type response struct {
	status int // zero means 200
	header map[string]string
	body   string
	// cut breaks the connection off after the body.
	cut bool
	// hang keeps the connection open after the body, until the client ends it.
	hang bool
	// err is that of the connection; then there is no answer at all.
	err error
}

// provider answers requests in order, the last answer for all that follow, and keeps
// what it was asked. It lives in a synctest bubble: nothing of it has a socket.
type provider struct {
	answers []response
	bodies  []map[string]any
	headers []http.Header
	at      []time.Time
	path    string
}

// RoundTrip implements http.RoundTripper.
func (p *provider) RoundTrip(r *http.Request) (*http.Response, error) {
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	var body map[string]any
	if err := json.Unmarshal(raw, &body); err != nil {
		return nil, err
	}
	p.bodies, p.headers, p.at, p.path = append(p.bodies, body), append(p.headers, r.Header.Clone()), append(p.at, time.Now()), r.URL.Path
	a := p.answers[min(len(p.bodies), len(p.answers))-1]
	if a.err != nil {
		return nil, a.err
	}
	if a.status == 0 {
		a.status = http.StatusOK
	}
	out := &http.Response{StatusCode: a.status, Status: http.StatusText(a.status), ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{}, Request: r}
	out.Header.Set("Content-Type", "text/event-stream")
	if a.status != http.StatusOK {
		out.Header.Set("Content-Type", "application/json")
	}
	for name, value := range maps.All(a.header) {
		out.Header.Set(name, value)
	}
	var src io.Reader = strings.NewReader(a.body)
	if a.cut {
		src = io.MultiReader(src, broken{})
	}
	if a.hang {
		src = io.MultiReader(src, hanging{r.Context()})
	}
	out.Body = io.NopCloser(src)
	return out, nil
}

// broken is a connection that ends in the middle.
type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// hanging is a connection on which nothing comes until its request ends.
type hanging struct{ ctx context.Context }

func (h hanging) Read([]byte) (int, error) {
	<-h.ctx.Done()
	return 0, h.ctx.Err()
}

// client makes a Client of a provider.
func (p *provider) client(t testing.TB, o Options) *Client {
	t.Helper()
	if o.Model == "" {
		o.Model = "test-model"
	}
	if o.APIKey == "" {
		o.APIKey = secretKey
	}
	if o.BaseURL == "" {
		o.BaseURL = "http://provider.test/v1"
	}
	o.HTTPClient = &http.Client{Transport: p}
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// ask sends a prompt and returns the reply and the deltas.
func ask(ctx context.Context, c *Client, p Prompt) (Reply, []string, error) {
	var deltas []string
	if len(p.Messages) == 0 {
		p.Messages = []Message{{Role: RoleUser, Text: "Hello"}}
	}
	reply, err := c.Complete(ctx, p, func(s string) { deltas = append(deltas, s) })
	return reply, deltas, err
}

// stream writes chunks as a provider does, and the end.
func stream(chunks ...string) string { return lines(append(chunks, "[DONE]")...) }

// lines writes events.
func lines(events ...string) string {
	var b strings.Builder
	for _, e := range events {
		b.WriteString("data: " + e + "\n\n")
	}
	return b.String()
}

// chunk is a chunk of an answer with a delta.
func chunk(delta, finish string) string {
	if finish == "" {
		finish = "null"
	} else {
		finish = `"` + finish + `"`
	}
	return `{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1795000000,"model":"test-model","choices":[{"index":0,"delta":` + delta + `,"logprobs":null,"finish_reason":` + finish + `}]}`
}

// text is a chunk of text.
func text(s string) string {
	quoted, _ := json.Marshal(s)
	return chunk(`{"content":`+string(quoted)+`}`, "")
}

// usageChunk is the last chunk of a stream with include_usage.
const usageChunk = `{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1795000000,"model":"test-model","choices":[],"usage":{"prompt_tokens":21,"completion_tokens":7,"total_tokens":28,"prompt_tokens_details":{"cached_tokens":16},"completion_tokens_details":{"reasoning_tokens":2}}}`

// whole is an answer in one piece.
func whole(message, finish string) string {
	return `{"id":"chatcmpl-1","object":"chat.completion","created":1795000000,"model":"test-model","choices":[{"index":0,"message":` + message + `,"finish_reason":` + finish + `}],"usage":{"prompt_tokens":3,"completion_tokens":1,"total_tokens":4}}`
}
