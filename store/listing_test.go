package store

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"voicegw/internal/conversation"
	"voicegw/internal/testutil"
)

// keptTalk saves a conversation with one entry of a user.
func keptTalk(t *testing.T, s *Store, id, user, text string) {
	t.Helper()
	err := s.Conversations.Update(t.Context(), id, func(c *conversation.Conversation) error {
		c.User = user
		c.Append(time.Now(), said(c.Turns+1, text))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// listedTitles are the titles of a user's conversations, from pages of that size.
func listedTitles(t *testing.T, s *Store, user string, size int) (titles []string) {
	t.Helper()
	for after := ""; ; {
		p, err := s.Conversations.List(t.Context(), Query{User: user, After: after, Most: size})
		if err != nil {
			t.Fatal(err)
		}
		if len(p.Lines) > size {
			t.Errorf("a page of %d has %d lines", size, len(p.Lines))
		}
		for _, d := range p.Lines {
			titles = append(titles, d.Title)
		}
		if after = p.Next; after == "" {
			return titles
		}
	}
}

// awaitTitles waits for the expected list: a copy follows the bucket within moments.
func awaitTitles(t *testing.T, s *Store, user string, want ...string) {
	t.Helper()
	var got []string
	defer func() {
		if t.Failed() {
			t.Logf("the list is %q", got)
		}
	}()
	testutil.WaitUntil(t, fmt.Sprintf("the list of %q is %q", user, want), func() bool {
		got = listedTitles(t, s, user, 2)
		return slices.Equal(got, want)
	})
}

// testConversationList: the newest first, for each user, in pages; a save between two pages causes neither gaps nor
// duplicates.
func testConversationList(t *testing.T, s *Store) {
	mine, other := talkID(t, "ada"), talkID(t, "eve")
	for i := range 5 {
		keptTalk(t, s, talkID(t, fmt.Sprint(i)), mine, fmt.Sprint("Grüße 😀 ", i))
	}
	keptTalk(t, s, talkID(t, "x"), other, "not ada's")
	awaitTitles(t, s, mine, "Grüße 😀 4", "Grüße 😀 3", "Grüße 😀 2", "Grüße 😀 1", "Grüße 😀 0")
	awaitTitles(t, s, other, "not ada's")
	if all := listedTitles(t, s, "", 3); len(all) < 6 || all[0] != "not ada's" {
		t.Errorf("all: %q", all)
	}

	first, err := s.Conversations.List(t.Context(), Query{User: mine, Most: 2})
	if err != nil || first.Next == "" || len(first.Lines) != 2 || first.Lines[0].ID != talkID(t, "4") || first.Lines[0].Turns != 1 {
		t.Fatalf("%+v %v", first, err)
	}
	keptTalk(t, s, talkID(t, "1"), mine, "again")
	awaitTitles(t, s, mine, "Grüße 😀 1", "Grüße 😀 4", "Grüße 😀 3", "Grüße 😀 2", "Grüße 😀 0")
	second, err := s.Conversations.List(t.Context(), Query{User: mine, After: first.Next, Most: 9})
	if err != nil || len(second.Lines) != 2 || second.Next != "" || second.Lines[0].Title != "Grüße 😀 2" || second.Lines[1].Title != "Grüße 😀 0" {
		t.Errorf("%+v %v", second, err)
	}
	for _, wrong := range []string{"0", "-1", "?", strings.Repeat("z", 99)} {
		if _, err := s.Conversations.List(t.Context(), Query{After: wrong, Most: 2}); !errors.Is(err, ErrCursor) {
			t.Errorf("after %q: %v", wrong, err)
		}
	}
}

// TestAListLacksExpiredConversations: at once when a conversation expires or is removed for lack of room.
func TestAListLacksExpiredConversations(t *testing.T) {
	s := openTest(t, Options{Memory: true, ConversationBytes: 1 << 20, ConversationLife: time.Hour})
	text := strings.Repeat("x ", conversation.MaxText/2)
	for i := range 4 {
		c := conversation.New(fmt.Sprint("c-", i), "ada", "", time.Now())
		for n := range 25 {
			c.Append(time.Now(), said(n, fmt.Sprint(i, " ", text)))
		}
		if _, err := s.Conversations.Save(t.Context(), c, 0); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			awaitTitles(t, s, "ada", c.Digest().Title) // from now on the list follows
		}
	}
	testutil.WaitUntil(t, "the newest is listed", func() bool {
		p, err := s.Conversations.List(t.Context(), Query{Most: 9})
		return err == nil && len(p.Lines) > 0 && p.Lines[0].ID == "c-3"
	})
	p, err := s.Conversations.List(t.Context(), Query{Most: 9})
	if err != nil || len(p.Lines) == 0 || len(p.Lines) > 3 || p.Incomplete {
		t.Fatalf("%d lines (incomplete %t), %v", len(p.Lines), p.Incomplete, err)
	}
	for _, d := range p.Lines {
		if _, _, err := s.Conversations.Load(t.Context(), d.ID); err != nil {
			t.Errorf("%s is listed: %v", d.ID, err)
		}
	}
	later, err := s.Conversations.listing.page(Query{Most: 9}, 0, 1, time.Now().Add(2*time.Hour))
	if err != nil || len(later.Lines) != 0 {
		t.Errorf("after their expiry: %+v %v", later, err)
	}
}

// TestEachConversationIsListedForItsOwnLife: if a node's retention is shorter than before, a newer conversation
// expires first; expired ones take no memory.
func TestEachConversationIsListedForItsOwnLife(t *testing.T) {
	url := startJetStream(t).ClientURL()
	long := openTest(t, Options{URL: url, Logger: testLog(t), ConversationLife: 48 * time.Hour})
	short := openTest(t, Options{URL: url, Logger: testLog(t), ConversationLife: time.Hour})
	keptTalk(t, long, "c-old", "ada", "old")
	keptTalk(t, short, "c-new", "ada", "new")
	awaitTitles(t, long, "ada", "new", "old")
	l := long.Conversations.listing
	for _, tc := range []struct {
		later time.Duration
		lines string
		held  int // at most
	}{
		{0, "new old", 2},
		{2 * time.Hour, "old", 2},
		{49 * time.Hour, "", 0},
	} {
		p, err := l.page(Query{User: "ada", Most: 9}, 0, 1, time.Now().Add(tc.later))
		var titles []string
		for _, d := range p.Lines {
			titles = append(titles, d.Title)
		}
		if got := strings.Join(titles, " "); err != nil || got != tc.lines || p.Next != "" {
			t.Errorf("%s later: %q, next %q, %v", tc.later, got, p.Next, err)
		}
		l.mu.Lock()
		if len(l.all) > tc.held {
			t.Errorf("%s later: %d conversations are held", tc.later, len(l.all))
		}
		l.mu.Unlock()
	}
}

// TestAListIsBounded: it has a limit of conversations, reports that it is incomplete, and reads no more of them after
// a lost connection.
func TestAListIsBounded(t *testing.T) {
	s := openTest(t, Options{Memory: true})
	const most = 8
	c := s.Conversations
	for i := range most + 3 {
		keptTalk(t, s, fmt.Sprint("c-", i), "ada", fmt.Sprint(i))
	}
	c.listing = newListing(c, most)
	want := []string{"10", "9", "8", "7", "6", "5", "4", "3"}
	awaitTitles(t, s, "", want...)
	p, err := c.List(t.Context(), Query{Most: most})
	if err != nil || !p.Incomplete || p.Next != "" {
		t.Errorf("%+v %v", p, err)
	}
	keptTalk(t, s, "c-new", "ada", "new")
	awaitTitles(t, s, "", append([]string{"new"}, want[:most-1]...)...)
	s.connected() // all is read again
	keptTalk(t, s, "c-newer", "ada", "newer")
	awaitTitles(t, s, "", append([]string{"newer", "new"}, want[:most-2]...)...)
	c.listing.mu.Lock()
	defer c.listing.mu.Unlock()
	if len(c.listing.all) != most {
		t.Errorf("%d conversations are held", len(c.listing.all))
	}
}

// TestRecordsWithoutANote: records of an older version are listed too, and unreadable ones are omitted. Taking a
// lease of a dead node does not change the list.
func TestRecordsWithoutANote(t *testing.T) {
	s := openTest(t, Options{Memory: true})
	c := s.Conversations
	old := conversation.New("c-old", "ada", "", time.Now())
	old.Append(time.Now(), said(1, "of an older version"))
	data, err := encode(old)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.bucket.replace(t.Context(), keyOf("c-old"), data, 0, time.Hour); err != nil {
		t.Fatal(err)
	}
	if _, err := c.bucket.replace(t.Context(), keyOf("c-odd"), []byte("{"), 0, time.Hour); err != nil {
		t.Fatal(err)
	}
	keptTalk(t, s, "c-new", "ada", "new")
	awaitTitles(t, s, "ada", "new", "of an older version")
	if err := c.fence(t.Context(), keyOf("c-new")); err != nil {
		t.Fatal(err)
	}
	if h, err := c.bucket.get(t.Context(), keyOf("c-new")); err != nil || !strings.Contains(h.note, `"title":"new"`) {
		t.Errorf("after the fence the note is %q, %v", h.note, err)
	}
	if err := c.fence(t.Context(), keyOf("c-none")); err != nil {
		t.Fatal(err)
	}
	awaitTitles(t, s, "ada", "new", "of an older version")
}

// TestAListOfAClosedStore: it ends at once.
func TestAListOfAClosedStore(t *testing.T) {
	s := openTest(t, Options{Memory: true})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Conversations.List(t.Context(), Query{Most: 1}); !errors.Is(err, errClosed) {
		t.Error(err)
	}
}
