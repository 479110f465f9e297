package talk

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"voicegw/protocol"
)

func conversation() []Event {
	said := func(at int64, id, role, text string, final bool) Event {
		return Event{AtMS: at, Event: "transcript", Turn: 1, Message: &protocol.Transcript{ID: id, Role: role, Text: text, Final: final}}
	}
	return []Event{
		{AtMS: 20, Event: "session.started", Message: &protocol.SessionStarted{SessionID: "s-1", Provider: "gemini", Model: "m"}},
		{AtMS: 400, Event: EventSpeaking, Turn: 1, Text: "q.wav"},
		{AtMS: 1500, Event: EventSpoken, Turn: 1},
		said(1600, "u", "user", "What is", false),
		said(1700, "u", "user", "What is this?", true),
		said(1800, "a", "assistant", "This", false),
		said(1900, "a", "assistant", "This is \x1b[31man answer", false),
		{AtMS: 2000, Event: "audio.flush", Turn: 1, Message: &protocol.AudioFlush{ItemID: "i", Reason: "interrupted"}},
		{AtMS: 2100, Event: "error", Message: &protocol.Error{Code: "limit", Message: "Too much."}},
	}
}

// printed returns the text of a conversation off a terminal.
func printed(t *testing.T, events []Event, r Report) string {
	t.Helper()
	var out bytes.Buffer
	p := NewDisplay(&out, false)
	for _, e := range events {
		p.Event(e)
	}
	if err := p.report(r, nil); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestDisplayOffATerminal(t *testing.T) {
	want := strings.Join([]string{
		"   0.0 s  session    gemini, model m, s-1",
		"   0.4 s  turn 1     speaking q.wav",
		"   1.7 s  user       What is this?",
		"   2.0 s  flush      interrupted",
		"   2.1 s  error      Too much. (limit)",
		"   2.1 s  assistant  This is  [31man answer …",
		"",
	}, "\n")
	if diff := cmp.Diff(want, printed(t, conversation(), Report{})); diff != "" {
		t.Error(diff)
	}
}

func TestDisplayRedrawsOnATerminal(t *testing.T) {
	var out bytes.Buffer
	p := &Display{w: &out, terminal: true, width: 36}
	for _, e := range conversation()[3:8] {
		p.Event(e)
	}
	got := out.String()
	const redraw = "\r\x1b[K"
	want := redraw + "   1.6 s  user       What is" +
		redraw + "   1.7 s  user       What is this?\n" +
		redraw + "   1.8 s  assistant  This" +
		redraw + "   1.9 s  assistant  …[31man answer" +
		redraw + "   2.0 s  flush      interrupted\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestTable(t *testing.T) {
	n := func(ms int64) *int64 { return &ms }
	got := Table(Report{Turns: []TurnReport{
		{
			Name: "a/very/long/path/to/a/question.wav", Answered: true, FirstAudioMS: n(720), AnswerMS: 8000, HeardMS: 1620,
			Interruption: &Interruption{FlushMS: n(40), LastAudioMS: 20}, Usage: protocol.Usage{InputTokens: 10, OutputTokens: 200},
		},
		{Typed: true},
		{Interruption: &Interruption{}},
	}})
	want := strings.Join([]string{
		"turn  said                      answered  first audio  answer  heard  stopped after  tokens in/out",
		"1     …/path/to/a/question.wav  yes       720 ms       8.0 s   1.6 s  40 ms          10/200",
		"2     (text)                    no        -            0.0 s   0.0 s  -              0/0",
		"3     (audio)                   no        -            0.0 s   0.0 s  no flush       0/0",
		"",
	}, "\n")
	if diff := cmp.Diff(strings.Fields(want), strings.Fields(got)); diff != "" {
		t.Errorf("%s\n%s", diff, got)
	}
}

func TestJSONLines(t *testing.T) {
	var out bytes.Buffer
	d := NewDisplay(&out, true)
	for _, e := range conversation() {
		d.Event(e)
	}
	no := errors.New("no")
	if err := d.report(Report{SessionID: "s-1", Turns: []TurnReport{{Answered: true}}}, no); !errors.Is(err, no) || err.Error() != "no" {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != len(conversation())+1 {
		t.Fatalf("%d lines", len(lines))
	}
	for _, line := range lines {
		if !json.Valid([]byte(line)) {
			t.Errorf("not JSON: %s", line)
		}
	}
	var last struct {
		Event, Error string
		SessionID    string `json:"session_id"`
		Turns        []TurnReport
	}
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil {
		t.Fatal(err)
	}
	if last.Event != EventReport || last.Error != "no" || last.SessionID != "s-1" || len(last.Turns) != 1 {
		t.Errorf("last line: %s", lines[len(lines)-1])
	}
	if !strings.Contains(lines[4], `"message":{`) || !strings.Contains(lines[4], `"text":"What is this?"`) {
		t.Errorf("a transcript's line: %s", lines[4])
	}
}
