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

// seemGone makes a node a zombie: the others consider it dead, but it continues.
func seemGone(t *testing.T, s *Store) {
	t.Helper()
	if err := errors.Join(s.member.Load().sub.Unsubscribe(), s.conn.Flush()); err != nil {
		t.Fatal(err)
	}
}

// TestALivingNode: a living node's leases and sessions are not taken.
func TestALivingNode(t *testing.T) {
	a, b := twoNodes(t)
	held, err := a.Conversations.Lease(t.Context(), "c1", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Release()
	if _, err := b.Conversations.Lease(t.Context(), "c1", time.Minute); !errors.Is(err, ErrBusy) {
		t.Errorf("the lease: %v", err)
	}
	voice, err := a.VoiceSessions.Begin(t.Context(), "voice-1", "ada", "c1")
	if err != nil {
		t.Fatal(err)
	}
	defer voice.Release()
	if _, err := b.VoiceSessions.Begin(t.Context(), "voice-2", "ada", "c1"); !errors.Is(err, ErrVoiceActive) {
		t.Errorf("the voice session: %v", err)
	}
	if gone, err := b.Nodes.Gone(t.Context(), a.Nodes.own()); gone || err != nil {
		t.Errorf("gone: %t, %v", gone, err)
	}
}

// waitGone waits until s finds that a node is gone: on a busy machine, the answer may come too late to prove anything.
func waitGone(t *testing.T, s *Store, node string) {
	t.Helper()
	testutil.WaitUntil(t, "the node is gone", func() bool {
		gone, err := s.Nodes.Gone(t.Context(), node)
		if err != nil {
			t.Fatal(err)
		}
		return gone
	})
}

// TestADeadNode: as soon as a node's process is dead, another node gets its leases and sessions, however long the
// leases would last.
func TestADeadNode(t *testing.T) {
	a, b := twoNodes(t)
	if _, err := a.Conversations.Lease(t.Context(), "c1", time.Hour); err != nil {
		t.Fatal(err)
	}
	if _, err := a.VoiceSessions.Begin(t.Context(), "voice-1", "ada", "c1"); err != nil {
		t.Fatal(err)
	}
	dead := a.Nodes.own()
	a.conn.Close() // as the kernel does at the end of a process
	waitGone(t, b, dead)
	held, err := b.Conversations.Lease(t.Context(), "c1", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	held.Release()
	voice, err := b.VoiceSessions.Begin(t.Context(), "voice-2", "ada", "c1")
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

// TestAZombieWritesNothing: a node that was wrongly considered dead saves nothing into a conversation that another
// node has taken, saved by the other or not, existing or not.
func TestAZombieWritesNothing(t *testing.T) {
	for name, exists := range map[string]bool{"a conversation": true, "a new conversation": false} {
		t.Run(name, func(t *testing.T) {
			a, b := twoNodes(t)
			if exists {
				if _, err := b.Conversations.Save(t.Context(), conversation.New("c1", "ada", "", time.Now()), 0); err != nil {
					t.Fatal(err)
				}
			}
			old, err := a.Conversations.Lease(t.Context(), "c1", time.Hour)
			if err != nil {
				t.Fatal(err)
			}
			defer old.Release()
			load := func(s *Store) (*conversation.Conversation, Revision) {
				talk, rev, err := s.Conversations.Load(t.Context(), "c1")
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
			held, err := b.Conversations.Lease(t.Context(), "c1", time.Hour)
			if err != nil {
				t.Fatal(err)
			}
			defer held.Release()
			if _, err := a.Conversations.Save(t.Context(), zombie, before); !errors.Is(err, ErrChanged) {
				t.Errorf("the zombie saves: %v", err)
			}
			if err := old.Check(t.Context()); !errors.Is(err, ErrFenced) {
				t.Errorf("the zombie asks: %v", err)
			}
			talk, rev := load(b)
			talk.Append(time.Now(), said(1, "by the new holder"))
			if _, err := b.Conversations.Save(t.Context(), talk, rev); err != nil {
				t.Fatal(err)
			}
			old.Release()
			if err := held.Check(t.Context()); err != nil {
				t.Errorf("the new holder, after the zombie has released the lease: %v", err)
			}
			if talk, _ := load(b); len(talk.Entries) != 1 || talk.Entries[0].Text != "by the new holder" {
				t.Errorf("the conversation has %+v", talk.Entries)
			}
		})
	}
}

// TestATakenSession: of two nodes that take a third node's session at once one gets it; the third learns it within
// milliseconds, or on its return if it was disconnected.
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
		found, err := nodes[1].Directory.Find(t.Context(), owner.Record().ID)
		if err != nil {
			t.Fatal(err)
		}
		results := make([]error, 2)
		racers(2, func(i int) { _, results[i] = nodes[1+i].Directory.Take(t.Context(), found) })
		if (results[0] == nil) == (results[1] == nil) || !errors.Is(errors.Join(results...), ErrFenced) {
			t.Errorf("the two takers: %v", results)
		}
		if silent {
			m := nodes[0].member.Load()
			m.lost()
			if owner.Sure() {
				t.Error("a disconnected node does not doubt its session")
			}
			m.found()
		}
		testutil.WaitClosed(t, "the previous owner is informed", lost)
		if owner.Sure() {
			t.Error("it still does not doubt the session")
		}
	}
}

// TestAnUnreachableNode: if the store's account forbids nodes to ask each other, silence does not count as death.
func TestAnUnreachableNode(t *testing.T) {
	a, b := twoNodes(t)
	m := a.member.Load()
	m.mu.Lock()
	m.is.Answers = false
	m.mu.Unlock()
	poke(m.wake)
	testutil.WaitUntil(t, "the others see that it cannot be asked", func() bool {
		is, err := b.Nodes.Find(t.Context(), a.Nodes.own())
		return err == nil && !is.Answers
	})
	seemGone(t, a)
	if gone, err := b.Nodes.Gone(t.Context(), a.Nodes.own()); gone || err != nil {
		t.Errorf("gone: %t, %v", gone, err)
	}
	m.Leave()
	if gone, err := b.Nodes.Gone(t.Context(), a.Nodes.own()); !gone || err != nil {
		t.Errorf("after it has left: gone %t, %v", gone, err)
	}
}

// TestNoDeathAfterAnOutage: a node that has just reached the store again considers no node dead, because the others
// may also have been cut off.
func TestNoDeathAfterAnOutage(t *testing.T) {
	a, b := twoNodes(t)
	silent := a.Nodes.own()
	a.conn.Close() // it has not returned yet
	m := b.member.Load()
	m.lost()
	m.found()
	if gone, err := b.Nodes.Gone(t.Context(), silent); gone || err != nil {
		t.Errorf("while it may still return: gone %t, %v", gone, err)
	}
	h, err := b.Nodes.bucket.get(t.Context(), keyOf(silent))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Nodes.bucket.remove(t.Context(), keyOf(silent), h.revision); err != nil {
		t.Fatal(err)
	}
	if gone, err := b.Nodes.Gone(t.Context(), silent); gone || err != nil {
		t.Errorf("when its record has lapsed: gone %t, %v", gone, err)
	}
	m.mu.Lock()
	m.back = m.back.Add(-nodeLife)
	m.mu.Unlock()
	if gone, err := b.Nodes.Gone(t.Context(), silent); !gone || err != nil {
		t.Errorf("after the time to return: gone %t, %v", gone, err)
	}
}

// TestNodesOfNewerVersions: a node of a newer version counts as alive, and its unknown format is refused with an
// explanation.
func TestNodesOfNewerVersions(t *testing.T) {
	s := openTest(t, Options{Memory: true, Logger: testLog(t)})
	join(t, s)
	for v, want := range map[int]error{1: nil, 2: ErrVersion} {
		data, err := encode(map[string]any{"v": v, "id": "node-x", "load": 0.5})
		if err != nil {
			t.Fatal(err)
		}
		if h, err := s.Nodes.bucket.get(t.Context(), keyOf("node-x")); err == nil {
			_, _ = s.Nodes.bucket.remove(t.Context(), keyOf("node-x"), h.revision)
		}
		if _, err := s.Nodes.bucket.create(t.Context(), keyOf("node-x"), data, time.Minute); err != nil {
			t.Fatal(err)
		}
		_, err = s.Nodes.Find(t.Context(), "node-x")
		if !errors.Is(err, want) || err != nil && !strings.Contains(err.Error(), "its form is 2") {
			t.Errorf("version %d: %v", v, err)
		}
		if gone, err := s.Nodes.Gone(t.Context(), "node-x"); gone || err != nil {
			t.Errorf("version %d: gone %t, %v", v, gone, err)
		}
	}
}
