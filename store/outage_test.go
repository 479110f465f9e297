package store

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"voicegw/internal/conversation"
	"voicegw/internal/testutil"
)

// blockedOn reports whether a store blocks user.
func blockedOn(t *testing.T, s *Store, user string) bool {
	t.Helper()
	_, ok := s.Blocks.Blocked(user)
	return ok
}

// TestNodesSeeEachOther: each node sees the other's writes.
func TestNodesSeeEachOther(t *testing.T) {
	address := startJetStream(t).ClientURL()
	a, b := openTest(t, Options{URL: address}), openTest(t, Options{URL: address})
	if err := a.Blocks.Block(t.Context(), "ada", time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	testutil.WaitUntil(t, "the other node sees the block", func() bool { return blockedOn(t, b, "ada") })
	if was, err := b.Blocks.Unblock(t.Context(), "ada"); !was || err != nil {
		t.Errorf("unblocked: %t %v", was, err)
	}
	testutil.WaitUntil(t, "the first node sees its end", func() bool { return !blockedOn(t, a, "ada") })
	if !openedLater(t, address, a) {
		t.Error("a later node does not know a block at once")
	}

	e, _ := reserve(t, a.Ledger, "k")
	if err := a.Ledger.Finish(t.Context(), e, json.RawMessage(`{}`)); err != nil {
		t.Fatal(err)
	}
	if e, fresh := reserve(t, b.Ledger, "k"); fresh || e.State != Done {
		t.Errorf("the other node may repeat it: %t %+v", fresh, e)
	}
	q := question(t, "a", time.Minute)
	if err := a.Confirmations.Create(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	var won, used int
	results := make([]error, 32)
	racers(32, func(i int) {
		_, results[i] = []*Store{a, b}[i%2].Confirmations.Resolve(t.Context(), q.Token, "s1", true, time.Now())
	})
	for _, err := range results {
		switch {
		case err == nil:
			won++
		case errors.Is(err, ErrUsed):
			used++
		}
	}
	if won != 1 || used != 31 {
		t.Errorf("%d answered, %d learned that it was used", won, used)
	}
}

// openedLater reports whether a store opened now knows from the start what s recorded.
func openedLater(t *testing.T, address string, s *Store) bool {
	t.Helper()
	if err := s.Blocks.Block(t.Context(), "bob", time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	return blockedOn(t, openTest(t, Options{URL: address}), "bob")
}

// TestServerStops: while the server is down every operation fails within its time limit, and blocks are answered from
// memory; when the server returns everything continues automatically, and changes during the outage are seen.
func TestServerStops(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "nats")
	first := startServer(t, &server.Options{Port: -1, JetStream: true, StoreDir: dir})
	address, _ := url.Parse(first.ClientURL())
	port, _ := strconv.Atoi(address.Port())
	s := openTest(t, Options{URL: first.ClientURL(), Wait: 3 * time.Second})
	e, _ := reserve(t, s.Ledger, "before")
	for _, user := range []string{"ada", "bob"} {
		if err := s.Blocks.Block(t.Context(), user, time.Now().Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
	}

	first.Shutdown()
	first.WaitForShutdown()
	asked := question(t, "a", time.Minute)
	calls := map[string]func(context.Context) error{
		"reserve": func(ctx context.Context) error {
			_, _, err := s.Ledger.Reserve(ctx, Reservation{Key: "during"})
			return err
		},
		"finish": func(ctx context.Context) error { return s.Ledger.Finish(ctx, e, json.RawMessage(`{}`)) },
		"create": func(ctx context.Context) error { return s.Confirmations.Create(ctx, asked) },
		"get":    func(ctx context.Context) error { _, err := s.Confirmations.Get(ctx, "x"); return err },
		"resolve": func(ctx context.Context) error {
			_, err := s.Confirmations.Resolve(ctx, "x", "", true, time.Now())
			return err
		},
		"block":   func(ctx context.Context) error { return s.Blocks.Block(ctx, "cid", time.Now().Add(time.Hour)) },
		"unblock": func(ctx context.Context) error { _, err := s.Blocks.Unblock(ctx, "ada"); return err },
		"append":  func(ctx context.Context) error { return s.Audit.AppendAll(ctx, [][]byte{[]byte("x")}) },
		"read": func(ctx context.Context) error {
			return s.Audit.Read(ctx, time.Time{}, func([]byte) error { return nil })
		},
		"load": func(ctx context.Context) error { _, _, err := s.Conversations.Load(ctx, "c"); return err },
		"save": func(ctx context.Context) error {
			_, err := s.Conversations.Save(ctx, conversation.New("c", "", "", time.Now()), 0)
			return err
		},
		"lease":  func(ctx context.Context) error { _, err := s.Conversations.Lease(ctx, "c", time.Minute); return err },
		"redeem": func(ctx context.Context) error { _, err := s.Tickets.Redeem(ctx, "x", "", time.Now()); return err },
		"offer": func(ctx context.Context) error {
			_, err := s.VoiceSessions.Offer(ctx, Ticket{User: "ada"})
			return err
		},
		"ready": s.Ready,
	}
	failures := map[string]error{}
	var mu sync.Mutex // guards failures
	var all sync.WaitGroup
	for what, do := range calls { // at once: each takes its whole time
		all.Go(func() {
			err := do(t.Context())
			mu.Lock()
			defer mu.Unlock()
			failures[what] = err
		})
	}
	all.Wait()
	for what, err := range failures {
		if !errors.Is(err, ErrUnavailable) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if !blockedOn(t, s, "ada") || blockedOn(t, s, "cid") {
		t.Error("the blocks in memory have changed")
	}

	startServer(t, &server.Options{Port: port, JetStream: true, StoreDir: dir})
	other := openTest(t, Options{URL: first.ClientURL()})
	if was, err := other.Blocks.Unblock(t.Context(), "bob"); !was || err != nil {
		t.Errorf("unblocked: %t %v", was, err)
	}
	testutil.WaitUntil(t, "the store is available again", func() bool { return s.Ready(t.Context()) == nil })
	if err := s.Ledger.Finish(t.Context(), e, json.RawMessage(`{}`)); err != nil {
		t.Error(err)
	}
	if _, fresh := reserve(t, s.Ledger, "during"); !fresh {
		t.Error("an unsent write was stored later")
	}
	testutil.WaitUntil(t, "another node's change in the outage is seen", func() bool { return !blockedOn(t, s, "bob") && blockedOn(t, s, "ada") })
	if err := other.Blocks.Block(t.Context(), "dora", time.Now().Add(time.Hour)); err != nil {
		t.Error(err)
	}
	testutil.WaitUntil(t, "and its later changes", func() bool { return blockedOn(t, s, "dora") })
}

// TestClusterLosesServers: three servers stop one after another; with two left nothing is lost or fails, with one
// left it is ErrUnavailable.
func TestClusterLosesServers(t *testing.T) {
	if testing.Short() {
		t.Skip("three servers take some seconds")
	}
	servers, urls := startCluster(t)
	s := openTest(t, Options{URL: urls, Replicas: 3, Wait: time.Minute})
	hasty := openTest(t, Options{URL: urls, Replicas: 3, Wait: 2 * time.Second})
	e, _ := reserve(t, s.Ledger, "before")
	info, err := s.Ledger.bucket.stream.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	left := 0
	for i, one := range servers { // the leader of the ledger stops
		if one.Name() == info.Cluster.Leader {
			one.Shutdown()
			one.WaitForShutdown()
		} else {
			left = i
		}
	}
	if err := s.Ledger.Finish(t.Context(), e, json.RawMessage(`{"ok":true}`)); err != nil {
		t.Errorf("with two servers: %v", err)
	}
	if e, fresh := reserve(t, s.Ledger, "before"); fresh || e.State != Done {
		t.Errorf("with two servers: %t %+v", fresh, e)
	}
	if err := s.Audit.AppendAll(t.Context(), [][]byte{[]byte("a")}); err != nil {
		t.Errorf("with two servers: %v", err)
	}
	if err := s.Blocks.Block(t.Context(), "ada", time.Now().Add(time.Hour)); err != nil || !blockedOn(t, s, "ada") {
		t.Errorf("with two servers: %v", err)
	}
	servers[left].Shutdown()
	servers[left].WaitForShutdown()
	// A leader without followers reports for seconds that its own unfinished write is in the way;
	// TestEveryOperationEndsInTime tests that without a clock.
	if _, _, err := hasty.Ledger.Reserve(t.Context(), Reservation{Key: "alone"}); !errors.Is(err, ErrUnavailable) {
		t.Errorf("with one server: %v", err)
	}
}
