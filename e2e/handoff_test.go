package e2e

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"voicegw/internal/conversation"
	"voicegw/internal/testutil"
	"voicegw/protocol"
	"voicegw/store"
)

// offered is the response of POST /v1/sessions.
type offered struct {
	SessionID      string    `json:"session_id"`
	ConversationID string    `json:"conversation_id"`
	Ticket         string    `json:"ticket"`
	URL            string    `json:"url"`
	ExpiresAt      time.Time `json:"expires_at"`
	Subprotocols   []string  `json:"subprotocols"`
}

// offer creates a voice session like another program's text agent.
func (st *stack) offer(t testing.TB, body string) offered {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, st.url+"/v1/sessions", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Close = true
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+operatorsKey)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var o offered
	if err := json.NewDecoder(resp.Body).Decode(&o); err != nil || resp.StatusCode != http.StatusCreated {
		t.Fatalf("%s, %v", resp.Status, err)
	}
	if !strings.HasPrefix(o.SessionID, "voice-") || o.Ticket == "" || o.URL != "ws"+strings.TrimPrefix(st.url, "http")+"/v1/voice" ||
		len(o.Subprotocols) != 2 || o.Subprotocols[1] != "voicegw.ticket."+o.Ticket || o.ConversationID == "" {
		t.Errorf("offered %+v", o)
	}
	return o
}

// dial connects like a page of an origin; the ticket is a subprotocol.
func (st *stack) dial(t testing.TB, ticket, origin string) *client {
	t.Helper()
	opts := protocol.DialOptions{Ticket: ticket}
	if origin != "" {
		opts.Header = http.Header{"Origin": {origin}}
	}
	conn, err := protocol.Dial(context.Background(), st.url+"/v1/voice", opts)
	if err != nil {
		t.Fatal(err)
	}
	c := &client{t: t, conn: conn, in: make(chan happening, 4096)}
	c.done.Go(c.read)
	t.Cleanup(c.close)
	return c
}

func (st *stack) conversation(t testing.TB, id string) (c conversation.Conversation) {
	t.Helper()
	status, text := st.http(t, http.MethodGet, "/v1/conversations/"+id, "")
	if err := json.Unmarshal([]byte(text), &c); err != nil || status != http.StatusOK {
		t.Fatalf("%d %s: %v", status, text, err)
	}
	return c
}

// TestHandoff: a conversation of another program's text agent continues by voice. The first answer is to the pending
// request, without a greeting, and at the end the conversation contains both sides.
func TestHandoff(t *testing.T) {
	t.Parallel()
	for _, provider := range providers {
		t.Run(provider, func(t *testing.T) {
			t.Parallel()
			st := newStack(t, provider, setting{speed: 50, playback: 50, firstAudioMS: 10, tools: newToolbox(t)})
			o := st.offer(t, `{"user":"ada","pending_request":"When is the robotics lab open?","conversation_id":"c-7",
				"messages":[{"role":"user","content":"goodbye is what I say last"},{"role":"assistant","content":"Noted."}]}`)
			c := st.connect(t)
			// The client's own values do not count.
			c.say(&protocol.Start{Ticket: o.Ticket, InputRate: 16000, OutputRate: 24000, ConversationID: "c-8", PendingRequest: "something else",
				Agent: "default", Client: &protocol.ClientInfo{ID: "eve"}})
			if m := waitFor[*protocol.SessionStarted](c); m.SessionID != o.SessionID {
				t.Errorf("the session is %s, was offered as %s", m.SessionID, o.SessionID)
			}
			if m := waitFor[*protocol.Transcript](c); m.Role != "user" || m.Text != "When is the robotics lab open?" || m.Turn != 1 {
				t.Errorf("the first transcript is %+v", m)
			}
			if ran := c.heard([]string{"kb_search"}, []string{"I found one record"}); len(ran) != 1 {
				t.Errorf("the tools %v ran", ran)
			}
			all := waitFor[*protocol.AudioEnd](c)
			st.listed(t, o)
			c.say(&protocol.Playback{ItemID: all.ItemID, PlayedMS: all.AudioMS, Done: true})
			waitFor[*protocol.TurnEnded](c)
			c.say(&protocol.End{})
			ended := waitFor[*protocol.SessionEnded](c)
			if h := ended.Handback; h == nil || h.ConversationID != "c-7" || !strings.Contains(h.Summary, "I found one record") || !strings.Contains(h.Summary, "kb_search") {
				t.Errorf("handback: %+v", h)
			}
			talk := st.conversation(t, "c-7")
			checkHandedBack(t, talk, o.SessionID)
			for _, h := range c.seen {
				if m, ok := h.msg.(*protocol.Transcript); ok && strings.Contains(m.Text, "The conversation so far") {
					t.Errorf("the client got a text for the model only: %q", m.Text)
				}
			}
			if strings.Contains(st.log.String(), o.Ticket) {
				t.Error("the ticket is in the log")
			}
		})
	}
}

// listed checks an operator's view of a running session.
func (st *stack) listed(t testing.TB, o offered) {
	t.Helper()
	var one string
	testutil.WaitUntil(t, "the list has the session alone, with the full usage of its answer", func() bool {
		status, text := st.http(t, http.MethodGet, "/v1/sessions", "")
		if status != http.StatusOK {
			t.Fatalf("%d %s", status, text)
		}
		_, one = st.http(t, http.MethodGet, "/v1/sessions/"+o.SessionID, "")
		return strings.Contains(text, one)
	})
	for _, want := range []string{o.SessionID, `"user":"ada"`, `"conversation_id":"c-7"`, `"turn":1`, `"phase":"active"`} {
		if !strings.Contains(one, want) {
			t.Errorf("%s is not in %s", want, one)
		}
	}
}

func checkHandedBack(t testing.TB, talk conversation.Conversation, session string) {
	t.Helper()
	var lines []string
	for i, e := range talk.Entries {
		line := string(e.Side) + " " + string(e.Role) + " " + e.Text
		for _, call := range e.Calls {
			line += " [" + call.Tool + "]"
			if !call.OK {
				line += " failed"
			}
		}
		lines = append(lines, line)
		if e.Side == conversation.SideVoice && e.SessionID != session || e.Turn == 0 || i > 0 && e.At.Before(talk.Entries[i-1].At) {
			t.Errorf("the entry %+v", e)
		}
	}
	if len(lines) != 4 || lines[0] != "text user goodbye is what I say last" || lines[1] != "text assistant Noted." ||
		lines[2] != "voice user When is the robotics lab open?" || !strings.HasPrefix(lines[3], "voice assistant I found one record") ||
		!strings.HasSuffix(lines[3], " [kb_search]") || talk.User != "ada" || talk.Turns != 2 {
		t.Errorf("%s, %d turns:\n%s", talk.User, talk.Turns, strings.Join(lines, "\n"))
	}
}

// TestTicketRefused: each ticket opens one session, before it expires and only from its origin; no message or log
// contains its secret.
func TestTicketRefused(t *testing.T) {
	t.Parallel()
	box := newToolboxOn(t, store.Options{Memory: true})
	st := newStack(t, "openai", setting{speed: 50, firstAudioMS: 10, tools: box})
	here := st.url
	used := st.offer(t, `{"user":"ada","origin":"`+here+`"}`)
	another := st.offer(t, `{"user":"bob"}`)
	blocked := st.offer(t, `{"user":"cid"}`)
	if err := box.store.Blocks.Block(t.Context(), "cid", time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	refused := func(st *stack, what, inList, inStart, origin string, code websocket.StatusCode, word string) {
		t.Helper()
		c := st.dial(t, inList, origin)
		c.say(&protocol.Start{Ticket: inStart, InputRate: 16000, OutputRate: 24000})
		got, errs := c.ended()
		if got != code || len(errs) != 1 || errs[0].Code != word || errs[0].Message == "" {
			t.Errorf("%s: closed with %d, %+v", what, got, errs)
		}
		for _, e := range errs {
			for _, secret := range []string{used.Ticket, another.Ticket, blocked.Ticket} {
				if strings.Contains(e.Message+e.Ref, secret) {
					t.Errorf("%s: the message contains the ticket: %s", what, e.Message)
				}
			}
		}
	}
	refused(st, "no page", used.Ticket, "", "", 4501, "ticket_origin")
	refused(st, "two that differ", used.Ticket, another.Ticket, here, 4501, "ticket_wrong")
	refused(st, "a guess", "", "guess", here, 4501, "ticket_wrong")
	refused(st, "somebody who is shut out", "", blocked.Ticket, "", 4503, "blocked")

	c := st.dial(t, used.Ticket, here)
	c.say(&protocol.Start{Ticket: used.Ticket, InputRate: 16000, OutputRate: 24000}) // the same in both places
	if m := waitFor[*protocol.SessionStarted](c); m.SessionID != used.SessionID {
		t.Errorf("the session is %s", m.SessionID)
	}
	refused(st, "used", used.Ticket, "", here, 4502, "ticket_used")
	hasty := newStack(t, "openai", setting{tools: newToolboxOn(t, store.Options{Memory: true, TicketLife: 50 * time.Millisecond})})
	expired := hasty.offer(t, `{"user":"bob"}`)
	<-time.After(time.Until(expired.ExpiresAt))
	refused(hasty, "late", expired.Ticket, "", "", 4502, "ticket_expired")
	if log := st.log.String() + hasty.log.String(); strings.Contains(log, expired.Ticket) || strings.Contains(log, used.Ticket) || strings.Contains(log, another.Ticket) || strings.Contains(log, blocked.Ticket) {
		t.Error("a ticket is in the log")
	}
}

// TestConversationWithoutATicket: on this machine a client may continue its own conversation but not another user's. If
// the user hangs up, the heard part of an answer is stored as interrupted.
func TestConversationWithoutATicket(t *testing.T) {
	t.Parallel()
	st := newStack(t, "openai", setting{speed: 50, playback: 50, firstAudioMS: 10, tools: newToolbox(t)})
	enter := func(user string) *client {
		c := st.connect(t)
		c.say(&protocol.Start{InputRate: 16000, OutputRate: 24000, ConversationID: "mine", Client: &protocol.ClientInfo{ID: user}})
		return c
	}
	c := enter("ada")
	waitFor[*protocol.SessionStarted](c)
	c.say(&protocol.InputText{Text: "Tell me a long story"})
	item := waitFor[*protocol.AudioStart](c).ItemID
	waitFor[*protocol.AudioEnd](c)
	c.say(&protocol.Playback{ItemID: item, PlayedMS: 2000})
	c.say(&protocol.Ping{T: 1})
	waitFor[*protocol.Pong](c) // the report has arrived
	c.say(&protocol.End{})
	if h := waitFor[*protocol.SessionEnded](c).Handback; h == nil || h.ConversationID != "mine" || !strings.Contains(h.Summary, "what was heard") {
		t.Errorf("handback: %+v", h)
	}
	talk := st.conversation(t, "mine")
	if len(talk.Entries) != 2 {
		t.Fatalf("%+v", talk.Entries)
	}
	if e := talk.Entries[1]; !e.Interrupted || len(e.Text) > 60 || !strings.HasPrefix(e.Text, "Once there was") || strings.HasSuffix(e.Text, " ") {
		t.Errorf("two seconds of it were heard: %+v", e)
	}

	stranger := enter("eve")
	if code, errs := stranger.ended(); code != 4505 || len(errs) != 1 || errs[0].Code != "unknown_conversation" {
		t.Errorf("another user was closed with %d, %v", code, errs)
	}
	again := enter("ada")
	waitFor[*protocol.SessionStarted](again)
	if m := waitFor[*protocol.TurnStarted](again); m.Turn != 1 {
		t.Errorf("the model speaks first in turn %d", m.Turn)
	}
	if status, _ := st.http(t, http.MethodGet, "/v1/conversations/nobodys", ""); status != http.StatusNotFound {
		t.Errorf("an unknown conversation: %d", status)
	}
}
