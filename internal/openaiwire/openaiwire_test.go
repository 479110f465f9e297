package openaiwire

import (
	"encoding/base64"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func rules() *Rules { return &Rules{Instructions: "Be kind.", Voice: "marin", SilenceMS: 500} }

func newSession(r *Rules) *Session { return NewSession("sess_1", "m", r, time.Unix(1000, 0)) }

func encoded(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestUpdateIsAtomic: an update changes exactly its fields; an error names the field and changes nothing.
func TestUpdateIsAtomic(t *testing.T) {
	s := newSession(rules())
	before := encoded(t, s)
	changed, err := s.Update(json.RawMessage(`{"type":"realtime","instructions":"Sing.","audio":{"input":{"format":{"type":"audio/pcmu","rate":8000},"turn_detection":{"type":"server_vad","threshold":0.8}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	if v := changed.Audio.Input.TurnDetection; v.Threshold != 0.8 || v.SilenceMS != 500 || !v.Create || changed.Instructions != "Sing." || changed.Audio.Output.Voice != "marin" ||
		changed.Audio.Input.Format != (Format{Type: "audio/pcmu"}) {
		t.Errorf("the updated session is %s", encoded(t, changed))
	}
	for update, param := range map[string]string{
		`{"instructions":"Sing."}`: "session.type",
		`{"type":"realtime","instructions":"Sing.","audio":{"output":{"speed":9}}}`:                                "session.audio.output.speed",
		`{"type":"realtime","tools":[{"type":"function","name":"a"},{"type":"function"}]}`:                         "session.tools[1].name",
		`{"type":"realtime","audio":{"input":{"format":{"type":"audio/pcm","rate":16000}}}}`:                       "session.audio.input.format.rate",
		`{"type":"realtime","audio":{"input":{"format":{"type":"audio/pcmu","rate":24000}}}}`:                      "session.audio.input.format.rate",
		`{"type":"realtime","temperature":1}`:                                                                      "session.temperature",
		`{"type":"transcription"}`:                                                                                 "session.type",
		`{"type":"realtime","audio":{"input":{"turn_detection":{"type":"semantic_vad","silence_duration_ms":1}}}}`: "session.audio.input.turn_detection.silence_duration_ms",
		`[]`: "session",
		``:   "session",
	} {
		if _, err := s.Update(json.RawMessage(update)); err == nil || err.Param != param {
			t.Errorf("%s: error %+v, want one about %s", update, err, param)
		}
	}
	if after := encoded(t, s); after != before {
		t.Errorf("updates changed the session from %s to %s", before, after)
	}
}

func TestRules(t *testing.T) {
	r := rules()
	r.TypeOptional, r.LockInstructions, r.LockTools, r.AnyTranscription = true, true, true, true
	r.MapVoice = func(string) string { return "cedar" }
	r.CheckTool = func(tool *Tool, path string) *Error {
		if tool.Name == "taken" {
			return Invalid("invalid_value", path+".name", "taken")
		}
		return nil
	}
	s, err := newSession(r).Update(json.RawMessage(`{"instructions":"Sing.","tools":[{"type":"function","name":"a"}],"tool_choice":"none",
		"audio":{"input":{"transcription":{"model":"mine"}},"output":{"voice":"Kore"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	if s.Instructions != "Be kind." || len(s.Tools) != 0 || string(s.ToolChoice) != `"none"` || s.Audio.Output.Voice != "cedar" || s.Audio.Input.Transcription.Model != "mine" {
		t.Errorf("the result of the rules is %s", encoded(t, s))
	}
	for _, update := range []string{`{"tools":[{"type":"function","name":"a"},{"type":"function","name":"taken"}]}`} {
		if _, err := s.Update(json.RawMessage(update)); err == nil || err.Param != "session.tools[1].name" {
			t.Errorf("%s: %+v", update, err)
		}
	}
	words := "Sing."
	q := &ResponseParams{Instructions: &words, Tools: []Tool{{Name: "a"}}}
	if err := s.Permit(q); err != nil || q.Instructions != nil || q.Tools != nil {
		t.Errorf("a locked session permits %+v, %v", q, err)
	}
	r.LockTools = false
	if err := s.Permit(&ResponseParams{Tools: []Tool{{Name: "taken"}}}); err == nil || err.Param != "response.tools[0].name" {
		t.Errorf("a reserved name: %+v", err)
	}
	s.VoiceFixed, r.MapVoice = true, nil
	if _, err := s.Update(json.RawMessage(`{"audio":{"output":{"voice":"Puck"}}}`)); err == nil || err.Code != "cannot_update_voice" {
		t.Errorf("another voice after speech: %+v", err)
	}
}

// TestEventTypes: ParseEvent reads every type of its list, and an error about another type has the whole list.
func TestEventTypes(t *testing.T) {
	_, err := ParseEvent([]byte(`{"type":"output_audio_buffer.clear","event_id":"e"}`))
	if err == nil || err.Code != "invalid_value" || err.Param != "type" {
		t.Fatalf("an unknown type: %+v", err)
	}
	for _, name := range EventTypes {
		if !strings.Contains(err.Message, "'"+name+"'") {
			t.Errorf("the error does not name %s: %s", name, err.Message)
		}
		e, bad := ParseEvent([]byte(`{"type":"` + name + `","event_id":"e","audio":"AAAA","audio_end_ms":5,"item_id":"i","item":{"type":"message","role":"user","content":[]}}`))
		if refused := name == "transcription_session.update"; (bad != nil) != refused || e.Type != name || e.ID != "e" {
			t.Errorf("%s: %+v, %v", name, e, bad)
		}
	}
	for event, param := range map[string]string{
		`{"event_id":"e"}`: "type",
		`{"type":"input_audio_buffer.append","event_id":"e"}`:                                                                                                                  "audio",
		`{"type":"conversation.item.create","event_id":"e"}`:                                                                                                                   "item",
		`{"type":"conversation.item.create","event_id":"e","item":{"type":"message","role":"user","content":[{"type":"output_text"}]}}`:                                        "item.content[0].type",
		`{"type":"conversation.item.create","event_id":"e","item":{"type":"message","role":"user","content":[{"type":"input_audio","audio":"!"}]}}`:                            "item.content[0].audio",
		`{"type":"conversation.item.create","event_id":"e","item":{"type":"function_call_output"}}`:                                                                            "item.call_id",
		`{"type":"conversation.item.truncate","event_id":"e","item_id":"i"}`:                                                                                                   "audio_end_ms",
		`{"type":"conversation.item.truncate","event_id":"e","audio_end_ms":1}`:                                                                                                "item_id",
		`{"type":"conversation.item.retrieve","event_id":"e"}`:                                                                                                                 "item_id",
		`{"type":"response.create","event_id":"e","response":{"input":[{"type":"message","role":"user","content":[]},{"type":"message","role":"assistant"}]}}`:                 "response.input[1].content",
		`{"type":"response.create","event_id":"e","response":{"max_output_tokens":5000}}`:                                                                                      "response.max_output_tokens",
		`{"type":"response.create","event_id":"e","response":{"output_modalities":["text","audio"]}}`:                                                                          "response.output_modalities",
		`{"type":"conversation.item.create","event_id":"e","item":{"type":"mcp_approval_request","id":"x"},"previous_item_id":"root","response":{},"session":{},"audio":null}`: "",
	} {
		e, err := ParseEvent([]byte(event))
		if param == "" && err == nil && e.ID == "e" {
			continue
		}
		if err == nil || err.Param != param || e.ID != "e" {
			t.Errorf("%s: %+v, error %+v", event, e, err)
		}
	}
}

func TestApproval(t *testing.T) {
	for item, want := range map[string]string{
		`{"type":"mcp_approval_response","approval_request_id":"mcpr_1","approve":true,"reason":"yes"}`: "mcpr_1 true",
		`{"type":"mcp_approval_response","approval_request_id":"mcpr_1","approve":false}`:               "mcpr_1 false",
		`{"type":"mcp_approval_response","approval_request_id":"mcpr_1"}`:                               "item.approve",
		`{"type":"mcp_approval_response","approve":true}`:                                               "item.approval_request_id",
		`{"type":"mcp_approval_response","approval_request_id":"mcpr_1","approve":"yes"}`:               "item.approve",
	} {
		e, err := ParseEvent([]byte(`{"type":"conversation.item.create","item":` + item + `}`))
		if err != nil {
			t.Fatal(err)
		}
		id, approve, err := e.Item.Approval()
		got := id + " " + map[bool]string{true: "true", false: "false"}[approve]
		if err != nil {
			got = err.Param
		}
		if got != want {
			t.Errorf("%s: %s, want %s", item, got, want)
		}
	}
}

// TestAudioDelta: the event is the same as with the other encoder, without an allocation.
func TestAudioDelta(t *testing.T) {
	p := Place{ResponseID: "resp_1", ItemID: "item_1", Output: 12}
	ids := IDs{IntN: func(int) int { return 0 }}
	data := []byte{1, 2, 3, 4}
	want, err := p.Event(AudioDelta, base64.StdEncoding.EncodeToString(data)).Encode(ids)
	if err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 0, 400)
	if got := string(p.AppendAudioDelta(buf, ids, data)); got != string(want) {
		t.Errorf("%s, want %s", got, want)
	}
	ids = RandomIDs()
	if n := testing.AllocsPerRun(100, func() { buf = p.AppendAudioDelta(buf[:0], ids, data) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	frame := []byte(`{"type":"input_audio_buffer.append","audio":"` + strings.Repeat("AAAA", 1000) + `"}`)
	if n := testing.AllocsPerRun(100, func() {
		if e, err := ParseEvent(frame); err != nil || len(e.Audio) != 4000 {
			t.Errorf("%+v, %v", e, err)
		}
	}); n != 0 {
		t.Errorf("reading audio: %v allocations", n)
	}
}

// FuzzParseEvent: no event breaks the reader, and the fast path for audio gives the same result as the other.
func FuzzParseEvent(f *testing.F) {
	for _, s := range []string{
		`{"type":"input_audio_buffer.append","audio":"AAAA"}`, `{"audio": "AAAA", "event_id":"x","type":"input_audio_buffer.append"} `,
		`{"type":"input_audio_buffer.append","x":{"audio":"AAAA"}}`, `{"type":"input_audio_buffer.append","audio":"A\/AA"}`,
		`{"type":"input_audio_buffer.append","audio":""}`, `{"type":"input_audio_buffer.append","audio":"AAAA",}`,
		`{"type":"conversation.item.create","item":{"type":"message","role":"user","content":[{"type":"input_audio","audio":"AAAA","transcript":"x"}]}}`,
		`{"type":"response.create","response":{"conversation":"none","input":[{"type":"item_reference","id":"x"}],"tools":[{"type":"mcp"}],"max_output_tokens":3}}`,
		`{"type":"session.update","session":{"type":"realtime","audio":{"input":{"turn_detection":{"type":"semantic_vad"},"transcription":{"model":"whisper-1"}}}}}`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, frame string) {
		id, audio, ok := ReadAudio([]byte(frame), AudioAppend, "audio")
		any, bad := parseAny([]byte(frame))
		if ok && utf8.ValidString(frame) {
			if bad != nil { // a character forbidden in JSON and in base64
				if _, err := base64.StdEncoding.DecodeString(string(audio)); err == nil {
					t.Fatalf("%q is accepted, but %v", frame, bad)
				}
			} else if any.Type != AudioAppend || any.ID != id || string(any.Audio) != string(audio) {
				t.Fatalf("%q: %q %q, want %+v", frame, id, audio, any)
			}
		}
		if bad == nil && any.Type == SessionUpdate {
			if s, err := newSession(rules()).Update(any.Session); err == nil && !json.Valid([]byte(encoded(t, s))) {
				t.Errorf("%q gives a session that cannot be sent", frame)
			}
		}
		if bad == nil && any.Item != nil && !json.Valid([]byte(encoded(t, any.Item))) {
			t.Errorf("%q gives an item that cannot be sent", frame)
		}
	})
}

// TestEventsHaveTheirMembers: each event in the sources of the servers is known, with the right number of values.
func TestEventsHaveTheirMembers(t *testing.T) {
	used := map[string]bool{}
	for _, dir := range []string{".", "../../gateway/realtime", "../../sim/openai"} {
		files, err := filepath.Glob(dir + "/*.go")
		if err != nil || len(files) == 0 {
			t.Fatalf("no sources in %s: %v", dir, err)
		}
		for _, name := range files {
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(file, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok || len(call.Args) == 0 || call.Ellipsis != token.NoPos {
					return true
				}
				if event, placed := eventOf(call); event != "" {
					used[event] = true
					if want := values(event, placed); want != len(call.Args)-1 {
						t.Errorf("%s: %s has %d values, want %d", name, event, len(call.Args)-1, want)
					}
				}
				return true
			})
		}
	}
	for name := range serverEvents {
		if !used[name] && !strings.HasPrefix(name, inputTranscription) && name != AudioDelta && name != "response.mcp_call.completed" && name != "response.mcp_call.failed" {
			t.Errorf("no server sends %s", name)
		}
	}
}

// eventOf returns the event of a call of Event or tell with its name, and whether it is a method of a Place.
func eventOf(call *ast.CallExpr) (name string, placed bool) {
	lit, ok := call.Args[0].(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return "", false
	}
	name, _ = strconv.Unquote(lit.Value)
	switch f := call.Fun.(type) {
	case *ast.Ident:
		if f.Name == "Event" {
			return name, false
		}
	case *ast.SelectorExpr:
		switch f.Sel.Name {
		case "tell":
			return name, false
		case "Event":
			x, isName := f.X.(*ast.Ident)
			return name, !isName || x.Name != "openaiwire"
		}
	}
	return "", false
}

// values is the number of values of an event; -1 if it is unknown.
func values(name string, placed bool) int {
	members, known := serverEvents[name]
	if !known {
		return -1
	}
	n := 0
	for key := range strings.FieldsSeq(members) {
		if key != "content_index" && !(placed && slices.Contains([]string{"response_id", "item_id", "output_index"}, key)) {
			n++
		}
	}
	return n
}
