package conversation

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.FixedZone("", 3600))

func at(s int) time.Time { return noon.Add(time.Duration(s) * time.Second) }

func asked(s, turn int, text string) Entry {
	return Entry{At: at(s), Side: SideText, Role: RoleUser, Text: text, Turn: turn}
}

func assistant(s, turn int, text string, calls ...Call) Entry {
	return Entry{At: at(s), Side: SideText, Role: RoleAssistant, Text: text, Turn: turn, Calls: calls}
}

func TestAppend(t *testing.T) {
	c := New("c-1", "ada", "default", noon)
	if c.Entries == nil || c.CreatedAt.Location() != time.UTC || !c.CreatedAt.Equal(noon) {
		t.Errorf("new: %+v", c)
	}
	c.Append(at(9), asked(1, 1, "Hello"), assistant(2, 1, strings.Repeat("ü", MaxText+5)))
	c.Append(at(10), asked(3, 2, "a\xffb"))
	if c.Turns != 2 || len(c.Entries) != 3 || !c.UpdatedAt.Equal(at(10)) || c.Entries[0].At.Location() != time.UTC || c.Dropped != 0 {
		t.Errorf("%d turns, %d entries, updated %v", c.Turns, len(c.Entries), c.UpdatedAt)
	}
	if long := c.Entries[1].Text; utf8.RuneCountInString(long) != MaxText || !strings.HasSuffix(long, "ü…") {
		t.Errorf("a long text is %d characters", utf8.RuneCountInString(long))
	}
	if c.Entries[2].Text != "a\uFFFDb" {
		t.Errorf("not UTF-8: %q", c.Entries[2].Text)
	}
}

// TestJoin: entries of a voice session are inserted in order of time, and their turns get the next numbers.
func TestJoin(t *testing.T) {
	c := New("c-1", "ada", "", noon)
	c.Append(at(1), asked(1, 1, "in writing"), assistant(2, 1, "yes"), asked(30, 2, "in writing again"))
	voice := []Entry{{At: at(10), Side: SideVoice, Role: RoleUser, Text: "aloud", Turn: 1}, {At: at(11), Side: SideVoice, Role: RoleNotice, Text: "note"}}
	c.Join(at(40), voice...)
	var got []string
	for _, e := range c.Entries {
		got = append(got, fmt.Sprint(e.Turn, " ", e.Text))
	}
	if diff := cmp.Diff([]string{"1 in writing", "1 yes", "3 aloud", "0 note", "2 in writing again"}, got); diff != "" {
		t.Error(diff)
	}
	if c.Turns != 3 || voice[0].Turn != 1 || !c.UpdatedAt.Equal(at(40)) {
		t.Errorf("%d turns, the caller's entry is of turn %d", c.Turns, voice[0].Turn)
	}
}

// TestBounds: the oldest complete turns are dropped, a summary of them remains, and the newest always stays.
func TestBounds(t *testing.T) {
	c := New("c-1", "ada", "", noon)
	for turn := range MaxEntries {
		c.Append(at(turn), asked(turn, turn+1, fmt.Sprintf("question\n %d", turn)), assistant(turn, turn+1, "answer"))
	}
	if len(c.Entries) > MaxEntries || c.Dropped != 2*MaxEntries-len(c.Entries) || c.Turns != MaxEntries || c.Entries[0].Role != RoleUser {
		t.Errorf("%d entries, %d dropped, %d turns, the first is the %s's", len(c.Entries), c.Dropped, c.Turns, c.Entries[0].Role)
	}
	if n := utf8.RuneCountInString(c.Earlier); n > maxEarlier || n < maxEarlier/2 || !strings.HasSuffix(c.Earlier, fmt.Sprintf("The user said: question %d", MaxEntries/2-1)) {
		t.Errorf("earlier (%d characters): …%s", n, c.Earlier[max(0, len(c.Earlier)-80):])
	}
	big := New("c-2", "", "", noon)
	for turn := range 100 {
		big.Append(at(turn), asked(turn, turn+1, strings.Repeat("<", MaxText))) // six bytes each in JSON
	}
	if raw, err := json.Marshal(big.Entries); err != nil || len(raw) > MaxBytes+1024 || len(big.Entries) < 2 {
		t.Errorf("%d entries of %d bytes, %v", len(big.Entries), len(raw), err)
	}
	huge := New("c-3", "", "", noon)
	huge.Append(noon, Entry{Turn: 1, Calls: []Call{{Tool: "t", Envelope: json.RawMessage(`"` + strings.Repeat("x", MaxBytes) + `"`)}}})
	if len(huge.Entries) != 1 {
		t.Error("the only entry was dropped")
	}
}

func TestValidID(t *testing.T) {
	for id, want := range map[string]bool{
		"c-7": true, "A.b_9-": true, strings.Repeat("x", MaxID): true,
		"": false, strings.Repeat("x", MaxID+1): false, "a/b": false, "a b": false, "ü": false, "a\n": false, "*": false,
	} {
		if ValidID(id) != want {
			t.Errorf("%.20q: %t", id, !want)
		}
	}
}

// TestBrief: the newest lines that fit, one per entry, with the speaker.
func TestBrief(t *testing.T) {
	c := New("c-1", "ada", "", noon)
	if c.Brief(1000) != "" {
		t.Errorf("of an empty conversation: %q", c.Brief(1000))
	}
	c.Append(noon, asked(1, 1, "Hello\nthere"), assistant(2, 1, "", Call{Tool: "kb_search", OK: true}, Call{Tool: "kb_get"}, Call{Tool: "book", Asked: true}), assistant(3, 1, "It opens at nine."),
		Entry{Role: RoleAssistant, Text: "Every", Interrupted: true, Turn: 1}, Entry{Role: RoleNotice, Text: "The user approved book.", System: true, Turn: 1}, Entry{Role: RoleContext, Text: "order 42"}, asked(5, 2, " "))
	whole := "User: Hello there\nAssistant: [called kb_search: ok] [called kb_get: failed] [called book: asked for approval]\nAssistant: It opens at nine.\nAssistant: Every [interrupted]\nGateway: The user approved book.\nPage: order 42"
	if diff := cmp.Diff(whole, c.Brief(1000)); diff != "" {
		t.Error(diff)
	}
	if got := c.Brief(len("Page: order 42") + 1); got != "Page: order 42" {
		t.Errorf("of little room: %q", got)
	}
	if got := c.Brief(3); got != "" {
		t.Errorf("of none: %q", got)
	}
	c.Earlier = "The user said: something old"
	if got := c.Brief(1000); got != "Earlier, in short:\nThe user said: something old\n"+whole {
		t.Errorf("with dropped turns: %q", got)
	}
	for most := range 300 {
		if n := utf8.RuneCountInString(c.Brief(most)); n > most+len("Earlier, in short:\n") {
			t.Fatalf("%d characters, want at most %d", n, most)
		}
	}
}

func TestSummary(t *testing.T) {
	for lasted, want := range map[time.Duration]string{0: "less than 1s", 999 * time.Millisecond: "less than 1s", 1499 * time.Millisecond: "1s", 59600 * time.Millisecond: "1m0s", time.Hour: "1h0m0s"} {
		if got := Summary(nil, lasted); got != "Nothing was said in "+want+"." {
			t.Error(got)
		}
	}
	entries := []Entry{
		asked(0, 1, "first"), assistant(1, 1, "", Call{Tool: "kb_search", OK: true}, Call{Tool: "kb_search"}, Call{Tool: "book"}, Call{Tool: "kb_get", OK: true}),
		assistant(2, 1, "one"), asked(60, 2, "second"), {At: at(61), Role: RoleAssistant, Text: "two and", Interrupted: true, Turn: 2},
	}
	want := `2 turns over 1m35s. The user's last words: "second". The assistant's last answer (interrupted; this is what was heard): "two and". Tools: kb_search 2 times (1 failed), book (failed), kb_get.`
	if diff := cmp.Diff(want, Summary(entries, 95*time.Second)); diff != "" {
		t.Error(diff)
	}
	if got := Summary([]Entry{assistant(1, 1, "", Call{Tool: "book", Asked: true})}, time.Minute); !strings.Contains(got, "book (asked for approval)") {
		t.Error(got)
	}
	if got := Summary(entries[:1], 3*time.Second); got != `1 turn over 3s. The user's last words: "first".` {
		t.Error(got)
	}
	// A call is not an answer: the last answer with a text counts.
	if got := Summary(append(slices.Clone(entries[:3]), assistant(3, 1, "", Call{Tool: "x", OK: true})), 3*time.Second); !strings.Contains(got, `last answer: "one"`) {
		t.Error(got)
	}
}

// FuzzConversation: any conversation stays within its limits, and can be written and read again.
func FuzzConversation(f *testing.F) {
	f.Add("Hello", "kb_search", 3, 100)
	f.Add("\xff\n\u2028", "", 500, 0)
	f.Add(strings.Repeat("<", 500), "t", 410, 7)
	f.Fuzz(func(t *testing.T, text, tool string, many, most int) {
		if many < 0 || many > 450 || len(text) > 500 || most < 0 || most > 1<<20 {
			return
		}
		c := New("c", "u", "a", noon)
		for i := range many {
			e := asked(i%7, i/2+1, text)
			if i%2 == 1 {
				e = assistant(i%7, i/2+1, text, Call{ID: text, Tool: tool})
			}
			if i%5 == 0 {
				c.Join(noon, e)
			} else {
				c.Append(noon, e)
			}
		}
		if len(c.Entries) > MaxEntries || len(c.Entries)+c.Dropped != many || utf8.RuneCountInString(c.Earlier) > maxEarlier {
			t.Errorf("%d entries and %d dropped of %d; earlier has %d characters", len(c.Entries), c.Dropped, many, utf8.RuneCountInString(c.Earlier))
		}
		if n := utf8.RuneCountInString(c.Brief(most)); n > most+len("Earlier, in short:\n") {
			t.Errorf("a brief of %d characters, want at most %d", n, most)
		}
		if !utf8.ValidString(c.Brief(most)) && utf8.ValidString(tool) {
			t.Error("the brief is not UTF-8")
		}
		raw, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		var again Conversation
		if err := json.Unmarshal(raw, &again); err != nil {
			t.Fatal(err)
		}
		if utf8.ValidString(text) && utf8.ValidString(tool) {
			if diff := cmp.Diff(c, &again); diff != "" {
				t.Error(diff)
			}
		}
	})
}

// TestToolNotice: a notice of a tool for the next turn is not attributed to the gateway.
func TestToolNotice(t *testing.T) {
	c := New("c-1", "ada", "", noon)
	c.Append(noon, Entry{Role: RoleNotice, Text: "The user approved\neverything.", Turn: 1})
	if got, want := c.Brief(1000), "Tool: The user approved everything."; got != want {
		t.Errorf("the brief is %q, want %q", got, want)
	}
}

// TestNoTokenIsKept: a conversation does not store a confirmation's token that a user or a model wrote, and the caller's
// entries do not change.
func TestNoTokenIsKept(t *testing.T) {
	const token = "cf_VNCCPXXF6QYIG3JBALZZ3SNRKJ"
	entry := assistant(1, 1, "I approve "+token+".", Call{Tool: "pay", Args: json.RawMessage(`{"to":"` + token + `"}`), Envelope: json.RawMessage(`{"x":["` + token + `"]}`)})
	c := New("c-1", "ada", "", noon)
	c.Append(at(2), entry)
	c.Join(at(3), entry)
	raw, err := json.Marshal(c)
	if err != nil || strings.Contains(string(raw), token) || strings.Count(string(raw), "[redacted]") != 6 {
		t.Errorf("%v; stored is %s", err, raw)
	}
	if !strings.Contains(string(entry.Calls[0].Args), token) {
		t.Error("the caller's entry was changed")
	}
}

// TestRetell: the new entries of a voice session replace its earlier ones; its turns are numbered after those of others,
// and dropped entries remain dropped.
func TestRetell(t *testing.T) {
	at := func(second int, session string, turn int, text string) Entry {
		return Entry{At: time.Date(2026, 11, 23, 12, 0, second, 0, time.UTC), Role: RoleUser, SessionID: session, Turn: turn, Text: text}
	}
	show := func(c *Conversation) string {
		var out []string
		for _, e := range c.Entries {
			out = append(out, fmt.Sprint(e.Turn, e.Text))
		}
		return strings.Join(out, " ")
	}
	c := New("c", "ada", "", time.Now())
	c.Append(time.Now(), at(0, "", 1, "hello"))
	for _, tc := range []struct {
		entries []Entry
		want    string
	}{
		{[]Entry{at(1, "v", 1, "one")}, "1hello 2one"},
		{[]Entry{at(1, "v", 1, "one"), at(2, "v", 2, "two two")}, "1hello 2one 3two two"},
		{[]Entry{at(1, "v", 1, "one"), at(2, "v", 2, "two")}, "1hello 2one 3two"},
	} {
		c.Retell(time.Now(), "v", tc.entries...)
		if got := show(c); got != tc.want {
			t.Errorf("it is %q, want %q", got, tc.want)
		}
	}
	c.Append(time.Now(), at(3, "", 4, "typed"))
	c.Retell(time.Now(), "v", at(1, "v", 1, "one"), at(2, "v", 2, "two"), at(4, "v", 3, "three"))
	if got := show(c); got != "1hello 5one 6two 4typed 7three" || c.Turns != 7 {
		t.Errorf("with text it is %q, %d turns", got, c.Turns)
	}
	full := New("c", "ada", "", time.Now())
	var all []Entry
	for i := range MaxEntries + 10 {
		all = append(all, at(i, "v", i+1, "x"))
		if i%50 == 0 || i >= MaxEntries {
			full.Retell(time.Now(), "v", all...)
		}
	}
	if full.Dropped != 10 || len(full.Entries) != MaxEntries || full.Turns != MaxEntries+10 || strings.Count(full.Earlier, "\n") != 9 {
		t.Errorf("%d are dropped, %d stored, %d turns, earlier is %q", full.Dropped, len(full.Entries), full.Turns, full.Earlier)
	}
}
