package realtime

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"voicegw/internal/openaiwire"
	"voicegw/internal/testutil"
	"voicegw/protocol"
)

var update = flag.Bool("update", false, "rewrite the golden conversations")

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// counted makes different ids, the same in each run.
func counted() openaiwire.IDs {
	n := uint64(1)
	return openaiwire.IDs{IntN: func(most int) int {
		n = n*6364136223846793005 + 1442695040888963407
		return int(n >> 33 % uint64(most))
	}}
}

func rules() *openaiwire.Rules {
	return &openaiwire.Rules{Voice: "marin", SilenceMS: 500, AnyTranscription: true, TypeOptional: true, CheckTool: CheckTool}
}

func newState(now time.Time) *State {
	ids := counted()
	return New(Options{IDs: ids, Session: openaiwire.NewSession(ids.New("sess"), "gpt-realtime", rules(), now.Add(time.Hour)),
		Tools: []protocol.ClientTool{{Name: "kb_search", Description: "Searches."}}, CheckTools: hasKBSearch}, now)
}

// hasKBSearch refuses the name of the gateway's tool.
func hasKBSearch(tools []protocol.ClientTool) (field, why string) {
	for i, t := range tools {
		if strings.EqualFold(t.Name, "kb_search") {
			field = fmt.Sprintf("tools[%d].name", i)
			return field, "session.start: the field " + field + " is taken."
		}
	}
	return "", ""
}

// TestGoldenConversations replays the conversations of testdata. Each has a description, a script and the result: events for
// the client (<<) and inputs for the session (>>). A line of a script is a time in ms and one of
//
//	client EVENT        an event of the client
//	hear MS [tone]      audio of the client: silence, or a voice
//	MESSAGE             a message of the session
//	audio MS            a frame of the current item
//	close CODE REASON   the session closes the connection
func TestGoldenConversations(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden conversations: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			ar, err := txtar.ParseFile(file)
			if err != nil || len(ar.Files) == 0 || ar.Files[0].Name != "script" {
				t.Fatalf("no script: %v", err)
			}
			got := replay(t, string(ar.Files[0].Data))
			if *update {
				ar.Files = []txtar.File{ar.Files[0], {Name: "want", Data: []byte(got)}}
				if err := os.WriteFile(file, txtar.Format(ar), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			want := ""
			if len(ar.Files) > 1 {
				want = string(ar.Files[1].Data)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("the conversation differs (-want +got):\n%s", diff)
			}
		})
	}
}

type player struct {
	t     *testing.T
	state *State
	check checker
	names map[string]string
	out   strings.Builder
	// extra: the client enabled events that Pipecat does not know.
	extra bool
}

func replay(t *testing.T, script string) string {
	p := &player{t: t, state: newState(epoch), names: map[string]string{}, extra: strings.Contains(script, "voicegw") || strings.Contains(script, "idle_timeout_ms")}
	p.write("begin")
	for line := range strings.Lines(script) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		at, what, _ := strings.Cut(line, " ")
		ms, err := strconv.Atoi(at)
		if err != nil {
			t.Fatalf("no time: %s", line)
		}
		now := epoch.Add(time.Duration(ms) * time.Millisecond)
		p.ticks(now)
		p.take(now, what)
		if len(what) > 100 {
			what = what[:100] + "…"
		}
		p.write(at + " " + p.named(what))
	}
	p.check.over(t, p.state)
	return p.out.String()
}

func (p *player) ticks(until time.Time) {
	for due := p.state.WakeAt(); !due.IsZero() && due.Before(until); due = p.state.WakeAt() {
		p.state.Tick(due)
		p.write(fmt.Sprintf("%d tick", due.Sub(epoch).Milliseconds()))
		if !p.state.WakeAt().After(due) && !p.state.WakeAt().IsZero() {
			p.t.Fatal("a tick changed nothing")
		}
	}
}

var shortName = regexp.MustCompile(`\b(item|resp|mcpr|mcpl|mcp|call|sess|conv)(\d+)\b`)

// long replaces short names in a script by the ids.
func (p *player) long(s string) string {
	return shortName.ReplaceAllStringFunc(s, func(short string) string {
		for long, name := range p.names {
			if name == short {
				return long
			}
		}
		return short
	})
}

func (p *player) take(now time.Time, what string) {
	verb, rest, _ := strings.Cut(what, " ")
	switch verb {
	case "client":
		e, err := openaiwire.ParseEvent([]byte(p.long(rest)))
		p.state.Event(now, e, err)
	case "hear":
		ms, kind, _ := strings.Cut(rest, " ")
		d := time.Duration(mustInt(p.t, ms)) * time.Millisecond
		rate := p.state.sess.Audio.Input.Format.Hz()
		pcm := make([]byte, lengthBytes(rate, d))
		if kind != "" {
			pcm = testutil.Tone(rate, 200, -12, d)
		}
		if p.state.Hear(now, pcm) {
			p.state.Inputs = append(p.state.Inputs, protocol.Input{Audio: true, PCM: pcm})
		}
	case "audio":
		d := time.Duration(mustInt(p.t, rest)) * time.Millisecond
		rate := p.state.sess.Audio.Output.Format.Hz()
		if e := p.state.AppendAudio(nil, now, make([]byte, lengthBytes(rate, d))); len(e) > 0 {
			p.state.Events = append(p.state.Events, e)
		}
	case "close":
		code, reason, _ := strings.Cut(rest, " ")
		c, r := p.state.Close(closeCode(mustInt(p.t, code)), reason)
		fmt.Fprintf(&p.out, "    closed %d %s\n", c, r)
	default:
		m, err := protocol.ParseServer([]byte(what))
		if err != nil {
			p.t.Fatalf("%s: %v", what, err)
		}
		p.state.Take(now, m)
	}
}

func mustInt(t *testing.T, s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatalf("%q is not a number", s)
	}
	return n
}

func lengthBytes(rate int, d time.Duration) int { return int(d.Milliseconds()) * rate / 1000 * 2 }

// write writes an input with the resulting events and inputs.
func (p *player) write(what string) {
	fmt.Fprintf(&p.out, "%s\n", what)
	for _, e := range p.state.Events {
		p.check.event(p.t, e, p.extra)
		fmt.Fprintf(&p.out, "    << %s\n", p.shown(e))
	}
	for _, in := range p.state.Inputs {
		p.check.input(p.t, in)
		if in.Audio {
			fmt.Fprintf(&p.out, "    >> audio %d bytes\n", len(in.PCM))
			continue
		}
		b, err := json.Marshal(in.Message)
		if err != nil {
			p.t.Fatal(err)
		}
		if start, ok := in.Message.(*protocol.Start); ok {
			x, err := json.Marshal(start.Extra)
			if err != nil {
				p.t.Fatal(err)
			}
			b = append(append(b, ' '), x...)
		}
		fmt.Fprintf(&p.out, "    >> %s %s\n", strings.TrimPrefix(fmt.Sprintf("%T", in.Message), "*protocol."), p.named(string(b)))
	}
	p.state.Events, p.state.Inputs = nil, nil
}

var longID = regexp.MustCompile(`\b(item|resp|mcpr|mcpl|mcp|call|sess|conv)_[0-9A-Za-z]{16,21}\b`)

func (p *player) named(s string) string {
	return longID.ReplaceAllStringFunc(s, func(id string) string {
		if p.names[id] == "" {
			kind, _, _ := strings.Cut(id, "_")
			n := 1
			for other := range p.names {
				if strings.HasPrefix(other, kind+"_") {
					n++
				}
			}
			p.names[id] = kind + strconv.Itoa(n)
		}
		return p.names[id]
	})
}

var (
	eventID = regexp.MustCompile(`"event_id":"event_[0-9A-Za-z]{21}",`)
	session = regexp.MustCompile(`"session":\{.*\}`)
	audioOf = regexp.MustCompile(`"delta":"([A-Za-z0-9+/=]{40,})"`)
	details = regexp.MustCompile(`"object":"realtime.response",|"conversation_id":"[^"]*",|"max_output_tokens":"inf",|"audio":\{"output":[^}]*\}[^}]*\}\},|"input_token_details".*?\}\},|,"output_token_details":\{[^}]*\}`)
)

// shown returns an event without the fields that are the same everywhere.
func (p *player) shown(e []byte) string {
	s := eventID.ReplaceAllString(string(e), "")
	s = session.ReplaceAllString(s, `"session":…`)
	s = audioOf.ReplaceAllStringFunc(s, func(m string) string {
		data, err := base64.StdEncoding.DecodeString(m[9 : len(m)-1])
		if err != nil {
			p.t.Fatal(err)
		}
		return fmt.Sprintf(`"delta":%d bytes`, len(data))
	})
	return p.named(details.ReplaceAllString(s, ""))
}

// checker checks the rules of every conversation.
type checker struct {
	active string
	ids    map[string]bool
	starts int
	closed bool
}

func (c *checker) event(t *testing.T, data []byte, extra bool) {
	t.Helper()
	var e struct {
		Type     string
		EventID  string `json:"event_id"`
		Response *struct{ ID string }
		RespID   string `json:"response_id"`
	}
	if err := json.Unmarshal(data, &e); err != nil {
		t.Fatalf("%v in %s", err, data)
	}
	if c.closed {
		t.Errorf("after the close: %s", data)
	}
	if c.ids == nil {
		c.ids = map[string]bool{}
	}
	if c.ids[e.EventID] {
		t.Errorf("an event_id is used twice: %s", data)
	}
	c.ids[e.EventID] = true
	if err := testutil.CheckRealtimeEvent(data); err != nil && !extra {
		t.Errorf("a strict client ends its session: %v", err)
	}
	switch {
	case e.Type == "response.created" && c.active == "":
		c.active = e.Response.ID
	case e.Type == "response.done" && c.active == e.Response.ID:
		c.active = ""
	case e.Response != nil || e.RespID != "" && e.RespID != c.active:
		t.Errorf("the active response is %q: %s", c.active, data)
	}
}

func (c *checker) input(t *testing.T, in protocol.Input) {
	t.Helper()
	_, start := in.Message.(*protocol.Start)
	switch {
	case start:
		c.starts++
		if c.starts > 1 {
			t.Error("the session starts twice")
		}
	case c.starts == 0:
		t.Errorf("before the start: %#v", in.Message)
	}
	if in.Audio && (len(in.PCM) == 0 || len(in.PCM)%2 != 0) {
		t.Errorf("a frame of %d bytes", len(in.PCM))
	}
}

// over ends the conversation, and checks that each response has ended.
func (c *checker) over(t *testing.T, s *State) {
	t.Helper()
	s.Close(1000, "client_ended")
	for _, e := range s.Events {
		c.event(t, e, true)
	}
	s.Events, s.Inputs = nil, nil
	c.closed = true
	if c.active != "" {
		t.Errorf("the response %s never ended", c.active)
	}
	e, err := openaiwire.ParseEvent([]byte(`{"type":"response.create"}`))
	s.Event(epoch, e, err)
	s.Take(epoch, &protocol.TurnStarted{Header: protocol.Header{Turn: 99}})
	s.Tick(epoch.Add(time.Hour))
	s.Hear(epoch, make([]byte, 480))
	s.Gone()
	if len(s.Events) > 0 || bytes.Contains(bytes.Join(s.Events, nil), []byte("type")) {
		t.Errorf("after the close: %s", s.Events)
	}
}

func closeCode(n int) websocket.StatusCode { return websocket.StatusCode(n) }
