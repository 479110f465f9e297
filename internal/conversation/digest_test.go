package conversation

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestDigest: the summary for a list, of text and voice, with the most frequent calls first.
func TestDigest(t *testing.T) {
	c := New("c-1", "ada", "default", noon)
	if diff := cmp.Diff(Digest{ID: "c-1", User: "ada", Agent: "default", CreatedAt: noon.UTC(), UpdatedAt: noon.UTC()}, c.Digest()); diff != "" {
		t.Error("empty:", diff)
	}
	c.Append(at(1), Entry{At: at(0), Side: SideVoice, Role: RoleNotice, Text: "approved", System: true})
	c.Append(at(1), Entry{At: at(0), Side: SideVoice, Role: RoleContext, Text: "order 42"})
	if got := c.Digest(); got.Title != "" || got.Modes != nil {
		t.Errorf("a notice, or a page's context, counts as speech: %+v", got)
	}
	paid := asked(2, 1, "  When does\nthe lab open? "+strings.Repeat("x", 200))
	paid.Spent = Spent{CostUSDMicros: 1200, Unpriced: 1}
	c.Append(at(9), paid,
		Entry{At: at(3), Side: SideVoice, Role: RoleAssistant, Text: "At nine.", Turn: 1, Spent: Spent{CostUSDMicros: 300},
			Calls: []Call{{Tool: "kb_get"}, {Tool: "kb_search"}, {Tool: "kb_search"}, {Tool: "add"}}})
	want := Digest{
		ID: "c-1", User: "ada", Agent: "default", Title: "When does the lab open? " + strings.Repeat("x", MaxTitle-25) + "…", Turns: 1,
		Modes: []Side{SideText, SideVoice}, Calls: 4, Tools: []ToolCalls{{"kb_search", 2}, {"add", 1}, {"kb_get", 1}},
		Spent: Spent{CostUSDMicros: 1500, Unpriced: 1}, CreatedAt: noon.UTC(), UpdatedAt: at(9).UTC(),
	}
	if diff := cmp.Diff(want, c.Digest()); diff != "" {
		t.Error(diff)
	}
}

// TestDigestOfRemovedEntries: removed entries are counted, once, and a digest and its stored data are limited.
func TestDigestOfRemovedEntries(t *testing.T) {
	c := New("c-1", "", "", noon)
	const turns = 3 * MaxEntries
	var all []Entry
	for i := range turns {
		e := asked(i, i+1, fmt.Sprint("question ", i))
		e.Side, e.CostUSDMicros, e.SessionID = SideVoice, 10, "voice-1"
		e.Calls = []Call{{Tool: fmt.Sprint("tool", i%(2*maxPastTools))}}
		if all = append(all, e); len(all) == MaxEntries {
			c.Append(at(i), all...)
			all = nil
		}
	}
	c.Retell(at(turns), "voice-1", slices.Clone(c.Entries)...)
	got := c.Digest()
	if c.Dropped == 0 || got.Title != "question 0" || got.Calls != turns || got.CostUSDMicros != 10*turns || len(got.Modes) != 1 || got.Turns != turns {
		t.Errorf("%d dropped: %+v", c.Dropped, got)
	}
	if len(got.Tools) != MaxDigestTools || len(c.Past.Calls) > maxPastTools {
		t.Errorf("%d tools, %d stored", len(got.Tools), len(c.Past.Calls))
	}
	before, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	got.Tools[0].Calls = -1
	if again := c.Digest(); again.Tools[0].Calls == -1 {
		t.Error("a digest shares its tools")
	}
	if after, _ := json.Marshal(c); string(after) != string(before) {
		t.Error("a digest changes the conversation")
	}
}
