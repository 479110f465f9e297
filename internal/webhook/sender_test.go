package webhook

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"voicegw/internal/testutil"
	"voicegw/store"
)

// TestDelivered: each event arrives at each endpoint that wants it, signed with both secrets, and has the same ID
// everywhere.
func TestDelivered(t *testing.T) {
	keep := opened(t, store.Options{Memory: true}).Webhooks
	one, two, none := newReceiver(t, nil), newReceiver(t, nil), newReceiver(t, nil)
	one.keys = [][]byte{oldKey, newKey}
	both := one.endpoint(t, "one")
	both.Secrets = append(both.Secrets, secret(t, oldKey))
	other := none.endpoint(t, "none")
	other.Events = []string{SessionEnded}
	s := sending(t, keep, nil, both, two.endpoint(t, "two"), other)
	var want []string
	for n := range 5 {
		e := happened(t, n)
		want = append(want, e.ID)
		s.Tell(e)
		s.Tell(e) // as from another gateway
	}
	slices.Sort(want)
	for name, r := range map[string]*receiver{"one": one, "two": two} {
		testutil.WaitUntil(t, "all have arrived", func() bool { return len(r.got(t)) == 5 && s.Stats()[name].Delivered == 5 })
		if got := slices.Sorted(slices.Values(r.got(t))); !slices.Equal(got, want) {
			t.Errorf("%s got %q, want %q", name, got, want)
		}
	}
	if got := none.got(t); len(got) > 0 {
		t.Errorf("an endpoint got an unwanted event: %q", got)
	}
}

// TestTroubleOfOne: a receiver that is slow, fails, redirects or answers endlessly gets its events again, or no more, and
// does not delay others. The log does not have its URL.
func TestTroubleOfOne(t *testing.T) {
	elsewhere := newReceiver(t, nil)
	hang := make(chan struct{})
	defer close(hang)
	var written atomic.Int64
	for name, tc := range map[string]struct {
		answer  func(http.ResponseWriter, *http.Request)
		done    bool
		why     string
		atLeast time.Duration
	}{
		"slow": {answer: func(_ http.ResponseWriter, r *http.Request) {
			select {
			case <-hang:
			case <-r.Context().Done():
			}
		}, why: "timeout", atLeast: 4 * time.Second},
		"failing": {answer: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }, why: "status 500", atLeast: 4 * time.Second},
		"asks":    {answer: func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Retry-After", "77"); w.WriteHeader(429) }, why: "status 429", atLeast: 77 * time.Second},
		"gone":    {answer: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(410) }, done: true, why: "status 410"},
		"redirects": {answer: func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
		}, why: "redirect", atLeast: 4 * time.Second},
		"breaks off": {answer: func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, why: "the request failed", atLeast: 4 * time.Second},
		"huge": {answer: func(w http.ResponseWriter, r *http.Request) {
			for block := bytes.Repeat([]byte("x"), 32<<10); ; {
				n, err := w.Write(block)
				written.Add(int64(n))
				if err != nil || r.Context().Err() != nil || written.Load() > 1<<30 {
					return
				}
			}
		}, done: true},
	} {
		t.Run(name, func(t *testing.T) {
			bad, good := newReceiver(t, tc.answer), newReceiver(t, nil)
			var text syncBuffer
			q := &fakeQueue{}
			slow := bad.endpoint(t, "bad")
			slow.Timeout = 300 * time.Millisecond
			s := sending(t, q, slog.New(slog.NewTextHandler(&text, nil)), slow, good.endpoint(t, "good"))
			e := happened(t, 1)
			s.Tell(e)
			testutil.WaitUntil(t, "the other has it", func() bool { return len(good.got(t)) == 1 })
			testutil.WaitUntil(t, "it is settled", func() bool {
				done, later := q.settled()
				return len(done)+len(later) == 2
			})
			done, later := q.settled()
			if tc.done != (len(done) == 2) || !tc.done && later[0] < tc.atLeast {
				t.Errorf("done %q, later %v", done, later)
			}
			if got := bad.got(t); len(got) != 1 || got[0] != e.ID {
				t.Errorf("it got %q", got)
			}
			if said := text.String(); !strings.Contains(said, tc.why) || strings.Contains(said, "hidden") || strings.Contains(said, "127.0.0.1") {
				t.Errorf("the log has %s", said)
			}
		})
	}
	if got := elsewhere.got(t); len(got) > 0 {
		t.Errorf("a redirect was followed: %q", got)
	}
	if n := written.Load(); n > 64<<20 {
		t.Errorf("%d bytes of an answer were read", n)
	}
}

// TestPrivateAddresses: no connection is made to an endpoint with a private address, under any name.
func TestPrivateAddresses(t *testing.T) {
	r := newReceiver(t, nil)
	for _, address := range []string{r.URL, strings.Replace(r.URL, "127.0.0.1", "localhost", 1)} {
		q := &fakeQueue{}
		e := r.endpoint(t, "inside")
		e.Private, e.URL = false, address
		s := sending(t, q, nil, e)
		s.Tell(happened(t, 1))
		testutil.WaitUntil(t, "it is settled", func() bool { done, later := q.settled(); return len(done)+len(later) == 1 })
		if got := r.got(t); len(got) > 0 {
			t.Errorf("%s was connected to", address)
		}
	}
}

// TestRestart: the next process delivers the events left at the end of this one, once.
func TestRestart(t *testing.T) {
	dir := t.TempDir()
	var well atomic.Bool
	r := newReceiver(t, func(w http.ResponseWriter, _ *http.Request) {
		if !well.Load() {
			w.WriteHeader(503)
		}
	})
	first, err := store.Open(t.Context(), store.Options{Dir: dir, Sync: store.SyncInterval})
	if err != nil {
		t.Fatal(err)
	}
	s := New(Options{Queue: first.Webhooks, Endpoints: []Endpoint{r.endpoint(t, "one")}})
	e := happened(t, 1)
	s.Tell(e)
	testutil.WaitUntil(t, "an attempt fails", func() bool { return s.Stats()["one"].Failed == 1 })
	late := happened(t, 2)
	s.Tell(late) // and is stored by Close
	closed(t, s)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	tried := len(r.got(t))
	well.Store(true)
	again := sending(t, opened(t, store.Options{Dir: dir, Sync: store.SyncInterval}).Webhooks, nil, r.endpoint(t, "one"))
	testutil.WaitUntil(t, "both arrive", func() bool { return again.Stats()["one"].Delivered == 2 })
	if got := r.got(t)[tried:]; len(got) != 2 || !slices.Contains(got, e.ID) || !slices.Contains(got, late.ID) {
		t.Errorf("%q arrived, want %s and %s", got, e.ID, late.ID)
	}
}

// TestTwoNodes: of two gateways with a common store one sends each event.
func TestTwoNodes(t *testing.T) {
	keep := opened(t, store.Options{Memory: true}).Webhooks
	r := newReceiver(t, nil)
	a, b := sending(t, keep, nil, r.endpoint(t, "one")), sending(t, keep, nil, r.endpoint(t, "one"))
	const many = 40
	for n := range many {
		[]*Sender{a, b}[n%2].Tell(happened(t, n))
	}
	testutil.WaitUntil(t, "all have arrived", func() bool { return a.Stats()["one"].Delivered+b.Stats()["one"].Delivered == many })
	got := slices.Sorted(slices.Values(r.got(t)))
	if len(got) != many || len(slices.Compact(got)) != many {
		t.Errorf("%d arrived, %d different ones", len(got), len(slices.Compact(got)))
	}
}

// TestTellNeverWaits: a store that does not answer delays no session; events without room are counted.
func TestTellNeverWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &fakeQueue{add: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }}
		s := New(Options{Queue: q, Endpoints: []Endpoint{{Name: "one", URL: "https://h.example"}}})
		e := happened(t, 1)
		began := time.Now()
		for range mostTold + 100 {
			s.Tell(e)
		}
		if took := time.Since(began); took > 0 {
			t.Errorf("Tell took %v", took)
		}
		if n := s.Stats()["one"].Dropped; n < 99 || n > 100 { // one may be on its way into the store
			t.Errorf("%d were dropped", n)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := s.Close(ctx); err == nil || time.Since(began) != time.Second {
			t.Errorf("closing: %v after %v", err, time.Since(began))
		}
		s.Tell(e) // is too late, and counted
		if n := s.Stats()["one"].Dropped; n != mostTold+101 {
			t.Errorf("%d of %d were dropped", n, mostTold+101)
		}
	})
}

// TestTheStoreIsAway: events wait for the store and are stored when it is reachable; those that it refuses permanently
// are counted.
func TestTheStoreIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var tries atomic.Int64
		q := &fakeQueue{add: func(context.Context) error {
			if tries.Add(1) <= 3 {
				return store.ErrUnavailable
			}
			return store.ErrFull
		}}
		s := New(Options{Queue: q, Endpoints: []Endpoint{{Name: "one", URL: "https://h.example"}}})
		s.Tell(happened(t, 1))
		<-time.After(10 * time.Second)
		synctest.Wait()
		if n := s.Stats()["one"].Dropped; n != 1 || tries.Load() != 4 {
			t.Errorf("%d were dropped after %d tries", n, tries.Load())
		}
		if n := s.Stats()["one"].Waiting; n != 3 {
			t.Errorf("%d wait", n)
		}
		closed(t, s)
	})
}

// TestReconfigure: another secret signs the next attempt, a new endpoint gets the later events, and a removed one none.
func TestReconfigure(t *testing.T) {
	keep := opened(t, store.Options{Memory: true}).Webhooks
	stays, goes, comes := newReceiver(t, nil), newReceiver(t, nil), newReceiver(t, nil)
	s := sending(t, keep, nil, stays.endpoint(t, "stays"), goes.endpoint(t, "goes"))
	s.Tell(happened(t, 1))
	testutil.WaitUntil(t, "both have it", func() bool { return len(stays.got(t))+len(goes.got(t)) == 2 })
	changed := stays.endpoint(t, "stays")
	changed.Secrets = []Secret{secret(t, oldKey)}
	stays.mu.Lock()
	stays.keys = [][]byte{oldKey}
	stays.mu.Unlock()
	s.Reconfigure([]Endpoint{changed, comes.endpoint(t, "comes")})
	s.Tell(happened(t, 2))
	testutil.WaitUntil(t, "both have it", func() bool { return len(stays.got(t)) == 2 && len(comes.got(t)) == 1 })
	if got := goes.got(t); len(got) != 1 {
		t.Errorf("the removed one got %q", got)
	}
}

// TestPauses: pauses grow, vary a little, and are never shorter than the receiver's Retry-After.
func TestPauses(t *testing.T) {
	for tries, want := range map[int]time.Duration{0: 5 * time.Second, 1: 5 * time.Second, 2: 30 * time.Second, 6: time.Hour, 7: 2 * time.Hour, 1000: 2 * time.Hour} {
		for range 100 {
			if got := pauseAfter(tries, 0); got < want*8/10 || got > want*12/10 {
				t.Errorf("after %d tries: %v, want about %v", tries, got, want)
			}
		}
	}
	if got := pauseAfter(1, time.Minute); got != time.Minute {
		t.Errorf("%v", got)
	}
	if got := pauseAfter(1, 30*time.Hour); got != longestPause {
		t.Errorf("%v", got)
	}
}

// TestGivenUp: an undelivered event is given up after a day, and counted.
func TestGivenUp(t *testing.T) {
	r := newReceiver(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) })
	q := &fakeQueue{}
	s := sending(t, q, nil, r.endpoint(t, "one"))
	e := happened(t, 1)
	e.At = time.Now().Add(-store.WebhookLife)
	s.Tell(e)
	testutil.WaitUntil(t, "it is given up", func() bool { return s.Stats()["one"].GivenUp == 1 })
	if done, later := q.settled(); len(done) != 1 || len(later) > 0 {
		t.Errorf("done %q, later %v", done, later)
	}
}
