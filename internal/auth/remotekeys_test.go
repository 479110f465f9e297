package auth

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// identity answers for an issuer, without a socket. Its methods may be used concurrently.
type identity struct {
	mu      sync.Mutex        // guards the following fields
	answers map[string]string // by address; a missing one is unreachable
	status  int               // of each answer; 0 means 200
	takes   time.Duration     // until the answer
	asked   []string
}

func (i *identity) RoundTrip(r *http.Request) (*http.Response, error) {
	i.mu.Lock()
	text, ok := i.answers[r.URL.String()]
	status, takes := i.status, i.takes
	i.asked = append(i.asked, r.URL.String())
	i.mu.Unlock()
	if takes > 0 {
		select {
		case <-time.After(takes):
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
	if !ok {
		return nil, errors.New("unreachable")
	}
	if status == 0 {
		status = http.StatusOK
	}
	header := http.Header{"Content-Type": {"application/json"}}
	if status == http.StatusFound {
		header.Set("Location", "https://evil.example/keys")
	}
	return &http.Response{StatusCode: status, Status: fmt.Sprint(status), Header: header, Body: io.NopCloser(strings.NewReader(text)), Request: r}, nil
}

func (i *identity) set(change func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	change()
}

// fetches is the number of requests for the keys.
func (i *identity) fetches() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return len(i.asked)
}

const keysAt = "https://id.example/keys"

// remote is an Authenticator with an issuer that publishes its keys at keysAt.
func remote(t *testing.T, i *identity, log io.Writer) *Authenticator {
	t.Helper()
	issuer := theIssuer()
	issuer.KeySet, issuer.JWKS = nil, keysAt
	a, err := New(Options{Issuers: []Issuer{issuer}, Transport: i, Logger: slog.New(slog.NewTextHandler(log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// publishes is an identity that publishes keys.
func publishes(keys ...signer) *identity {
	i := &identity{answers: map[string]string{}}
	i.publish(keys...)
	return i
}

func (i *identity) publish(keys ...signer) {
	var all []map[string]any
	for _, k := range keys {
		all = append(all, k.jwk())
	}
	i.set(func() { i.answers[keysAt] = string(published(all...)) })
}

// TestKeysAreFetched: keys are fetched at the start, without delaying it, every refreshEvery, and when a token names an
// unknown one.
func TestKeysAreFetched(t *testing.T) {
	first, second := newSigner(t, "1", "EdDSA"), newSigner(t, "2", "EdDSA")
	synctest.Test(t, func(t *testing.T) {
		id := publishes(first)
		id.takes = time.Second
		a := remote(t, id, io.Discard)
		defer a.Close()
		if got := a.Away(); len(got) != 1 || got[0] != "example" {
			t.Errorf("before the keys arrive: %v", got)
		}
		if reason := refusedFor(a, first.token(t, valid(nil))); reason != "" { // it waits
			t.Fatal(reason)
		}
		if got := a.Away(); len(got) != 0 || id.fetches() != 1 {
			t.Errorf("%v, %d fetches", got, id.fetches())
		}
		id.publish(second)
		if reason := refusedFor(a, second.token(t, valid(nil))); reason != "" || id.fetches() != 2 {
			t.Errorf("a new key: %q, %d fetches", reason, id.fetches())
		}
		if reason := refusedFor(a, first.token(t, valid(nil))); reason != ReasonToken || id.fetches() != 2 {
			t.Errorf("a key that was withdrawn: %q, %d fetches", reason, id.fetches())
		}
		id.publish(first, second)
		pass(refreshEvery)
		synctest.Wait()
		pass(2 * time.Second)
		if reason := refusedFor(a, first.token(t, valid(nil))); reason != "" || id.fetches() != 3 {
			t.Errorf("after a while: %q, %d fetches", reason, id.fetches())
		}
	})
}

// TestStormOfUnknownKids: a client that invents kids causes one extra fetch a minute, and blocks no other client.
func TestStormOfUnknownKids(t *testing.T) {
	key, next := newSigner(t, "1", "EdDSA"), newSigner(t, "next", "EdDSA")
	synctest.Test(t, func(t *testing.T) {
		id := publishes(key)
		a := remote(t, id, io.Discard)
		defer a.Close()
		synctest.Wait()
		began := id.fetches()
		const minutes = 4
		var storm sync.WaitGroup
		for n := range minutes * 60 {
			for range 5 {
				storm.Go(func() {
					wrong := key
					wrong.kid = fmt.Sprintf("kid-%d", n)
					if reason := refusedFor(a, wrong.token(t, valid(nil))); reason != ReasonToken {
						t.Errorf("an invented kid: %q", reason)
					}
				})
			}
			storm.Wait()
			if reason := refusedFor(a, key.token(t, valid(nil))); reason != "" {
				t.Errorf("a good token in the storm: %q", reason)
			}
			if n == 2*60 {
				id.publish(key, next)
			}
			pass(time.Second)
		}
		if n, least := id.fetches()-began, minutes*int(time.Minute/refreshEvery); n < least || n > least+minutes+1 {
			t.Errorf("%d fetches in %d minutes", n, minutes)
		}
		if reason := refusedFor(a, next.token(t, valid(nil))); reason != "" {
			t.Errorf("the key published during the storm: %q", reason)
		}
	})
}

// TestRotationUnderLoad: when the issuer changes its key, no token of the old or the new key is refused, under any load.
func TestRotationUnderLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		old := newSigner(t, "0", "EdDSA")
		id := publishes(old)
		id.takes = 100 * time.Millisecond
		a := remote(t, id, io.Discard)
		defer a.Close()
		pass(time.Second)
		for n := 1; n <= 5; n++ {
			next := newSigner(t, fmt.Sprint(n), "EdDSA")
			id.publish(old, next)
			var load sync.WaitGroup
			for i := range 200 {
				load.Go(func() {
					pass(time.Duration(i) * time.Millisecond)
					signer := next
					if i%2 == 0 {
						signer = old
					}
					if reason := refusedFor(a, signer.token(t, valid(nil))); reason != "" {
						t.Errorf("rotation %d, token %d: %q", n, i, reason)
					}
				})
			}
			load.Wait()
			old = next
			pass(retryEvery)
		}
		if n, most := id.fetches(), 1+5*(1+int(retryEvery/refreshEvery)); n < 6 || n > most {
			t.Errorf("%d fetches for 5 rotations", n)
		}
	})
}

// TestKeysAway: a gateway with an unreachable issuer reports it, retries each minute, and uses its keys for a day; then
// they could have been withdrawn.
func TestKeysAway(t *testing.T) {
	key := newSigner(t, "1", "EdDSA")
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		id := &identity{answers: map[string]string{}}
		a := remote(t, id, &log)
		synctest.Wait()
		try := func() error {
			_, err := a.Check(t.Context(), key.token(t, valid(nil)))
			return err
		}
		if err := try(); !errors.Is(err, ErrAway) {
			t.Errorf("without any keys: %v", err)
		}
		for range 3 {
			if err := try(); !errors.Is(err, ErrAway) {
				t.Errorf("once more: %v", err)
			}
		}
		if n := id.fetches(); n > 2 {
			t.Errorf("%d fetches", n)
		}
		id.publish(key)
		pass(retryEvery + time.Second)
		if err := try(); err != nil {
			t.Errorf("when it is back: %v", err)
		}
		since := time.Now()
		id.set(func() { delete(id.answers, keysAt) })
		for time.Since(since) < keysLife-time.Minute {
			if err := try(); err != nil || len(a.Away()) != 0 {
				t.Fatalf("%s after the failure: %v, unreachable %v", time.Since(since), err, a.Away())
			}
			pass(10 * time.Minute)
		}
		pass(30 * time.Minute)
		if err := try(); !errors.Is(err, ErrAway) || len(a.Away()) != 1 {
			t.Errorf("a day later: %v, away %v", err, a.Away())
		}
		id.publish(key)
		pass(retryEvery + time.Second)
		if err := try(); err != nil {
			t.Errorf("when it is back again: %v", err)
		}
		a.Close()
		if err := try(); err != nil {
			t.Errorf("a request that is checked with the Authenticator before: %v", err)
		}
		other := key
		other.kid = "2"
		if _, err := a.Check(t.Context(), other.token(t, valid(nil))); err == nil {
			t.Error("an unknown kid after the end")
		}
		if !strings.Contains(log.String(), "issuer=example") || !strings.Contains(log.String(), "have=true") || !strings.Contains(log.String(), "have=false") {
			t.Error(log.String())
		}
	})
}

// TestBadAnswers: after any wrong answer the old keys stay, no redirect is followed, and a slow answer ends after five
// seconds.
func TestBadAnswers(t *testing.T) {
	key := newSigner(t, "1", "EdDSA")
	for name, change := range map[string]func(*identity){
		"an error":  func(i *identity) { i.status = 500 },
		"not found": func(i *identity) { i.status = 404 },
		"a redirect": func(i *identity) {
			i.status = http.StatusFound
			i.answers["https://evil.example/keys"] = i.answers[keysAt]
		},
		"not JSON":        func(i *identity) { i.answers[keysAt] = "<html>" },
		"no keys":         func(i *identity) { i.answers[keysAt] = `{"keys":[]}` },
		"too much":        func(i *identity) { i.answers[keysAt] = `{"keys":[` + strings.Repeat(" ", maxSetBytes) + `]}` },
		"symmetric":       func(i *identity) { i.answers[keysAt] = `{"keys":[{"kty":"oct","kid":"1","k":"AAAA"}]}` },
		"very late":       func(i *identity) { i.takes = time.Hour },
		"an unknown host": func(i *identity) { delete(i.answers, keysAt) },
	} {
		synctest.Test(t, func(t *testing.T) {
			id := publishes(key)
			a := remote(t, id, io.Discard)
			defer a.Close()
			synctest.Wait()
			id.set(func() { change(id) })
			wrong := key
			wrong.kid = "x"
			began := time.Now()
			if reason := refusedFor(a, wrong.token(t, valid(nil))); reason != ReasonToken {
				t.Errorf("%s: a kid that is not known: %q", name, reason)
			}
			if took := time.Since(began); took > fetchTime {
				t.Errorf("%s: it took %s", name, took)
			}
			if reason := refusedFor(a, key.token(t, valid(nil))); reason != "" || id.fetches() != 2 {
				t.Errorf("%s: the key that there is: %q, %d fetches (%v)", name, reason, id.fetches(), id.asked)
			}
		})
	}
}

// TestWaitingRequestEnds: a request that waits for keys ends with its client.
func TestWaitingRequestEnds(t *testing.T) {
	key := newSigner(t, "1", "EdDSA")
	synctest.Test(t, func(t *testing.T) {
		id := publishes(key)
		id.takes = 3 * time.Second
		a := remote(t, id, io.Discard)
		defer a.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		if _, err := a.Check(ctx, key.token(t, valid(nil))); !errors.Is(err, ErrAway) || time.Since(began) != time.Second {
			t.Errorf("%v after %s", err, time.Since(began))
		}
	})
}

// TestDiscovery: the issuer's document gives the address of its keys, if it is of the right issuer and the address is
// protected against changes in transit.
func TestDiscovery(t *testing.T) {
	key := newSigner(t, "1", "EdDSA")
	const at = "https://id.example/.well-known/openid-configuration"
	for name, tc := range map[string]struct {
		told string
		ok   bool
	}{
		"valid":                {`{"issuer":"https://id.example","jwks_uri":"` + keysAt + `","more":1}`, true},
		"another issuer":       {`{"issuer":"https://evil.example","jwks_uri":"` + keysAt + `"}`, false},
		"almost the same":      {`{"issuer":"https://id.example/","jwks_uri":"` + keysAt + `"}`, false},
		"no keys":              {`{"issuer":"https://id.example"}`, false},
		"keys in clear":        {`{"issuer":"https://id.example","jwks_uri":"http://id.example/keys"}`, false},
		"keys on this machine": {`{"issuer":"https://id.example","jwks_uri":"http://127.0.0.1:1/keys"}`, true},
		"a file":               {`{"issuer":"https://id.example","jwks_uri":"file:///etc/keys"}`, false},
		"not JSON":             {`<html>`, false},
		"no document":          {``, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			id := publishes(key)
			id.answers["http://127.0.0.1:1/keys"], id.answers["http://id.example/keys"] = id.answers[keysAt], id.answers[keysAt]
			if id.answers[at] = tc.told; tc.told == "" {
				delete(id.answers, at)
			}
			issuer := theIssuer()
			issuer.KeySet, issuer.Discover = nil, true
			a := newAuth(t, Options{Issuers: []Issuer{issuer}, Transport: id})
			synctest.Wait()
			_, err := a.Check(t.Context(), key.token(t, valid(nil)))
			if (err == nil) != tc.ok || err != nil && !errors.Is(err, ErrAway) {
				t.Errorf("%s: %v (asked %v)", name, err, id.asked)
			}
			a.Close()
		})
	}
}

// TestAddresses: the allowed addresses of keys.
func TestAddresses(t *testing.T) {
	for address, ok := range map[string]bool{
		"https://id.example/keys": true, "https://id.example:8443": true, "http://localhost:1/keys": true, "http://127.0.0.1/keys": true, "http://[::1]:1/k": true,
		"https://id.example/keys?v=2": true,
		"http://id.example/keys":      false, "http://127.0.0.1.evil.example/": false, "ftp://id.example": false, "id.example": false, "": false, "https://": false,
		"https://user:pw@id.example": false, "https://id.example/#x": false, "://": false,
	} {
		if wrong := CheckURL(address); (wrong == "") != ok {
			t.Errorf("%s: %q", address, wrong)
		}
	}
}
