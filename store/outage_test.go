package store

import (
	"encoding/json"
	"errors"
	"net/url"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"voicegw/conversation"
)

// blockedOn says whether a store shuts user out.
func blockedOn(t *testing.T, s *Store, user string) bool {
	t.Helper()
	_, ok, err := s.Blocks().Blocked(t.Context(), user)
	if err != nil {
		t.Fatal(err)
	}
	return ok
}

// TestNodesSeeEachOther: what one node writes is the other's too.
func TestNodesSeeEachOther(t *testing.T) {
	address := startJetStream(t).ClientURL()
	a, b := openTest(t, Options{URL: address}), openTest(t, Options{URL: address})
	if err := a.Blocks().Block(t.Context(), "ada", time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the other node sees the block", func() bool { return blockedOn(t, b, "ada") })
	if was, err := b.Blocks().Unblock(t.Context(), "ada"); !was || err != nil {
		t.Errorf("unblocked: %t %v", was, err)
	}
	eventually(t, "the first node sees its end", func() bool { return !blockedOn(t, a, "ada") })
	if !openedLater(t, address, a) {
		t.Error("a node that comes later does not know a block at once")
	}

	e, _ := reserve(t, a.Ledger(), "k")
	if err := a.Ledger().Finish(t.Context(), e, json.RawMessage(`{}`)); err != nil {
		t.Fatal(err)
	}
	if e, fresh := reserve(t, b.Ledger(), "k"); fresh || e.State != Done {
		t.Errorf("the other node may do it again: %t %+v", fresh, e)
	}
	q := question(t, "a", time.Minute)
	if err := a.Confirmations().Create(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	var won, used int
	results := make([]error, 32)
	racers(32, func(i int) {
		_, results[i] = []*Store{a, b}[i%2].Confirmations().Resolve(t.Context(), q.Token, "s1", true, time.Now())
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
		t.Errorf("%d answered, %d were told that it was used", won, used)
	}
}

// openedLater says whether a store that is opened now knows from the start what s
// recorded.
func openedLater(t *testing.T, address string, s *Store) bool {
	t.Helper()
	if err := s.Blocks().Block(t.Context(), "bob", time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	return blockedOn(t, openTest(t, Options{URL: address}), "bob")
}

// TestServerStops: while the server is away every operation says so within its time,
// and blocks are answered from memory; when it is back everything goes on by itself,
// and what happened meanwhile is seen.
func TestServerStops(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "nats")
	first := startServer(t, &server.Options{Port: -1, JetStream: true, StoreDir: dir})
	address, _ := url.Parse(first.ClientURL())
	port, _ := strconv.Atoi(address.Port())
	s := openTest(t, Options{URL: first.ClientURL(), Wait: 300 * time.Millisecond})
	e, _ := reserve(t, s.Ledger(), "before")
	for _, user := range []string{"ada", "bob"} {
		if err := s.Blocks().Block(t.Context(), user, time.Now().Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
	}

	first.Shutdown()
	first.WaitForShutdown()
	begun := time.Now()
	_, _, reserved := s.Ledger().Reserve(t.Context(), Reservation{Key: "during"})
	_, shown := s.Confirmations().Get(t.Context(), "x")
	_, resolved := s.Confirmations().Resolve(t.Context(), "x", "", true, time.Now())
	_, unblocked := s.Blocks().Unblock(t.Context(), "ada")
	_, _, loaded := s.Conversations().Load(t.Context(), "c")
	_, saved := s.Conversations().Save(t.Context(), conversation.New("c", "", "", time.Now()), 0)
	_, leased := s.Conversations().Lease(t.Context(), "c", time.Minute)
	_, redeemed := s.Tickets().Redeem(t.Context(), "x", "", time.Now())
	_, offered := s.VoiceSessions().Offer(t.Context(), Ticket{User: "ada"})
	failures := map[string]error{
		"load": loaded, "save": saved, "lease": leased, "redeem": redeemed, "offer": offered,
		"reserve": reserved, "get": shown, "resolve": resolved, "unblock": unblocked,
		"finish": s.Ledger().Finish(t.Context(), e, json.RawMessage(`{}`)),
		"create": s.Confirmations().Create(t.Context(), question(t, "a", time.Minute)),
		"block":  s.Blocks().Block(t.Context(), "cid", time.Now().Add(time.Hour)),
		"append": s.Audit().Append(t.Context(), []byte("x")),
		"read":   s.Audit().Read(t.Context(), time.Time{}, func([]byte) error { return nil }),
		"ready":  s.Ready(t.Context()),
	}
	for what, err := range failures {
		if !errors.Is(err, ErrUnavailable) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if took := time.Since(begun); took > 10*time.Second { // fifteen of 300 ms, and room for a busy machine
		t.Errorf("it took %v", took)
	}
	if !blockedOn(t, s, "ada") || blockedOn(t, s, "cid") {
		t.Error("the blocks in memory are not what they were")
	}

	startServer(t, &server.Options{Port: port, JetStream: true, StoreDir: dir})
	other := openTest(t, Options{URL: first.ClientURL()})
	if was, err := other.Blocks().Unblock(t.Context(), "bob"); !was || err != nil {
		t.Errorf("unblocked: %t %v", was, err)
	}
	eventually(t, "the store is there again", func() bool { return s.Ready(t.Context()) == nil })
	if err := s.Ledger().Finish(t.Context(), e, json.RawMessage(`{}`)); err != nil {
		t.Error(err)
	}
	if _, fresh := reserve(t, s.Ledger(), "during"); !fresh {
		t.Error("what could not be sent was stored later all the same")
	}
	eventually(t, "what another node did meanwhile is seen", func() bool { return !blockedOn(t, s, "bob") && blockedOn(t, s, "ada") })
	if err := other.Blocks().Block(t.Context(), "dora", time.Now().Add(time.Hour)); err != nil {
		t.Error(err)
	}
	eventually(t, "and what it does from now on", func() bool { return blockedOn(t, s, "dora") })
}

// TestClusterLosesServers: of three servers one after another goes down; with two left nothing is lost and nothing fails, with one left it is
// ErrUnavailable.
func TestClusterLosesServers(t *testing.T) {
	if testing.Short() {
		t.Skip("three servers take some seconds")
	}
	servers, urls := startCluster(t)
	s := openTest(t, Options{URL: urls, Replicas: 3, Wait: 10 * time.Second})
	hasty := openTest(t, Options{URL: urls, Replicas: 3, Wait: 500 * time.Millisecond})
	e, _ := reserve(t, s.Ledger(), "before")
	info, err := s.ledger.bucket.stream.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	left := 0
	for i, one := range servers { // the leader of the ledger goes
		if one.Name() == info.Cluster.Leader {
			one.Shutdown()
			one.WaitForShutdown()
		} else {
			left = i
		}
	}
	if err := s.Ledger().Finish(t.Context(), e, json.RawMessage(`{"ok":true}`)); err != nil {
		t.Errorf("with two servers: %v", err)
	}
	if e, fresh := reserve(t, s.Ledger(), "before"); fresh || e.State != Done {
		t.Errorf("with two servers: %t %+v", fresh, e)
	}
	if err := s.Audit().Append(t.Context(), []byte("a")); err != nil {
		t.Errorf("with two servers: %v", err)
	}
	if err := s.Blocks().Block(t.Context(), "ada", time.Now().Add(time.Hour)); err != nil || !blockedOn(t, s, "ada") {
		t.Errorf("with two servers: %v", err)
	}
	servers[left].Shutdown()
	servers[left].WaitForShutdown()
	begun := time.Now()
	if _, _, err := hasty.Ledger().Reserve(t.Context(), Reservation{Key: "alone"}); !errors.Is(err, ErrUnavailable) {
		t.Errorf("with one server: %v", err)
	}
	// A leader that has lost its followers says of its own unfinished write that it is
	// in the way, for seconds; that must not keep the caller.
	if took := time.Since(begun); took > 4*time.Second {
		t.Errorf("it took %v", took)
	}
}
