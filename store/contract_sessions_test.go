package store

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"voicegw/internal/conversation"
	"voicegw/internal/testutil"
)

// join makes the process of a store a node until the end of the test.
func join(t testing.TB, s *Store) *Membership {
	t.Helper()
	m, err := s.Nodes.Join(context.Background(), Node{URL: "https://node.example:8443", Version: "v1"}, func() int { return 7 })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Leave)
	return m
}

// session is a record with a unique id.
func session(t *testing.T) SessionRecord {
	now := time.Now().UTC()
	return SessionRecord{
		ID: key(t, rand.Text()), User: "ada", Conversation: "c", Provider: "p", Model: "m", Agent: "default",
		StartedAt: now, EndsAt: now.Add(time.Hour), TokenHashes: []string{"hash"}, Origin: "https://example.org", ToolsVersion: "1.0.cafe",
	}
}

func enter(t *testing.T, s *Store, r SessionRecord) *Owned {
	t.Helper()
	o, err := s.Directory.Enter(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// lostSignal returns a channel that is closed when the session is lost.
func lostSignal(o *Owned) <-chan struct{} {
	lost := make(chan struct{})
	o.WhenLost(func() { close(lost) })
	return lost
}

// testNodes: a process is a node once, and the others see its record.
func testNodes(t *testing.T, s *Store) {
	m := s.member.Load()
	if _, err := s.Nodes.Join(t.Context(), Node{}, nil); !errors.Is(err, ErrUsed) {
		t.Errorf("a second time: %v", err)
	}
	if _, err := s.Nodes.Join(t.Context(), Node{URL: "node.example:8443"}, nil); err == nil || errors.Is(err, ErrUsed) {
		t.Errorf("an invalid URL: %v", err)
	}
	m.Drain()
	testutil.WaitUntil(t, "the others see the drain", func() bool {
		all, err := s.Nodes.List(t.Context())
		if err != nil || len(all) != 1 {
			t.Fatalf("%+v, %v", all, err)
		}
		return all[0].Draining && all[0].Sessions == 7
	})
	got, err := s.Nodes.Find(t.Context(), m.Node().ID)
	if diff := cmp.Diff(m.Node(), got); diff != "" || err != nil || !got.Answers || got.Version != "v1" {
		t.Error(err, diff)
	}
	if gone, err := s.Nodes.Gone(t.Context(), "node-that-never-was"); !gone || err != nil {
		t.Errorf("a node without a record: gone %t, %v", gone, err)
	}
	if gone, err := s.Nodes.Gone(t.Context(), ""); gone || err != nil {
		t.Errorf("a holder that is not a node: gone %t, %v", gone, err)
	}
}

// testEnterAgain: after a lost acknowledgement a node enters its session again, with later changes, and owns it.
// Another node's session cannot be entered.
func testEnterAgain(t *testing.T, s *Store) {
	t.Helper()
	for _, node := range []string{s.Nodes.own(), "node-x"} {
		d, r := s.Directory, session(t)
		r.ID += node // the test has several
		first := r
		first.Node, first.Epoch, first.State = node, 1, SessionLive
		data, err := encodeSession(first)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := d.bucket.create(t.Context(), keyOf(r.ID), data, time.Hour); err != nil {
			t.Fatal(err)
		}
		r.TokenHashes = []string{"hash", "next"}
		o, err := d.Enter(t.Context(), r)
		if node != s.Nodes.own() {
			if !errors.Is(err, ErrUsed) {
				t.Errorf("another node's session: %v", err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if got, err := d.Find(t.Context(), r.ID); err != nil || len(got.TokenHashes) != 2 {
			t.Errorf("it was entered again as %+v, %v", got, err)
		}
		if err := errors.Join(o.Update(t.Context(), func(r *SessionRecord) { r.State = SessionDetached }), o.End(t.Context())); err != nil {
			t.Error(err)
		}
		if _, err := d.Enter(t.Context(), r); !errors.Is(err, ErrUsed) {
			t.Errorf("an ended session: %v", err)
		}
	}
}

// testDirectory: a session's record is its owner's last write; a session that cannot be resumed is not listed.
func testDirectory(t *testing.T, s *Store) {
	d, want := s.Directory, session(t)
	o := enter(t, s, want)
	want.Node, want.Epoch, want.State = s.Nodes.own(), 1, SessionLive
	got, err := d.Find(t.Context(), want.ID)
	if diff := cmp.Diff(want, got); diff != "" || err != nil || cmp.Diff(want, o.Record()) != "" {
		t.Error(err, diff)
	}
	if h, err := o.directory.bucket.get(t.Context(), keyOf(want.ID)); err != nil || h.end.Sub(want.EndsAt) < sessionAfter-time.Minute {
		t.Errorf("the record ends at %v, the session at %v, %v", h.end, want.EndsAt, err)
	}
	if _, err := d.Enter(t.Context(), want); !errors.Is(err, ErrUsed) {
		t.Errorf("the same session again: %v", err)
	}
	testEnterAgain(t, s)
	if _, err := d.Enter(t.Context(), SessionRecord{}); err == nil {
		t.Error("a session without an id")
	}
	huge := session(t)
	huge.Agent = strings.Repeat("x", mostSessionBytes)
	if _, err := d.Enter(t.Context(), huge); !errors.Is(err, ErrTooBig) {
		t.Errorf("a huge record: %v", err)
	}
	if err := o.Update(t.Context(), func(r *SessionRecord) {
		r.State, r.TokenHashes = SessionDetached, append(r.TokenHashes, "next")
		r.ID, r.Node, r.Epoch = "other", "other", 9 // fields that an owner cannot change
	}); err != nil {
		t.Fatal(err)
	}
	want.State, want.TokenHashes = SessionDetached, []string{"hash", "next"}
	if got, err = d.Find(t.Context(), want.ID); cmp.Diff(want, got) != "" || err != nil {
		t.Error(err, cmp.Diff(want, got))
	}
	listed := func() []SessionRecord {
		all, err := d.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return slices.DeleteFunc(all, func(r SessionRecord) bool { return r.ID != want.ID })
	}
	settles(t, s, "the session is listed", []SessionRecord{want}, listed)
	if !o.Sure() {
		t.Error("its owner doubts its lease")
	}
	if err := o.End(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := o.Update(t.Context(), func(*SessionRecord) {}); !errors.Is(err, ErrFenced) {
		t.Errorf("changed after its end: %v", err)
	}
	if got, err = d.Find(t.Context(), want.ID); err != nil || got.State != SessionOver || len(got.TokenHashes) != 0 {
		t.Errorf("after its end: %+v, %v", got, err)
	}
	if _, err := d.Take(t.Context(), got); !errors.Is(err, ErrUnknown) {
		t.Errorf("taken after its end: %v", err)
	}
	settles(t, s, "an ended session is not listed", []SessionRecord{}, listed)
	if _, err := d.Find(t.Context(), "voice-nobody"); !errors.Is(err, ErrUnknown) {
		t.Errorf("an unknown session: %v", err)
	}
}

// testTakeRace: of many nodes that take a session at one epoch one gets it, and the previous owner is informed and
// writes nothing more.
func testTakeRace(t *testing.T, s *Store) {
	for range 3 {
		d, r := s.Directory, session(t)
		before := enter(t, s, r)
		lost := lostSignal(before)
		found, err := d.Find(t.Context(), r.ID)
		if err != nil {
			t.Fatal(err)
		}
		if err := before.Update(t.Context(), func(r *SessionRecord) { r.State = SessionMoving }); err != nil {
			t.Fatal(err)
		}
		var won atomic.Pointer[Owned]
		racers(32, func(int) {
			switch o, err := d.Take(t.Context(), found); {
			case err == nil && !won.CompareAndSwap(nil, o):
				t.Error("two nodes have it")
			case err != nil && !errors.Is(err, ErrFenced):
				t.Error(err)
			}
		})
		owner := won.Load()
		if owner == nil {
			t.Fatal("no node has it")
		}
		testutil.WaitClosed(t, "the previous owner is informed", lost)
		if before.Sure() || !owner.Sure() {
			t.Error("the previous owner does not doubt, or the new one does")
		}
		if err := before.Update(t.Context(), func(r *SessionRecord) { r.State = SessionLive }); !errors.Is(err, ErrFenced) {
			t.Errorf("the previous owner writes: %v", err)
		}
		if err := before.End(t.Context()); !errors.Is(err, ErrFenced) {
			t.Errorf("the previous owner ends it: %v", err)
		}
		if got := owner.Record(); got.Epoch != 2 || got.State != SessionLive || got.User != "ada" {
			t.Errorf("it is %+v", got)
		}
		if err := owner.Update(t.Context(), func(r *SessionRecord) { r.State = SessionDetached }); err != nil {
			t.Error(err)
		}
	}
}

// testSessionVersions: fields of a newer version are preserved, even when an older version takes the session; a
// record in a newer format is refused with an explanation.
func testSessionVersions(t *testing.T, s *Store) {
	d, r := s.Directory, session(t)
	o := enter(t, s, r)
	newer := map[string]any{"v": 1, "id": r.ID, "node": "node-x", "epoch": 4, "state": "humming", "mood": map[string]int{"x": 1}}
	put := func(fields map[string]any) {
		t.Helper()
		data, err := encode(fields)
		if err != nil {
			t.Fatal(err)
		}
		h, err := d.bucket.get(t.Context(), keyOf(r.ID))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := d.bucket.replace(t.Context(), keyOf(r.ID), data, h.revision, time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	put(newer)
	found, err := d.Find(t.Context(), r.ID)
	if err != nil || found.State != "humming" || len(found.Unknown) != 1 {
		t.Fatalf("%+v, %v", found, err)
	}
	if err := o.Update(t.Context(), func(*SessionRecord) {}); !errors.Is(err, ErrFenced) {
		t.Errorf("the previous owner: %v", err)
	}
	if o, err = d.Take(t.Context(), found); err != nil {
		t.Fatal(err)
	}
	if err := o.Update(t.Context(), func(r *SessionRecord) { r.User = "bob" }); err != nil {
		t.Fatal(err)
	}
	h, err := d.bucket.get(t.Context(), keyOf(r.ID))
	var kept struct {
		User string         `json:"user"`
		Mood map[string]int `json:"mood"`
	}
	if err := errors.Join(err, json.Unmarshal(h.data, &kept)); err != nil || kept.User != "bob" || kept.Mood["x"] != 1 {
		t.Errorf("stored is %s, %v", h.data, err)
	}
	newer["v"] = 2
	put(newer)
	if _, err := d.Find(t.Context(), r.ID); !errors.Is(err, ErrVersion) || !strings.Contains(err.Error(), "update this node") {
		t.Errorf("a record in format 2: %v", err)
	}
	if _, err := d.Take(t.Context(), found); !errors.Is(err, ErrVersion) {
		t.Errorf("taken: %v", err)
	}
	if err := o.Update(t.Context(), func(*SessionRecord) {}); !errors.Is(err, ErrFenced) {
		t.Errorf("overwritten: %v", err)
	}
}

// testAdopt: a session continues at another node at once, and the previous node loses its lease; a different session
// of the conversation is refused.
func testAdopt(t *testing.T, s *Store) {
	v, talk := s.VoiceSessions, talkID(t, "c")
	first, err := v.Begin(t.Context(), "voice-1", "ada", talk)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := v.Adopt(t.Context(), "voice-2", 2, "ada", talk); !errors.Is(err, ErrVoiceActive) {
		t.Errorf("another session: %v", err)
	}
	second, err := v.Adopt(t.Context(), "voice-1", 2, "ada", talk)
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Check(t.Context()); !errors.Is(err, ErrFenced) {
		t.Errorf("the previous lease: %v", err)
	}
	first.Release()
	if err := second.Check(t.Context()); err != nil {
		t.Errorf("the new lease, after the previous one was released: %v", err)
	}
	for _, epoch := range []uint64{1, 2} {
		if _, err := v.Adopt(t.Context(), "voice-1", epoch, "ada", talk); !errors.Is(err, ErrFenced) {
			t.Errorf("at the epoch %d: %v", epoch, err)
		}
	}
	if _, err := v.Begin(t.Context(), "voice-3", "ada", talk); !errors.Is(err, ErrVoiceActive) {
		t.Errorf("another session while it runs: %v", err)
	}
	second.Release()
	third, err := v.Adopt(t.Context(), "voice-1", 3, "ada", talk) // its lease had ended
	if err != nil {
		t.Fatal(err)
	}
	third.Release()
}

// testAdoptRace: of many nodes that adopt a session at one epoch one holds it.
func testAdoptRace(t *testing.T, s *Store) {
	v, talk := s.VoiceSessions, talkID(t, "c")
	first, err := v.Begin(t.Context(), "voice-1", "ada", talk)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(first.Release)
	var won atomic.Int32
	racers(32, func(int) {
		held, err := v.Adopt(t.Context(), "voice-1", 2, "ada", talk)
		switch {
		case err == nil:
			won.Add(1)
			t.Cleanup(held.Release)
		case !errors.Is(err, ErrFenced):
			t.Error(err)
		}
	})
	if won.Load() != 1 {
		t.Errorf("%d of 32 have it", won.Load())
	}
}

func checkpoint(session string, epoch uint64) Checkpoint {
	at := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	return Checkpoint{
		SessionID: session, Epoch: epoch, At: at, Turn: 3, Seq: 77, Handle: "h", HandleFresh: true,
		History: []conversation.Entry{{At: at, Side: conversation.SideVoice, Role: conversation.RoleUser, Text: "Grüße <b>"}},
		State:   json.RawMessage(`{"audio":1}`),
	}
}

// testCheckpoints: the newest checkpoint of a session is read, and within its size limit for any conversation.
func testCheckpoints(t *testing.T, s *Store) {
	c, id := s.Checkpoints, key(t, "s")
	if _, err := c.Load(t.Context(), id); !errors.Is(err, ErrUnknown) {
		t.Errorf("before the first: %v", err)
	}
	want := checkpoint(id, 1)
	for range 2 {
		want.Turn++
		if err := c.Save(t.Context(), want); err != nil {
			t.Fatal(err)
		}
		if got, err := c.Load(t.Context(), id); cmp.Diff(want, got) != "" || err != nil {
			t.Error(err, cmp.Diff(want, got))
		}
	}
	long := want
	long.History = nil
	for i := range 400 {
		long.History = append(long.History, said(i, strings.Repeat("ü", 200)))
	}
	if err := c.Save(t.Context(), long); err != nil {
		t.Fatal(err)
	}
	got, err := c.Load(t.Context(), id)
	if n := len(got.History); err != nil || n < 100 || n+got.Dropped != 400 || cmp.Diff(long.History[400-n:], got.History) != "" {
		t.Errorf("%d entries are stored and %d dropped, %v", n, got.Dropped, err)
	}
	big := want
	big.History = []conversation.Entry{want.History[0], {Text: "the newest", Calls: []conversation.Call{{Tool: "kb", Envelope: json.RawMessage(`"` + strings.Repeat("x", 2*MaxCheckpoint) + `"`)}}}}
	if err := c.Save(t.Context(), big); err != nil {
		t.Fatal(err)
	}
	if got, err = c.Load(t.Context(), id); err != nil || len(got.History) == 0 || got.History[len(got.History)-1].Text != "the newest" || got.History[len(got.History)-1].Calls[0].Tool != "kb" {
		t.Errorf("a long answer of a tool: %+v, %v", got, err)
	}
	big.Handle = strings.Repeat("h", MaxCheckpoint)
	if err := c.Save(t.Context(), big); !errors.Is(err, ErrTooBig) {
		t.Errorf("without room for its history: %v", err)
	}
	c.Remove(id)
	testutil.WaitUntil(t, "it is removed", func() bool { _, err := c.Load(t.Context(), id); return errors.Is(err, ErrUnknown) })
	c.Note(checkpoint(id, 1))
	testutil.WaitUntil(t, "a noted checkpoint is written", func() bool { _, err := c.Load(t.Context(), id); return err == nil })
}

// testCheckpointFenced: a node that has lost a session does not overwrite the new owner's checkpoint, and learns that
// it has lost the session.
func testCheckpointFenced(t *testing.T, s *Store) {
	r := session(t)
	before := enter(t, s, r)
	lost := lostSignal(before)
	c := s.Checkpoints
	if err := c.Save(t.Context(), checkpoint(r.ID, 1)); err != nil {
		t.Fatal(err)
	}
	newer := checkpoint(r.ID, 2)
	newer.Turn = 9
	if err := c.Save(t.Context(), newer); err != nil {
		t.Fatal(err)
	}
	if err := c.Save(t.Context(), checkpoint(r.ID, 1)); !errors.Is(err, ErrFenced) {
		t.Errorf("of the previous epoch: %v", err)
	}
	if got, err := c.Load(t.Context(), r.ID); err != nil || got.Turn != 9 {
		t.Errorf("%+v, %v", got, err)
	}
	// The directory still names this node as the owner: the doubt was wrong.
	testutil.WaitUntil(t, "the owner is sure again", before.Sure)
	found, err := s.Directory.Find(t.Context(), r.ID)
	if err != nil {
		t.Fatal(err)
	}
	found.Node, found.Epoch = "node-x", 2
	data, err := encodeSession(found)
	if err != nil {
		t.Fatal(err)
	}
	h, err := s.Directory.bucket.get(t.Context(), keyOf(r.ID))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Directory.bucket.replace(t.Context(), keyOf(r.ID), data, h.revision, time.Hour); err != nil {
		t.Fatal(err)
	}
	if err := c.Save(t.Context(), checkpoint(r.ID, 1)); !errors.Is(err, ErrFenced) {
		t.Errorf("of the previous epoch: %v", err)
	}
	testutil.WaitClosed(t, "the previous owner is informed", lost)
	// A fenced write does not reveal a revision with which its next write would succeed.
	id, known := key(t, rand.Text()), uint64(0)
	if _, err := c.write(t.Context(), id, &Checkpoint{SessionID: id, Epoch: 2}, 0); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		var err error
		if known, err = c.write(t.Context(), id, &Checkpoint{SessionID: id, Epoch: 1, Turn: 99}, known); !errors.Is(err, ErrFenced) {
			t.Errorf("the previous owner writes a checkpoint: %v", err)
		}
	}
}
