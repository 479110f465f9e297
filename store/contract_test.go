package store

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"voicegw/internal/conversation"
	"voicegw/internal/testutil"
)

// settles fails the test if a read of a stream differs from want. In a cluster it retries: any server may answer, and
// may learn of the last writes a moment after their confirmation.
func settles[T any](t *testing.T, s *Store, what string, want T, read func() T) {
	t.Helper()
	got := read()
	if s.o.Replicas > 1 && !cmp.Equal(want, got) {
		testutil.WaitUntil(t, what, func() bool {
			got = read()
			return cmp.Equal(want, got)
		})
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: %s", what, diff)
	}
}

// TestContract runs one suite against every kind of engine.
func TestContract(t *testing.T) {
	for name, options := range map[string]func(t *testing.T) Options{
		"embedded": func(t *testing.T) Options { return Options{Dir: filepath.Join(t.TempDir(), "data")} },
		"interval": func(t *testing.T) Options { return Options{Dir: t.TempDir(), Sync: SyncInterval} },
		"memory":   func(*testing.T) Options { return Options{Memory: true} },
		"external": func(t *testing.T) Options { return Options{URL: startJetStream(t).ClientURL()} },
		"cluster": func(t *testing.T) Options {
			_, urls := startCluster(t)
			return Options{URL: urls, Replicas: 3}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // they mostly wait: for leases, and for the disk
			if name == "cluster" && testing.Short() {
				t.Skip("three servers take some seconds")
			}
			o := options(t)
			o.Logger = testLog(t)
			s := openTest(t, o)
			join(t, s)
			for name, test := range map[string]func(*testing.T, *Store){
				"ledger":              testLedger,
				"ledger released":     testRelease,
				"ledger race":         testReserveRace,
				"ledger finish race":  testFinishRace,
				"limits":              testLimits,
				"confirmation":        testConfirmation,
				"confirmation ends":   testConfirmationEnds,
				"confirmation race":   testResolveRace,
				"confirmation wrong":  testConfirmationRefused,
				"records end":         testRecordsEnd,
				"blocks":              testBlocks,
				"blocks race":         testBlocksRace,
				"blocks wrong record": testWrongBlock,
				"audit":               testAudit,
				"audit race":          testAuditRace,
				"conversations":       testConversations,
				"answers":             testAnswers,
				"conversation race":   testConversationRace,
				"conversation list":   testConversationList,
				"lease":               testLease,
				"tickets":             testTickets,
				"ticket race":         testTicketRace,
				"client secrets":      testClientSecrets,
				"ticket replaced":     testReplacedTicket,
				"ticket wrong":        testTicketRefused,
				"voice sessions":      testVoiceSessions,
				"voice race":          testVoiceRace,
				"voice adopted":       testAdopt,
				"voice adopt race":    testAdoptRace,
				"nodes":               testNodes,
				"directory":           testDirectory,
				"directory race":      testTakeRace,
				"directory versions":  testSessionVersions,
				"checkpoints":         testCheckpoints,
				"checkpoint fenced":   testCheckpointFenced,
				"usage":               testUsage,
				"usage notices":       testUsageNotices,
				"agents":              testAgents,
				"agents kept":         testAgentsKept,
				"jobs":                testJobs,
				"jobs refused":        testJobsRefused,
				"job lease":           testJobLease,
				"webhooks":            testWebhooks,
				"contexts":            testContexts,
			} {
				t.Run(name, func(t *testing.T) { test(t, s) })
			}
			if err := s.Ready(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// key is a unique name in the store.
func key(t *testing.T, text string) string { return t.Name() + " " + text }

func reserve(t *testing.T, l *Ledger, key string) (Entry, bool) {
	t.Helper()
	e, fresh, err := l.Reserve(t.Context(), Reservation{Key: key, Tool: "calendar_create_event", Session: "s1", Call: "c1", Turn: 2, Lease: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	return e, fresh
}

func testLedger(t *testing.T, s *Store) {
	l, k := s.Ledger, key(t, "Grüße, <b>\n\x00")
	first, fresh := reserve(t, l, k)
	if !fresh || first.State != Pending || first.Key != k || !first.LeaseUntil.Equal(first.At.Add(time.Minute)) {
		t.Errorf("the first: %t %+v", fresh, first)
	}
	second, fresh, err := l.Reserve(t.Context(), Reservation{Key: k, Tool: "other", Session: "s2"})
	if err != nil || fresh {
		t.Fatalf("the second: fresh %t, %v", fresh, err)
	}
	want := first
	want.Lease = 0
	if diff := cmp.Diff(want, second, cmp.AllowUnexported(Entry{})); diff != "" {
		t.Error(diff)
	}
	envelope := json.RawMessage(`{"ok":true,"data":"<é> \u0041"}`)
	for range 2 { // after an error a caller may try again
		if err := l.Finish(t.Context(), first, envelope); err != nil {
			t.Fatal(err)
		}
	}
	done, fresh := reserve(t, l, k)
	if fresh || done.State != Done || !bytes.Equal(done.Envelope, envelope) || done.Session != "s1" {
		t.Errorf("after it was done: %t %+v", fresh, done)
	}
	if err := l.Finish(t.Context(), first, json.RawMessage(`{"ok":false}`)); !errors.Is(err, ErrChanged) {
		t.Errorf("finished differently: %v", err)
	}
	if err := l.Release(t.Context(), first); !errors.Is(err, ErrChanged) {
		t.Errorf("releasing a stale reservation: %v", err)
	}
	if err := l.Release(t.Context(), done); !errors.Is(err, ErrUsed) {
		t.Errorf("releasing a finished entry: %v", err)
	}
	if err := l.Finish(t.Context(), Entry{Reservation: Reservation{Key: k}}, envelope); !errors.Is(err, ErrChanged) {
		t.Errorf("finishing without a reservation: %v", err)
	}
}

func testRelease(t *testing.T, s *Store) {
	l, k := s.Ledger, key(t, "a")
	for range 3 {
		e, fresh := reserve(t, l, k)
		if !fresh {
			t.Fatal("a released action cannot be reserved again")
		}
		for range 2 {
			if err := l.Release(t.Context(), e); err != nil {
				t.Fatal(err)
			}
		}
		if err := l.Finish(t.Context(), e, json.RawMessage(`{}`)); !errors.Is(err, ErrChanged) {
			t.Errorf("finishing a released entry: %v", err)
		}
	}
	old, _ := reserve(t, l, k)
	_ = l.Release(t.Context(), old)
	reserve(t, l, k)
	if err := l.Release(t.Context(), old); !errors.Is(err, ErrChanged) {
		t.Errorf("releasing another session's: %v", err)
	}
}

// racers runs f n times at once.
func racers(n int, f func(i int)) {
	var all sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		all.Go(func() {
			<-start
			f(i)
		})
	}
	close(start)
	all.Wait()
}

func testReserveRace(t *testing.T, s *Store) {
	for round := range 3 {
		var won atomic.Int32
		racers(64, func(i int) {
			_, fresh, err := s.Ledger.Reserve(t.Context(), Reservation{Key: key(t, fmt.Sprint(round)), Session: fmt.Sprint(i)})
			if err != nil {
				t.Error(err)
			}
			if fresh {
				won.Add(1)
			}
		})
		if won.Load() != 1 {
			t.Errorf("%d of 64 have the reservation", won.Load())
		}
	}
}

// testFinishRace: of several holders of one reservation with different outcomes one succeeds.
func testFinishRace(t *testing.T, s *Store) {
	e, _ := reserve(t, s.Ledger, key(t, "a"))
	var won atomic.Int32
	racers(32, func(i int) {
		switch err := s.Ledger.Finish(t.Context(), e, json.RawMessage(fmt.Sprint(i))); {
		case err == nil:
			won.Add(1)
		case !errors.Is(err, ErrChanged):
			t.Error(err)
		}
	})
	if won.Load() != 1 {
		t.Errorf("%d of 32 succeeded", won.Load())
	}
}

// testLimits: the largest value is stored, and a larger one is refused with the limit in the error, and nothing is
// written.
func testLimits(t *testing.T, s *Store) {
	if s.o.Memory || s.o.Sync == SyncInterval {
		t.Skip("four megabytes of JSON take seconds under the race detector; the limits are the embedded server's")
	}
	l, k := s.Ledger, key(t, "a")
	e, _ := reserve(t, l, k)
	envelope := func(n int) json.RawMessage {
		return json.RawMessage(`"` + strings.Repeat("x", n-2) + `"`)
	}
	err := l.Finish(t.Context(), e, envelope(s.most()))
	if !errors.Is(err, ErrTooBig) || errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), fmt.Sprint(s.most())) {
		t.Errorf("too big: %v", err)
	}
	if err := l.Finish(t.Context(), e, envelope(s.most()-300)); err != nil {
		t.Fatal(err)
	}
	if got, _ := reserve(t, l, k); len(got.Envelope) != s.most()-300 {
		t.Errorf("read %d bytes", len(got.Envelope))
	}
	if err := s.Audit.AppendAll(t.Context(), [][]byte{bytes.Repeat([]byte("x"), s.most())}); !errors.Is(err, ErrTooBig) {
		t.Errorf("a long audit line: %v", err)
	}
	if err := s.Audit.AppendAll(t.Context(), [][]byte{bytes.Repeat([]byte("x"), s.most()-1)}); err != nil {
		t.Errorf("the longest audit line: %v", err)
	}
}

func question(t *testing.T, token string, life time.Duration) Confirmation {
	now := time.Now().UTC()
	return Confirmation{
		Token: key(t, token), Reference: "4711", Session: "s1", User: "ada", Agent: "a", Conversation: "c", Mode: "voice",
		Tool: "calendar_create_event", ToolVersion: "1.2.3", RegistryVersion: "1.0.cafe", Turn: 3,
		Args: json.RawMessage(`{"title":"<Tea> & \u00e9","n":1.50}`), Preview: "Tea?", IdempotencyKey: "i", BusinessKey: "b",
		CreatedAt: now, ExpiresAt: now.Add(life),
	}
}

func testConfirmation(t *testing.T, s *Store) {
	c, q := s.Confirmations, question(t, "a", time.Minute)
	if err := c.Create(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	if err := c.Create(t.Context(), q); !errors.Is(err, ErrUsed) {
		t.Errorf("the same token: %v", err)
	}
	got, err := c.Get(t.Context(), q.Token)
	if diff := cmp.Diff(q, got); diff != "" || err != nil {
		t.Error(err, diff)
	}
	// The name of a question shows it without the token, and cannot answer it.
	name, shown := QuestionName(q.Token), q
	shown.Token = ""
	got, err = c.Named(t.Context(), name)
	if diff := cmp.Diff(shown, got); diff != "" || err != nil {
		t.Error(err, diff)
	}
	if _, err := c.Resolve(t.Context(), name, "", true, time.Now()); !errors.Is(err, ErrUnknown) {
		t.Errorf("the name for a token: %v", err)
	}
	for _, other := range []string{"", q.Token, ">", "*", QuestionName("other")} {
		if _, err := c.Named(t.Context(), other); !errors.Is(err, ErrUnknown) {
			t.Errorf("named %q: %v", other, err)
		}
		if _, err := c.ResolveNamed(t.Context(), other, "", true, time.Now()); !errors.Is(err, ErrUnknown) {
			t.Errorf("answered by the name %q: %v", other, err)
		}
	}
	if _, err := c.Resolve(t.Context(), q.Token, "s2", true, time.Now()); !errors.Is(err, ErrUnknown) {
		t.Errorf("another session: %v", err)
	}
	if _, err := c.Resolve(t.Context(), "no such token", "s1", true, time.Now()); !errors.Is(err, ErrUnknown) {
		t.Errorf("no token: %v", err)
	}
	got, err = c.Resolve(t.Context(), q.Token, "s1", true, time.Now())
	q.Outcome = Approved
	if diff := cmp.Diff(q, got); diff != "" || err != nil {
		t.Error(err, diff)
	}
	for _, late := range []time.Duration{0, time.Hour} {
		got, err = c.Resolve(t.Context(), q.Token, "", false, time.Now().Add(late))
		if !errors.Is(err, ErrUsed) || got.Outcome != Approved {
			t.Errorf("answered again after %v: %v %v", late, got.Outcome, err)
		}
	}
	byName := question(t, "n", time.Minute)
	if err := c.Create(t.Context(), byName); err != nil {
		t.Fatal(err)
	}
	for _, want := range []error{nil, ErrUsed} {
		got, err := c.ResolveNamed(t.Context(), QuestionName(byName.Token), "", true, time.Now())
		if !errors.Is(err, want) || got.Outcome != Approved || got.Token != "" {
			t.Errorf("answered by its name: %+v, %v", got, err)
		}
	}
	if got, err := c.Get(t.Context(), byName.Token); err != nil || got.Outcome != Approved {
		t.Errorf("shown after: %v %v", got.Outcome, err)
	}
	denied := question(t, "b", time.Minute)
	if err := c.Create(t.Context(), denied); err != nil {
		t.Fatal(err)
	}
	if got, err := c.Resolve(t.Context(), denied.Token, "", false, time.Now()); err != nil || got.Outcome != Denied {
		t.Errorf("denied: %v %v", got.Outcome, err)
	}
	if got, err := c.Get(t.Context(), denied.Token); err != nil || got.Outcome != Denied {
		t.Errorf("shown after: %v %v", got.Outcome, err)
	}
}

// testConfirmationEnds: "too late" differs from "used", and after a late attempt it is the result for every caller.
func testConfirmationEnds(t *testing.T, s *Store) {
	c, q := s.Confirmations, question(t, "a", time.Minute)
	if err := c.Create(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	for _, now := range []time.Time{q.ExpiresAt, q.ExpiresAt.Add(time.Hour), q.CreatedAt} {
		got, err := c.Resolve(t.Context(), q.Token, "s1", true, now)
		if !errors.Is(err, ErrExpired) || got.Outcome != Expired || got.Reference != "4711" {
			t.Errorf("as of %v: %v %v", now, got.Outcome, err)
		}
	}
	inTime := question(t, "b", time.Minute)
	if err := c.Create(t.Context(), inTime); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Resolve(t.Context(), inTime.Token, "s1", true, inTime.ExpiresAt.Add(-1)); err != nil {
		t.Errorf("at the last moment: %v", err)
	}
}

func testResolveRace(t *testing.T, s *Store) {
	for round := range 3 {
		c, q := s.Confirmations, question(t, fmt.Sprint(round), time.Minute)
		if err := c.Create(t.Context(), q); err != nil {
			t.Fatal(err)
		}
		outcomes := make([]Outcome, 64)
		var won atomic.Int32
		racers(64, func(i int) {
			got, err := c.Resolve(t.Context(), q.Token, "s1", i%2 == 0, time.Now())
			outcomes[i] = got.Outcome
			switch {
			case err == nil:
				won.Add(1)
			case !errors.Is(err, ErrUsed):
				t.Error(err)
			}
		})
		if won.Load() != 1 {
			t.Errorf("%d of 64 answered", won.Load())
		}
		for _, o := range outcomes {
			if o != outcomes[0] {
				t.Fatalf("some got %q, some %q", outcomes[0], o)
			}
		}
	}
}

func testConfirmationRefused(t *testing.T, s *Store) {
	for name, spoil := range map[string]func(*Confirmation){
		"token":   func(q *Confirmation) { q.Token = "" },
		"session": func(q *Confirmation) { q.Session = "" },
		"tool":    func(q *Confirmation) { q.Tool = "" },
		"end":     func(q *Confirmation) { q.ExpiresAt = q.CreatedAt },
		"outcome": func(q *Confirmation) { q.Outcome = Approved },
		"args":    func(q *Confirmation) { q.Args = json.RawMessage(`{"a":`) },
	} {
		q := question(t, name, time.Minute)
		spoil(&q)
		if err := s.Confirmations.Create(t.Context(), q); err == nil || errors.Is(err, ErrUnavailable) {
			t.Errorf("without its %s: %v", name, err)
		}
	}
}

// testRecordsEnd: every record expires, whatever happens to it: the library's own Update would remove the limit.
func testRecordsEnd(t *testing.T, s *Store) {
	life := func(b *bucket, text string) time.Duration {
		t.Helper()
		m, err := b.stream.GetLastMsgForSubject(t.Context(), b.before+keyOf(text))
		if err != nil {
			t.Fatal(err)
		}
		d, err := time.ParseDuration(m.Header.Get("Nats-TTL"))
		if err != nil {
			t.Errorf("no life: %v", err)
		}
		return d
	}
	l, k := s.Ledger, key(t, "a")
	e, _ := reserve(t, l, k)
	if d := life(l.bucket, k); d != 24*time.Hour {
		t.Errorf("a reservation lives %v", d)
	}
	if err := l.Finish(t.Context(), e, json.RawMessage(`{}`)); err != nil {
		t.Fatal(err)
	}
	if d := life(l.bucket, k); d != 24*time.Hour {
		t.Errorf("a finished entry lives %v", d)
	}
	released, _ := reserve(t, l, key(t, "b"))
	_ = l.Release(t.Context(), released)
	if d := life(l.bucket, key(t, "b")); d != removedLife {
		t.Errorf("the note of a release lives %v", d)
	}
	kept, session := s.Checkpoints, key(t, "over")
	if err := kept.Save(t.Context(), checkpoint(session, 1)); err != nil {
		t.Fatal(err)
	}
	kept.Remove(session)
	if err := kept.Flush(t.Context(), session); err != nil {
		t.Fatal(err)
	}
	if d := life(kept.bucket, session); d != overLife {
		t.Errorf("the note of an ended session lives %v", d)
	}
	c, q := s.Confirmations, question(t, "c", 5*time.Minute)
	if err := c.Create(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	if d := life(c.bucket, q.Token); d != time.Hour+5*time.Minute {
		t.Errorf("a question lives %v", d)
	}
	if _, err := c.Resolve(t.Context(), q.Token, "", true, q.CreatedAt.Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if d := life(c.bucket, q.Token); d != 24*time.Hour {
		t.Errorf("an approval lives %v", d)
	}
	no := question(t, "d", 5*time.Minute)
	if err := c.Create(t.Context(), no); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Resolve(t.Context(), no.Token, "", false, no.CreatedAt.Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if d := life(c.bucket, no.Token); d != time.Hour+4*time.Minute {
		t.Errorf("a denial lives %v", d)
	}
	secret, id := create(t, s, ticket(t)), talkID(t, "c")
	if d := life(s.Tickets.bucket, secret); d < time.Hour+59*time.Second || d > time.Hour+time.Minute {
		t.Errorf("a ticket lives %v", d)
	}
	if _, err := s.Tickets.Redeem(t.Context(), secret, "https://example.org", time.Now()); err != nil {
		t.Fatal(err)
	}
	if d := life(s.Tickets.bucket, secret); d < time.Hour+59*time.Second || d > time.Hour+time.Minute {
		t.Errorf("a used ticket lives %v", d)
	}
	rev, err := s.Conversations.Save(t.Context(), conversation.New(id, "", "", time.Now()), 0)
	for range 2 {
		if d := life(s.Conversations.bucket, id); d != 30*24*time.Hour || err != nil {
			t.Errorf("a conversation lives %v, %v", d, err)
		}
		rev, err = s.Conversations.Save(t.Context(), conversation.New(id, "", "", time.Now()), rev)
	}
	held, err := s.Conversations.Lease(t.Context(), id, 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Release()
	if d := life(s.Conversations.leases, id); d != 10*time.Second {
		t.Errorf("a lease lives %v", d)
	}
	over, err := s.VoiceSessions.Begin(t.Context(), "voice-1", "ada", id)
	if err != nil {
		t.Fatal(err)
	}
	defer over.Release()
	if d := life(s.VoiceSessions.bucket, "ada\x00"+id); d != voiceLife {
		t.Errorf("a voice session lives %v", d)
	}
	for i, until := range []time.Duration{time.Hour, 3 * time.Hour} {
		if err := s.Blocks.Block(t.Context(), k, time.Now().Add(until)); err != nil {
			t.Fatal(err)
		}
		if d := life(s.Blocks.bucket, k); d != until {
			t.Errorf("block %d lives %v", i, d)
		}
	}
}

// testContexts: a caller that gives up gets its own error, not an error of the store.
func testContexts(t *testing.T, s *Store) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := s.Ledger.Reserve(ctx, Reservation{Key: key(t, "a")}); !errors.Is(err, context.Canceled) || errors.Is(err, ErrUnavailable) {
		t.Errorf("a cancelled context: %v", err)
	}
	late, stop := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer stop()
	if _, err := s.Confirmations.Get(late, "x"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a deadline that is over: %v", err)
	}
}
