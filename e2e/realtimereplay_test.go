package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// recorded is a line of a recorded session: what a client sent, or the provider.
type recorded struct {
	Dir  string
	Data json.RawMessage
	// OpenAI's client events, and Gemini's messages in the spelling of the recorded client.
	Type    string
	Session struct{ Model string }
	Item    json.RawMessage
	Setup   *struct {
		Model             string
		SystemInstruction struct{ Parts []struct{ Text string } } `json:"systemInstruction"`
		Tools             []struct {
			Declarations []struct {
				Name, Description string
				Parameters        json.RawMessage
			} `json:"functionDeclarations"`
		}
	}
	Content *struct {
		Turns []struct{ Parts []struct{ Text string } }
	} `json:"client_content"`
	Results *struct {
		Responses []struct{ Response json.RawMessage } `json:"functionResponses"`
	} `json:"tool_response"`
}

func readRecording(t *testing.T, name string) (lines []recorded) {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	sc := bufio.NewScanner(bytes.NewReader(data))
	sc.Buffer(nil, 64<<20)
	for sc.Scan() {
		var l recorded
		if err := json.Unmarshal(sc.Bytes(), &l); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(l.Data, &l); err != nil || l.Dir == "close" {
			continue
		}
		lines = append(lines, l)
	}
	return afterResponses(lines)
}

// afterResponses moves what a client sent during a response behind it: the gateway's client learns of a call when its
// response ends.
func afterResponses(lines []recorded) (out []recorded) {
	var held []recorded
	active := false
	for _, l := range lines {
		active = active && l.Type != "response.done" || l.Type == "response.created"
		if active && l.Dir == "sent" {
			held = append(held, l)
			continue
		}
		if out = append(out, l); !active {
			out, held = append(out, held...), nil
		}
	}
	return out
}

// parts are the words that identify a client's frame, by provider.
var parts = []struct{ word, part string }{{`"setup"`, "setup"}, {`"session.update"`, "setup"}, {`"toolResponse"`, "result"},
	{`"tool_response"`, "result"}, {`"function_call_output"`, "result"}, {`"audio"`, "audio"}}

func part(frame []byte) string {
	for _, p := range parts {
		if bytes.Contains(frame, []byte(p.word)) {
			return p.part
		}
	}
	return "others"
}

// playback is a provider that sends the recorded frames, each after the gateway has sent the same frames as the recorded client.
func playback(t *testing.T, lines []recorded) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{"realtime"}})
		if err != nil {
			return
		}
		defer c.CloseNow()
		c.SetReadLimit(-1)
		came := map[string]int{}
		hear := func() bool {
			_, frame, err := c.Read(context.Background())
			if err == nil {
				came[part(frame)]++
			}
			return err == nil
		}
		last := ""
		for _, l := range lines {
			if l.Dir == "received" {
				if last = ""; c.Write(context.Background(), websocket.MessageText, l.Data) != nil {
					return
				}
				continue
			}
			of := part(l.Data)
			if of == "audio" && last == of { // the gateway has frames of another length
				continue
			}
			for last = of; came[of] == 0; {
				if !hear() {
					return
				}
			}
			came[of]--
		}
		for hear() { // until the gateway ends the session
		}
	})
}

// does sends what a client of OpenAI's protocol would have sent instead of a recorded client.
func (c *rtClient) does(l recorded, again bool) {
	switch {
	case l.Setup != nil:
		tools := []map[string]any{}
		for _, of := range l.Setup.Tools {
			for _, d := range of.Declarations {
				tools = append(tools, map[string]any{"type": "function", "name": d.Name, "description": d.Description,
					"parameters": json.RawMessage(bytes.ToLower(d.Parameters))}) // Gemini has the types in capitals
			}
		}
		b, err := json.Marshal(tools)
		if err != nil {
			c.t.Fatal(err)
		}
		c.say(fmt.Sprintf(`{"type":"session.update","session":{"instructions":%q,"tools":%s,"audio":{"input":{"transcription":{"model":"whisper-1"}}}}}`,
			l.Setup.SystemInstruction.Parts[0].Text, b))
		c.wait("session.updated")
	case l.Type == "session.update":
		c.say(string(l.Data))
		c.wait("session.updated")
	case part(l.Data) == "audio":
		if !again {
			c.speak(spoken(24000, time.Second))
			c.wait("response.done")
		}
	case l.Content != nil:
		c.write(l.Content.Turns[0].Parts[0].Text)
		c.wait("response.done")
	case l.Results != nil:
		c.result(string(l.Results.Responses[0].Response))
		c.say(`{"type":"response.create"}`)
		c.wait("response.done")
	case l.Type == "conversation.item.create":
		var item struct{ Output string }
		if err := json.Unmarshal(l.Item, &item); err != nil {
			c.t.Fatal(err)
		}
		if item.Output != "" {
			c.result(item.Output)
			return
		}
		c.say(string(l.Data))
	case l.Type == "response.create":
		c.say(string(l.Data))
		c.wait("response.done")
	}
}

// result answers the newest call.
func (c *rtClient) result(output string) {
	calls := c.all("response.function_call_arguments.done")
	if len(calls) == 0 {
		c.t.Fatalf("there is no call: %s", c.story())
	}
	c.say(fmt.Sprintf(`{"type":"conversation.item.create","item":{"type":"function_call_output","call_id":%q,"output":%q}}`, calls[len(calls)-1].text("call_id"), output))
}

// recordedOutput are the words and calls of a recorded provider, without spaces, and its tokens.
func recordedOutput(lines []recorded) (words string, tokens float64) {
	for _, l := range lines {
		e := rtEvent{}
		if l.Dir != "received" || json.Unmarshal(l.Data, &e.all) != nil {
			continue
		}
		words += e.text("transcript.") + e.text("serverContent.outputTranscription.text")
		if name := e.text("toolCall.functionCalls.0.name"); name != "" {
			args, _ := json.Marshal(e.get("toolCall.functionCalls.0.args"))
			words += name + string(args)
		}
		n, _ := e.get("usageMetadata.totalTokenCount").(float64)
		tokens += n
		if l.Type == "response.done" {
			more, used := outputOf(e)
			words, tokens = words+more, tokens+used
		}
	}
	return strings.Join(strings.Fields(words), ""), tokens
}

// outputOf are the words and calls of a response, and its tokens.
func outputOf(done rtEvent) (words string, tokens float64) {
	items, _ := done.get("response.output").([]any)
	for i := range items {
		at := fmt.Sprintf("response.output.%d.", i)
		words += done.text(at+"content.0.text") + done.text(at+"content.0.transcript") + done.text(at+"name") + done.text(at+"arguments")
	}
	tokens, _ = done.get("response.usage.total_tokens").(float64)
	return words, tokens
}

// TestRealtimeRecordings: what providers really sent reaches a client of OpenAI's protocol in events that the strictest
// client reads: the same words, calls and tokens, and each response ends once.
func TestRealtimeRecordings(t *testing.T) {
	for _, provider := range providers {
		files, err := filepath.Glob(filepath.Join("..", "..", "shared", "fixtures", provider, "*.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		if len(files) == 0 {
			t.Skip("the recorded sessions are not available")
		}
		for _, file := range files {
			t.Run(provider+"/"+strings.TrimSuffix(filepath.Base(file), ".jsonl"), func(t *testing.T) {
				t.Parallel()
				lines := readRecording(t, file)
				set := setting{provider: playback(t, lines), tools: newToolbox(t)}
				for _, l := range lines {
					if l.Setup != nil {
						set.model = strings.TrimPrefix(l.Setup.Model, "models/")
					} else if l.Type == "session.created" {
						set.model = l.Session.Model
					}
				}
				c := newStack(t, provider, set).realtime(t, "?model="+set.model)
				for i, l := range lines {
					if l.Dir == "sent" {
						c.does(l, i > 0 && part(lines[i-1].Data) == "audio" && lines[i-1].Dir == "sent")
					}
				}
				var words string
				var tokens float64
				for _, e := range c.all("response.done") {
					more, used := outputOf(e)
					words, tokens = words+more, tokens+used
					if e.text("response.status") != "completed" {
						t.Errorf("a response ended %s", e.raw)
					}
				}
				if created, done := len(c.all("response.created")), len(c.all("response.done")); created != done || created == 0 {
					t.Errorf("%d responses began, %d ended", created, done)
				}
				wantWords, wantTokens := recordedOutput(lines)
				if words = strings.Join(strings.Fields(words), ""); words != wantWords || tokens != wantTokens {
					t.Errorf("the client got %q and %v tokens, the provider sent %q and %v", words, tokens, wantWords, wantTokens)
				}
			})
		}
	}
}
