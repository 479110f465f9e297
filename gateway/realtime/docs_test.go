package realtime

import (
	"encoding/base64"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"voicegw/internal/openaiwire"
	"voicegw/protocol"
)

// example is a row of the table of client events: what happens before, and the client's event.
type example struct {
	before []string
	event  string
	// want is a part of an event or an input that follows; unused for a rejected event.
	want string
}

const (
	talk     = `{"type":"conversation.item.create","item":{"id":"mine","type":"message","role":"user","content":[{"type":"input_text","text":"Hi"}]}}`
	ask      = `{"type":"response.create","response":{"metadata":{"client_event_id":"x"}}}`
	allTools = `{"type":"session.update","session":{"type":"realtime","tools":[{"type":"mcp","server_label":"voicegw"}]}}`
	noVAD    = `{"type":"session.update","session":{"type":"realtime","audio":{"input":{"turn_detection":null}}}}`
	asking   = `{"type":"confirmation.request","seq":3,"turn":1,"token":"cf_A","tool":"book","args":{},"preview":"Book","expires_at":null}`
	turn1    = `{"type":"turn.started","seq":1,"turn":1}`
	speech1  = `{"type":"audio.start","seq":2,"turn":1,"item_id":"a1"}`
	second   = "second of audio"
)

// updating is a session.update of these fields.
func updating(fields string) string {
	return `{"type":"session.update","session":{"type":"realtime",` + fields + `}}`
}

// creating is a conversation.item.create of these fields.
func creating(fields string) string {
	return `{"type":"conversation.item.create","item":{` + fields + `}}`
}

var examples = map[string]example{
	"session.update":                                {nil, `{"type":"session.update","session":{"tool_choice":"none"}}`, `"tool_choice":"none"`},
	"session.update: instructions, tools":           {[]string{talk, ask}, updating(`"instructions":"Sing.","tools":[{"type":"function","name":"look"}]`), "Reconfigure"},
	"session.update: another model":                 {nil, updating(`"model":"other"`), ""},
	"session.update: tools of MCP servers":          {nil, updating(`"tools":[{"type":"mcp","server_label":"x","server_url":"https://x.example"}]`), ""},
	"session.update: unknown field":                 {nil, updating(`"temperature":1`), ""},
	"session.update: output_modalities":             {nil, updating(`"output_modalities":["text"]`), `"output_modalities":["text"]`},
	"session.update: audio formats":                 {nil, updating(`"audio":{"input":{"format":{"type":"audio/pcmu"}},"output":{"format":{"type":"audio/pcma"}}}`), "audio/pcmu"},
	"session.update: formats after the first audio": {[]string{second}, updating(`"audio":{"input":{"format":{"type":"audio/pcmu"}}}`), ""},
	"session.update: turn_detection":                {nil, updating(`"audio":{"input":{"turn_detection":{"type":"semantic_vad","eagerness":"low"}}}`), `"eagerness":"low"`},
	"session.update: no turn_detection":             {nil, noVAD, `"turn_detection":null`},
	"session.update: transcription":                 {nil, updating(`"audio":{"input":{"transcription":{"model":"whisper-1"}}}`), "whisper-1"},
	"session.update: voice":                         {nil, updating(`"audio":{"output":{"voice":"cedar"}}`), "session.updated"},
	"session.update: other settings": {nil, updating(`"max_output_tokens":50,"truncation":"disabled","tracing":"auto","prompt":{"id":"p"},"reasoning":{"effort":"low"},` +
		`"audio":{"input":{"noise_reduction":{"type":"near_field"}},"output":{"speed":1.2}}`), `"speed":1.2`},
	"input_audio_buffer.append":                      {nil, second, "Start"},
	"input_audio_buffer.commit":                      {[]string{noVAD, second}, `{"type":"input_audio_buffer.commit"}`, "input_audio_buffer.committed"},
	"input_audio_buffer.commit: less than 100 ms":    {nil, `{"type":"input_audio_buffer.commit"}`, ""},
	"input_audio_buffer.clear":                       {[]string{second}, `{"type":"input_audio_buffer.clear"}`, "input_audio_buffer.cleared"},
	"conversation.item.create: text":                 {nil, talk, `"id":"mine"`},
	"conversation.item.create: input_audio":          {nil, creating(`"type":"message","role":"user","content":[{"type":"input_audio","audio":"` + base64.StdEncoding.EncodeToString(make([]byte, 48000)) + `"}]`), "conversation.item.done"},
	"conversation.item.create: input_image":          {nil, creating(`"type":"message","role":"user","content":[{"type":"input_image","image_url":"data:image/png;base64,"}]`), ""},
	"conversation.item.create: function_call_output": {nil, creating(`"type":"function_call_output","call_id":"late","output":"{}"`), "conversation.item.added"},
	"conversation.item.create: function_call":        {nil, creating(`"type":"function_call","call_id":"c","name":"look","arguments":"{}"`), "conversation.item.added"},
	"conversation.item.create: mcp_approval_response": {[]string{allTools, talk, ask, turn1, asking},
		creating(`"type":"mcp_approval_response","approval_request_id":"MCPR","approve":true`), "ConfirmationResolve"},
	"conversation.item.create: unknown approval":          {nil, creating(`"type":"mcp_approval_response","approval_request_id":"x","approve":true`), ""},
	"conversation.item.create: item_reference and others": {nil, creating(`"type":"item_reference","id":"x"`), ""},
	"conversation.item.create: id of another item":        {[]string{talk}, talk, ""},
	"conversation.item.truncate": {[]string{talk, ask, turn1, speech1, "answer"},
		`{"type":"conversation.item.truncate","item_id":"ANSWER","content_index":0,"audio_end_ms":5000}`, `"audio_end_ms":1000`},
	"conversation.item.truncate: item of the user": {[]string{talk}, `{"type":"conversation.item.truncate","item_id":"mine","content_index":0,"audio_end_ms":0}`, ""},
	"conversation.item.delete":                     {[]string{talk}, `{"type":"conversation.item.delete","item_id":"mine"}`, "conversation.item.deleted"},
	"conversation.item.delete: unknown item":       {nil, `{"type":"conversation.item.delete","item_id":"x"}`, ""},
	"conversation.item.retrieve":                   {[]string{talk}, `{"type":"conversation.item.retrieve","item_id":"mine"}`, "conversation.item.retrieved"},
	"conversation.item.retrieve: unknown item":     {nil, `{"type":"conversation.item.retrieve","item_id":"x"}`, ""},
	"response.create":                              {[]string{talk}, ask, `"metadata":{"client_event_id":"x"}`},
	"response.create: while one is active":         {[]string{talk, ask}, ask, ""},
	"response.create: conversation none":           {nil, `{"type":"response.create","response":{"conversation":"none","input":[]}}`, ""},
	"response.cancel":                              {[]string{talk, ask}, `{"type":"response.cancel"}`, `"reason":"client_cancelled"`},
	"response.cancel: none is active":              {nil, `{"type":"response.cancel"}`, ""},
	"session.close":                                {nil, `{"type":"session.close"}`, "End"},
	"transcription_session.update":                 {nil, `{"type":"transcription_session.update"}`, ""},
	"output_audio_buffer.clear":                    {nil, `{"type":"output_audio_buffer.clear"}`, ""},
}

// docRow is a row of a table with three columns.
var docRow = regexp.MustCompile(`(?m)^\| (.+?) \| ([a-z ]+) \| ?(.*?) ?\|$`)

// docTable returns the rows below a heading of docs/realtime.md.
func docTable(t *testing.T, heading string) [][]string {
	t.Helper()
	page, err := os.ReadFile("../../docs/realtime.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(page), "\n"+heading+"\n")
	if !found {
		t.Fatalf("docs/realtime.md has no heading %s", heading)
	}
	table, _, _ := strings.Cut(rest, "\n#")
	return docRow.FindAllStringSubmatch(table, -1)[1:]
}

// drive does one step of an example, and returns what followed.
func (e example) drive(s *State, now time.Time, step string, events *[]string) (said string) {
	for name, prefix := range map[string]string{"MCPR": `"id":"(mcpr_\w+)"`, "ANSWER": `"id":"(item_\w+)","type":"message","status":"in_progress"`} {
		if found := regexp.MustCompile(prefix).FindStringSubmatch(strings.Join(*events, "\n")); found != nil {
			step = strings.ReplaceAll(step, `"`+name+`"`, `"`+found[1]+`"`)
		}
	}
	pcm := make([]byte, 48000)
	switch {
	case step == second:
		s.Hear(now, pcm)
	case step == "answer":
		if e := s.AppendAudio(nil, now, pcm); len(e) > 0 {
			s.Events = append(s.Events, e)
		}
	case strings.Contains(step, `"seq":`): // a message of the session
		m, err := protocol.ParseServer([]byte(step))
		if err != nil {
			panic(err)
		}
		s.Take(now, m)
	default:
		e, failure := openaiwire.ParseEvent([]byte(step))
		s.Event(now, e, failure)
	}
	for _, frame := range s.Events {
		said += string(frame) + "\n"
		*events = append(*events, string(frame))
	}
	for _, in := range s.Inputs {
		said += fmt.Sprintf("%T\n", in.Message)
	}
	s.Events, s.Inputs = nil, nil
	return said
}

// TestClientEventsAreAnsweredAsDocumented carries out each row of the table of client events.
func TestClientEventsAreAnsweredAsDocumented(t *testing.T) {
	left, types := maps.Clone(examples), map[string]bool{}
	for _, row := range docTable(t, "### Client events") {
		name, answer, notes := strings.ReplaceAll(row[1], "`", ""), row[2], row[3]
		e, known := left[name]
		if !known {
			t.Errorf("the row %q has no example here", name)
			continue
		}
		delete(left, name)
		kind, _, _ := strings.Cut(name, ":")
		types[kind] = true
		s, now := newState(epoch), epoch
		var events []string
		for _, step := range e.before {
			if said := e.drive(s, now, step, &events); strings.Contains(said, `{"type":"error"`) {
				t.Fatalf("%s: before: %s", name, said)
			}
			now = now.Add(time.Second)
		}
		said := e.drive(s, now, e.event, &events)
		code := regexp.MustCompile(`"type":"error".*?"code":"(\w+)"`).FindStringSubmatch(said)
		switch answer {
		case "rejected":
			if code == nil || !strings.HasPrefix(notes, "`"+code[1]+"`") {
				t.Errorf("%s: the page says %s, and the answer is %s", name, notes, said)
			}
		case "supported", "emulated", "ignored":
			if code != nil || !strings.Contains(said, e.want) {
				t.Errorf("%s: the answer has no %s: %s", name, e.want, said)
			}
		default:
			t.Errorf("%s: the answer is %q", name, answer)
		}
	}
	for name := range left {
		t.Errorf("the page has no row %q", name)
	}
	for _, name := range openaiwire.EventTypes() {
		if !types[name] {
			t.Errorf("the page has no row for %s", name)
		}
	}
}

// TestServerEventsAreDocumented: the events of all golden conversations are those that the table has as sent.
func TestServerEventsAreDocumented(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden conversations: %v", err)
	}
	sent := map[string]bool{}
	note := func(text string) {
		for _, found := range regexp.MustCompile(`(?m)^ *<< \{"type":"([a-z_.]+)"`).FindAllStringSubmatch(text, -1) {
			sent[found[1]] = true
		}
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		note(string(text))
	}
	for _, row := range docTable(t, "### Server events") {
		name, told := strings.Trim(row[1], "`"), row[2]
		if !slices.Contains([]string{"yes", "on request", "never"}, told) {
			t.Errorf("%s is sent %q", name, told)
		}
		if (told != "never") != sent[name] {
			t.Errorf("the page says %q of %s; it is sent: %t", told, name, sent[name])
		}
		delete(sent, name)
	}
	for name := range sent {
		t.Errorf("the page has no row for %s", name)
	}
}
