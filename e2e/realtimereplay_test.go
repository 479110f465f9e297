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

// recorded is a line of a recorded session: a message of the client or the provider.
type recorded struct {
	Dir  string
	Data json.RawMessage
	// OpenAI's client events, and Gemini's messages in the recorded client's spelling.
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

// afterResponses moves a client's messages during a response behind it, because the gateway's client learns of a call when
// the response ends.
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

// parts maps words to the kind of a client's frame.
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

// playback is a provider that sends each recorded frame once the gateway has sent the frames before it.
func playback(t *testing.T, lines []recorded) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{"realtime"}})
		if err != nil {
			return
		}
		defer c.CloseNow()
		c.SetReadLimit(-1)
		received := map[string]int{}
		hear := func() bool {
			_, frame, err := c.Read(context.Background())
			if err == nil {
				received[part(frame)]++
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
			if of == "audio" && last == of { // the gateway's frames have another length
				continue
			}
			for last = of; received[of] == 0; {
				if !hear() {
					return
				}
			}
			received[of]--
		}
		for hear() { // until the gateway ends the session
		}
	})
}

// does sends the events of OpenAI's protocol for a message of the recorded client.
func (c *rtClient) does(l recorded, again bool) {
	switch {
	case l.Setup != nil:
		tools := []map[string]any{}
		for _, of := range l.Setup.Tools {
			for _, d := range of.Declarations {
				tools = append(tools, map[string]any{"type": "function", "name": d.Name, "description": d.Description,
					"parameters": json.RawMessage(bytes.ToLower(d.Parameters))}) // Gemini's types are in capitals
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

// recordedOutput returns the words and calls of a recorded provider, without spaces, and its tokens.
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

// outputOf returns the words and calls of a response, and its tokens.
func outputOf(done rtEvent) (words string, tokens float64) {
	items, _ := done.get("response.output").([]any)
	for i := range items {
		at := fmt.Sprintf("response.output.%d.", i)
		words += done.text(at+"content.0.text") + done.text(at+"content.0.transcript") + done.text(at+"name") + done.text(at+"arguments")
	}
	tokens, _ = done.get("response.usage.total_tokens").(float64)
	return words, tokens
}

// TestRealtimeRecordings: recorded output of real providers reaches a client of OpenAI's protocol with the same words, calls
// and tokens, in events that a strict client can parse. Each response ends once.
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
