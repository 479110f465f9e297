package session

import (
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"voicegw/transport"
)

// TestNamesOfLinks: ids from a model get the link's prefix, ids to it lose the prefix, and ids of another link are not
// sent.
func TestNamesOfLinks(t *testing.T) {
	first, second := &link{gen: 1}, &link{gen: 2, prefix: "l2."}
	for _, ev := range []transport.Event{
		transport.AudioDone{Item: "x"}, transport.ResponseStarted{ID: "x"}, transport.ResponseDone{ID: "x", Status: transport.ResponseFailed},
		transport.Transcript{Item: "x", Text: "said"}, transport.SpeechStarted{Item: "x"}, transport.SpeechStopped{Item: "x"},
		transport.InputCommitted{Item: "x"}, transport.Truncated{Item: "x"}, transport.TranscriptFailed{Item: "x"},
		transport.ToolCall{Call: "x", ID: "theirs", Name: "f"}, transport.ToolCancelled{Calls: []string{"x", "y"}},
		transport.Interrupted{}, transport.Usage{}, transport.SpeechStarted{},
	} {
		if diff := cmp.Diff(ev, first.name(ev)); diff != "" {
			t.Errorf("the first link renames %T:\n%s", ev, diff)
		}
		if again := unname(second.name(ev)); cmp.Diff(ev, again) != "" {
			t.Errorf("%T is returned as %+v", ev, again)
		}
	}
	for _, tc := range []struct {
		link *link
		cmd  transport.Command
		want transport.Command
		ours bool
	}{
		{second, transport.Truncate{Item: "l2.item_1", AudioMS: 5}, transport.Truncate{Item: "item_1", AudioMS: 5}, true},
		{second, transport.ToolResult{Call: "l2.c1"}, transport.ToolResult{Call: "c1"}, true},
		{second, transport.ToolResult{Call: "c1"}, transport.ToolResult{Call: "c1"}, false},
		{first, transport.ToolResult{Call: "l2.c1"}, transport.ToolResult{Call: "c1"}, false},
		{first, transport.ToolResult{Call: "c1"}, transport.ToolResult{Call: "c1"}, true},
		{first, transport.ToolResult{Call: "lx.c1"}, transport.ToolResult{Call: "lx.c1"}, true},
		{first, transport.ToolResult{Call: first.ours("l2.c1")}, transport.ToolResult{Call: "l2.c1"}, true},
		{second, transport.ToolResult{Call: second.ours("l2.c1")}, transport.ToolResult{Call: "l2.c1"}, true},
		{second, transport.UserText{Text: "x", Overtakes: "l2.c1"}, transport.UserText{Text: "x", Overtakes: "c1"}, true},
		{second, transport.UserText{Text: "x", Overtakes: "c1"}, transport.UserText{Text: "x"}, true},
		{first, transport.UserText{Text: "x", Overtakes: "c1"}, transport.UserText{Text: "x", Overtakes: "c1"}, true},
		{second, transport.UserText{Text: "l1.x"}, transport.UserText{Text: "l1.x"}, true},
	} {
		if got, ours := tc.link.theirs(tc.cmd); ours != tc.ours || ours && cmp.Diff(tc.want, got) != "" {
			t.Errorf("link %d sends %+v as %+v, %v", tc.link.gen, tc.cmd, got, ours)
		}
	}
}

// unname removes the second link's prefix, with the test's own list of events with ids.
func unname(ev transport.Event) transport.Event {
	cut := func(s *string) {
		if len(*s) > 3 && (*s)[:3] == "l2." {
			*s = (*s)[3:]
		} else if *s != "" {
			*s = "not named: " + *s
		}
	}
	switch e := ev.(type) {
	case transport.AudioDone:
		cut(&e.Item)
		return e
	case transport.ResponseStarted:
		cut(&e.ID)
		return e
	case transport.ResponseDone:
		cut(&e.ID)
		return e
	case transport.Transcript:
		cut(&e.Item)
		return e
	case transport.SpeechStarted:
		cut(&e.Item)
		return e
	case transport.SpeechStopped:
		cut(&e.Item)
		return e
	case transport.InputCommitted:
		cut(&e.Item)
		return e
	case transport.Truncated:
		cut(&e.Item)
		return e
	case transport.TranscriptFailed:
		cut(&e.Item)
		return e
	case transport.ToolCall:
		cut(&e.Call)
		return e
	case transport.ToolCancelled:
		for i := range e.Calls {
			cut(&e.Calls[i])
		}
		return e
	}
	return ev
}

// TestOlderLink: after a session has another link, events and the end of the older one have no effect.
func TestOlderLink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, hearing, nil)
		_, old := st.started()
		synctest.Wait()
		s := st.only()
		conn, err := st.fake.Connect(t.Context(), transport.Setup{})
		if err != nil {
			t.Fatal(err)
		}
		model := st.fake.Accept(t)
		newer := new(link)
		err = newer.begin(s, 2, conn)
		if err != nil {
			t.Fatal(err)
		}
		s.readers.Add(1)
		older := s.model.link()
		s.model.linked.Store(newer)
		newer.start()
		old.Emit(transport.SpeechStarted{Item: "u"}, transport.InputCommitted{Item: "u"}, transport.ToolCall{Call: "c1", Name: "f"})
		synctest.Wait()
		if n := turnsOf(s); n != 0 {
			t.Errorf("the older link began %d turns", n)
		}
		old.FailRecv(scriptedError("recv", transport.KindRetry))
		synctest.Wait()
		if s.isOver() {
			t.Fatalf("the end of the older link ended the session: %v", s.cause())
		}
		model.Emit(transport.InputCommitted{Item: "u"})
		synctest.Wait()
		if n := turnsOf(s); n != 1 {
			t.Errorf("the newer link began %d turns", n)
		}
		if err := older.conn.Close(); err != nil {
			t.Error(err)
		}
	})
}
