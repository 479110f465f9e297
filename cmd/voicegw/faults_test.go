package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"voicegw/internal/testutil"
	"voicegw/protocol"
)

// panelScenario answers in text, and calls a tool for a user who asks for it.
const panelScenario = `
rules:
  - when: {text: search}
    do:
      - say: Well.
      - call: {tool: kb_search, args: {query: robotics lab}}
      - then: [{say: Found.}]
      - on_error: [{say: Nothing.}]
  - when: {text: any}
    do: [{say: Yes.}]
otherwise: nothing
`

// caller is a client that inspects its session, the same on every wire.
type caller struct {
	t    *testing.T
	r    *running
	conn *protocol.Conn
	id   string
	got  chan protocol.ServerMessage // of the reading goroutine, which closes it
	code int                         // the close code, valid once got is closed
	seen []string                    // the types of the messages, with distinguishing details
}

// phone starts a session of a provider.
func (r *running) phone(t *testing.T, provider string) *caller {
	t.Helper()
	conn, err := protocol.Dial(t.Context(), "ws://"+r.addr+"/v1/voice", protocol.DialOptions{Key: r.key()})
	if err != nil {
		t.Fatal(err)
	}
	c := &caller{t: t, r: r, conn: conn, got: make(chan protocol.ServerMessage, 4096)}
	go c.read()
	t.Cleanup(func() {
		conn.Abort()
		for range c.got { // the reading goroutine ends
		}
	})
	c.say(&protocol.Start{InputRate: 16000, OutputRate: 24000, Provider: provider, Inspect: true})
	started := hear[*protocol.SessionStarted](c)
	if started.Provider != provider || !started.Inspect {
		t.Fatalf("the session is %+v", started)
	}
	c.id = started.SessionID
	return c
}

// read passes messages on, and reports items as played as soon as they are complete.
func (c *caller) read() {
	defer close(c.got)
	for {
		f, err := c.conn.Read()
		if err != nil {
			c.code = int(protocol.CloseStatus(err))
			return
		}
		if f.Audio {
			continue
		}
		m, err := protocol.ParseServer(f.Data)
		if err != nil {
			c.t.Error(err)
			return
		}
		if end, ok := m.(*protocol.AudioEnd); ok {
			c.say(&protocol.Playback{ItemID: end.ItemID, PlayedMS: end.AudioMS, Done: true})
		}
		c.got <- m
	}
}

func (c *caller) say(m protocol.ClientMessage) {
	text, err := protocol.EncodeClient(m)
	if err != nil {
		c.t.Error(err)
		return
	}
	// After the session, the reader reports the error.
	_ = c.conn.WriteText(text)
}

func (c *caller) ask(text string) { c.say(&protocol.InputText{Text: text}) }

// hear waits for a message of a type.
func hear[M protocol.ServerMessage](c *caller) (m M) {
	c.t.Helper()
	late := time.After(testutil.WaitLimit)
	for {
		select {
		case got, open := <-c.got:
			if !open {
				c.t.Fatalf("closed with %d before there was a %T; there was %s", c.code, m, strings.Join(c.seen, ", "))
			}
			c.seen = append(c.seen, shortOf(got))
			if found, ok := got.(M); ok {
				return found
			}
		case <-late:
			c.t.Fatalf("no %T arrived in 20 s, only %s", m, strings.Join(c.seen, ", "))
		}
	}
}

// shortOf describes a message in one or two words.
func shortOf(m protocol.ServerMessage) string {
	h := protocol.HeaderOf(m)
	switch m := m.(type) {
	case *protocol.TurnEnded:
		return h.Type + " " + m.Status
	case *protocol.Error:
		return h.Type + " " + m.Code
	case *protocol.SessionEnded:
		return h.Type + " " + m.Reason
	default:
		return h.Type
	}
}

// over waits for the end of the session, and returns its reason and close code.
func (c *caller) over() string {
	c.t.Helper()
	reason := hear[*protocol.SessionEnded](c).Reason
	for m := range c.got {
		c.t.Errorf("after the end: %+v", m)
	}
	return fmt.Sprint(reason, " ", c.code)
}

// answered waits for the end of the next turn.
func (c *caller) answered() *protocol.TurnEnded {
	c.t.Helper()
	return hear[*protocol.TurnEnded](c)
}

// press applies a fault to the caller's connection, and returns when it happens.
func (c *caller) press(body string) string {
	c.t.Helper()
	status, answer := c.r.post(c.t, "/v1/simulator/faults", `{"session_id":"`+c.id+`",`+body+`}`)
	var ok struct {
		Accepted bool
		When     string
	}
	if err := json.Unmarshal(answer, &ok); err != nil || status != http.StatusAccepted || !ok.Accepted {
		c.t.Fatalf("%s: %d %s", body, status, answer)
	}
	return ok.When
}

func (r *running) post(t *testing.T, path, body string) (int, []byte) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+r.addr+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+r.key())
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var answer bytes.Buffer
	if _, err := answer.ReadFrom(resp.Body); err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, answer.Bytes()
}

// get requests a path and decodes the answer into v.
func (r *running) get(t *testing.T, path string, v any) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+r.addr+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+r.key())
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(v); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("GET %s: %d, %v", path, resp.StatusCode, err)
	}
}

// counted ends the call and returns a number of the log line about its end.
func (c *caller) counted(name string) any {
	c.t.Helper()
	c.say(&protocol.End{})
	c.over()
	var value any
	testutil.WaitUntil(c.t, "the log has a line of the session's end", func() bool {
		for line := range strings.SplitSeq(c.r.err.String(), "\n") {
			var fields map[string]any
			if strings.Contains(line, c.id) && json.Unmarshal([]byte(line), &fields) == nil && fields["msg"] == "session ended" {
				value = fields[name]
				return true
			}
		}
		return false
	})
	return value
}

// record returns some fields of the record of the next call.
func (c *caller) record(fields ...string) string {
	c.t.Helper()
	var record map[string]any
	if err := json.Unmarshal(hear[*protocol.InspectCall](c).Record, &record); err != nil {
		c.t.Fatal(err)
	}
	var said []string
	for _, f := range fields {
		said = append(said, fmt.Sprint(f, "=", record[f]))
	}
	return strings.Join(said, " ")
}

// survives: the fault only causes a pause, and the next turn is answered.
func survives(c *caller, _ string) {
	c.ask("hello")
	if end := c.answered(); end.Status != "completed" {
		c.t.Errorf("the next turn: %+v", end)
	}
}

// isReplaced: the session continues over another connection to the model, and the next turn is answered.
func isReplaced(c *caller, wire string) {
	c.t.Helper()
	testutil.WaitUntil(c.t, "the model's connection was replaced", func() bool {
		for line := range strings.SplitSeq(c.r.err.String(), "\n") {
			if strings.Contains(line, c.id) && strings.Contains(line, "the model's connection was replaced") {
				return true
			}
		}
		return false
	})
	survives(c, wire)
}

// onEach holds the differences between the wires that a client sees.
func onEach(gemini, openai func(*caller, string)) func(*caller, string) {
	return func(c *caller, wire string) {
		if wire == "gemini" {
			gemini(c, wire)
			return
		}
		openai(c, wire)
	}
}

// panel lists each fault, when it happens, and its effect on the client.
var panel = []struct {
	press, when string
	sees        func(c *caller, wire string)
}{
	{`"do":"drop"`, "now", isReplaced},
	{`"do":"close","code":1013`, "now", isReplaced},
	{`"do":"goaway","for_ms":50`, "now", isReplaced},
	{`"do":"expire"`, "now", isReplaced},
	{`"do":"delay","for_ms":700`, "now", func(c *caller, _ string) {
		began := time.Now()
		c.ask("hello")
		hear[*protocol.AudioStart](c)
		if took := time.Since(began); took < 500*time.Millisecond {
			c.t.Errorf("the answer began after %s", took)
		}
	}},
	{`"do":"silence","for_ms":0`, "now", func(c *caller, _ string) {
		c.ask("hello")
		pause := time.NewTimer(500 * time.Millisecond)
		defer pause.Stop()
		for {
			select {
			case m := <-c.got:
				if _, speaks := m.(*protocol.AudioStart); speaks {
					c.t.Error("the model speaks")
				}
			case <-pause.C:
				return
			}
		}
	}},
	{`"do":"slow_read","for_ms":600`, "now", func(c *caller, _ string) {
		<-time.After(100 * time.Millisecond) // until its slow reading begins
		began := time.Now()
		for range 2 { // the gateway already waits for the first one
			if err := c.conn.WriteAudio(make([]byte, 640)); err != nil {
				c.t.Fatal(err)
			}
		}
		c.ask("hello")
		hear[*protocol.AudioStart](c)
		if took := time.Since(began); took < 500*time.Millisecond {
			c.t.Errorf("the answer began after %s", took)
		}
	}},
	{`"do":"malformed"`, "now", func(c *caller, wire string) {
		survives(c, wire)
		if n := c.counted("malformed_events"); n != 1.0 {
			c.t.Errorf("%v events were malformed", n)
		}
	}},
	{`"do":"unknown_event"`, "now", func(c *caller, wire string) {
		survives(c, wire)
		if n := c.counted("unknown_events"); n != 1.0 {
			c.t.Errorf("%v events were unknown", n)
		}
	}},
	{`"do":"quota"`, "now", onEach(func(c *caller, _ string) {
		// Gemini closes the connection and would refuse another, so the session ends with the reason.
		if m := hear[*protocol.SessionEnded](c); m.Reason != "provider_refused" {
			c.t.Errorf("%+v", m)
		}
	}, func(c *caller, _ string) {
		c.ask("hello")
		if m := hear[*protocol.Error](c); m.Code != protocol.CodeProviderQuota {
			c.t.Errorf("%+v", m)
		}
		if end := c.answered(); end.Status != "failed" {
			c.t.Errorf("%+v", end)
		}
	})},
	{`"do":"duplicate_call"`, "next_call", func(c *caller, _ string) {
		c.ask("search")
		got := c.record("callId", "cacheHit") + ", " + c.record("callId", "cacheHit")
		if want := "callId=call_1 cacheHit=false, callId=call_2 cacheHit=true"; got != want {
			c.t.Errorf("the calls: %s", got)
		}
		c.answered()
		c.ask("hello")
		for hear[*protocol.Transcript](c).Role != "assistant" { // the model's words still reach the client
		}
		c.answered()
	}},
	{`"do":"missing_id"`, "next_call", func(c *caller, _ string) {
		c.ask("search")
		if got := c.record("providerCallId", "ok", "delivered"); got != "providerCallId=<nil> ok=true delivered=true" {
			c.t.Errorf("the call: %s", got)
		}
	}},
	{`"do":"late_call","for_ms":400`, "next_call", func(c *caller, _ string) {
		c.ask("search")
		if end := c.answered(); end.Status != "completed" || end.Turn != 1 {
			c.t.Errorf("the turn without the call: %+v", end)
		}
		if got := c.record("turnId", "ok", "delivered"); got != "turnId=2 ok=true delivered=true" {
			c.t.Errorf("the call: %s", got)
		}
	}},
	{`"do":"deaf"`, "now", func(c *caller, _ string) {
		c.ask("hello")
		pause := time.NewTimer(500 * time.Millisecond)
		defer pause.Stop()
		for {
			select {
			case m := <-c.got:
				if _, speaks := m.(*protocol.AudioStart); speaks {
					c.t.Error("the model speaks")
				}
			case <-pause.C:
				return
			}
		}
	}},
	{`"do":"refuse_resume","code":1007`, "now", survives},
	{`"do":"amnesia"`, "now", survives},
	{`"do":"late_handle","for_ms":100`, "now", survives},
	{`"do":"no_handle"`, "now", survives},
	{`"do":"busy_handle"`, "now", survives},
	// Only OpenAI Live has these; package sim/live tests them.
	{`"do":"no_audio"`, "now", survives},
	{`"do":"unplaced"`, "now", survives},
	{`"do":"undelegated"`, "next_call", survives},
	// An answer may cross the cancellation; OpenAI's call is still incomplete at that time.
	{`"do":"cancel_call","for_ms":0`, "next_call", onEach(func(c *caller, wire string) {
		c.ask("search")
		c.record("delivered")
		c.answered()
		survives(c, wire)
	}, func(c *caller, wire string) {
		c.ask("search")
		if end := c.answered(); end.Status != "interrupted" {
			c.t.Errorf("the turn: %+v", end)
		}
		survives(c, wire)
	})},
}

// TestFaultPanel: each fault is applied to one of many sessions over each wire; only that session's client sees its
// effect.
func TestFaultPanel(t *testing.T) {
	file := filepath.Join(t.TempDir(), "panel.yaml")
	if err := os.WriteFile(file, []byte(panelScenario), 0o600); err != nil {
		t.Fatal(err)
	}
	r := start(t, "--scenario", file, "--set", "limits.exempt_loopback=true", "--set", "drain_timeout=1s", "--set", "sim.speed=20", "--set", "sim.first_audio_ms=20")
	var list struct {
		Faults []struct{ Do, Label, When string }
	}
	r.get(t, "/v1/simulator", &list)
	wires := []string{"gemini", "openai"}
	var others []*caller
	for n := range 20 {
		others = append(others, r.phone(t, wires[n%2]))
	}
	tried := map[string]string{}
	t.Run("each", func(t *testing.T) {
		for _, tc := range panel {
			var body struct{ Do string }
			if err := json.Unmarshal([]byte("{"+tc.press+"}"), &body); err != nil {
				t.Fatal(err)
			}
			tried[body.Do] = tc.when
			for _, wire := range wires {
				t.Run(body.Do+" over "+wire, func(t *testing.T) {
					t.Parallel()
					c := r.phone(t, wire)
					if when := c.press(tc.press); when != tc.when {
						t.Errorf("its time is %s, want %s", when, tc.when)
					}
					tc.sees(c, wire)
				})
			}
		}
	})
	for _, c := range others {
		c.ask("hello")
	}
	for _, c := range others {
		c.answered()
		want := "session.started, inspect.state, turn.started"
		if seen := strings.Join(c.seen, ", "); !strings.HasPrefix(seen, want) || strings.Contains(seen, "error") || !strings.HasSuffix(seen, "turn.ended completed") {
			t.Errorf("another client saw %s", seen)
		}
	}
	for _, f := range list.Faults {
		if tried[f.Do] != f.When || f.Label == "" {
			t.Errorf("%+v is not among those that are tried here", f)
		}
	}
	for body, word := range map[string]string{
		`{"session_id":"voice-x","do":"drop"}`: "session_unknown", `{"do":"drop"}`: "session_id",
	} {
		if _, answer := r.post(t, "/v1/simulator/faults", body); !strings.Contains(string(answer), word) {
			t.Errorf("%s: %s", body, answer)
		}
	}
}

// TestProviderChoice: a gateway without keys offers the simulated providers, with their own models and voices.
func TestProviderChoice(t *testing.T) {
	t.Parallel()
	r := start(t, "--provider", "openai", "--set", "providers.gemini.voice=Kore")
	var got struct {
		Default   string
		Agents    []string
		Providers []struct {
			Name, Model, Voice string
			Voices             []string
			Simulated          bool
		}
		TextAgent bool `json:"text_agent"`
		Simulator bool
	}
	r.get(t, "/v1/providers", &got)
	if got.Default != "openai" || len(got.Providers) != 3 || got.Providers[1].Name != "gemini" || got.Providers[2].Name != "live" || !got.TextAgent || !got.Simulator || fmt.Sprint(got.Agents) != "[default]" {
		t.Fatalf("%+v", got)
	}
	openai, gemini := got.Providers[0], got.Providers[1]
	if openai.Model != "gpt-realtime-2.1" || openai.Voices[0] != "marin" || openai.Voice != "" || !openai.Simulated {
		t.Errorf("%+v", openai)
	}
	if gemini.Model != "gemini-3.8-live" || gemini.Voices[0] != "Puck" || gemini.Voice != "Kore" || !gemini.Simulated {
		t.Errorf("%+v", gemini)
	}
}

// TestModelEndIsShown: the announced end of a model is listed with the model and logged.
func TestModelEndIsShown(t *testing.T) {
	t.Parallel()
	r := start(t, "--set", "providers.openai.model=gpt-realtime")
	var got struct {
		Providers []struct {
			Name string
			Ends *struct{ Date, Successor, Source string }
		}
	}
	r.get(t, "/v1/providers", &got)
	for _, p := range got.Providers {
		switch {
		case p.Name != "openai" && p.Ends != nil:
			t.Errorf("%s ends: %+v", p.Name, p.Ends)
		case p.Name == "openai" && (p.Ends == nil || p.Ends.Date != "2027-01-20" || p.Ends.Successor != "gpt-realtime-2.1" || p.Ends.Source == ""):
			t.Errorf("the end of gpt-realtime: %+v", p.Ends)
		}
	}
	if log := r.err.String(); !strings.Contains(log, "2027-01-20") || !strings.Contains(log, "providers.openai.model") {
		t.Errorf("the log lacks it:\n%s", log)
	}
}

// TestFaultsWithoutASimulator: a gateway of real providers offers no faults.
func TestFaultsWithoutASimulator(t *testing.T) {
	t.Parallel()
	r := start(t, "--set", "providers.openai.base_url=http://127.0.0.1:1/v1", "--provider", "openai")
	var got struct {
		Providers []struct{ Simulated bool }
		Simulator bool
	}
	r.get(t, "/v1/providers", &got)
	if len(got.Providers) != 1 || got.Providers[0].Simulated || got.Simulator {
		t.Errorf("%+v", got)
	}
	if status := r.status("/v1/simulator"); status != http.StatusNotFound {
		t.Errorf("GET /v1/simulator: %d", status)
	}
	if status, answer := r.post(t, "/v1/simulator/faults", `{"session_id":"voice-x","do":"drop"}`); status != http.StatusNotFound || !strings.Contains(string(answer), "not_found") {
		t.Errorf("a fault: %d %s", status, answer)
	}
}
