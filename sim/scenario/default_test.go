package scenario

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func tools(names ...string) Context {
	c := Context{Now: time.Date(2026, 11, 20, 23, 0, 0, 0, time.UTC)}
	for _, n := range names {
		c.Tools = append(c.Tools, Tool{Name: n})
	}
	return c
}

// TestDefaultCallsTheToolsOfATextAgent: the text agent's examples in the built-in scenario.
func TestDefaultCallsTheToolsOfATextAgent(t *testing.T) {
	all := tools("kb_search", "start_voice_session", "calendar_get_availability", "calendar_create_event", "image_generate", "extract_contacts")
	for _, c := range []struct{ said, want string }{
		{"Start voice and tell me about the robotics lab", `call start_voice_session {"pending_request":"tell me about the robotics lab"}`},
		{"Please switch to voice.", `call start_voice_session {"pending_request":""}`},
		{"Tell me about the robotics lab.", `call kb_search {"query":"the robotics lab","top_k":3}`},
		{"Who knows about fonts?", `call kb_search {"query":"fonts","top_k":3}`},
		{"Who can help me with a broken loom?", `call kb_search {"query":"a broken loom","top_k":3}`},
		{"Am I free on 2026-12-01?", `call calendar_get_availability {"end_date":"2026-12-01T23:59:59","start_date":"2026-12-01T00:00:00"}`},
		{"Am I free tomorrow?", `call calendar_get_availability {"end_date":"2026-11-21T23:59:59","start_date":"2026-11-21T00:00:00"}`},
		{"When am I busy?", `call calendar_get_availability {"end_date":"2026-11-20T23:59:59","start_date":"2026-11-20T00:00:00"}`},
		{"Book a design review on 2026-12-01 from 10:00 to 11:00 with ada@example.com.",
			`call calendar_create_event {"attendees":["ada@example.com"],"end_time":"2026-12-01T11:00:00","start_time":"2026-12-01T10:00:00","title":"design review"}`},
		{"Schedule lunch tomorrow from 12:00 to 13:00 with bo@example.com",
			`call calendar_create_event {"attendees":["bo@example.com"],"end_time":"2026-11-21T13:00:00","start_time":"2026-11-21T12:00:00","title":"lunch"}`},
		{"Book a meeting tomorrow at 10", `call calendar_create_event {"end_time":"2026-11-21T11:00:00","start_time":"2026-11-21T10:00:00","title":"meeting"}`},
		{"Book a meeting tomorrow", `say When should it be? Say, for example: tomorrow at ten.`},
		{"Draw a lighthouse in the fog", `call image_generate {"prompt":"a lighthouse in the fog"}`},
		{"Create an image of two cats", `call image_generate {"prompt":"two cats"}`},
		{"What is this?\n[image]", `say I see an image. I am a simulator, so that is all I see.`},
		{"Extract the contacts: Ada, ada@example.com", `call extract_contacts {"text":"Extract the contacts: Ada, ada@example.com"}`},
	} {
		t.Run(c.said, func(t *testing.T) {
			want(t, Default().NewDialogue(1).Hear(Heard{Text: c.said}, all), "heard "+c.said, c.want)
		})
	}
}

// realTools are voicegw's tools as a text agent declares them.
func realTools(t *testing.T) Context {
	t.Helper()
	c := Context{Now: time.Date(2026, 11, 20, 23, 0, 0, 0, time.UTC)}
	dirs, err := filepath.Glob("../../tools/*/schema.json")
	if err != nil || len(dirs) < 10 {
		t.Fatalf("%d tools, %v", len(dirs), err)
	}
	for _, name := range dirs {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var spec struct {
			ToolID, Description string
			Parameters          json.RawMessage
		}
		if err := json.Unmarshal(data, &spec); err != nil {
			t.Fatal(err)
		}
		c.Tools = append(c.Tools, Tool{Name: spec.ToolID, Description: spec.Description, Parameters: spec.Parameters})
	}
	return c
}

// TestAQuestionChangesNothing: a question does not create or end anything with made-up arguments.
func TestAQuestionChangesNothing(t *testing.T) {
	c := realTools(t)
	for _, said := range []string{
		"Who knows about fonts?", "Do people here know when the time is right?", "What is the capital of Norway?", "Who invites people?",
		"Does a person approve it first?", "How long is an event?", "Is there a primary calendar?", "What may I know of the calendar?",
		"Why is the sky blue?", "How do I make bread?", "Which events were there before?", "Can you create something?",
	} {
		got := show(Default().NewDialogue(1).Hear(Heard{Text: said}, c))
		if strings.Contains(got, "call calendar_") {
			t.Errorf("%s: %s", said, got)
		}
	}
	said := `Create an event "Lunch" on 2026-12-01 12:00 until 2026-12-01 13:00`
	want(t, Default().NewDialogue(1).Hear(Heard{Text: said}, c),
		"heard "+said, `call calendar_create_event {"end_time":"2026-12-01T13:00:00","start_time":"2026-12-01T12:00:00","title":"Lunch"}`)
}

// TestDefaultTakesAConversationOver: a conversation after a handoff is answered as if its request had just been made.
func TestDefaultTakesAConversationOver(t *testing.T) {
	d := Default().NewDialogue(1)
	text := "[voicegw:br5ln9h4grz7] The user has been in this conversation in writing and goes on by voice now. The conversation so far:\n" +
		"User: Start voice and tell me about the robotics lab\nAssistant: The voice session is ready.\n" +
		"[voicegw:br5ln9h4grz7] That was the conversation so far. Do not greet, and do not ask what it is about. Answer this first:\ntell me about the robotics lab"
	want(t, d.Hear(Heard{Text: text}, tools("kb_search")), "heard "+text, `call kb_search {"query":"the robotics lab","top_k":3}`)
	want(t, d.Results([]Result{{"kb_search", `{"ok":true,"data":{"results":[{"title":"Robotics","snippet":"It is on the second floor."}]}}`}}, tools("kb_search")),
		"say About the robotics lab: I found one record: Robotics. It is on the second floor.")
	want(t, d.Hear(Heard{Text: "What did we talk about?"}, tools("kb_search")), "heard What did we talk about?",
		"say We talked about this. You said: Tell me about the robotics lab. I said: About the robotics lab: I found one record: Robotics. It is on the second floor.")
}

// TestDefaultAsksForConfirmation: the model does not claim actions that it did not carry out.
func TestDefaultAsksForConfirmation(t *testing.T) {
	c := tools("calendar_create_event")
	d := Default().NewDialogue(1)
	d.Hear(Heard{Text: "Book a review on 2026-12-01 from 10:00 to 11:00 with ada@example.com"}, c)
	want(t, d.Results([]Result{{"calendar_create_event", `{"ok":false,"error":{"type":"CONFIRMATION_REQUIRED","message":"ask"}}`}}, c),
		"say I need your approval first. Please press Approve or Decline.")
}

func TestDefaultRefusesSomePrompts(t *testing.T) {
	want(t, Default().NewDialogue(1).Draw("a nude figure"), "heard a nude figure", "say The prompt asks for something that may not be drawn.")
	if got := Default().NewDialogue(1).Draw("a denuded hill"); len(got.Steps) != 0 {
		t.Errorf("%v", got.Steps)
	}
}

const replayed = `
rules:
  - when: {text: first}
    times: 1
    do: [{call: {tool: find, args: {q: x}}}, {then: [{say: "Found ${result}"}]}]
  - when: {text: first}
    do: [{say: [again, "and again", "once more", "and once more"]}]
  - when: {text: 'name is (?P<n>\w+)'}
    do: [{remember: {name: "${n}"}}, {say: noted}]
  - when: {text: who}
    do: [{say: "You are ${name}."}]
  - when: {text: loop}
    do: [{treat_as: "${text} loop"}]
`

// TestReplay: a dialogue with a replayed past continues like the original.
func TestReplay(t *testing.T) {
	c := tools("find")
	s := mustParse(t, replayed)
	lived, told := s.NewDialogue(3), s.NewDialogue(3)
	live := func(text string) Turn { return lived.Hear(Heard{Text: text}, c) }

	want(t, live("first"), "heard first", `call find {"q":"x"}`)
	off := c
	off.ToolsOff = true // as in the request that brings the result
	told.Replay(Heard{Text: "first"}, nil, off, "", []string{"find"})
	result := []Result{{"find", `"a"`}}
	want(t, told.Fork().Results(result, off), "say Found A.")
	want(t, lived.Results(result, c), "say Found A.")

	told.Replay(Heard{}, result, c, "Found A.", nil)
	live("my name is Bo")
	told.Replay(Heard{Text: "my name is Bo"}, nil, c, "noted", nil)
	for _, text := range []string{"who am I", "first", "first", "first"} {
		one := live(text)
		want(t, told.Fork().Hear(Heard{Text: "who am I"}, c), "heard who am I", "say You are Bo.")
		before := show(told.Hear(Heard{Text: text}, c))
		if before != show(one) {
			t.Errorf("%s: %s, live %s", text, before, show(one))
		}
	}
}

// TestReplayOfOtherCalls: calls of other programs do not count as the script's.
func TestReplayOfOtherCalls(t *testing.T) {
	c := tools("find", "other")
	d := mustParse(t, replayed).NewDialogue(3)
	d.Replay(Heard{Text: "first"}, nil, c, "", []string{"other"})
	want(t, d.Results([]Result{{"other", `"a"`}}, c), "say A.")
}

func TestTreatAsEnds(t *testing.T) {
	got := mustParse(t, replayed).NewDialogue(1).Hear(Heard{Text: "loop"}, Context{})
	want(t, got, "heard loop", "say You said: Loop loop loop loop loop loop. I am a simulated model, so that is all I can say about it.")
}

func TestProblemsOfPromptsAndTreatAs(t *testing.T) {
	got := problems(t, `rules:
  - when: {prompt: x, declared: a}
    do: auto
  - when: {prompt: x}
    do: [{say: a}, {call: b}]
  - when: {text: x}
    do: [{say: a}, {treat_as: b}]
  - when: {utterance: 1}
    do: [{treat_as: b}]
  - when: {text: x}
    do: [{call: a}, {then: [{treat_as: b}]}]
  - when: {text: x}
    do: [{call: a}, {refuse: b}]
  - when: {prompt: '(?P<what>x)'}
    do: [{say: "${what} ${text}"}, {wait: 1}, {fault: quota}, {refuse: [a, b]}]
`)
	for _, want := range []string{
		"2: declared has no meaning with prompt", "3: a rule for a prompt can only say", "5: a rule for a prompt can only say",
		"7: treat_as must be the only step", "9: treat_as must be the only step", "11: treat_as must be the only step", "13: refuse comes after call",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("missing: %s", want)
		}
	}
	if n := strings.Count(got, "\n"); n != 7 {
		t.Errorf("%d problems:\n%s", n, got)
	}
}

// TestDefaultTakesASpokenAnswer: a spoken approval works if the gateway offers confirm_action; otherwise the user is
// referred to the buttons.
func TestDefaultTakesASpokenAnswer(t *testing.T) {
	asked := []Result{{"calendar_create_event", `{"error":{"details":{"reference":"cr_7"},"message":"ask","type":"CONFIRMATION_REQUIRED"},"ok":false}`}}
	const book = "Book a review on 2026-12-01 from 10:00 to 11:00"
	for word, approved := range map[string]string{"Yes, please.": "true", "ok": "true", "No!": "false", "Don't": "false"} {
		c := tools("calendar_create_event", "confirm_action")
		d := Default().NewDialogue(1)
		d.Hear(Heard{Text: book}, c)
		want(t, d.Results(asked, c), "say I need your approval first. Please say yes or no, or press Approve or Decline.")
		c.Memory = []Memory{{"result", asked[0].Name + " " + asked[0].Output}}
		want(t, d.Hear(Heard{Text: word}, c), "heard "+word, `call confirm_action {"approved":`+approved+`,"reference":"cr_7"}`)
	}
	c := tools("calendar_create_event")
	d := Default().NewDialogue(1)
	d.Hear(Heard{Text: book}, c)
	d.Results(asked, c)
	want(t, d.Hear(Heard{Text: "Yes"}, c), "heard Yes", "say If I have asked for your approval, please press Approve or Decline.")
}
