package openai

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http/httptest"
	"testing"
	"time"

	openaigo "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/realtime"

	"voicegw/sim/wire"
)

// official is the provider's own Go client, connected over a real socket.
type official struct {
	t    *testing.T
	ctx  context.Context
	conn *realtime.RealtimeConnection
}

func connectOfficial(t *testing.T, o wire.Options) *official {
	t.Helper()
	o.Group, o.Stats = &wire.Group{}, &wire.Stats{}
	srv := httptest.NewServer(New(o))
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	client := openaigo.NewClient(option.WithBaseURL(srv.URL+"/v1/"), option.WithAPIKey("sk-test"))
	conn, err := client.Realtime.Connect(ctx, realtime.RealtimeConnectionOptions{}, option.WithQuery("model", "gpt-realtime"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		if err := o.Group.Close(ctx); err != nil {
			t.Error(err)
		}
		srv.Close()
		cancel()
	})
	return &official{t, ctx, conn}
}

func (c *official) send(e realtime.RealtimeClientEventUnionParam) {
	c.t.Helper()
	if err := c.conn.Send(c.ctx, e); err != nil {
		c.t.Fatal(err)
	}
}

// until receives up to an event of that type and returns all events.
func (c *official) until(kind string) []realtime.RealtimeServerEventUnion {
	c.t.Helper()
	var all []realtime.RealtimeServerEventUnion
	for {
		e, err := c.conn.Recv(c.ctx)
		if err != nil {
			c.t.Fatalf("waiting for %s: %v", kind, err)
		}
		if e.Type == "error" {
			c.t.Fatalf("error event: %s", e.RawJSON())
		}
		all = append(all, e)
		if e.Type == kind {
			return all
		}
	}
}

func (c *official) update(session realtime.RealtimeSessionCreateRequestParam) {
	c.send(realtime.RealtimeClientEventUnionParam{OfSessionUpdate: &realtime.SessionUpdateEventParam{
		Session: realtime.SessionUpdateEventSessionUnionParam{OfRealtime: &session},
	}})
	c.until("session.updated")
}

func (c *official) item(item realtime.ConversationItemUnionParam) {
	c.send(realtime.RealtimeClientEventUnionParam{OfConversationItemCreate: &realtime.ConversationItemCreateEventParam{Item: item}})
}

func (c *official) respond() {
	c.send(realtime.RealtimeClientEventUnionParam{OfResponseCreate: &realtime.ResponseCreateEventParam{}})
}

func TestOfficialClientToolRound(t *testing.T) {
	c := connectOfficial(t, wire.Options{Speed: -1, FirstAudioMS: -1})
	if e := c.until("session.created")[0]; e.AsSessionCreatedEvent().Session.OfRealtimeSessionCreateRequest.Model != "gpt-realtime" {
		t.Errorf("session %s", e.RawJSON())
	}
	c.update(realtime.RealtimeSessionCreateRequestParam{
		Instructions: openaigo.String("Use the tool."),
		Tools: realtime.RealtimeToolsConfigParam{{OfFunction: &realtime.RealtimeFunctionToolParam{
			Name: openaigo.String("get_weather"), Description: openaigo.String("Look up the weather for a city."), Type: "function",
			Parameters: map[string]any{"type": "object", "properties": map[string]any{"city": map[string]any{"type": "string"}}, "required": []string{"city"}},
		}}},
	})
	c.item(realtime.ConversationItemParamOfRealtimeUserMessageItem([]realtime.RealtimeConversationItemUserMessageContentParam{
		{Type: "input_text", Text: openaigo.String("What is the weather in London?")},
	}))
	c.respond()
	var call realtime.ResponseFunctionCallArgumentsDoneEvent
	for _, e := range c.until("response.done") {
		if e.Type == "response.function_call_arguments.done" {
			call = e.AsResponseFunctionCallArgumentsDoneEvent()
		}
	}
	var args struct{ City string }
	if err := json.Unmarshal([]byte(call.Arguments), &args); err != nil || call.Name != "get_weather" || args.City != "London" {
		t.Fatalf("call %s %q: %v", call.Name, call.Arguments, err)
	}
	c.item(realtime.ConversationItemParamOfFunctionCallOutput(call.CallID, "It is foggy and 12 degrees in London."))
	c.respond()
	var said string
	audioBytes := 0
	for _, e := range c.until("response.done") {
		switch e.Type {
		case "response.output_audio_transcript.delta":
			said += e.AsResponseAudioTranscriptDeltaEvent().Delta
		case "response.output_audio.delta":
			b, err := base64.StdEncoding.DecodeString(e.AsResponseAudioDeltaEvent().Delta)
			if err != nil {
				t.Fatal(err)
			}
			audioBytes += len(b)
		case "response.done":
			if r := e.AsResponseDoneEvent().Response; r.Status != "completed" || r.Usage.TotalTokens == 0 {
				t.Errorf("response %s", e.RawJSON())
			}
		}
	}
	if said != "It is foggy and 12 degrees in London." || audioBytes < 48*1000 {
		t.Errorf("the transcript is %q in %d bytes of audio", said, audioBytes)
	}
}

func TestOfficialClientBargeIn(t *testing.T) {
	c := connectOfficial(t, wire.Options{Scenario: script(t, story), Speed: 0.5})
	c.until("session.created")
	speak := func(pcm []byte) {
		for len(pcm) > 0 {
			n := min(4800, len(pcm))
			c.send(realtime.RealtimeClientEventUnionParam{OfInputAudioBufferAppend: &realtime.InputAudioBufferAppendEventParam{
				Audio: base64.StdEncoding.EncodeToString(pcm[:n]),
			}})
			pcm = pcm[n:]
		}
	}
	speak(sound(300*time.Millisecond, 2*time.Second, time.Second))
	first := c.until("response.output_audio.delta")
	item := first[len(first)-1].AsResponseAudioDeltaEvent().ItemID
	speak(sound(0, time.Second, 0))
	got := c.until("response.done")
	if r := got[len(got)-1].AsResponseDoneEvent().Response; r.Status != "cancelled" {
		t.Errorf("response %s", got[len(got)-1].RawJSON())
	}
	c.send(realtime.RealtimeClientEventUnionParam{OfConversationItemTruncate: &realtime.ConversationItemTruncateEventParam{ItemID: item, AudioEndMs: 120}})
	got = c.until("conversation.item.truncated")
	if e := got[len(got)-1].AsConversationItemTruncatedEvent(); e.AudioEndMs != 120 || e.ItemID != item {
		t.Errorf("truncated %s", got[len(got)-1].RawJSON())
	}
}

func TestOfficialClientSecret(t *testing.T) {
	srv := httptest.NewServer(New(wire.Options{}))
	defer srv.Close()
	client := openaigo.NewClient(option.WithBaseURL(srv.URL+"/v1/"), option.WithAPIKey("sk-test"), option.WithHTTPClient(srv.Client()))
	got, err := client.Realtime.ClientSecrets.New(t.Context(), realtime.ClientSecretNewParams{
		Session: realtime.ClientSecretNewParamsSessionUnion{OfRealtime: &realtime.RealtimeSessionCreateRequestParam{Model: "gpt-realtime"}},
	})
	if err != nil || got.Value == "" || got.ExpiresAt == 0 {
		t.Errorf("secret %+v, %v", got, err)
	}
	bad := openaigo.NewClient(option.WithBaseURL(srv.URL+"/v1/"), option.WithAPIKey("invalid"), option.WithHTTPClient(srv.Client()), option.WithMaxRetries(0))
	if _, err := bad.Realtime.ClientSecrets.New(t.Context(), realtime.ClientSecretNewParams{}); err == nil {
		t.Error("an invalid key made a secret")
	}
}
