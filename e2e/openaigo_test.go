package e2e

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"
	"time"

	openaigo "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/realtime"

	"voicegw/internal/testutil"
)

// official is OpenAI's Go client, connected to a gateway.
type official struct {
	t    *testing.T
	ctx  context.Context
	conn *realtime.RealtimeConnection
}

func (st *stack) official(t *testing.T) *official {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	client := openaigo.NewClient(option.WithBaseURL(st.url+"/v1/"), option.WithAPIKey(operatorsKey))
	conn, err := client.Realtime.Connect(ctx, realtime.RealtimeConnectionOptions{}, option.WithQuery("model", "gpt-realtime"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		cancel()
	})
	c := &official{t, ctx, conn}
	c.until("session.created")
	return c
}

func (c *official) send(e realtime.RealtimeClientEventUnionParam) {
	c.t.Helper()
	if err := c.conn.Send(c.ctx, e); err != nil {
		c.t.Fatal(err)
	}
}

// until receives events up to one of this type and returns all of them.
func (c *official) until(kind string) (all []realtime.RealtimeServerEventUnion) {
	c.t.Helper()
	for {
		e, err := c.conn.Recv(c.ctx)
		if err != nil {
			c.t.Fatalf("waiting for %s: %v", kind, err)
		}
		if e.Type == "error" {
			c.t.Fatalf("error event: %s", e.RawJSON())
		}
		if all = append(all, e); e.Type == kind {
			return all
		}
	}
}

func (c *official) item(item realtime.ConversationItemUnionParam) {
	c.send(realtime.RealtimeClientEventUnionParam{OfConversationItemCreate: &realtime.ConversationItemCreateEventParam{Item: item}})
}

func (c *official) ask(text string) {
	c.item(realtime.ConversationItemParamOfRealtimeUserMessageItem([]realtime.RealtimeConversationItemUserMessageContentParam{
		{Type: "input_text", Text: openaigo.String(text)},
	}))
	c.respond()
}

func (c *official) respond() {
	c.send(realtime.RealtimeClientEventUnionParam{OfResponseCreate: &realtime.ResponseCreateEventParam{}})
}

func (c *official) speak(pcm []byte) {
	for len(pcm) > 0 {
		n := min(4800, len(pcm))
		c.send(realtime.RealtimeClientEventUnionParam{OfInputAudioBufferAppend: &realtime.InputAudioBufferAppendEventParam{
			Audio: base64.StdEncoding.EncodeToString(pcm[:n]),
		}})
		pcm = pcm[n:]
	}
}

const openAIGoScenario = `
name: openai-go
rules:
  - when: {text: open}
    do:
      - call: {tool: open_page, args: {path: /prices}}
      - then: [say: "It is open."]
  - when: {text: any}
    do: [{say: "Once there was a small gateway that stood between a person and a model and listened to both of them for a long time."}]
`

// TestOpenAIGo: OpenAI's Go client calls a tool and interrupts an answer, with each provider behind the gateway.
func TestOpenAIGo(t *testing.T) {
	t.Parallel()
	for _, provider := range providers {
		t.Run(provider, func(t *testing.T) {
			t.Parallel()
			st := newStack(t, provider, setting{speed: 2, firstAudioMS: 10, tools: newToolbox(t), scenario: openAIGoScenario})
			c := st.official(t)
			c.send(realtime.RealtimeClientEventUnionParam{OfSessionUpdate: &realtime.SessionUpdateEventParam{
				Session: realtime.SessionUpdateEventSessionUnionParam{OfRealtime: &realtime.RealtimeSessionCreateRequestParam{
					Tools: realtime.RealtimeToolsConfigParam{{OfFunction: &realtime.RealtimeFunctionToolParam{
						Name: openaigo.String("open_page"), Description: openaigo.String("Opens a page."), Type: "function",
						Parameters: map[string]any{"type": "object", "properties": map[string]any{"path": map[string]any{"type": "string"}}},
					}}},
				}},
			}})
			c.ask("open the prices")
			var call realtime.ResponseFunctionCallArgumentsDoneEvent
			for _, e := range c.until("response.done") {
				if e.Type == "response.function_call_arguments.done" {
					call = e.AsResponseFunctionCallArgumentsDoneEvent()
				}
			}
			var args struct{ Path string }
			if err := json.Unmarshal([]byte(call.Arguments), &args); err != nil || call.Name != "open_page" || args.Path != "/prices" {
				t.Fatalf("call %s %q: %v", call.Name, call.Arguments, err)
			}
			c.item(realtime.ConversationItemParamOfFunctionCallOutput(call.CallID, "The page is open."))
			c.respond()
			var said strings.Builder
			for _, e := range c.until("response.done") {
				if e.Type == "response.output_audio_transcript.delta" {
					said.WriteString(e.AsResponseAudioTranscriptDeltaEvent().Delta)
				}
			}
			if strings.TrimSpace(said.String()) != "It is open." {
				t.Errorf("the model said %q", said.String())
			}
			c.ask("tell me a story")
			first := c.until("response.output_audio.delta")
			item := first[len(first)-1].AsResponseAudioDeltaEvent().ItemID
			c.speak(testutil.SpeechLike(24000, 2*time.Second, 1))
			var cut bool
			for _, e := range c.until("input_audio_buffer.speech_started") {
				cut = cut || e.Type == "response.done"
			}
			if !cut {
				all := c.until("response.done")
				if r := all[len(all)-1].AsResponseDoneEvent().Response; r.Status != "cancelled" {
					t.Errorf("response %s", all[len(all)-1].RawJSON())
				}
			}
			c.send(realtime.RealtimeClientEventUnionParam{OfConversationItemTruncate: &realtime.ConversationItemTruncateEventParam{ItemID: item, AudioEndMs: 120}})
			all := c.until("conversation.item.truncated")
			if e := all[len(all)-1].AsConversationItemTruncatedEvent(); e.AudioEndMs != 120 || e.ItemID != item {
				t.Errorf("truncated %s", all[len(all)-1].RawJSON())
			}
		})
	}
}
