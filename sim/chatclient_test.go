package sim

import (
	"context"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	openaigo "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/shared"
)

// official is the provider's own Go client over a real socket.
func official(t *testing.T, faults string, more ...option.RequestOption) (openaigo.Client, *Server) {
	t.Helper()
	o := options(t, faults)
	h := New(o)
	srv := httptest.NewServer(h)
	client := srv.Client()
	t.Cleanup(func() {
		client.CloseIdleConnections()
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
		defer cancel()
		if err := o.Group.Close(ctx); err != nil {
			t.Error(err)
		}
		srv.Close()
	})
	all := append([]option.RequestOption{option.WithBaseURL(srv.URL + "/v1/"), option.WithAPIKey("sk-test"), option.WithHTTPClient(client)}, more...)
	return openaigo.NewClient(all...), h
}

func params(text string) openaigo.ChatCompletionNewParams {
	return openaigo.ChatCompletionNewParams{
		Model:         "gpt-5-mini",
		Messages:      []openaigo.ChatCompletionMessageParamUnion{openaigo.SystemMessage("Be kind."), openaigo.UserMessage(text)},
		StreamOptions: openaigo.ChatCompletionStreamOptionsParam{IncludeUsage: openaigo.Bool(true)},
		Tools: []openaigo.ChatCompletionToolUnionParam{openaigo.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{
			Name: "weather", Parameters: shared.FunctionParameters{"type": "object", "properties": map[string]any{"city": map[string]any{"type": "string"}}},
		})},
	}
}

// accumulate streams an answer into the client's accumulator.
func accumulate(t *testing.T, c openaigo.Client, p openaigo.ChatCompletionNewParams) (acc openaigo.ChatCompletionAccumulator, finished []string) {
	t.Helper()
	stream := c.Chat.Completions.NewStreaming(t.Context(), p)
	for stream.Next() {
		if !acc.AddChunk(stream.Current()) {
			t.Fatalf("the accumulator refuses %s", stream.Current().RawJSON())
		}
		if text, ok := acc.JustFinishedContent(); ok {
			finished = append(finished, text)
		}
		if call, ok := acc.JustFinishedToolCall(); ok {
			finished = append(finished, call.Name+call.Arguments)
		}
	}
	if err := stream.Err(); err != nil {
		t.Fatal(err)
	}
	if err := stream.Close(); err != nil {
		t.Error(err)
	}
	return acc, finished
}

func TestOfficialClientStreamsToolsAndResults(t *testing.T) {
	c, h := official(t, "")
	p := params("parallel")
	acc, finished := accumulate(t, c, p)
	if len(acc.Choices) != 1 || len(acc.Choices[0].Message.ToolCalls) != 2 || acc.Choices[0].FinishReason != "tool_calls" || acc.Usage.CompletionTokens == 0 {
		t.Fatalf("%+v", acc.ChatCompletion)
	}
	if got := strings.Join(finished, " "); got != `weather{"city":"Paris"} weather{"city":"London"}` {
		t.Errorf("%s", got)
	}
	p.Messages = append(p.Messages, acc.Choices[0].Message.ToParam())
	for _, call := range acc.Choices[0].Message.ToolCalls {
		p.Messages = append(p.Messages, openaigo.ToolMessage(`"sun"`, call.ID))
	}
	acc, finished = accumulate(t, c, p)
	if len(finished) != 1 || finished[0] != "Both: Sun. Sun." || acc.Choices[0].FinishReason != "stop" {
		t.Errorf("%v %+v", finished, acc.ChatCompletion)
	}
	if s := h.opts.Stats; s.Calls.Load() != 2 || s.Results.Load() != 2 || s.Responses.Load() != 2 || s.Requests.Load() != 2 {
		t.Errorf("counted: %d calls, %d results, %d responses, %d requests", s.Calls.Load(), s.Results.Load(), s.Responses.Load(), s.Requests.Load())
	}
}

func TestOfficialClientWithoutAStream(t *testing.T) {
	c, _ := official(t, "")
	p := params("decline")
	p.StreamOptions = openaigo.ChatCompletionStreamOptionsParam{}
	got, err := c.Chat.Completions.New(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	if m := got.Choices[0].Message; m.Refusal != "I may not say." || m.Content != "" || got.Object != "chat.completion" || got.Usage.TotalTokens == 0 {
		t.Errorf("%s", got.RawJSON())
	}
}

// TestOfficialClientRetries: the client waits for the given time and tries again; then it gets an answer.
func TestOfficialClientRetries(t *testing.T) {
	c, h := official(t, "faults: [{at: connect, connection: 1, do: http_error, code: 429, for: 1ms}, {at: connect, connection: 2, do: http_error, code: 503, for: 1ms}, {at: connect, connection: 3, do: drop}]",
		option.WithMaxRetries(3))
	if _, finished := accumulate(t, c, params("count")); len(finished) != 1 || finished[0] != "a b c d e f" {
		t.Errorf("%v", finished)
	}
	if n := h.opts.Stats.Requests.Load(); n != 4 {
		t.Errorf("%d requests", n)
	}
}

func TestOfficialClientErrors(t *testing.T) {
	for _, test := range []struct {
		name, faults, key string
		check             func(err error, api *openaigo.Error) bool
	}{
		{"invalid key", "", "invalid", func(_ error, api *openaigo.Error) bool {
			return api != nil && api.StatusCode == 401 && api.Code == "invalid_api_key"
		}},
		{"quota", "", "quota", func(_ error, api *openaigo.Error) bool {
			return api != nil && api.StatusCode == 429 && api.Type == "insufficient_quota"
		}},
		{"cut in the stream", "faults: [{at: chunk, n: 3, do: drop}]", "k", func(err error, api *openaigo.Error) bool {
			return err != nil && api == nil && strings.Contains(err.Error(), "EOF")
		}},
		{"broken chunk", "faults: [{at: chunk, n: 3, do: malformed}]", "k", func(err error, api *openaigo.Error) bool {
			return err != nil && api == nil
		}},
		{"error in the stream", "faults: [{at: chunk, n: 3, do: http_error, code: 500}]", "k", func(err error, _ *openaigo.Error) bool {
			return err != nil && strings.Contains(err.Error(), "The server had an error")
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, _ := official(t, test.faults, option.WithAPIKey(test.key), option.WithMaxRetries(0))
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			stream := c.Chat.Completions.NewStreaming(ctx, params("count"))
			for stream.Next() { // only the error at the end counts
			}
			err := stream.Err()
			var api *openaigo.Error
			if errors.As(err, &api); !test.check(err, api) {
				t.Errorf("%v", err)
			}
		})
	}
}

// TestOfficialClientLeaves: a client that leaves in the middle frees the request.
func TestOfficialClientLeaves(t *testing.T) {
	c, h := official(t, "faults: [{at: chunk, n: 2, do: delay, for: 1h}]")
	ctx, cancel := context.WithCancel(t.Context())
	stream := c.Chat.Completions.NewStreaming(ctx, params("count"))
	for stream.Next() && len(stream.Current().Choices) > 0 && stream.Current().Choices[0].Delta.Content == "" { // up to the first word
	}
	cancel()
	_ = stream.Close() // it was cancelled
	end, stop := context.WithTimeout(t.Context(), 3*time.Minute)
	defer stop()
	if err := h.opts.Group.Close(end); err != nil {
		t.Errorf("the request did not end: %v", err)
	}
}
