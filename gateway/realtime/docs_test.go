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

// example is a row of the table of client events: the steps before, and the client's event.
type example struct {
	before []string
	event  string
	// want is a part of an event or input that must follow; unused for a rejected event.
	want string
	lock bool // the instructions are locked
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
	"session.update":                                       {event: `{"type":"session.update","session":{"tool_choice":"none"}}`, want: `"tool_choice":"none"`},
	"session.update: instructions, tools":                  {before: []string{talk, ask}, event: updating(`"instructions":"Sing.","tools":[{"type":"function","name":"look"}]`), want: "Reconfigure"},
	"session.update: another model":                        {event: updating(`"model":"other"`)},
	"session.update: tools of MCP servers":                 {event: updating(`"tools":[{"type":"mcp","server_label":"x","server_url":"https://x.example"}]`)},
	"session.update: tool with the name of a gateway tool": {event: updating(`"tools":[{"type":"function","name":"KB_search"}]`)},
	"conversation.item.create: system message, instructions locked": {
		event: creating(`"type":"message","role":"system","content":[{"type":"input_text","text":"Shout."}]`), lock: true},
	"session.update: unknown field":                 {event: updating(`"temperature":1`)},
	"session.update: output_modalities":             {event: updating(`"output_modalities":["text"]`), want: `"output_modalities":["text"]`},
	"session.update: audio formats":                 {event: updating(`"audio":{"input":{"format":{"type":"audio/pcmu"}},"output":{"format":{"type":"audio/pcma"}}}`), want: "audio/pcmu"},
	"session.update: formats after the first audio": {before: []string{second}, event: updating(`"audio":{"input":{"format":{"type":"audio/pcmu"}}}`)},
	"session.update: turn_detection":                {event: updating(`"audio":{"input":{"turn_detection":{"type":"semantic_vad","eagerness":"low"}}}`), want: `"eagerness":"low"`},
	"session.update: no turn_detection":             {event: noVAD, want: `"turn_detection":null`},
	"session.update: transcription":                 {event: updating(`"audio":{"input":{"transcription":{"model":"whisper-1"}}}`), want: "whisper-1"},
	"session.update: tool_choice": {before: []string{updating(`"tools":[{"type":"function","name":"look"}]`), talk, ask},
		event: updating(`"tool_choice":"none"`), want: "Reconfigure"},
	"conversation.item.create: unknown previous_item_id": {event: strings.Replace(talk, `"item":{`, `"previous_item_id":"x","item":{`, 1)},
	"response.create: another audio format":              {event: `{"type":"response.create","response":{"audio":{"output":{"format":{"type":"audio/pcmu"}}}}}`},
	"session.update: voice":                              {event: updating(`"audio":{"output":{"voice":"cedar"}}`), want: "session.updated"},
	"session.update: other settings": {event: updating(`"max_output_tokens":50,"truncation":"disabled","tracing":"auto","prompt":{"id":"p"},"reasoning":{"effort":"low"},` +
		`"audio":{"input":{"noise_reduction":{"type":"near_field"}},"output":{"speed":1.2}}`), want: `"speed":1.2`},
	"input_audio_buffer.append":                      {event: second, want: "Start"},
	"input_audio_buffer.commit":                      {before: []string{noVAD, second}, event: `{"type":"input_audio_buffer.commit"}`, want: "input_audio_buffer.committed"},
	"input_audio_buffer.commit: less than 100 ms":    {event: `{"type":"input_audio_buffer.commit"}`},
	"input_audio_buffer.clear":                       {before: []string{second}, event: `{"type":"input_audio_buffer.clear"}`, want: "input_audio_buffer.cleared"},
	"conversation.item.create: text":                 {event: talk, want: `"id":"mine"`},
	"conversation.item.create: input_audio":          {event: creating(`"type":"message","role":"user","content":[{"type":"input_audio","audio":"` + base64.StdEncoding.EncodeToString(make([]byte, 48000)) + `"}]`), want: "conversation.item.done"},
	"session.update: idle_timeout_ms":                {event: updating(`"audio":{"input":{"turn_detection":{"type":"server_vad","idle_timeout_ms":5000}}}`), want: `"idle_timeout_ms":5000`},
	"conversation.item.create: input_image":          {event: creating(`"type":"message","role":"user","content":[{"type":"input_image","image_url":"data:image/png;base64,iVBORw0KGgo="}]`), want: "InputImage"},
	"conversation.item.create: other images":         {event: creating(`"type":"message","role":"user","content":[{"type":"input_image","image_url":"https://example.com/x.png"}]`)},
	"conversation.item.create: function_call_output": {event: creating(`"type":"function_call_output","call_id":"late","output":"{}"`), want: "conversation.item.added"},
	"conversation.item.create: function_call":        {event: creating(`"type":"function_call","call_id":"c","name":"look","arguments":"{}"`), want: "conversation.item.added"},
	"conversation.item.create: mcp_approval_response": {before: []string{allTools, talk, ask, turn1, asking},
		event: creating(`"type":"mcp_approval_response","approval_request_id":"MCPR","approve":true`), want: "ConfirmationResolve"},
	"conversation.item.create: unknown approval":          {event: creating(`"type":"mcp_approval_response","approval_request_id":"x","approve":true`)},
	"conversation.item.create: item_reference and others": {event: creating(`"type":"item_reference","id":"x"`)},
	"conversation.item.create: id of another item":        {before: []string{talk}, event: talk},
	"conversation.item.truncate": {before: []string{talk, ask, turn1, speech1, "answer"},
		event: `{"type":"conversation.item.truncate","item_id":"ANSWER","content_index":0,"audio_end_ms":5000}`, want: `"audio_end_ms":1000`},
	"conversation.item.truncate: item of the user": {before: []string{talk}, event: `{"type":"conversation.item.truncate","item_id":"mine","content_index":0,"audio_end_ms":0}`},
	"conversation.item.delete":                     {before: []string{talk}, event: `{"type":"conversation.item.delete","item_id":"mine"}`, want: "conversation.item.deleted"},
	"conversation.item.delete: unknown item":       {event: `{"type":"conversation.item.delete","item_id":"x"}`},
	"conversation.item.retrieve":                   {before: []string{talk}, event: `{"type":"conversation.item.retrieve","item_id":"mine"}`, want: "conversation.item.retrieved"},
	"conversation.item.retrieve: unknown item":     {event: `{"type":"conversation.item.retrieve","item_id":"x"}`},
	"response.create":                              {before: []string{talk}, event: ask, want: `"metadata":{"client_event_id":"x"}`},
	"response.create: while one is active":         {before: []string{talk, ask}, event: ask},
	"response.create: conversation none":           {event: `{"type":"response.create","response":{"conversation":"none","input":[]}}`},
	"response.cancel":                              {before: []string{talk, ask}, event: `{"type":"response.cancel"}`, want: `"reason":"client_cancelled"`},
	"response.cancel: none is active":              {event: `{"type":"response.cancel"}`},
	"session.close":                                {event: `{"type":"session.close"}`, want: "End"},
	"transcription_session.update":                 {event: `{"type":"transcription_session.update"}`},
	"output_audio_buffer.clear":                    {event: `{"type":"output_audio_buffer.clear"}`},
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

// drive runs a step of an example, and returns the resulting events and inputs.
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

// TestClientEvents runs the example of each row in the documented table of client events.
func TestClientEvents(t *testing.T) {
	left, types := maps.Clone(examples), map[string]bool{}
	for _, row := range docTable(t, "### Client events") {
		name, answer, notes := strings.ReplaceAll(row[1], "`", ""), row[2], row[3]
		e, known := left[name]
		if !known {
			t.Errorf("the row %q has no example in this test", name)
			continue
		}
		delete(left, name)
		kind, _, _ := strings.Cut(name, ":")
		types[kind] = true
		s, now := newState(epoch), epoch
		s.sess.Rules.LockInstructions = e.lock
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
			if answer == "ignored" && strings.Contains(said, "*protocol.") {
				t.Errorf("%s: it reaches the session: %s", name, said)
			}
		default:
			t.Errorf("%s: the answer is %q", name, answer)
		}
	}
	for name := range left {
		t.Errorf("the page has no row %q", name)
	}
	for _, name := range openaiwire.EventTypes {
		if !types[name] {
			t.Errorf("the page has no row for %s", name)
		}
	}
}

// TestServerEvents: the golden conversations have exactly the events that docs/realtime.md marks as sent.
func TestServerEvents(t *testing.T) {
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
		name, says := strings.Trim(row[1], "`"), row[2]
		if !slices.Contains([]string{"yes", "on request", "never"}, says) {
			t.Errorf("%s is sent %q", name, says)
		}
		if (says != "never") != sent[name] {
			t.Errorf("the page says %q of %s; it is sent: %t", says, name, sent[name])
		}
		delete(sent, name)
	}
	for name := range sent {
		t.Errorf("the page has no row for %s", name)
	}
}
