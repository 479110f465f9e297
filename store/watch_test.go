package store

import (
	"testing"
	"time"

	"voicegw/internal/testutil"
)

// TestLateWriter: a block whose write is reported late does not return once the watch has seen its end.
func TestLateWriter(t *testing.T) {
	b := openTest(t, Options{Memory: true}).Blocks
	is := block{User: "ada", Until: time.Now().Add(time.Hour)}
	b.take(keyOf("ada"), held{revision: 11, removed: true})
	b.see(keyOf("ada"), copied[block]{value: is, revision: 10})
	if _, ok := b.Blocked("ada"); ok {
		t.Error("an ended block has returned")
	}
	b.see(keyOf("ada"), copied[block]{value: is, revision: 12})
	if _, ok := b.Blocked("ada"); !ok {
		t.Error("a new block is missing")
	}
	b.see(keyOf("ada"), copied[block]{revision: 13, none: true})
	b.take(keyOf("ada"), held{revision: 12, data: mustEncode(t, is)})
	if _, ok := b.Blocked("ada"); ok {
		t.Error("the late watch has restored a block")
	}
}

func mustEncode(t *testing.T, v any) []byte {
	t.Helper()
	data, err := encode(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestForgottenWhileAway: a block that the cluster no longer knows is removed on reconnection; a new one of this node
// stays.
func TestForgottenWhileAway(t *testing.T) {
	s := openTest(t, Options{Memory: true})
	b := s.Blocks
	for _, user := range []string{"ada", "bob"} {
		if err := b.Block(t.Context(), user, time.Now().Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	testutil.WaitUntil(t, "the watch has seen both", func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.followed == 2
	})
	b.mu.Lock()
	old := b.all[keyOf("ada")]
	old.at = old.at.Add(-time.Minute)
	b.all[keyOf("ada")] = old
	b.mu.Unlock()
	if err := b.bucket.stream.Purge(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.Blocks.back <- struct{}{}
	testutil.WaitUntil(t, "the old block goes", func() bool { return !blockedOn(t, s, "ada") })
	if !blockedOn(t, s, "bob") {
		t.Error("a block that this node has just recorded is missing")
	}
}

// TestSync: Options.Sync reaches the engine.
func TestSync(t *testing.T) {
	for sync, always := range map[Sync]bool{SyncAlways: true, SyncInterval: false} {
		config := openTest(t, Options{Dir: t.TempDir(), Sync: sync}).embedded.server.JetStreamConfig()
		if config.SyncAlways != always || config.SyncInterval != syncInterval {
			t.Errorf("%d: always %t, every %v", sync, config.SyncAlways, config.SyncInterval)
		}
	}
}
