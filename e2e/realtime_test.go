package e2e

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"voicegw/audio"
	"voicegw/internal/testutil"
)

// rtClient is a client of OpenAI's Realtime protocol that records all events, and parses each one strictly.
type rtClient struct {
	t    testing.TB
	conn *websocket.Conn
	in   chan rtEvent // from read; closed with the connection
	seen []rtEvent
	done sync.WaitGroup
	end  error
	// shown: the client enabled events that strict clients do not know.
	shown bool
}

type rtEvent struct {
	Type string
	raw  []byte
	all  map[string]any
}

// get returns the value at a path of keys and indexes, such as "response.output.0.name".
func (e rtEvent) get(path string) any {
	var v any = e.all
	for _, key := range strings.Split(path, ".") {
		switch at := v.(type) {
		case map[string]any:
			v = at[key]
		case []any:
			i := 0
			if _, err := fmt.Sscan(key, &i); err != nil || i >= len(at) {
				return nil
			}
			v = at[i]
		default:
			return nil
		}
	}
	return v
}

func (e rtEvent) text(path string) string {
	s, _ := e.get(path).(string)
	return s
}

func (st *stack) realtime(t testing.TB, query string) *rtClient {
	t.Helper()
	return dialRealtime(t, st.url+"/v1/realtime"+query, nil)
}

func dialRealtime(t testing.TB, url string, header http.Header) *rtClient {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, _, err := websocket.Dial(ctx, url, &websocket.DialOptions{HTTPHeader: header, Subprotocols: []string{"realtime"}})
	if err != nil {
		t.Fatal(err)
	}
	conn.SetReadLimit(-1)
	c := &rtClient{t: t, conn: conn, in: make(chan rtEvent, 1<<14)}
	c.done.Go(c.read)
	t.Cleanup(func() {
		_ = conn.CloseNow()
		for range c.in { // until the reader ends
		}
		c.done.Wait()
	})
	return c
}

func (c *rtClient) read() {
	defer close(c.in)
	for {
		_, data, err := c.conn.Read(context.Background())
		if err != nil {
			c.end = err
			return
		}
		e := rtEvent{raw: data}
		if err := json.Unmarshal(data, &e.all); err != nil {
			c.t.Errorf("%v in %.200s", err, data)
			return
		}
		e.Type = e.text("type")
		if err := testutil.CheckRealtimeEvent(data); err != nil && !c.shown {
			c.t.Errorf("a strict client would end its session: %v", err)
		}
		c.in <- e
	}
}

// say sends an event.
func (c *rtClient) say(event string) {
	c.t.Helper()
	if err := c.conn.Write(context.Background(), websocket.MessageText, []byte(event)); err != nil {
		c.t.Fatal(err)
	}
}

// speak sends audio at once.
func (c *rtClient) speak(data []byte) {
	c.t.Helper()
	for part := range slices.Chunk(data, 4800) {
		c.say(`{"type":"input_audio_buffer.append","audio":"` + base64.StdEncoding.EncodeToString(part) + `"}`)
	}
}

func (c *rtClient) next() rtEvent {
	c.t.Helper()
	select {
	case e, ok := <-c.in:
		if !ok {
			c.t.Fatalf("the connection is over (%v); before that: %s", c.end, c.story())
		}
		c.seen = append(c.seen, e)
		return e
	case <-time.After(patience):
		c.t.Fatalf("no more events; before that: %s", c.story())
	}
	return rtEvent{}
}

// wait reads events up to one of that type. An unexpected error fails the test.
func (c *rtClient) wait(kind string) rtEvent {
	c.t.Helper()
	for {
		e := c.next()
		if e.Type == kind {
			return e
		}
		if e.Type == "error" {
			c.t.Fatalf("error: %s; before that: %s", e.raw, c.story())
		}
	}
}

// story lists the types of the events so far, without repetitions.
func (c *rtClient) story() string { return strings.Join(c.order(), " ") }

func (c *rtClient) order() (kinds []string) {
	for _, e := range c.seen {
		if len(kinds) == 0 || kinds[len(kinds)-1] != e.Type {
			kinds = append(kinds, e.Type)
		}
	}
	return kinds
}

func (c *rtClient) all(kind string) (list []rtEvent) {
	for _, e := range c.seen {
		if e.Type == kind {
			list = append(list, e)
		}
	}
	return list
}

// sound returns the audio of an item so far.
func (c *rtClient) sound(item string) (data []byte) {
	for _, e := range c.all("response.output_audio.delta") {
		if e.text("item_id") == item {
			part, err := base64.StdEncoding.DecodeString(e.text("delta"))
			if err != nil {
				c.t.Fatal(err)
			}
			data = append(data, part...)
		}
	}
	return data
}

// words joins the deltas of a type.
func (c *rtClient) words(kind string) (text string) {
	for _, e := range c.all(kind) {
		text += e.text("delta")
	}
	return text
}

// spoken returns speech, and the silence that ends a turn.
func spoken(rate int, d time.Duration) []byte {
	return append(testutil.SpeechLike(rate, d, 5), testutil.Silence(rate, 2*time.Second)...)
}

const talkRules = `
name: realtime
rules:
  - when: {text: weather}
    do:
      - say: "Let me look."
      - call: {tool: weather, args: {city: Paris}}
      - then: [{say: "It is ${result.data.sky} in Paris."}]
  - when: {text: find}
    do:
      - say: "One moment."
      - call: {tool: lookup, args: {query: robots}}
      - then: [{say: "I found it."}]
  - when: {text: long}
    do:
      - say: >-
          I will now talk for quite a long time, so that there is something to interrupt, and I will
          not stop before I am told to, because that is what this test is about, and nothing else.
  - when: {text: any}
    do: [{say: "You wrote ${text}"}]
  - when: {utterance: any}
    do: [{say: "Yes, I heard you well and clearly."}]
`

// overWires runs a test with each provider behind the gateway.
func overWires(t *testing.T, set setting, f func(t *testing.T, provider string, st *stack)) {
	t.Parallel()
	for _, provider := range providers {
		t.Run(provider, func(t *testing.T) {
			t.Parallel()
			set := set
			if set.scenario == "" {
				set.scenario = talkRules
			}
			if set.speed == 0 {
				set.speed = 20
			}
			set.firstAudioMS = 10
			f(t, provider, newStack(t, provider, set))
		})
	}
}

const transcribed = `{"type":"session.update","session":{"type":"realtime","audio":{"input":{"transcription":{"model":"whisper-1"}}}}}`

// TestRealtimeTalk: a client speaks and hears the answer, in the order of a recorded session.
func TestRealtimeTalk(t *testing.T) {
	overWires(t, setting{}, func(t *testing.T, provider string, st *stack) {
		c := st.realtime(t, "?model=gpt-realtime")
		if got := c.wait("session.created").text("session.model"); got != "gpt-realtime" {
			t.Errorf("the model is %q", got)
		}
		c.say(transcribed)
		c.wait("session.updated")
		c.speak(spoken(24000, time.Second))
		done := c.wait("response.done")
		if done.text("response.status") != "completed" || done.get("response.usage.output_tokens").(float64) == 0 {
			t.Errorf("the response ended %s", done.raw)
		}
		for len(c.all("conversation.item.input_audio_transcription.completed")) == 0 {
			c.next()
		}
		item := c.wait0("response.output_item.added").text("item.id")
		if n := audio.Duration(24000, len(c.sound(item))); n < time.Second {
			t.Errorf("%v of audio", n)
		}
		if got := c.words("response.output_audio_transcript.delta"); strings.TrimSpace(got) != "Yes, I heard you well and clearly." {
			t.Errorf("the words are %q", got)
		}
		want := []string{
			"session.created", "session.updated", "input_audio_buffer.speech_started", "input_audio_buffer.speech_stopped",
			"input_audio_buffer.committed", "conversation.item.added", "conversation.item.done", "response.created",
			"response.output_item.added", "conversation.item.added", "response.content_part.added", "response.output_audio.done",
			"response.output_audio_transcript.done", "response.content_part.done", "conversation.item.done", "response.output_item.done",
			"response.done",
		}
		got := slices.DeleteFunc(c.order(), func(kind string) bool {
			return strings.Contains(kind, "delta") || strings.Contains(kind, "transcription")
		})
		if strings.Join(got, " ") != strings.Join(want, " ") {
			t.Errorf("the order is %s", strings.Join(got, " "))
		}
		started, committed := c.wait0("input_audio_buffer.speech_started"), c.wait0("input_audio_buffer.committed")
		if started.text("item_id") != committed.text("item_id") {
			t.Error("the start of the speech has another item")
		}
	})
}

// wait0 returns the first event of that type so far.
func (c *rtClient) wait0(kind string) rtEvent {
	c.t.Helper()
	all := c.all(kind)
	if len(all) == 0 {
		c.t.Fatalf("no %s in %s", kind, c.story())
	}
	return all[0]
}

// TestRealtimeInterruption: speech stops the answer, whose item gets no more audio; the model learns the extent of playback
// from the client's truncation.
func TestRealtimeInterruption(t *testing.T) {
	overWires(t, setting{speed: 1}, func(t *testing.T, provider string, st *stack) {
		c := st.realtime(t, "?model=gpt-realtime")
		c.say(`{"type":"conversation.item.create","item":{"type":"message","role":"user","content":[{"type":"input_text","text":"long"}]}}`)
		c.say(`{"type":"response.create"}`)
		item := c.wait("response.output_item.added").text("item.id")
		for len(c.sound(item)) < audio.Bytes(24000, 500*time.Millisecond) {
			c.next()
		}
		c.speak(testutil.SpeechLike(24000, time.Second, 5))
		c.wait("input_audio_buffer.speech_started")
		done := c.wait("response.done")
		if done.text("response.status") != "cancelled" || done.text("response.status_details.reason") != "turn_detected" {
			t.Errorf("the response ended %s", done.raw)
		}
		before := len(c.sound(item))
		c.say(fmt.Sprintf(`{"type":"conversation.item.truncate","item_id":%q,"content_index":0,"audio_end_ms":400}`, item))
		c.wait("conversation.item.truncated")
		if provider == "openai" {
			m := st.tap.wait(t, "conversation.item.truncate", func(m map[string]any) bool { return m["type"] == "conversation.item.truncate" })
			if at := m["audio_end_ms"].(float64); at < 350 || at > 450 {
				t.Errorf("the model got %v ms; the client sent 400", at)
			}
		}
		c.speak(testutil.Silence(24000, 2*time.Second))
		if second := c.wait("response.done"); second.text("response.status") != "completed" {
			t.Errorf("the second response ended %s", second.raw)
		}
		if len(c.sound(item)) != before {
			t.Error("the stopped item got more audio")
		}
	})
}

const withWeather = `{"type":"session.update","session":{"type":"realtime","tools":[{"type":"function","name":"weather","description":"Tells the weather.","parameters":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}}]}}`

func (c *rtClient) write(text string) {
	c.say(fmt.Sprintf(`{"type":"conversation.item.create","item":{"type":"message","role":"user","content":[{"type":"input_text","text":%q}]}}`, text))
	c.say(`{"type":"response.create","response":{"metadata":{"client_event_id":"mine"}}}`)
}

// TestRealtimeClientTool: the client runs its tool after the response with the call, and the model gets the result.
func TestRealtimeClientTool(t *testing.T) {
	overWires(t, setting{tools: newToolbox(t)}, func(t *testing.T, provider string, st *stack) {
		c := st.realtime(t, "")
		c.say(withWeather)
		c.write("weather please")
		first := c.wait("response.done")
		call := c.wait0("response.function_call_arguments.done")
		if call.text("name") != "weather" || call.text("arguments") != `{"city":"Paris"}` || first.text("response.metadata.client_event_id") != "mine" {
			t.Errorf("the call is %s in %s", call.raw, first.raw)
		}
		c.say(fmt.Sprintf(`{"type":"conversation.item.create","item":{"type":"function_call_output","call_id":%q,"output":"{\"sky\":\"grey\"}"}}`, call.text("call_id")))
		c.say(`{"type":"response.create"}`)
		second := c.wait("response.done")
		if second.text("response.status") != "completed" || !strings.Contains(string(second.raw), "It is grey in Paris.") {
			t.Errorf("the second response is %s", second.raw)
		}
	})
}

// TestRealtimeHiddenTool: the gateway's tool runs within one response, and the client sees only the words.
func TestRealtimeHiddenTool(t *testing.T) {
	t.Parallel()
	for _, provider := range providers {
		t.Run(provider, func(t *testing.T) {
			t.Parallel()
			tools := newStage(t)
			st := newStack(t, provider, setting{speed: 20, firstAudioMS: 10, scenario: talkRules, tools: tools.box})
			c := st.realtime(t, "")
			c.say(withWeather)
			c.write("find it")
			done := c.wait("response.done")
			if n := len(c.all("response.created")); n != 1 || !strings.Contains(string(done.raw), "I found it.") {
				t.Errorf("%d responses, the first is %s", n, done.raw)
			}
			if strings.Contains(c.story(), "function_call") || strings.Contains(c.story(), "mcp") {
				t.Errorf("the client saw the tool: %s", c.story())
			}
			st.audit.wait(t, "lookup", 1)
			c.say(`{"type":"session.update","event_id":"same","session":{"type":"realtime","tools":[{"type":"function","name":"lookup"}]}}`)
			if e := c.wait("error"); e.text("error.param") != "session.tools[0].name" || e.text("error.event_id") != "same" {
				t.Errorf("a tool of the gateway's name: %s", e.raw)
			}
		})
	}
}

// TestRealtimeText: a client that asks for text gets the words of the model's speech as text, without audio.
func TestRealtimeText(t *testing.T) {
	overWires(t, setting{}, func(t *testing.T, provider string, st *stack) {
		c := st.realtime(t, "")
		c.say(`{"type":"session.update","session":{"type":"realtime","output_modalities":["text"]}}`)
		for _, words := range []string{"one", "two"} {
			c.write(words)
			done := c.wait("response.done")
			if got := done.text("response.output.0.content.0.text"); strings.TrimSpace(got) != "You wrote "+words {
				t.Errorf("the answer is %q in %s", got, done.raw)
			}
		}
		if strings.Contains(c.story(), "audio.delta") || len(c.all("response.output_text.done")) != 2 {
			t.Errorf("the events are %s", c.story())
		}
	})
}

// TestRealtimeG711: audio is mu-law in both directions.
func TestRealtimeG711(t *testing.T) {
	overWires(t, setting{}, func(t *testing.T, provider string, st *stack) {
		c := st.realtime(t, "")
		c.say(`{"type":"session.update","session":{"type":"realtime","audio":{"input":{"format":{"type":"audio/pcmu"}},"output":{"format":{"type":"audio/pcmu"}}}}}`)
		c.speak(audio.AppendULaw(nil, spoken(8000, time.Second)))
		c.wait("response.done")
		item := c.wait0("response.output_item.added").text("item.id")
		pcm := audio.AppendFromULaw(nil, c.sound(item))
		if d := audio.Duration(8000, len(pcm)); d < time.Second || d > 10*time.Second {
			t.Errorf("the answer lasts %v", d)
		}
	})
}

// TestRealtimeWithoutDetection: the client commits its turns by hand, as Pipecat does.
func TestRealtimeWithoutDetection(t *testing.T) {
	overWires(t, setting{}, func(t *testing.T, provider string, st *stack) {
		c := st.realtime(t, "")
		c.say(`{"type":"session.update","session":{"type":"realtime","audio":{"input":{"transcription":{"model":"whisper-1"},"turn_detection":null}}}}`)
		for range 2 {
			c.speak(testutil.Silence(24000, time.Second))
			c.say(`{"type":"input_audio_buffer.clear"}`)
			c.speak(testutil.SpeechLike(24000, time.Second, 5))
			c.say(`{"type":"input_audio_buffer.commit"}`)
			c.say(`{"type":"response.create"}`)
			if done := c.wait("response.done"); done.text("response.status") != "completed" {
				t.Fatalf("the response ended %s", done.raw)
			}
		}
		for len(c.all("conversation.item.input_audio_transcription.completed")) < 2 {
			c.next()
		}
		if strings.Contains(c.story(), "speech_started") {
			t.Error("speech is reported without turn detection")
		}
	})
}

// TestRealtimeApproval: a client that sees the gateway's tools gets an approval request; if it approves, the call runs.
func TestRealtimeApproval(t *testing.T) {
	t.Parallel()
	for _, provider := range providers {
		t.Run(provider, func(t *testing.T) {
			t.Parallel()
			for _, approve := range []bool{true, false} {
				tools := newStage(t)
				st := newStack(t, provider, setting{speed: 20, firstAudioMS: 10, scenario: payRules, tools: tools.box})
				c := st.realtime(t, "")
				c.shown = true
				c.say(`{"type":"session.update","session":{"type":"realtime","tools":[{"type":"mcp","server_label":"voicegw"}]}}`)
				c.write("pay")
				c.wait("response.done")
				var request rtEvent
				for _, e := range c.all("response.output_item.done") {
					if e.text("item.type") == "mcp_approval_request" {
						request = e
					}
				}
				if request.text("item.name") != "pay" || request.text("item.arguments") != paid {
					t.Fatalf("the request is %s of %s", request.raw, c.story())
				}
				c.say(fmt.Sprintf(`{"type":"conversation.item.create","item":{"type":"mcp_approval_response","approval_request_id":%q,"approve":%v}}`, request.text("item.id"), approve))
				c.say(`{"type":"response.create"}`)
				if done := c.wait("response.done"); done.text("response.status") != "completed" {
					t.Errorf("the response after the answer ended %s", done.raw)
				}
				if n := len(tools.runs("pay")); (n == 1) != approve {
					t.Errorf("approve=%v: the payment ran %d times", approve, n)
				}
				if strings.Contains(fmt.Sprint(c.seen), "cf_") {
					t.Error("the client saw a confirmation's token")
				}
			}
		})
	}
}

// TestRealtimeImageAndSilence: the model sees an image of the client, and answers after the idle timeout.
func TestRealtimeImageAndSilence(t *testing.T) {
	overWires(t, setting{scenario: imageScenario}, func(t *testing.T, _ string, st *stack) {
		c := st.realtime(t, "")
		c.shown = true // Pipecat does not know timeout_triggered
		c.say(`{"type":"session.update","session":{"type":"realtime","audio":{"input":{"turn_detection":{"type":"server_vad","idle_timeout_ms":5000}}}}}`)
		c.say(`{"type":"conversation.item.create","item":{"type":"message","role":"user","content":[{"type":"input_image","image_url":"data:image/png;base64,iVBORw0KGgo="}]}}`)
		c.write("what do you see")
		if done := c.wait("response.done"); !strings.Contains(string(done.raw), "a picture") {
			t.Errorf("the model says %s", done.raw)
		}
		c.wait("input_audio_buffer.timeout_triggered")
		c.wait("response.done")
	})
}

// TestRealtimeLikeTheProvider: the same script gives the same events, keys and order with the simulated provider and
// through the gateway, except for the differences listed at shape.
func TestRealtimeLikeTheProvider(t *testing.T) {
	t.Parallel()
	set := setting{scenario: talkRules, speed: 20, firstAudioMS: 10, tools: newToolbox(t)}
	srv := httptest.NewServer(newSim(t, set))
	t.Cleanup(srv.Close)
	direct := dialRealtime(t, srv.URL+"/v1/realtime?model=gpt-realtime", http.Header{"Authorization": {"Bearer sk-test"}})
	through := newStack(t, "openai", set).realtime(t, "?model=gpt-realtime")
	for _, c := range []*rtClient{direct, through} {
		c.wait("session.created")
		c.say(transcribed)
		c.wait("session.updated")
		c.say(withWeather)
		c.wait("session.updated")
		c.speak(spoken(24000, time.Second))
		c.wait("response.done")
		for len(c.all("conversation.item.input_audio_transcription.completed")) == 0 {
			c.next()
		}
		c.write("weather please")
		c.wait("response.done")
		call := c.wait0("response.function_call_arguments.done")
		c.say(fmt.Sprintf(`{"type":"conversation.item.create","item":{"type":"function_call_output","call_id":%q,"output":"{\"sky\":\"grey\"}"}}`, call.text("call_id")))
		c.say(`{"type":"response.create"}`)
		c.wait("response.done")
		item := c.all("response.output_item.added")[0].text("item.id")
		c.say(fmt.Sprintf(`{"type":"conversation.item.truncate","item_id":%q,"content_index":0,"audio_end_ms":100}`, item))
		c.wait("conversation.item.truncated")
		c.say(fmt.Sprintf(`{"type":"conversation.item.delete","item_id":%q}`, item))
		c.wait("conversation.item.deleted")
		c.say(`{"type":"input_audio_buffer.clear"}`)
		c.wait("input_audio_buffer.cleared")
		for _, wrong := range []string{
			`{"type":"response.cancel","event_id":"a"}`, `{"type":"bogus","event_id":"b"}`,
			`{"type":"session.update","event_id":"c","session":{"type":"realtime","foo":1}}`,
			`{"type":"input_audio_buffer.commit","event_id":"d"}`, `{"type":"conversation.item.delete","event_id":"e","item_id":"item_no"}`,
		} {
			c.say(wrong)
			for e := c.next(); e.Type != "error"; e = c.next() {
			}
		}
	}
	want, got := direct.shape(), through.shape()
	for i := range max(len(want), len(got)) {
		if i >= len(want) || i >= len(got) || want[i] != got[i] {
			t.Fatalf("event %d differs:\nthe provider: %s\nthe gateway:  %s", i, strings.Join(want[max(i-2, 0):min(i+3, len(want))], "\n              "),
				strings.Join(got[max(i-2, 0):min(i+3, len(got))], "\n              "))
		}
	}
}

// shape returns the events with the keys of all their objects, without allowed differences:
//   - deltas and the order of transcripts depend on the time
//   - only the provider pads deltas (obfuscation)
//   - the gateway's items are in the order of the conversation, so previous_item_id is set where the provider's is null
func (c *rtClient) shape() (list []string) {
	for _, e := range c.seen {
		if strings.HasSuffix(e.Type, ".delta") || strings.Contains(e.Type, "transcription") {
			continue
		}
		list = append(list, e.Type+" "+keys(e.all))
	}
	return list
}

// keys returns the sorted keys of an object and of its inner objects, with the error's code and the status.
func keys(v any) string {
	switch v := v.(type) {
	case map[string]any:
		var parts []string
		for k, in := range v {
			part := k
			if k == "code" || k == "status" || k == "param" || k == "event_id" && v["message"] != nil {
				part += "=" + fmt.Sprint(in)
			}
			if k != "metadata" && k != "parameters" {
				part += keys(in)
			}
			parts = append(parts, part)
		}
		slices.Sort(parts)
		return "{" + strings.Join(parts, " ") + "}"
	case []any:
		var parts []string
		for _, in := range v {
			parts = append(parts, keys(in))
		}
		return "[" + strings.Join(slices.Compact(parts), " ") + "]"
	}
	return ""
}

// TestRealtimeLongHistory: a client can add a long conversation while its audio flows; this is not a flood.
func TestRealtimeLongHistory(t *testing.T) {
	overWires(t, setting{}, func(t *testing.T, _ string, st *stack) {
		c := st.realtime(t, "")
		c.say(`{"type":"input_audio_buffer.append","audio":"AAAAAAAA"}`)
		for i := range 400 {
			c.say(fmt.Sprintf(`{"type":"conversation.item.create","item":{"id":"i%d","type":"message","role":"assistant","content":[{"type":"output_text","text":"Hello."}]}}`, i))
		}
		c.say(`{"type":"response.create","response":{"output_modalities":["text"]}}`)
		if e := c.wait("response.done"); e.text("response.status") != "completed" {
			t.Errorf("the answer: %s", e.raw)
		}
	})
}

// TestRealtimeModelNames: session.update may have another model than the request, because clients send their default.
func TestRealtimeModelNames(t *testing.T) {
	overWires(t, setting{}, func(t *testing.T, provider string, st *stack) {
		for query, model := range map[string]string{"": "", "?model=" + provider: provider, "?model=gpt-realtime": "gpt-realtime"} {
			c := st.realtime(t, query)
			model = cmp.Or(model, c.wait("session.created").text("session.model"))
			c.say(`{"type":"session.update","session":{"type":"realtime","model":"gpt-realtime-9","instructions":"Sing."}}`)
			if e := c.wait("session.updated"); e.text("session.model") != model || e.text("session.instructions") != "Sing." {
				t.Errorf("%q: %s", query, e.raw)
			}
			c.say(`{"type":"session.update","session":{"type":"realtime","model":"agent:other"}}`)
			if e := c.next(); e.text("error.code") != "cannot_update_model" {
				t.Errorf("%q: %s", query, e.raw)
			}
		}
	})
}

// TestRealtimeLikeLiveKit: LiveKit's plugin gets the identifiers that it waits for: the item's own id, the metadata of the
// response and the event_id of an error.
func TestRealtimeLikeLiveKit(t *testing.T) {
	overWires(t, setting{}, func(t *testing.T, _ string, st *stack) {
		c := st.realtime(t, "?model=gpt-realtime")
		c.wait("session.created")
		item := func(id, previous, text string) string {
			return fmt.Sprintf(`{"type":"conversation.item.create","event_id":"chat_ctx_%s","previous_item_id":%s,"item":{"id":%q,"type":"message","role":"user","content":[{"type":"input_text","text":%q}]}}`, id, previous, id, text)
		}
		added := func(id string) {
			t.Helper()
			if e := c.wait("conversation.item.added"); e.text("item.id") != id {
				t.Errorf("added: %s", e.raw)
			}
		}
		c.say(item("msg_1", "null", "Hello"))
		added("msg_1")
		c.say(item("msg_2", `"msg_1"`, "Hello again"))
		added("msg_2")
		c.say(`{"type":"conversation.item.delete","item_id":"msg_2"}`)
		if e := c.wait("conversation.item.deleted"); e.text("item_id") != "msg_2" {
			t.Errorf("deleted: %s", e.raw)
		}
		c.say(item("msg_2", `"msg_1"`, "Hello once more"))
		added("msg_2")
		fails := func(event, id, code, message string) {
			t.Helper()
			c.say(event)
			e := c.next()
			for e.Type != "error" || e.text("error.event_id") == "" { // the answer may have ended before the first cancel
				e = c.next()
			}
			if e.text("error.event_id") != id || code != "" && e.text("error.code") != code || !strings.HasPrefix(e.text("error.message"), message) {
				t.Errorf("%s: %s", event, e.raw)
			}
		}
		fails(item("msg_3", `"msg_nowhere"`, "Hello"), "chat_ctx_msg_3", "item_not_found", "")
		fails(`{"type":"conversation.item.delete","event_id":"chat_ctx_delete_9","item_id":"msg_9"}`, "chat_ctx_delete_9", "", "")
		fails(`{"type":"input_audio_buffer.commit","event_id":"commit_1"}`, "commit_1", "input_audio_buffer_commit_empty", "")
		c.say(`{"type":"response.create","event_id":"response_create_1","response":{"instructions":"Say something long.","metadata":{"client_event_id":"response_create_1"}}}`)
		if e := c.wait("response.created"); e.text("response.metadata.client_event_id") != "response_create_1" {
			t.Errorf("created: %s", e.raw)
		}
		c.wait("response.output_audio.delta")
		c.say(`{"type":"response.cancel"}`)
		c.wait("response.done")
		fails(`{"type":"response.cancel","event_id":"cancel_2"}`, "cancel_2", "", "Cancellation failed")
	})
}
