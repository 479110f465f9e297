package cluster

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"

	"voicegw/internal/testutil"
	"voicegw/protocol"
	"voicegw/session"
	"voicegw/store"
)

// startNATS starts a server with JetStream.
func startNATS(t *testing.T) *natsserver.Server {
	t.Helper()
	s, err := natsserver.NewServer(&natsserver.Options{Host: "127.0.0.1", Port: -1, JetStream: true, StoreDir: t.TempDir(), NoSigs: true, NoLog: true})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	if !s.ReadyForConnections(testutil.WaitLimit) {
		t.Fatal("the NATS server does not start")
	}
	return s
}

// nodeAt is a node with a store at that address.
func nodeAt(t *testing.T, address string) (*Node, *store.Store) {
	t.Helper()
	kept, err := store.Open(t.Context(), store.Options{URL: "nats://" + address, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { kept.Close() })
	if _, err := kept.Nodes.Join(t.Context(), store.Node{}, func() int { return 1 }); err != nil {
		t.Fatal(err)
	}
	n := NewNode(NodeOptions{Directory: kept.Directory, Nodes: kept.Nodes, Checkpoints: kept.Checkpoints, Logger: slog.New(slog.DiscardHandler)})
	t.Cleanup(n.Close)
	return n, kept
}

// TestAZombieNode: a node that can no longer reach the store stops relying on its sessions before another node may take
// them. When it reaches the store again it learns that one was taken, and can neither give it up nor write to it.
func TestAZombieNode(t *testing.T) {
	direct := strings.TrimPrefix(startNATS(t).ClientURL(), "nats://")
	proxy, err := testutil.Listen("127.0.0.1:0", direct)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { proxy.Close() })
	zombie, _ := nodeAt(t, proxy.Addr())
	other, kept := nodeAt(t, direct)

	hash := sha256.Sum256([]byte("the token"))
	p := zombie.Enter(store.SessionRecord{ID: "voice-1", User: "ada", TokenHashes: []string{hex.EncodeToString(hash[:])}, InputRate: 16000, OutputRate: 24000})
	var lost atomic.Bool
	p.WhenLost(func() { lost.Store(true) })
	testutil.WaitUntil(t, "the session is entered", func() bool {
		_, err := kept.Directory.Find(t.Context(), "voice-1")
		return err == nil
	})
	p.Note(store.Checkpoint{At: time.Now(), Turn: 3})
	testutil.WaitUntil(t, "the checkpoint is written", func() bool {
		c, err := kept.Checkpoints.Load(t.Context(), "voice-1")
		return err == nil && c.Turn == 3
	})
	if !p.Sure() {
		t.Error("a node that reaches the store is not sure of its session")
	}

	if err := proxy.Do(testutil.Command{Do: testutil.Freeze, Later: true}); err != nil {
		t.Fatal(err)
	}
	visitor := session.Visitor{Start: &protocol.Start{
		InputRate: 16000, OutputRate: 24000, Resume: &protocol.Resume{SessionID: "voice-1", Token: "the token", LastSeq: 1},
	}}
	var taken *session.Taken
	testutil.WaitUntil(t, "the other node has taken the session", func() bool {
		sure := p.Sure()
		is, err := other.Take(t.Context(), visitor)
		switch {
		case errors.Is(err, session.ErrElsewhere):
			return false
		case err != nil:
			t.Fatal(err)
		case sure && p.Sure():
			t.Fatal("the session was taken from a node that still relied on it")
		}
		taken = is
		return true
	})
	if taken.Record.Epoch != 2 || taken.Checkpoint.Turn != 3 {
		t.Errorf("it was taken as %+v with %+v", taken.Record, taken.Checkpoint)
	}
	if c, err := kept.Checkpoints.Load(t.Context(), "voice-1"); err != nil || c.Epoch != 2 || c.Turn != 3 {
		t.Errorf("after the takeover its checkpoint is %+v, %v: the zombie could replace it", c, err)
	}
	taken.Place.Note(store.Checkpoint{At: time.Now(), Turn: 4})
	if lost.Load() {
		t.Error("the zombie already knows of the loss")
	}

	if err := proxy.Do(testutil.Command{Do: testutil.Heal}); err != nil {
		t.Fatal(err)
	}
	testutil.WaitUntil(t, "the zombie knows that the session is lost", lost.Load)
	if p.Sure() {
		t.Error("a node is sure of a session that it has lost")
	}
	p.Note(store.Checkpoint{At: time.Now(), Turn: 99})
	ctx, cancel := context.WithTimeout(t.Context(), testutil.WaitLimit)
	defer cancel()
	if err := p.Give(ctx, store.Checkpoint{At: time.Now(), Turn: 99}); err == nil {
		t.Error("a session of another node was given up")
	}
	testutil.WaitUntil(t, "the next owner's checkpoint is written", func() bool {
		c, err := kept.Checkpoints.Load(t.Context(), "voice-1")
		if err == nil && c.Turn == 99 {
			t.Fatal("the zombie has written a checkpoint")
		}
		return err == nil && c.Turn == 4
	})
	if r, err := kept.Directory.Find(t.Context(), "voice-1"); err != nil || r.Epoch != 2 || r.State != store.SessionLive {
		t.Errorf("the record is %+v, %v", r, err)
	}
	p.Leave()
	taken.Place.Leave()
}
