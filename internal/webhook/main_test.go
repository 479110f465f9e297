package webhook

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"voicegw/internal/testutil"
	"voicegw/store"
)

// The secrets of the tests.
var (
	oldKey = []byte("0123456789abcdef0123456789abcdef")
	newKey = []byte("fedcba9876543210fedcba9876543210")
)

func secret(t *testing.T, key []byte) Secret {
	t.Helper()
	s, err := ParseSecret("whsec_" + base64.StdEncoding.EncodeToString(key))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// verified checks a request like a receiver that follows the specification, without code of this module:
// id.timestamp.body is signed with HMAC-SHA256, and one signature of the list must match.
func verified(r *http.Request, body, key []byte) error {
	id, at := r.Header.Get("webhook-id"), r.Header.Get("webhook-timestamp")
	seconds, err := strconv.ParseInt(at, 10, 64)
	if err != nil || id == "" || strings.Contains(id, ".") {
		return fmt.Errorf("id %q, timestamp %q", id, at)
	}
	if age := time.Since(time.Unix(seconds, 0)); age < -time.Minute || age > 5*time.Minute {
		return fmt.Errorf("the attempt is of %v ago", age)
	}
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%s.%s", id, at, body)
	for one := range strings.SplitSeq(r.Header.Get("webhook-signature"), " ") {
		version, signature, _ := strings.Cut(one, ",")
		if got, err := base64.StdEncoding.DecodeString(signature); version == "v1" && err == nil && hmac.Equal(got, mac.Sum(nil)) {
			return nil
		}
	}
	return fmt.Errorf("no signature of %q fits", r.Header.Get("webhook-signature"))
}

// receiver is a server that gets events.
type receiver struct {
	*httptest.Server

	mu     sync.Mutex // guards the following fields
	ids    []string
	wrong  []error
	answer func(http.ResponseWriter, *http.Request) // called after the request was read; nil answers 200
	keys   [][]byte                                 // each must match
}

func newReceiver(t *testing.T, answer func(http.ResponseWriter, *http.Request)) *receiver {
	t.Helper()
	r := &receiver{answer: answer, keys: [][]byte{newKey}}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Server.Close)
	return r
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, _ := io.ReadAll(req.Body)
	r.mu.Lock()
	r.ids = append(r.ids, req.Header.Get("webhook-id"))
	for _, key := range r.keys {
		if err := verified(req, body, key); err != nil {
			r.wrong = append(r.wrong, err)
		}
	}
	answer := r.answer
	r.mu.Unlock()
	if answer != nil {
		answer(w, req)
	}
}

// got returns the ids of the received events, and fails the test for an unsigned one.
func (r *receiver) got(t *testing.T) []string {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, err := range r.wrong {
		t.Error(err)
	}
	return slices.Clone(r.ids)
}

func (r *receiver) endpoint(t *testing.T, name string) Endpoint {
	t.Helper()
	return Endpoint{Name: name, URL: r.URL + "/hook?key=hidden", Secrets: []Secret{secret(t, newKey)}, Private: true, Timeout: 10 * time.Second}
}

// happened makes an event of a session.
func happened(t *testing.T, n int) store.Webhook {
	t.Helper()
	e, err := NewEvent(SessionStarted, time.Now(), Session{SessionID: fmt.Sprintf("voice-%d", n), Entry: "open", Provider: "sim", Model: "m", StartedAt: Time(time.Now())})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// opened opens a store for one test.
func opened(t *testing.T, o store.Options) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// sending makes a Sender that ends with the test.
func sending(t *testing.T, q Queue, logger *slog.Logger, all ...Endpoint) *Sender {
	t.Helper()
	s := New(Options{Queue: q, Endpoints: all, Logger: logger})
	t.Cleanup(func() { closed(t, s) })
	return s
}

func closed(t *testing.T, s *Sender) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testutil.WaitLimit)
	defer cancel()
	if err := s.Close(ctx); err != nil {
		t.Error(err)
	}
}

// fakeQueue stores events in memory, with their results.
type fakeQueue struct {
	mu      sync.Mutex // guards the following fields
	waiting map[string][]*fakeTaken
	done    []string
	later   []time.Duration
	add     func(ctx context.Context) error // called before an event is stored; nil stores it
}

type fakeTaken struct {
	q     *fakeQueue
	e     store.Webhook
	tries int
}

func (q *fakeQueue) Add(ctx context.Context, to string, e store.Webhook) error {
	if q.add != nil {
		if err := q.add(ctx); err != nil {
			return err
		}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.waiting == nil {
		q.waiting = map[string][]*fakeTaken{}
	}
	q.waiting[to] = append(q.waiting[to], &fakeTaken{q: q, e: e})
	return nil
}

func (q *fakeQueue) Take(ctx context.Context, from string) (store.Taken, error) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		q.mu.Lock()
		if all := q.waiting[from]; len(all) > 0 {
			q.waiting[from] = all[1:]
			q.mu.Unlock()
			all[0].tries++
			return all[0], nil
		}
		q.mu.Unlock()
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (q *fakeQueue) Waiting(context.Context, string) (int, error) { return 3, nil }

// settled returns the ids of removed events, and the pauses of those that were returned.
func (q *fakeQueue) settled() (done []string, later []time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Clone(q.done), slices.Clone(q.later)
}

func (t *fakeTaken) Event() (store.Webhook, int) { return t.e, t.tries }

func (t *fakeTaken) Done(context.Context) error {
	t.q.mu.Lock()
	defer t.q.mu.Unlock()
	t.q.done = append(t.q.done, t.e.ID)
	return nil
}

func (t *fakeTaken) Later(_ context.Context, after time.Duration) error {
	t.q.mu.Lock()
	defer t.q.mu.Unlock()
	t.q.later = append(t.q.later, after)
	return nil
}

// syncBuffer is a log that a test reads while it is written.
type syncBuffer struct {
	mu   sync.Mutex // guards the following field
	text strings.Builder
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
