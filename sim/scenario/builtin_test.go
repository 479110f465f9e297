package scenario

import (
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestBuiltinToolsAreSpokenInSentences: none, one, many and an error for each of the gateway's own tools, in a plain and
// a wrapped envelope.
func TestBuiltinToolsAreSpokenInSentences(t *testing.T) {
	for _, tt := range []struct{ tool, data, want string }{
		{"kb_search", `{"results":[],"query_time_ms":3}`, "I found no record."},
		{"kb_search", `{"results":[{"title":"Lab","score":1}],"query_time_ms":3}`, "I found one record: Lab."},
		{"kb_search", `{"results":[{"title":"A"},{"title":"B"},{"title":"C"},{"title":"D"},{"title":"E"}]}`, "I found five records: A, B, C and two more."},
		{"kb_get", `{"records":[],"missing":["x"]}`, "There is no such record."},
		{"kb_get", `{"records":[{"title":"Lab","snippet":"It is upstairs."}]}`, "I found one record: Lab. It is upstairs."},
		{"extract_contacts", `{"emails":[],"phones":[],"urls":[],"persons":[]}`, "I found no contacts in it."},
		{"extract_contacts", `{"emails":[{"address":"a@b.de"}],"phones":[],"urls":[],"persons":[{"name":"Ada"},{"name":"Bob"}]}`, "I found two names, Ada and Bob; one e-mail address, a@b.de."},
		{"calendar_get_availability", `{"summary":"Mon: all free.","busy":[],"free":[]}`, "Mon: all free."},
		{"calendar_create_event", `{"created":true,"title":"Tea","words":"Mon 10:00-11:00","invitations":"none"}`, "Tea is in the calendar: Mon 10:00-11:00."},
		{"calendar_create_event", `{"created":false,"title":"Tea","words":"Mon 10:00-11:00"}`, "Tea is in the calendar: Mon 10:00-11:00. It was there already."},
		{"image_draft_prompt", `{"variants":[]}`, "I found no draft."},
		{"image_draft_prompt", `{"variants":[{"prompt":"a cat"}]}`, "I found one draft: a cat."},
		{"image_generate", `{"images":[]}`, "There is no picture."},
		{"image_generate", `{"images":[{"id":"1"},{"id":"2"}]}`, "Here are two pictures."},
		{"agent_list", `{"agents":[],"total":0}`, "I found no agent."},
		{"agent_list", `{"agents":[{"id":"a","name":"Ada"},{"id":"b","name":"Bob"}],"total":2}`, "I found two agents: Ada and Bob."},
		{"agent_get", `{"id":"a","description":"It helps."}`, "The agent is called a. It helps."},
		{"agent_create", `{"id":"a","name":"Ada","created":true}`, "I have made the agent Ada."},
		{"agent_update", `{"id":"a"}`, "I have changed the agent a."},
		{"agent_delete", `{"id":"a","stays":false}`, "The agent a is deleted."},
		{"ignore_user", `{"farewell_message":"Bye.","duration_seconds":60}`, "Bye."},
		{"end_voice_session", `{"farewell_message":"Goodbye!"}`, "Goodbye!"},
		{"start_voice_session", `{"session_id":"x"}`, "You can go on by voice now."},
	} {
		envelope := `{"ok":true,"data":` + tt.data + `,"intents":[],"meta":{"tool":"` + tt.tool + `"}}`
		for _, output := range []string{envelope, `{"output":` + envelope + `}`, `{"result":` + envelope + `}`} {
			if got := speakResult(tt.tool, output); got != tt.want {
				t.Errorf("%s with %s is spoken as %q, want %q", tt.tool, output, got, tt.want)
			}
		}
		failed := speakResult(tt.tool, `{"ok":false,"error":{"type":"TRANSIENT","message":"It is away."}}`)
		if failed != "That did not work: It is away." {
			t.Errorf("a failure of %s is spoken as %q", tt.tool, failed)
		}
	}
}

// TestEveryBuiltinToolHasASentence compares the table with the tools.
func TestEveryBuiltinToolHasASentence(t *testing.T) {
	specs, err := filepath.Glob("../../tools/*/schema.json")
	if err != nil || len(specs) == 0 {
		t.Fatalf("no tools: %v", err)
	}
	for _, path := range specs {
		if name := strings.ReplaceAll(filepath.Base(filepath.Dir(path)), "-", "_"); builtin[name] == nil {
			t.Errorf("%s has no sentence in builtin", name)
		}
	}
}

// TestTomorrowOfAVoiceModel: a model without a clock takes the date from its instructions.
func TestTomorrowOfAVoiceModel(t *testing.T) {
	c := tools("calendar_create_event")
	c.Now, c.Instructions = time.Time{}, "Today is Monday, 30 November 2026. The user's time zone is Europe/Berlin (UTC+01:00)."
	want(t, Default().NewDialogue(1).Hear(Heard{Text: "Book a meeting tomorrow at 10"}, c), "heard Book a meeting tomorrow at 10",
		`call calendar_create_event {"end_time":"2026-12-01T11:00:00","start_time":"2026-12-01T10:00:00","title":"meeting"}`)
}

// TestTodayIsTheUsers: dates are in the user's zone from the instructions.
func TestTodayIsTheUsers(t *testing.T) {
	c := Context{Now: time.Date(2026, 1, 2, 15, 0, 0, 0, time.UTC), Instructions: "Today is … The user's time zone is Pacific/Kiritimati (UTC+14:00). Times"}
	there := Default().NewDialogue(1).values(0, c)["today"]
	c.Instructions = ""
	if here := Default().NewDialogue(1).values(0, c)["today"]; here >= there {
		t.Errorf("today is %s in UTC and %s at UTC+14", here, there)
	}
}
