package gateway

import (
	"encoding/json"
	"strings"
	"testing"

	"voicegw/internal/conversation"
)

// TestModelStateIsNotShown: no client sees the opaque data that a model added to its text and calls; it remains in the
// conversation.
func TestModelStateIsNotShown(t *testing.T) {
	const secret = `"SIGNATURE"`
	c := &conversation.Conversation{ID: "c", Entries: []conversation.Entry{{
		Text: "Ada.", Extra: json.RawMessage(secret), Calls: []conversation.Call{{Tool: "kb_get", Extra: json.RawMessage(secret)}},
	}}}
	shown, err := json.Marshal(shownConversation(c))
	if err != nil || strings.Contains(string(shown), "SIGNATURE") || !strings.Contains(string(shown), "kb_get") {
		t.Errorf("%v: %s", err, shown)
	}
	if kept, _ := json.Marshal(c); strings.Count(string(kept), "SIGNATURE") != 2 {
		t.Errorf("%s", kept)
	}
}
