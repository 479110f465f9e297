package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"voicegw/internal/conversation"
	"voicegw/internal/user"
	"voicegw/session/handoff"
	"voicegw/store"
)

// Conversations returns one page with all conversations, and records the query.
func (d *desk) Conversations(_ context.Context, q store.Query) (store.Page, error) {
	d.listed = append(d.listed, q)
	page := store.Page{Next: "2f", Incomplete: q.After != ""}
	for _, c := range d.talks {
		if q.User == "" || c.User == q.User {
			page.Lines = append(page.Lines, c.Digest())
		}
	}
	return page, d.err
}

// TestConversationsAreListed: the list is as documented and limited, and an invalid query gets an error.
func TestConversationsAreListed(t *testing.T) {
	at := time.Date(2026, 11, 20, 10, 0, 0, 123456789, time.UTC)
	c := conversation.New("c-7", "ada", "default", at)
	c.Append(at, conversation.Entry{At: at, Side: conversation.SideVoice, Role: conversation.RoleUser, Text: "When does it open?", Turn: 1,
		Spent: conversation.Spent{CostUSDMicros: 1250}, Calls: []conversation.Call{{ID: "call_1", Tool: "kb_search", OK: true}}})
	d := &desk{talks: map[string]*conversation.Conversation{"c-7": c}}
	s := deskServer(t, d, nil)
	want := `{"conversations":[{"id":"c-7","user":"ada","agent":"default","title":"When does it open?","turns":1,"modes":["voice"],"calls":1,"tools":[{"tool":"kb_search","calls":1}],"cost_usd_micros":1250,"created_at":"2026-11-20T10:00:00.123Z","updated_at":"2026-11-20T10:00:00.123Z"}],"next":"2f"}`
	if w := operate(s, "GET", "/v1/conversations", "", nil); w.Code != 200 || strings.TrimSpace(w.Body.String()) != want {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := operate(s, "GET", "/v1/conversations?user=eve&after=2f&limit=200", "", nil); w.Code != 200 || strings.TrimSpace(w.Body.String()) != `{"conversations":[],"incomplete":true,"next":"2f"}` {
		t.Errorf("another user's: %d %s", w.Code, w.Body)
	}
	if diff := cmp.Diff([]store.Query{{Most: pageLines}, {User: "eve", After: "2f", Most: 200}}, d.listed); diff != "" {
		t.Error(diff)
	}
	for query, says := range map[string]string{
		"limit=0": "limit", "limit=201": "200", "limit=x": "limit", "usre=ada": "usre", "user=" + strings.Repeat("x", 999): "user",
	} {
		if w := operate(s, "GET", "/v1/conversations?"+query, "", nil); w.Code != 400 || !strings.Contains(w.Body.String(), says) {
			t.Errorf("%s: %d %s", query, w.Code, w.Body)
		}
	}
	for err, want := range map[error]int{store.ErrCursor: 400, store.ErrUnavailable: 503} {
		d.err = err
		if w := operate(s, "GET", "/v1/conversations?after=x", "", nil); w.Code != want {
			t.Errorf("%v: %d %s", err, w.Code, w.Body)
		}
	}
}

// TestConversationAccess: a caller bound to a user sees that user's conversations, whatever it asks for; operators see
// all, and a caller that may not inspect sees none.
func TestConversationAccess(t *testing.T) {
	callers := everyCaller(t)
	at := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	d := &desk{talks: map[string]*conversation.Conversation{"a": conversation.New("a", "ada", "", at), "e": conversation.New("e", "eve", "", at)}}
	s := deskServer(t, d, func(o *Options) { o.Auth = callers.current })
	for name, tc := range map[string]struct {
		secret, query string
		status        int
		sees          int
	}{
		"the operator":              {testKey, "", 200, 2},
		"the operator, of one user": {testKey, "?user=ada", 200, 1},
		"a key that may inspect":    {callers.secrets["key:inspect"], "", 200, 2},
		"ada":                       {tokenFor("ada", "inspect", nil), "", 200, 1},
		"ada, asking for eve's":     {tokenFor("ada", "inspect", nil), "?user=eve", 200, 1},
		"ada, with voice and text":  {tokenFor("ada", "voice chat", nil), "", 403, 0},
		"a user without any":        {tokenFor("bob", "inspect", nil), "", 200, 0},
		"no credentials":            {" ", "", 401, 0},
		"wrong credential":          {"husk", "", 401, 0},
	} {
		w := ask(s, "GET", "/v1/conversations"+tc.query, bearer(tc.secret))
		var list struct{ Conversations []conversationLine }
		if err := json.Unmarshal(w.Body.Bytes(), &list); err != nil || w.Code != tc.status || len(list.Conversations) != tc.sees {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
		for _, line := range list.Conversations {
			if strings.HasPrefix(name, "ada") && line.User != "ada" {
				t.Errorf("%s sees %s", name, w.Body)
			}
		}
	}
}

// TestAListAndItsConversations: each listed conversation is shown or unknown, while others are made and removed, and none
// is listed twice after one moved to the front.
func TestAListAndItsConversations(t *testing.T) {
	kept, err := store.Open(t.Context(), store.Options{Memory: true, ConversationBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer kept.Close()
	office := handoff.New(kept, "default")
	s := deskServer(t, nil, func(o *Options) { o.Voice = office })
	text := strings.Repeat("x ", conversation.MaxText/2)
	write := func(i int) {
		said := make([]conversation.Entry, 6)
		for n := range said {
			said[n] = conversation.Entry{At: time.Now(), Side: conversation.SideText, Role: conversation.RoleUser, Text: text, Turn: n + 1}
		}
		if _, err := office.Invite(t.Context(), handoff.Invitation{User: user.Must("ada"), ConversationID: fmt.Sprint("c-", i), Entries: said}); err != nil {
			t.Error(err)
		}
	}
	writing := make(chan struct{}) // closed after all are written
	go func() {
		defer close(writing)
		for i := range 60 {
			write(i)
		}
	}()
	named := 0
	for over := false; !over; {
		select {
		case <-writing:
			over = true
		default:
		}
		seen := map[string]bool{}
		for after := ""; ; {
			w := operate(s, "GET", "/v1/conversations?limit=2&after="+url.QueryEscape(after), "", nil)
			var page struct {
				Conversations []conversationLine
				Next          string
			}
			if err := json.Unmarshal(w.Body.Bytes(), &page); err != nil || w.Code != 200 {
				t.Fatalf("%d %s", w.Code, w.Body)
			}
			for _, line := range page.Conversations {
				if named++; seen[line.ID] {
					t.Errorf("%s was named twice", line.ID)
				}
				seen[line.ID] = true
				if w := operate(s, "GET", "/v1/conversations/"+line.ID, "", nil); w.Code != 200 && w.Code != 404 {
					t.Errorf("%s: %d %s", line.ID, w.Code, w.Body)
				}
			}
			if after = page.Next; after == "" {
				break
			}
		}
	}
	if named == 0 {
		t.Error("nothing was listed")
	}
}
