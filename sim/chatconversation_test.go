package sim

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// talk is a client that stores the conversation, as the API requires.
type talk struct {
	t        *testing.T
	h        http.Handler
	messages []json.RawMessage
	more     string
}

func (k *talk) add(m any) {
	k.t.Helper()
	b, err := json.Marshal(m)
	if err != nil {
		k.t.Fatal(err)
	}
	k.messages = append(k.messages, b)
}

// answer requests the next message and adds it.
func (k *talk) answer() choiceOut {
	k.t.Helper()
	b, err := json.Marshal(k.messages)
	if err != nil {
		k.t.Fatal(err)
	}
	c := *wholeAnswer(k.t, postChat(k.h, path, "k", fmt.Sprintf(`{"model":"gpt-5-mini","messages":%s%s}`, b, k.more))).Choices[0]
	k.add(c.Message)
	return c
}

func (k *talk) say(text string) choiceOut {
	k.t.Helper()
	k.add(map[string]string{"role": "user", "content": text})
	return k.answer()
}

func (k *talk) result(id, output string) {
	k.t.Helper()
	k.add(map[string]string{"role": "tool", "tool_call_id": id, "content": output})
}

func said(c choiceOut) string {
	if c.Message.Content == nil {
		return ""
	}
	return *c.Message.Content
}

// TestRoundsOfTools: several rounds of tools, and later turns that refer to them, work with the messages alone.
func TestRoundsOfTools(t *testing.T) {
	k := &talk{t: t, h: fast(t, ""), more: "," + declared}
	c := k.say("one")
	if said(c) != "One moment." || c.Finish != "tool_calls" || c.Message.ToolCalls[0].ID != "call_fixed" {
		t.Fatalf("%+v", c)
	}
	k.result("call_fixed", `{"sky":"blue"}`)
	c = k.answer()
	if got := c.Message.ToolCalls; len(got) != 1 || got[0].Function.Name != "store" || got[0].Function.Arguments != `{"what":"blue"}` {
		t.Fatalf("%+v", c)
	}
	k.result(c.Message.ToolCalls[0].ID, `{"ok":true}`)
	if c = k.answer(); said(c) != "Stored." || c.Finish != "stop" {
		t.Fatalf("%+v", c)
	}
	c = k.say("one")
	k.result("call_fixed", `{"ok":false,"error":{"type":"TRANSIENT"}}`)
	if c = k.answer(); said(c) != "It failed with TRANSIENT." {
		t.Fatalf("%+v", c)
	}
	if c = k.say("history"); said(c) != "Before: You said: One. I said: One moment. I said: Stored. You said: One. I said: One moment. I said: It failed with TRANSIENT." {
		t.Errorf("%q", said(c))
	}
}

func TestParallelCalls(t *testing.T) {
	k := &talk{t: t, h: fast(t, ""), more: "," + declared}
	c := k.say("parallel")
	if len(c.Message.ToolCalls) != 2 || c.Message.Content != nil {
		t.Fatalf("%+v", c)
	}
	k.result(c.Message.ToolCalls[1].ID, `"rain"`) // in any order
	k.result(c.Message.ToolCalls[0].ID, `"sun"`)
	if c = k.answer(); said(c) != "Both: Rain. Sun." {
		t.Errorf("%q", said(c))
	}

	k = &talk{t: t, h: fast(t, ""), more: "," + declared + `,"parallel_tool_calls":false`}
	c = k.say("parallel")
	if len(c.Message.ToolCalls) != 1 {
		t.Fatalf("%+v", c)
	}
	k.result(c.Message.ToolCalls[0].ID, `"sun"`)
	if c = k.answer(); said(c) != "Both: Sun." {
		t.Errorf("%q", said(c))
	}
}

func TestToolChoice(t *testing.T) {
	h := fast(t, "")
	for choice, want := range map[string]string{
		`"none"`: " stop", `"auto"`: "weather tool_calls", `"required"`: "weather tool_calls",
		`{"type":"function","function":{"name":"store"}}`: "store stop",
	} {
		text := "say hello"
		if choice == `"none"` || choice == `"auto"` {
			text = "parallel"
		}
		c := wholeAnswer(t, ask(h, text, ","+declared+`,"tool_choice":`+choice)).Choices[0]
		got := " " + c.Finish
		if len(c.Message.ToolCalls) > 0 {
			got = c.Message.ToolCalls[0].Function.Name + got
		}
		if got != want {
			t.Errorf("%s: %s, want %s", choice, got, want)
		}
	}
}

func TestJSONAnswers(t *testing.T) {
	h := fast(t, "")
	schema := `,"response_format":{"type":"json_schema","json_schema":{"name":"trip","schema":{"type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer"}},"required":["city","days"]}}}`
	if got := said(*wholeAnswer(t, ask(h, "I go to Paris for 3 days", schema)).Choices[0]); got != `{"city":"Paris","days":3}` {
		t.Errorf("%s", got)
	}
	if got := said(*wholeAnswer(t, ask(h, "count, as json", `,"response_format":{"type":"json_object"}`)).Choices[0]); got != `{"answer":"a b c d e f"}` {
		t.Errorf("%s", got)
	}
}

// TestLatestInput: the newest text is answered, also one of parts; a later system message counts.
func TestLatestInput(t *testing.T) {
	h := fast(t, "")
	for messages, want := range map[string]string{
		`{"role":"user","content":"nothing"},{"role":"user","content":[{"type":"text","text":"co"},{"type":"image_url","image_url":{"url":"https://example.com/x"}},{"type":"text","text":"count"}]}`: "a b c d e f",
		`{"role":"user","content":"hello"},{"role":"assistant","content":"Hi."},{"role":"developer","content":"count"}`:                                                                               "a b c d e f",
		`{"role":"system","content":"count"}`:                                    "Hello! What can I do for you?",
		`{"role":"user","content":"hello"},{"role":"assistant","content":"Hi."}`: "There is nothing new to answer. I said: Hi.",
	} {
		if got := said(*wholeAnswer(t, postChat(h, path, "k", `{"model":"gpt-5","messages":[`+messages+`]}`)).Choices[0]); got != want {
			t.Errorf("%s: %q, want %q", messages, got, want)
		}
	}
}

// TestIDsFollowTheSeed: the same seed gives the same ids, another one others.
func TestIDsFollowTheSeed(t *testing.T) {
	ids := func(seed uint64) string {
		o := options(t, "")
		o.Seed = seed
		h := New(o)
		var all []string
		for range 2 {
			c := wholeAnswer(t, ask(h, "parallel", ","+declared))
			all = append(all, c.ID, c.Fingerprint, c.Choices[0].Message.ToolCalls[0].ID)
		}
		return strings.Join(all, " ")
	}
	if first, again := ids(1), ids(1); first != again || first == ids(2) {
		t.Error("the seed does not decide")
	}
	if parts := strings.Fields(ids(1)); parts[0] == parts[3] || parts[1] != parts[4] {
		t.Errorf("%v", parts)
	}
}

func TestUsage(t *testing.T) {
	h := fast(t, "")
	small := wholeAnswer(t, ask(h, "count", "")).Usage
	if small.Completion != 6 || small.Total != small.Prompt+6 || small.Prompt < 10 {
		t.Errorf("%+v", small)
	}
	if tools := wholeAnswer(t, ask(h, "count", ","+declared)).Usage; tools.Prompt <= small.Prompt {
		t.Errorf("tools cost nothing: %+v", tools)
	}
}

// TestPace: the times of the first word, the words, waits and faults.
func TestPace(t *testing.T) {
	took := func(faults, text string, speed float64) time.Duration {
		o := options(t, faults)
		o.Speed, o.FirstAudioMS = speed, 0
		h := New(o)
		begun := time.Now()
		if w := ask(h, text, `,"stream":true`); w.Code != http.StatusOK {
			t.Errorf("%d %s", w.Code, w.Body)
		}
		return time.Since(begun)
	}
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			faults, text string
			speed        float64
			want         time.Duration
		}{
			{"", "count", 0, 290 * time.Millisecond},
			{"", "count", 8, 245 * time.Millisecond},
			{"", "count", -1, 200 * time.Millisecond},
			{"", "pause", -1, 300 * time.Millisecond},
			{"faults: [{at: connect, do: delay, for: 3s}]", "count", -1, 3200 * time.Millisecond},
			{"faults: [{at: setup, do: silence, for: 3s}]", "count", -1, 3200 * time.Millisecond},
			{"faults: [{at: chunk, n: 2, do: silence, for: 3s}]", "count", -1, 3200 * time.Millisecond},
			{"faults: [{at: time, after: 250ms, do: delay, for: 1s}]", "pause", -1, 1250 * time.Millisecond},
		} {
			if got := took(c.faults, c.text, c.speed); got != c.want {
				t.Errorf("%s %s at %g: %v, want %v", c.faults, c.text, c.speed, got, c.want)
			}
		}
	})
}

// TestSilenceLosesWords: data that becomes due during a silence is lost.
func TestSilenceLosesWords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := options(t, "faults: [{at: chunk, n: 2, do: silence, for: 40ms}]")
		o.Speed = 4
		got := show(t, ask(New(o), "count", `,"stream":true`))
		for piece, there := range map[string]bool{`"a"`: true, `" b"`: false, `" c"`: false, `" e"`: true, "[DONE]": true} {
			if strings.Contains(got, piece) != there {
				t.Errorf("%s in\n%s", piece, got)
			}
		}
	})
}

// TestEndsOfARequest: a client that leaves and a server that ends leave no goroutine.
func TestEndsOfARequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := options(t, "faults: [{at: chunk, n: 2, do: silence}, {at: chunk, n: 3, do: delay, for: 1h}]")
		h := New(o)
		done := make(chan *httptest.ResponseRecorder, 1) // from the request's goroutine to the test; capacity 1 so that it never waits
		go func() { done <- ask(h, "count", `,"stream":true`) }()
		synctest.Wait()
		if n := o.Group.Len(); n != 1 {
			t.Fatalf("%d requests are open", n)
		}
		if err := o.Group.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		w := <-done
		if got := show(t, w); !strings.HasSuffix(got, "0 {\"content\":\"a\"}\n") {
			t.Errorf("after the end: %s", got)
		}
		if w := ask(h, "count", ""); w.Code != http.StatusServiceUnavailable {
			t.Errorf("a closed simulator answers %d", w.Code)
		}
	})
}
