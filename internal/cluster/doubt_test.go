package cluster

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"voicegw/internal/testutil"
	"voicegw/protocol"
	"voicegw/session"
	"voicegw/store"
)

// take is Directory.Take.
type take func(ctx context.Context, found store.SessionRecord) (*store.Owned, error)

// silentDirectory applies its writes, and for a while reports that the store has not answered.
type silentDirectory struct {
	*store.Directory

	mu    sync.Mutex
	takes []take // the next answers
}

func (d *silentDirectory) Take(ctx context.Context, found store.SessionRecord) (*store.Owned, error) {
	d.mu.Lock()
	do := take(d.Directory.Take)
	if len(d.takes) > 0 {
		do, d.takes = d.takes[0], d.takes[1:]
	}
	d.mu.Unlock()
	return do(ctx, found)
}

// allGone are nodes that are all dead.
type allGone struct{ Nodes }

func (allGone) Gone(context.Context, string) (bool, error) { return true, nil }

// TestUncertainTakeover: the store does not answer in time whether a node has taken a session; the write may have
// happened, may not, or may happen later. The session does not stay with a node that does not run it: any node can take
// it a moment later, and it remains known whether the last owner has given it up.
func TestUncertainTakeover(t *testing.T) {
	silent := fmt.Errorf("%w: no answer", store.ErrUnavailable)
	for name, tc := range map[string]struct {
		given bool
		takes func(d *silentDirectory) []take
	}{
		"it has": {false, func(d *silentDirectory) []take {
			done := func(ctx context.Context, found store.SessionRecord) (*store.Owned, error) {
				_, err := d.Directory.Take(ctx, found)
				return nil, errors.Join(err, silent)
			}
			return []take{done, done}
		}},
		"it has taken a session that was given up": {true, func(d *silentDirectory) []take {
			return []take{func(ctx context.Context, found store.SessionRecord) (*store.Owned, error) {
				_, err := d.Directory.Take(ctx, found)
				return nil, errors.Join(err, silent)
			}}
		}},
		"it has not": {true, func(*silentDirectory) []take {
			return []take{func(context.Context, store.SessionRecord) (*store.Owned, error) { return nil, silent }}
		}},
		"another one has": {false, func(d *silentDirectory) []take {
			return []take{func(context.Context, store.SessionRecord) (*store.Owned, error) { return nil, silent },
				func(context.Context, store.SessionRecord) (*store.Owned, error) { return nil, store.ErrFenced }}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			address := strings.TrimPrefix(startNATS(t).ClientURL(), "nats://")
			first, kept := nodeAt(t, address)
			own, err := store.Open(t.Context(), store.Options{URL: "nats://" + address, Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { own.Close() })
			is, err := own.Nodes.Join(t.Context(), store.Node{}, func() int { return 1 })
			if err != nil {
				t.Fatal(err)
			}
			self := func() string { return is.Node().ID }
			d := &silentDirectory{Directory: own.Directory}
			d.takes = tc.takes(d)
			n := NewNode(NodeOptions{Directory: d, Nodes: allGone{}, Checkpoints: own.Checkpoints, Self: self, Logger: slog.New(slog.NewTextHandler(t.Output(), nil))})
			t.Cleanup(n.Close)
			hash := sha256.Sum256([]byte("the token"))
			p := first.Enter(store.SessionRecord{ID: "voice-1", User: "ada", TokenHashes: []string{hex.EncodeToString(hash[:])}, InputRate: 16000, OutputRate: 24000})
			testutil.WaitClosed(t, "the session is entered", p.Written())
			if tc.given {
				if err := p.Give(t.Context(), store.Checkpoint{Turn: 3}); err != nil {
					t.Fatal(err)
				}
			}
			visitor := session.Visitor{Start: &protocol.Start{InputRate: 16000, OutputRate: 24000, Resume: &protocol.Resume{SessionID: "voice-1", Token: "the token"}}}
			if _, err := n.Take(t.Context(), visitor); !errors.Is(err, store.ErrUnavailable) {
				t.Fatalf("the session was taken, %v", err)
			}
			var taken *session.Taken
			testutil.WaitUntil(t, "the session is taken", func() bool {
				is, err := n.Take(t.Context(), visitor)
				if err != nil && !errors.Is(err, session.ErrElsewhere) {
					t.Fatalf("the client gets %v", err)
				}
				taken = is
				return err == nil
			})
			if r, err := kept.Directory.Find(t.Context(), "voice-1"); err != nil || r.State != store.SessionLive || r.Node != self() || taken.Record.Lost == tc.given {
				t.Errorf("it was taken as %+v, and the record is %+v, %v", taken.Record, r, err)
			}
			taken.Place.Leave()
		})
	}
}

// orphaned returns a node, the client of a session whose own node is gone, and the session's store.
func orphaned(t *testing.T) (*Node, session.Visitor, *store.Store) {
	t.Helper()
	address := strings.TrimPrefix(startNATS(t).ClientURL(), "nats://")
	first, kept := nodeAt(t, address)
	own, err := store.Open(t.Context(), store.Options{URL: "nats://" + address, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { own.Close() })
	is, err := own.Nodes.Join(t.Context(), store.Node{}, func() int { return 1 })
	if err != nil {
		t.Fatal(err)
	}
	n := NewNode(NodeOptions{
		Directory: own.Directory, Nodes: allGone{}, Checkpoints: own.Checkpoints, Self: func() string { return is.Node().ID }, Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	t.Cleanup(n.Close)
	hash := sha256.Sum256([]byte("the token"))
	p := first.Enter(store.SessionRecord{ID: "voice-1", User: "ada", TokenHashes: []string{hex.EncodeToString(hash[:])}, InputRate: 16000, OutputRate: 24000})
	testutil.WaitClosed(t, "the session is entered", p.Written())
	visitor := session.Visitor{Start: &protocol.Start{InputRate: 16000, OutputRate: 24000, Resume: &protocol.Resume{SessionID: "voice-1", Token: "the token"}}}
	return n, visitor, kept
}

// TestATakeoverOutOfTimeIsUndone: the store is too slow for a takeover. The node has no time left for it, and still gives the
// session back at once, so that the client's next attempt begins with a free session.
func TestATakeoverOutOfTimeIsUndone(t *testing.T) {
	n, visitor, kept := orphaned(t)
	ctx, cancel := context.WithCancel(t.Context())
	n.o.Checkpoints, n.keepTime = lateCheckpoints{n.o.Checkpoints, cancel}, testutil.WaitLimit
	if _, err := n.Take(ctx, visitor); !errors.Is(err, store.ErrUnavailable) {
		t.Fatalf("the takeover ended with %v", err)
	}
	if r, err := kept.Directory.Find(t.Context(), "voice-1"); err != nil || r.State != store.SessionMoving || n.inDoubt("voice-1") {
		t.Errorf("the record is %+v, %v", r, err)
	}
}

// lateCheckpoints answers Load after the time of the caller is over.
type lateCheckpoints struct {
	Checkpoints
	over func()
}

func (c lateCheckpoints) Load(ctx context.Context, _ string) (store.Checkpoint, error) {
	c.over()
	return store.Checkpoint{}, fmt.Errorf("%w: %w", store.ErrUnavailable, ctx.Err())
}

// TestASessionThatCannotContinueIsGivenBack: a node has taken a session but cannot continue it, and the store does not
// answer when the node gives it back. The session does not stay with the node: it can be taken a moment later.
func TestASessionThatCannotContinueIsGivenBack(t *testing.T) {
	n, visitor, kept := orphaned(t)
	taken, err := n.Take(t.Context(), visitor)
	if err != nil {
		t.Fatal(err)
	}
	late, cancel := context.WithCancel(t.Context())
	cancel()
	if err := taken.Place.Return(late); err == nil {
		t.Fatal("it was given back without an answer of the store")
	}
	testutil.WaitUntil(t, "the session is taken again", func() bool {
		is, err := n.Take(t.Context(), visitor)
		if err != nil && !errors.Is(err, session.ErrElsewhere) {
			t.Fatalf("the client gets %v", err)
		}
		taken = is
		return err == nil
	})
	if r, err := kept.Directory.Find(t.Context(), "voice-1"); err != nil || r.State != store.SessionLive || !taken.Record.Lost {
		t.Errorf("it was taken as %+v, and the record is %+v, %v", taken.Record, r, err)
	}
	taken.Place.Leave()
}

// TestGivenUpInDoubt: a node gives up a session, and the store writes it but does not answer. Either no other node has
// read it, and the session belongs to this node again; or another node has taken the session, and this node knows it.
func TestGivenUpInDoubt(t *testing.T) {
	for name, read := range map[string]bool{"no node has read it": false, "another node has": true} {
		t.Run(name, func(t *testing.T) {
			address := strings.TrimPrefix(startNATS(t).ClientURL(), "nats://")
			first, kept := nodeAt(t, address)
			other, _ := nodeAt(t, address)
			first.keepTime = testutil.WaitLimit
			hash := sha256.Sum256([]byte("the token"))
			p := first.newPlace(store.SessionRecord{ID: "voice-1", User: "ada", State: store.SessionLive, TokenHashes: []string{hex.EncodeToString(hash[:])}, InputRate: 16000, OutputRate: 24000}, nil)
			p.Update(func(*store.SessionRecord) {})
			testutil.WaitClosed(t, "the session is entered", p.Written())
			p.mu.Lock()
			owned, record := p.owned, p.record()
			p.mu.Unlock()
			if err := owned.Update(t.Context(), func(r *store.SessionRecord) { r.State = store.SessionMoving }); err != nil {
				t.Fatal(err)
			}
			visitor := session.Visitor{Start: &protocol.Start{InputRate: 16000, OutputRate: 24000, Resume: &protocol.Resume{SessionID: "voice-1", Token: "the token"}}}
			if read {
				if _, err := other.Take(t.Context(), visitor); err != nil {
					t.Fatal(err)
				}
			}
			late, cancel := context.WithCancel(t.Context())
			cancel()
			err := p.keep(late, owned, record, store.ErrUnavailable)
			again := p.Give(t.Context(), store.Checkpoint{Turn: 3})
			r, findErr := kept.Directory.Find(t.Context(), "voice-1")
			switch {
			case findErr != nil:
				t.Fatal(findErr)
			case read:
				if !errors.Is(err, store.ErrFenced) || !errors.Is(again, store.ErrFenced) || r.State != store.SessionLive || r.Epoch != 2 {
					t.Errorf("it learns %v and %v, and the record is %+v", err, again, r)
				}
			case !errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrFenced) || again != nil || r.State != store.SessionMoving || r.Epoch != 1:
				t.Errorf("it learns %v and %v, and the record is %+v", err, again, r)
			}
		})
	}
}

// TestReleaseThatCannotBeUndone: the store answers neither a release nor its undoing. Another node may take the session at
// any moment, so it starts no side effects until the store says that it is not released.
func TestReleaseThatCannotBeUndone(t *testing.T) {
	n, _ := nodeAt(t, strings.TrimPrefix(startNATS(t).ClientURL(), "nats://"))
	p := n.newPlace(store.SessionRecord{ID: "voice-1", User: "ada", State: store.SessionLive}, nil)
	p.Update(func(*store.SessionRecord) {})
	testutil.WaitClosed(t, "the session is entered", p.Written())
	p.mu.Lock()
	owned, record := p.owned, p.record()
	p.mu.Unlock()
	n.keepTime = 0
	if err := p.keep(t.Context(), owned, record, store.ErrUnavailable); !errors.Is(err, store.ErrUnavailable) || p.Sure() {
		t.Errorf("%v, and the session is sure: %t", err, p.Sure())
	}
	p.Update(func(*store.SessionRecord) {})
	testutil.WaitClosed(t, "the record is written again", p.Written())
	if !p.Sure() {
		t.Error("the session is not sure")
	}
}

// TestLostWhileItIsGivenUp: another node takes a session while this one tries to give it up, and the store does not
// answer. The caller of Give, and no other, learns that the session is lost.
func TestLostWhileItIsGivenUp(t *testing.T) {
	address := strings.TrimPrefix(startNATS(t).ClientURL(), "nats://")
	n, _ := nodeAt(t, address)
	p := n.newPlace(store.SessionRecord{ID: "voice-1", User: "ada", State: store.SessionLive}, nil)
	p.Update(func(*store.SessionRecord) {})
	testutil.WaitClosed(t, "the session is entered", p.Written())
	p.WhenLost(func() { t.Error("another caller is informed") })
	p.mu.Lock()
	p.writing = make(chan struct{}) // a write that the store does not answer
	p.mu.Unlock()
	ctx, cancel := context.WithCancel(t.Context())
	given := make(chan error, 1)
	go func() { given <- p.Give(ctx, store.Checkpoint{Turn: 3}) }()
	testutil.WaitUntil(t, "it is being given up", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.over
	})
	p.taken()
	cancel()
	if err := <-given; !errors.Is(err, store.ErrFenced) {
		t.Errorf("the caller learns %v", err)
	}
}
