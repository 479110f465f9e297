package store

import (
	"errors"
	"strings"
	"testing"
	"time"

	"voicegw/internal/conversation"
	"voicegw/internal/testutil"
)

// twoNodes are two nodes on one cluster.
func twoNodes(t *testing.T) (a, b *Store) {
	t.Helper()
	address := startJetStream(t).ClientURL()
	a, b = openTest(t, Options{URL: address, Logger: testLog(t)}), openTest(t, Options{URL: address, Logger: testLog(t)})
	join(t, a)
	join(t, b)
	return a, b
}

// seemGone makes a node a zombie: the others take it for gone, and it goes on.
func seemGone(t *testing.T, s *Store) {
	t.Helper()
	if err := errors.Join(s.member.Load().sub.Unsubscribe(), s.conn.Flush()); err != nil {
		t.Fatal(err)
	}
}

// TestANodeThatIsThere: what a living node holds is not taken.
func TestANodeThatIsThere(t *testing.T) {
	a, b := twoNodes(t)
	held, err := a.Conversations().Lease(t.Context(), "c1", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Release()
	if _, err := b.Conversations().Lease(t.Context(), "c1", time.Minute); !errors.Is(err, ErrBusy) {
		t.Errorf("the lease: %v", err)
	}
	voice, err := a.VoiceSessions().Begin(t.Context(), "voice-1", "ada", "c1")
	if err != nil {
		t.Fatal(err)
	}
	defer voice.Release()
	if _, err := b.VoiceSessions().Begin(t.Context(), "voice-2", "ada", "c1"); !errors.Is(err, ErrVoiceActive) {
		t.Errorf("the voice session: %v", err)
	}
	if gone, err := b.Nodes().Gone(t.Context(), a.nodes.own()); gone || err != nil {
		t.Errorf("gone: %t, %v", gone, err)
	}
}

// TestWhatADeadNodeHeld: as soon as the process of a node is gone, another node has what it held,
// however long its leases would have lasted.
func TestWhatADeadNodeHeld(t *testing.T) {
	a, b := twoNodes(t)
	if _, err := a.Conversations().Lease(t.Context(), "c1", time.Hour); err != nil {
		t.Fatal(err)
	}
	if _, err := a.VoiceSessions().Begin(t.Context(), "voice-1", "ada", "c1"); err != nil {
		t.Fatal(err)
	}
	dead := a.nodes.own()
	a.conn.Close() // what the kernel does when it ends the process
	if gone, err := b.Nodes().Gone(t.Context(), dead); !gone || err != nil {
		t.Fatalf("gone: %t, %v", gone, err)
	}
	held, err := b.Conversations().Lease(t.Context(), "c1", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	held.Release()
	voice, err := b.VoiceSessions().Begin(t.Context(), "voice-2", "ada", "c1")
	if err != nil {
		t.Fatal(err)
	}
	voice.Release()
	m := a.member.Load()
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.fenced() {
		t.Error("the node without a connection is not fenced")
	}
}

// TestAZombieWritesNothing: a node that seemed gone, and was not, saves nothing into a conversation
// that another node has taken, whether the other has saved already or not and whether the
// conversation existed or not.
func TestAZombieWritesNothing(t *testing.T) {
	for name, exists := range map[string]bool{"a conversation": true, "a new conversation": false} {
		t.Run(name, func(t *testing.T) {
			a, b := twoNodes(t)
			if exists {
				if _, err := b.Conversations().Save(t.Context(), conversation.New("c1", "ada", "", time.Now()), 0); err != nil {
					t.Fatal(err)
				}
			}
			old, err := a.Conversations().Lease(t.Context(), "c1", time.Hour)
			if err != nil {
				t.Fatal(err)
			}
			defer old.Release()
			load := func(s *Store) (*conversation.Conversation, Revision) {
				talk, rev, err := s.Conversations().Load(t.Context(), "c1")
				if errors.Is(err, ErrUnknown) {
					talk, err = conversation.New("c1", "ada", "", time.Now()), nil
				}
				if err != nil {
					t.Fatal(err)
				}
				return talk, rev
			}
			zombie, before := load(a)
			zombie.Append(time.Now(), said(1, "by the zombie"))
			seemGone(t, a)
			held, err := b.Conversations().Lease(t.Context(), "c1", time.Hour)
			if err != nil {
				t.Fatal(err)
			}
			defer held.Release()
			if _, err := a.Conversations().Save(t.Context(), zombie, before); !errors.Is(err, ErrChanged) {
				t.Errorf("the zombie saves: %v", err)
			}
			if err := old.Check(t.Context()); !errors.Is(err, ErrFenced) {
				t.Errorf("the zombie asks: %v", err)
			}
			talk, rev := load(b)
			talk.Append(time.Now(), said(1, "by the new holder"))
			if _, err := b.Conversations().Save(t.Context(), talk, rev); err != nil {
				t.Fatal(err)
			}
			old.Release()
			if err := held.Check(t.Context()); err != nil {
				t.Errorf("the new holder, after the zombie has given the lease back: %v", err)
			}
			if talk, _ := load(b); len(talk.Entries) != 1 || talk.Entries[0].Text != "by the new holder" {
				t.Errorf("the conversation has %+v", talk.Entries)
			}
		})
	}
}

// TestATakenSession: of two nodes that take a session of a third at once one gets it; the third
// learns it within milliseconds, and a node that was absent learns it when it is back.
func TestATakenSession(t *testing.T) {
	address := startJetStream(t).ClientURL()
	nodes := make([]*Store, 3)
	for i := range nodes {
		nodes[i] = openTest(t, Options{URL: address, Logger: testLog(t)})
		join(t, nodes[i])
	}
	for _, silent := range []bool{false, true} {
		owner := enter(t, nodes[0], session(t))
		lost := lostSignal(owner)
		if silent { // the message that the session was taken does not arrive
			seemGone(t, nodes[0])
		}
		found, err := nodes[1].Directory().Find(t.Context(), owner.Record().ID)
		if err != nil {
			t.Fatal(err)
		}
		results := make([]error, 2)
		racers(2, func(i int) { _, results[i] = nodes[1+i].Directory().Take(t.Context(), found) })
		if (results[0] == nil) == (results[1] == nil) || !errors.Is(errors.Join(results...), ErrFenced) {
			t.Errorf("the two who take it: %v", results)
		}
		if silent {
			m := nodes[0].member.Load()
			m.lost()
			if owner.Sure() {
				t.Error("a node that is absent is sure of its session")
			}
			m.found()
		}
		testutil.WaitClosed(t, "the owner of before is told", lost)
		if owner.Sure() {
			t.Error("it is sure of the session still")
		}
	}
}

// TestANodeThatIsNotHeard: where the store's account forbids the nodes to ask each other, silence
// is not taken for death.
func TestANodeThatIsNotHeard(t *testing.T) {
	a, b := twoNodes(t)
	m := a.member.Load()
	m.mu.Lock()
	m.is.Answers = false
	m.mu.Unlock()
	poke(m.wake)
	testutil.WaitUntil(t, "the others know that it cannot be asked", func() bool {
		is, err := b.Nodes().Find(t.Context(), a.nodes.own())
		return err == nil && !is.Answers
	})
	seemGone(t, a)
	if gone, err := b.Nodes().Gone(t.Context(), a.nodes.own()); gone || err != nil {
		t.Errorf("gone: %t, %v", gone, err)
	}
	m.Leave()
	if gone, err := b.Nodes().Gone(t.Context(), a.nodes.own()); !gone || err != nil {
		t.Errorf("after it has left: gone %t, %v", gone, err)
	}
}

// TestNobodyIsGoneAfterAnOutage: a node that could not reach the store until a moment ago takes
// nobody for gone, because the others could not give a sign of life either.
func TestNobodyIsGoneAfterAnOutage(t *testing.T) {
	a, b := twoNodes(t)
	silent := a.nodes.own()
	a.conn.Close() // it is not back yet
	m := b.member.Load()
	m.lost()
	m.found()
	if gone, err := b.Nodes().Gone(t.Context(), silent); gone || err != nil {
		t.Errorf("while it may still come back: gone %t, %v", gone, err)
	}
	h, err := b.nodes.bucket.get(t.Context(), keyOf(silent))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.nodes.bucket.remove(t.Context(), keyOf(silent), h.revision); err != nil {
		t.Fatal(err)
	}
	if gone, err := b.Nodes().Gone(t.Context(), silent); gone || err != nil {
		t.Errorf("when its record has lapsed: gone %t, %v", gone, err)
	}
	m.mu.Lock()
	m.back = m.back.Add(-nodeLife)
	m.mu.Unlock()
	if gone, err := b.Nodes().Gone(t.Context(), silent); !gone || err != nil {
		t.Errorf("when it has had the time to come back: gone %t, %v", gone, err)
	}
}

// TestNodesOfNewerVersions: a node of a newer version counts as alive, and its unknown form is
// refused with words.
func TestNodesOfNewerVersions(t *testing.T) {
	s := openTest(t, Options{Memory: true, Logger: testLog(t)})
	join(t, s)
	for v, want := range map[int]error{1: nil, 2: ErrVersion} {
		data, err := encode(map[string]any{"v": v, "id": "node-x", "load": 0.5})
		if err != nil {
			t.Fatal(err)
		}
		if h, err := s.nodes.bucket.get(t.Context(), keyOf("node-x")); err == nil {
			_, _ = s.nodes.bucket.remove(t.Context(), keyOf("node-x"), h.revision)
		}
		if _, err := s.nodes.bucket.create(t.Context(), keyOf("node-x"), data, time.Minute); err != nil {
			t.Fatal(err)
		}
		_, err = s.Nodes().Find(t.Context(), "node-x")
		if !errors.Is(err, want) || err != nil && !strings.Contains(err.Error(), "its form is 2") {
			t.Errorf("version %d: %v", v, err)
		}
		if gone, err := s.Nodes().Gone(t.Context(), "node-x"); gone || err != nil {
			t.Errorf("version %d: gone %t, %v", v, gone, err)
		}
	}
}
