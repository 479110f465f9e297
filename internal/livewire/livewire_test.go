package livewire

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"voicegw/internal/openaiwire"
)

func TestStartIsStrict(t *testing.T) {
	long := strings.Repeat("word ", 13_000)
	message := `{"role":"user","content":[{"type":"input_text","text":"hi"}]}`
	for _, c := range []struct{ session, code, param string }{
		{`{"model":"gpt-live-1"}`, "", ""},
		{`{"model":"gpt-live-1","delegation":null,"instructions":null,"triggers":[],"store":true,"safety_identifier":"x"}`, "", ""},
		{`{"model":"gpt-live-1","audio":{"format":{"type":"audio/pcma","rate":8000},"output":{"voice":{"id":"voice_1"}}}}`, "", ""},
		{`{"model":"gpt-live-1","input":[` + message + `,{"type":"message","id":null,"status":"completed","role":"assistant","content":[{"text":"a"}]}]}`, "", ""},
		{`{}`, "missing_required_parameter", "session.model"},
		{`{"model":"gpt-live-1","tools":[]}`, "unknown_parameter", "session.tools"},
		{`{"model":"gpt-live-1","audio":{"input":{}}}`, "unknown_parameter", "session.audio.input"},
		{`{"model":"gpt-live-1","audio":{"format":{"type":"audio/pcm","rate":8000}}}`, "invalid_value", "session.audio.format.rate"},
		{`{"model":"gpt-live-1","audio":{"format":{"type":"audio/pcm"}}}`, "missing_required_parameter", "session.audio.format.rate"},
		{`{"model":"gpt-live-1","audio":{"format":{"rate":8000}}}`, "missing_required_parameter", "session.audio.format.type"},
		{`{"model":"gpt-live-1","audio":{"output":{"voice":"onyx"}}}`, "forbidden", "session.audio.output.voice"},
		{`{"model":"gpt-live-1","audio":{"output":{"voice":"bob"}}}`, "invalid_value", "session.audio.output.voice"},
		{`{"model":"gpt-live-1","audio":{"output":{"voice":{}}}}`, "missing_required_parameter", "session.audio.output.voice"},
		{`{"model":"gpt-live-1","delegation":{"type":"responses","responses":{"model":"x"}}}`, "invalid_value", "session.delegation.type"},
		{`{"model":"gpt-live-1","delegation":{"type":"nobody"}}`, "invalid_value", "session.delegation.type"},
		{`{"model":"gpt-live-1","delegation":{"type":"client","acknowledgement_delay_ms":-1}}`, "invalid_value", "session.delegation.acknowledgement_delay_ms"},
		{`{"model":"gpt-live-1","triggers":[{}]}`, "invalid_value", "session.triggers"},
		{`{"model":"gpt-live-1","instructions":"` + long + `"}`, "invalid_value", "session.instructions"},
		{`{"model":"gpt-live-1","input":[` + strings.TrimSuffix(strings.Repeat(message+",", 129), ",") + `]}`, "invalid_value", "session.input"},
		{`{"model":"gpt-live-1","input":[{"role":"user","content":[{"text":"` + long + `"}]}]}`, "invalid_value", "session.input"},
		{`{"model":"gpt-live-1","input":[{"role":"user","content":[]}]}`, "invalid_value", "session.input[0].content"},
		{`{"model":"gpt-live-1","input":[{"role":"user"}]}`, "missing_required_parameter", "session.input[0].content"},
		{`{"model":"gpt-live-1","input":[{"content":[{"text":"x"}]}]}`, "missing_required_parameter", "session.input[0].role"},
		{`{"model":"gpt-live-1","input":[{"role":"user","content":[{"type":"input_text"}]}]}`, "missing_required_parameter", "session.input[0].content[0].text"},
		{`{"model":"gpt-live-1","input":[{"role":"user","content":[{"type":"output_text","text":"x"}]}]}`, "invalid_value", "session.input[0].content[0].type"},
		{`[]`, "invalid_type", "session"},
	} {
		_, err := ParseStart(json.RawMessage(c.session))
		if got := code(err); got != c.code || err != nil && err.Param != c.param {
			t.Errorf("%.120s: %v, want %s at %s", c.session, err, c.code, c.param)
		}
	}
}

func code(err *openaiwire.Error) string {
	if err == nil {
		return ""
	}
	return err.Code
}

func TestUpdateIsSparse(t *testing.T) {
	s, err := ParseStart(json.RawMessage(`{"model":"gpt-live-1","delegation":{"type":"client","acknowledgement_delay_ms":300}}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ session, code, param string }{
		{`{}`, "", ""},
		{`{"delegation":{"type":"client","acknowledgement_delay_ms":700},"triggers":[]}`, "", ""},
		{`{"instructions":"x"}`, CodeImmutable, "session.instructions"},
		{`{"delegation":{"type":"responses"}}`, CodeImmutable, "session.delegation.type"},
		{`{"delegation":5}`, "invalid_type", "session.delegation"},
		{`{"tools":[]}`, CodeUnknownParameter, "session.tools"},
	} {
		changed, err := s.Update(json.RawMessage(c.session))
		if got := code(err); got != c.code || err != nil && err.Param != c.param {
			t.Errorf("%s: %v, want %s at %s", c.session, err, c.code, c.param)
		}
		if strings.Contains(c.session, "700") && changed.Delegation.AcknowledgementDelayMS != 700 || s.Delegation.AcknowledgementDelayMS != 300 {
			t.Errorf("%s: %+v from %+v", c.session, changed.Delegation, s.Delegation)
		}
	}
}

// A client's events are read as they were written, and a session is.
func TestClientEvents(t *testing.T) {
	s := Session{Model: Model, Instructions: "Be <kind>.", Input: []Message{NewMessage("user", "hi"), NewMessage("assistant", "ho")}}
	s.Audio.Format, s.Audio.Output.Voice = Format{Type: "audio/pcm", Rate: 16000}, Voice{ID: "voice_1"}
	raw, err := json.Marshal(&s)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range []ClientEvent{
		{Type: Start, ID: "a", Session: raw}, {Type: AudioAppend, Audio: []byte("AAAA")}, {Type: Mute}, {Type: Close, ID: "b"},
		{Type: CommentaryAppend, Content: "It is open."}, {Type: ThinkingAppend, ID: "c", Content: "x", Delegation: "item_1"},
		{Type: FixturePlay, Audio: []byte("AAAA")},
	} {
		frame, err := e.Encode()
		if err != nil {
			t.Fatal(err)
		}
		got, bad := ParseClientEvent(frame)
		if bad != nil || fmt.Sprint(got) != fmt.Sprint(e) {
			t.Errorf("%s is read as %+v, %v", frame, got, bad)
		}
	}
	if got, bad := ParseClientEvent(AppendAudio(nil, []byte{1, 2})); bad != nil || string(got.Audio) != "AQI=" || got.Type != AudioAppend {
		t.Errorf("audio is read as %+v, %v", got, bad)
	}
	read, bad := ParseStart(raw)
	if s.Delegation = (&Delegation{Type: "client"}); bad != nil || fmt.Sprint(*read.Delegation, read.Input, read.Audio) != fmt.Sprint(*s.Delegation, s.Input, s.Audio) {
		t.Errorf("the session is read as %+v, %v", read, bad)
	}
}

func TestClientEventsAreStrict(t *testing.T) {
	for _, c := range []struct{ frame, code, param string }{
		{`{`, "invalid_json", ""},
		{`[]`, "invalid_json", ""},
		{`{"type":7}`, "invalid_type", ""},
		{`{}`, "missing_required_parameter", "type"},
		{`{"type":"session.pause"}`, "invalid_value", "type"},
		{`{"type":"response.create"}`, "invalid_value", "type"},
		{`{"type":"decision.create"}`, "invalid_value", "type"},
		{`{"type":"session.start"}`, "missing_required_parameter", "session"},
		{`{"type":"session.close","now":true}`, "unknown_parameter", "now"},
		{`{"type":"session.input_audio.append","event_id":"x"}`, "missing_required_parameter", "audio"},
		{`{"type":"session.thinking.append","delegation_id":null}`, "missing_required_parameter", "content"},
		{`{"type":"session.thinking.append","content":"x"}`, "missing_required_parameter", "delegation_id"},
		{`{"type":"session.thinking.append","content":"x","delegation_id":4}`, "invalid_type", "delegation_id"},
		{`{"type":"session.commentary.append","delegation_id":null,"content":"` + strings.Repeat("word ", 500) + `"}`, "invalid_value", "content"},
	} {
		if _, err := ParseClientEvent([]byte(c.frame)); code(err) != c.code || err.Param != c.param {
			t.Errorf("%.100s: %v, want %s at %q", c.frame, err, c.code, c.param)
		}
	}
	_, err := ParseClientEvent([]byte(`{"type":"session.pause"}`))
	for _, kind := range clientTypes {
		if !strings.Contains(err.Message, "'"+kind+"'") {
			t.Errorf("the error for an unknown type does not list %s: %s", kind, err.Message)
		}
	}
}

// The server's events are read leniently: what came is there, unknown types and members are not errors.
func TestServerEvents(t *testing.T) {
	s, bad := ParseStart(json.RawMessage(`{"model":"gpt-live-1"}`))
	if bad != nil {
		t.Fatal(bad)
	}
	ids := openaiwire.RandomIDs()
	for _, c := range []struct {
		event openaiwire.ServerEvent
		ok    func(ServerEvent) bool
	}{
		{Reply(Started, "a", "session", s), func(e ServerEvent) bool { return e.ClientID == "a" && e.Session.Audio.Output.Voice.Name == "marin" }},
		{Reply(InputTranscript, "", "delta", " hi", "start_ms", 200, "end_ms", 400), func(e ServerEvent) bool { return e.Delta == " hi" && e.EndMS == 400 }},
		{Delegate("item_1", 4600), func(e ServerEvent) bool {
			return e.Delegation.ID == "item_1" && e.OffsetMS == 4600 && e.Delegation.Target == "client"
		}},
		{Usage(7, 0.5), func(e ServerEvent) bool { return e.Usage.Seconds == 7 && e.Context.Ratio == 0.5 }},
		{End(ReasonExpired, s, 31, ""), func(e ServerEvent) bool { return e.Reason == "expired" && e.Usage.Seconds == 31 }},
		{Fail(openaiwire.Invalid("x", "p", "m"), "b"), func(e ServerEvent) bool {
			return e.Error.Code == "x" && e.Error.Param == "p" && e.Error.ClientID == "b"
		}},
		{Reply("decision.event", "", "delta", 5, "session", "none"), func(e ServerEvent) bool { return e.Type == "decision.event" && !Known(e.Type) }},
		{Reply(Muted, "", "extra", openaiwire.Object{}), func(e ServerEvent) bool { return e.Type == Muted }},
	} {
		frame, err := c.event.Encode(ids)
		if err != nil {
			t.Fatal(err)
		}
		e, err := ParseServerEvent(frame)
		if err != nil || e.ID == "" || !c.ok(e) {
			t.Errorf("%s is read as %+v, %v", frame, e, err)
		}
	}
	for _, start := range []int64{-1, 200} {
		if e, err := ParseServerEvent(AppendAudioDelta(nil, []byte{1, 2}, start)); err != nil || string(e.Sound) != "AQI=" || e.EndMS != max(start+FrameMS, 0)*min(start+1, 1) {
			t.Errorf("audio at %d is read as %+v, %v", start, e, err)
		}
	}
	for _, frame := range []string{`{`, `[]`, `{"type":"session.closed","usage":"none"}`} {
		if _, err := ParseServerEvent([]byte(frame)); err == nil {
			t.Errorf("%s is read", frame)
		}
	}
}

func TestTheRecordingIsRead(t *testing.T) {
	data, err := os.ReadFile("../../../shared/fixtures/live/delegation_to_client.jsonl")
	if err != nil {
		t.Skip("the recording of ../shared is not there")
	}
	for line := bufio.NewScanner(bytes.NewReader(data)); line.Scan(); {
		var one struct{ Event json.RawMessage }
		if err := json.Unmarshal(line.Bytes(), &one); err != nil {
			t.Fatal(err)
		}
		if e, err := ParseServerEvent(one.Event); err != nil || !Known(e.Type) {
			t.Errorf("%s: %v", one.Event, err)
		}
	}
}

func TestSplit(t *testing.T) {
	for _, c := range []struct {
		text  string
		limit int
		want  []string
	}{
		{"", 10, nil},
		{"  short ", 10, []string{"short"}},
		{"It is open now. Come in soon please.", 6, []string{"It is open now.", "Come in soon please."}},
		{strings.Repeat("a", 50), 5, []string{strings.Repeat("a", 20), strings.Repeat("a", 20), strings.Repeat("a", 10)}},
	} {
		if got := Split(c.text, c.limit); fmt.Sprintf("%q", got) != fmt.Sprintf("%q", c.want) {
			t.Errorf("%q: %q, want %q", c.text, got, c.want)
		}
	}
}

// FuzzSplit: every piece is within the limit, and no word is lost.
func FuzzSplit(f *testing.F) {
	f.Add("A few words. And a few more, which are too many for one piece.", 6)
	f.Add("日本語の文章は空白なしで続きます。次の文。", 5)
	f.Add("\xff\xfe a", 4)
	f.Fuzz(func(t *testing.T, text string, limit int) {
		text, limit = strings.ToValidUTF8(text, "?"), 4+abs(limit)%500
		all := ""
		for _, piece := range Split(text, limit) {
			if Tokens(piece) > limit || piece == "" {
				t.Fatalf("%q has %d tokens, limit %d", piece, Tokens(piece), limit)
			}
			all += piece
		}
		if bare := strings.Join(strings.Fields(text), ""); strings.Join(strings.Fields(all), "") != bare {
			t.Fatalf("%q became %q", bare, all)
		}
	})
}

func abs(n int) int { return max(n, -(n + 1)) }

// FuzzClientEvent: no event breaks the reader, and a session that is accepted can be sent and read again.
func FuzzClientEvent(f *testing.F) {
	for _, s := range []string{
		`{"type":"session.start","session":{"model":"gpt-live-1","audio":{"format":{"type":"audio/pcm","rate":16000},"output":{"voice":{"id":"x"}}},"input":[{"role":"user","content":[{"type":"input_text","text":"a"}]}]}}`,
		`{"type":"session.update","session":{"delegation":{"type":"client"},"triggers":[]}}`, `{"type":"session.input_audio.append","audio":"AAAA"}`,
		`{"type":"session.thinking.append","content":"x","delegation_id":null}`, `{"type":null}`, `[]`, "\xff",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, frame []byte) {
		e, bad := ParseClientEvent(frame)
		if bad != nil || e.Type != Start {
			return
		}
		s, bad := ParseStart(e.Session)
		if bad != nil {
			return
		}
		raw, err := json.Marshal(s)
		if err != nil {
			t.Fatalf("%s gives a session that cannot be sent: %v", frame, err)
		}
		if _, bad := ParseStart(raw); bad != nil && !strings.Contains(bad.Message, "tokens") {
			t.Errorf("%s is sent as %s, which is refused: %v", frame, raw, bad)
		}
	})
}

// FuzzServerEvent: no frame breaks the reader, and the fast way for audio gives the same as the other.
func FuzzServerEvent(f *testing.F) {
	for _, s := range []string{
		`{"type":"session.output_audio.delta","delta":"AAAA"}`, `{"type":"session.output_audio.delta","delta":"AAAA","start_ms":0,"end_ms":100}`,
		`{"type":"session.closed","reason":"expired","session":{"audio":{"output":{"voice":{"id":"x"}}}},"usage":{"seconds":1.5}}`,
		`{"type":"error","error":{"code":null}}`, `{"type":"future.event","delta":[]}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, frame []byte) {
		e, err := ParseServerEvent(frame)
		if err == nil && e.Type != AudioDelta && e.Sound != nil {
			t.Errorf("%s has sound", frame)
		}
	})
}
