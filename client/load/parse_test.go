package load

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"voicegw/client/voice"
	"voicegw/client/wire"
	"voicegw/internal/strict"
)

var update = flag.Bool("update", false, "rewrite what is expected")

const everything = `
name: everything
provider: openai
agent: default
voice: marin
user: tester-${session}-${call}
push_to_talk: true
pause: 100ms
patience: 10s
begin:
  pending_request: When does the robotics lab open?
  expect: {text: 'opens', within: 3s}
turns:
  - say: {recording: any}
    expect:
      tool: [kb_search, kb_get]
      no_tool: image_generate
      text: 'opening hours'
      no_text: 'sorry'
      said: 'robotics'
      within: 1500ms
  - say: Stop please, I have heard enough.
    interrupt_after: 800ms
    expect: {flush_within: 1s}
  - type: "Book a review for ${session}, pass ${pass}"
    approve: true
    wait_for: {tool: calendar_create_event}
    patience: 30s
    pause: 2s
    expect: {asks: calendar_create_event}
  - wait: 5s
  - type: Tell me a long story
  - stop: true
    interrupt_after: 500ms
    expect: {flush_within: 500ms}
  - type: Fail
    expect: {error: no_answer, no_tool: any}
  - type: Goodbye!
    wait_for: end
`

func TestCompleteScript(t *testing.T) {
	s, err := ParseScript("s.yaml", []byte(everything), wire.Wire{})
	if err != nil {
		t.Fatal(err)
	}
	if s.Name != "everything" || s.Provider != "openai" || s.Agent != "default" || s.Voice != "marin" || !s.PushToTalk || s.NoMicrophone {
		t.Errorf("the top is %+v", s)
	}
	if s.Begin == nil || s.Begin.PendingRequest == "" || s.Begin.Expect.Within != 3*time.Second || s.Begin.Line != 11 {
		t.Errorf("it begins with %+v", s.Begin)
	}
	if len(s.Turns) != 8 {
		t.Fatalf("there are %d turns", len(s.Turns))
	}
	first := s.Turns[0]
	if first.Act != voice.Say || first.Recording != AnyRecording || first.Line != 14 || first.Pause != 100*time.Millisecond ||
		first.Patience != 10*time.Second || first.WaitFor != voice.ForAnswer || first.Approval != voice.ApprovalNobody {
		t.Errorf("the first turn is %+v", first)
	}
	e := first.Expect
	if strings.Join(e.Tools, " ") != "kb_search kb_get" || strings.Join(e.NoTools, " ") != "image_generate" || e.Within != 1500*time.Millisecond ||
		!e.Text.MatchString("The OPENING\nhours are") && !e.Text.MatchString("the Opening hours") || e.NoText == nil || e.Said == nil || e.Count() != 7 || !e.NeedsText() {
		t.Errorf("it expects %+v", e)
	}
	if second := s.Turns[1]; !second.Interrupts || second.InterruptAfter != 800*time.Millisecond || second.Expect.FlushWithin != time.Second || second.Text == "" {
		t.Errorf("the second turn is %+v", second)
	}
	third := s.Turns[2]
	if third.Act != voice.Type || third.Approval != voice.ApprovalYes || third.WaitFor != voice.ForTool || third.Tool != "calendar_create_event" ||
		third.Patience != 30*time.Second || third.Pause != 2*time.Second || third.Expect.Asks[0] != "calendar_create_event" {
		t.Errorf("the third turn is %+v", third)
	}
	if s.Turns[3].Wait != 5*time.Second || s.Turns[5].Act != voice.Stop || s.Turns[6].Expect.Error != "no_answer" || s.Turns[7].WaitFor != voice.ForEnd {
		t.Errorf("the others are %+v", s.Turns[3:])
	}
	if got := (Variables{Session: 3, Call: 2, Pass: 7}).Fill(third.Text); got != "Book a review for 3, pass 7" {
		t.Errorf("filled in: %q", got)
	}
	if got := (Variables{Session: 3, Call: 2}).Fill(s.User); got != "tester-3-2" {
		t.Errorf("the user is %q", got)
	}
}

func TestDefaults(t *testing.T) {
	s, err := ParseScript("s.yaml", []byte("turns: [{type: hello}]"), wire.Wire{})
	if err != nil {
		t.Fatal(err)
	}
	first := s.Turns[0]
	if s.User != DefaultUser || first.Pause != voice.DefaultPause || first.Patience != DefaultPatience || first.WaitFor != voice.ForAnswer || first.Expect.Count() != 0 {
		t.Errorf("%+v %+v", s, first)
	}
}

// TestProblems compares the errors of each invalid script in testdata/problems.
func TestProblems(t *testing.T) {
	files, err := filepath.Glob("testdata/problems/*.txtar")
	if err != nil || len(files) < 5 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			a, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			_, err = ParseScript("script.yaml", a.Files[0].Data, wire.Wire{})
			var all *strict.Error
			if !errors.As(err, &all) {
				t.Fatalf("got %v (%T)", err, err)
			}
			if *update {
				a.Files[1].Data = []byte(err.Error() + "\n")
				if err := os.WriteFile(file, txtar.Format(a), 0o600); err != nil {
					t.Fatal(err)
				}
				return
			}
			if got, want := err.Error(), strings.TrimSpace(string(a.Files[1].Data)); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

func FuzzParseScript(f *testing.F) {
	f.Add([]byte(everything))
	files, err := filepath.Glob("../examples/*.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := ParseScript("f", data, wire.Wire{})
		if err != nil {
			if err.Error() == "" {
				t.Error("an error without a message")
			}
			return
		}
		if len(s.Turns) == 0 {
			t.Error("a script without turns")
		}
		for i, one := range s.Turns {
			if one.Act == "" || one.Line == 0 || one.Patience <= 0 || one.WaitFor == "" || one.Interrupts && i == 0 || one.Act == voice.Say && s.NoMicrophone {
				t.Errorf("turn %d is %+v", i, one)
			}
			if (one.Act == voice.Say) != (one.Text != "" && one.Recording == "" || one.Recording != "") && one.Act != voice.Type {
				t.Errorf("turn %d says %q and %q", i, one.Text, one.Recording)
			}
			Variables{}.Fill(one.Text)
		}
	})
}
