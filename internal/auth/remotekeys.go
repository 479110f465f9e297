package auth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/MicahParks/jwkset"
	"golang.org/x/time/rate"

	"voicegw/internal/bounded"
)

// When the keys of an issuer are fetched, and for how long they count.
const (
	refreshEvery = 30 * time.Second // by themselves: a key that is withdrawn opens nothing any more soon after
	retryEvery   = time.Minute      // after a failure, and at most for a kid that is not known
	keysLife     = 24 * time.Hour   // since they were fetched
	fetchTime    = 5 * time.Second  // one request
)

// discoveryPath is where an issuer tells the address of its keys (OpenID Connect Discovery 1.0,
// section 4, read 2026-11-25).
const discoveryPath = "/.well-known/openid-configuration"

// errKeysAway: the keys of an issuer could not be fetched yet, or not for keysLife.
var errKeysAway = errors.New("auth: the issuer's keys are not there")

// remoteKeys are the keys at an issuer's address. They implement jwkset.Storage, of which only
// KeyRead is used. One goroutine, run, makes every fetch. The methods may be used concurrently.
type remoteKeys struct {
	*jwkset.MemoryJWKSet

	// Fixed after fetchKeys.
	address  string // of the keys; with discover, of the issuer
	discover bool
	client   *http.Client
	logger   *slog.Logger
	stop     context.CancelFunc
	over     chan struct{} // closed by run, at its end
	asked    chan struct{} // from KeyRead to run: fetch now; it holds one, which is enough

	mu    sync.Mutex    // guards the following fields
	at    time.Time     // when the present keys were fetched; zero without any
	marks []string      // of the present keys
	busy  bool          // a fetch is under way, or asked for
	round chan struct{} // closed by run, when that fetch has ended
	// unknown bounds the fetches because of a kid that is not known: anybody may invent one.
	unknown *rate.Limiter
}

// fetchKeys begins to fetch keys, and does not wait for them. close must be called. A nil next stands
// for the common transport.
func fetchKeys(address string, discover bool, next http.RoundTripper, logger *slog.Logger) *remoteKeys {
	ctx, stop := context.WithCancel(context.Background())
	k := &remoteKeys{
		MemoryJWKSet: jwkset.NewMemoryStorage(), address: address, discover: discover, logger: logger, stop: stop,
		client: bounded.Over(next, bounded.Limits{Service: "the issuer", Format: bounded.JSON, Bytes: maxSetBytes, Idle: fetchTime, Whole: fetchTime}),
		over:   make(chan struct{}), asked: make(chan struct{}, 1), busy: true, round: make(chan struct{}),
		unknown: rate.NewLimiter(rate.Every(retryEvery), 1),
	}
	go k.run(ctx)
	return k
}

// close ends run, and waits for it. Keys that were fetched stay.
func (k *remoteKeys) close() {
	k.stop()
	<-k.over
}

// run fetches the keys at once, from time to time, and when KeyRead asks for it.
func (k *remoteKeys) run(ctx context.Context) {
	defer close(k.over)
	for {
		wait := refreshEvery
		if !k.refresh(ctx) {
			wait = retryEvery
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-k.asked:
		case <-ctx.Done():
		}
		timer.Stop()
		if ctx.Err() != nil {
			return
		}
		k.mu.Lock()
		k.busy = true
		select {
		case <-k.asked: // together with the timer
		default:
		}
		k.mu.Unlock()
	}
}

// refresh makes one fetch, and reports whether there are new keys. Otherwise the old ones stay.
func (k *remoteKeys) refresh(ctx context.Context) bool {
	keys, err := k.fetch(ctx)
	if err == nil {
		err = k.KeyReplaceAll(ctx, keys)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if err == nil {
		k.at, k.marks = time.Now(), nil
		for _, one := range keys {
			k.marks = append(k.marks, signerMark(one.Key()))
		}
	} else if ctx.Err() == nil {
		k.logger.Warn("the keys of an issuer could not be fetched", "error", err, "have", !k.stale())
	}
	k.busy = false
	close(k.round)
	k.round = make(chan struct{})
	return err == nil
}

// stale reports whether the present keys count no more. The caller must hold mu.
func (k *remoteKeys) stale() bool { return k.at.IsZero() || time.Since(k.at) > keysLife }

// ready reports whether there are keys that count.
func (k *remoteKeys) ready() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return !k.stale()
}

// has reports whether one of the present keys has a mark. Without any keys that count it is not known, and
// the answer is yes.
func (k *remoteKeys) has(mark string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.stale() || slices.Contains(k.marks, mark)
}

// KeyRead returns the key with that kid. For one that is not known, the keys are fetched again, at
// most once in retryEvery; callers that come meanwhile wait for that fetch as well. The error is
// jwkset.ErrKeyNotFound, errKeysAway or that of ctx.
func (k *remoteKeys) KeyRead(ctx context.Context, kid string) (jwkset.JWK, error) {
	found, err := k.known(ctx, kid)
	if err == nil {
		return found, nil
	}
	k.mu.Lock()
	if !k.busy {
		if !k.unknown.Allow() {
			k.mu.Unlock()
			return jwkset.JWK{}, err
		}
		k.busy = true
		k.asked <- struct{}{} // it is empty: busy was false
	}
	round := k.round
	k.mu.Unlock()
	select {
	case <-round:
		return k.known(ctx, kid)
	case <-k.over:
		return jwkset.JWK{}, err
	case <-ctx.Done():
		return jwkset.JWK{}, context.Cause(ctx)
	}
}

// known returns one of the present keys.
func (k *remoteKeys) known(ctx context.Context, kid string) (jwkset.JWK, error) {
	if !k.ready() {
		return jwkset.JWK{}, errKeysAway
	}
	return k.MemoryJWKSet.KeyRead(ctx, kid)
}

// fetch asks for the keys.
func (k *remoteKeys) fetch(ctx context.Context) ([]jwkset.JWK, error) {
	address := k.address
	if k.discover {
		var err error
		if address, err = k.discovered(ctx); err != nil {
			return nil, err
		}
	}
	data, err := k.get(ctx, address)
	if err != nil {
		return nil, err
	}
	keys, err := parseKeySet(data)
	if err != nil {
		return nil, fmt.Errorf("the set of keys at %s cannot be used: %w", address, err)
	}
	return keys, nil
}

// discovered returns the address of the keys that the issuer tells.
func (k *remoteKeys) discovered(ctx context.Context) (string, error) {
	data, err := k.get(ctx, strings.TrimSuffix(k.address, "/")+discoveryPath)
	if err != nil {
		return "", err
	}
	var told struct {
		Issuer string `json:"issuer"`
		Keys   string `json:"jwks_uri"`
	}
	switch err := json.Unmarshal(data, &told); {
	case err != nil:
		return "", fmt.Errorf("what the issuer %s says of itself is not JSON: %w", k.address, err)
	case told.Issuer != k.address: // section 4.3 requires the same text
		return "", fmt.Errorf("the issuer %s calls itself %.40q; configure that as its issuer, or the address of its keys as jwks_url", k.address, told.Issuer)
	}
	if wrong := CheckURL(told.Keys); wrong != "" {
		return "", fmt.Errorf("the jwks_uri of the issuer %s %s", k.address, wrong)
	}
	return told.Keys, nil
}

// get returns what an address answers.
func (k *remoteKeys) get(ctx context.Context, address string) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, fmt.Errorf("the address of the issuer: %w", err)
	}
	r.Header.Set("Accept", "application/json")
	resp, err := k.client.Do(r)
	if err != nil {
		return nil, fmt.Errorf("ask the issuer: %w", err)
	}
	defer func() { _ = resp.Body.Close() }() // it was only read
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answers %s", address, resp.Status)
	}
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, fmt.Errorf("the answer of %s: %w", address, err)
	}
	return data, nil
}

// CheckURL says what is wrong with the address of an issuer or of its keys, as the end of a sentence;
// empty if it is valid. Whoever could change the keys on their way could be anybody, so only an
// address on this machine needs no https.
func CheckURL(address string) string {
	u, err := url.Parse(address)
	switch {
	case err != nil, u.Host == "", u.Scheme != "https" && u.Scheme != "http":
		return "must be a whole URL that begins with https://"
	case u.User != nil:
		return "holds a user or a password, which is not needed for public keys"
	case u.Fragment != "", u.RawQuery != "" && strings.HasSuffix(u.Path, discoveryPath):
		return "has a fragment or a query; remove it"
	case u.Scheme == "http" && !loopback(u.Hostname()):
		return "must begin with https://, because whoever could change the keys on their way could be anybody"
	}
	return ""
}

// loopback reports whether a host is this machine.
func loopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && addr.IsLoopback()
}
