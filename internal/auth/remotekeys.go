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

const (
	refreshEvery = 30 * time.Second // regular; bounds how long a withdrawn key is accepted
	retryEvery   = time.Minute      // after a failure, and at most this often for an unknown kid
	keysLife     = 24 * time.Hour   // since they were fetched
	fetchTime    = 5 * time.Second  // one request
)

// discoveryPath is the path of an issuer's metadata (OpenID Connect Discovery 1.0, section 4, read 2026-11-25).
const discoveryPath = "/.well-known/openid-configuration"

// errKeysAway means the issuer's keys couldn't be fetched, at all or for keysLife.
var errKeysAway = errors.New("auth: the issuer's keys are unavailable")

// remoteKeys are keys at a URL, as a jwkset.Storage that is only read with KeyRead. Only run fetches. Safe for
// concurrent use.
type remoteKeys struct {
	*jwkset.MemoryJWKSet

	address  string // of the keys; with discover, of the issuer
	discover bool
	client   *http.Client
	logger   *slog.Logger
	stop     context.CancelFunc
	over     chan struct{} // closed by run at its end
	asked    chan struct{} // requests a fetch; capacity 1

	mu    sync.Mutex    // guards the following fields
	at    time.Time     // time of the last fetch; zero without keys
	marks []string      // of the current keys
	busy  bool          // a fetch is running or requested
	round chan struct{} // closed by run after that fetch
	// unknown limits fetches for unknown kids, which anyone may invent.
	unknown *rate.Limiter
}

func fetchKeys(address string, discover bool, next http.RoundTripper, logger *slog.Logger) *remoteKeys {
	ctx, stop := context.WithCancel(context.Background())
	k := &remoteKeys{
		MemoryJWKSet: jwkset.NewMemoryStorage(), address: address, discover: discover, logger: logger, stop: stop,
		client: bounded.Over(next, bounded.Limits{Service: "the issuer", Format: bounded.JSON, Bytes: maxSetBytes, Idle: fetchTime,
			Whole: fetchTime}),
		over: make(chan struct{}), asked: make(chan struct{}, 1), busy: true, round: make(chan struct{}),
		unknown: rate.NewLimiter(rate.Every(retryEvery), 1),
	}
	go k.run(ctx)
	return k
}

// close stops run and waits for it. Fetched keys stay.
func (k *remoteKeys) close() {
	k.stop()
	<-k.over
}

func (k *remoteKeys) run(ctx context.Context) {
	defer close(k.over)
	for {
		wait := refreshEvery
		if !k.refresh(ctx) {
			wait = retryEvery
		}
		select {
		case <-time.After(wait):
		case <-k.asked:
		case <-ctx.Done():
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
		k.logger.Warn("cannot fetch issuer keys", "error", err, "have", !k.stale())
	}
	k.busy = false
	close(k.round)
	k.round = make(chan struct{})
	return err == nil
}

// stale reports whether the keys are missing or too old. The caller must hold mu.
func (k *remoteKeys) stale() bool { return k.at.IsZero() || time.Since(k.at) > keysLife }

func (k *remoteKeys) ready() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return !k.stale()
}

func (k *remoteKeys) has(mark string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.stale() || slices.Contains(k.marks, mark)
}

// KeyRead fetches again for an unknown kid, at most once in retryEvery; concurrent callers share the fetch. The error
// is jwkset.ErrKeyNotFound, errKeysAway or ctx's.
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
		k.asked <- struct{}{} // cannot block: busy was false
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

func (k *remoteKeys) known(ctx context.Context, kid string) (jwkset.JWK, error) {
	if !k.ready() {
		return jwkset.JWK{}, errKeysAway
	}
	return k.MemoryJWKSet.KeyRead(ctx, kid)
}

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
		return nil, fmt.Errorf("the key set at %s is unusable: %w", address, err)
	}
	return keys, nil
}

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
		return "", fmt.Errorf("the metadata of the issuer %s is not JSON: %w", k.address, err)
	case told.Issuer != k.address: // section 4.3 requires an exact match
		return "", fmt.Errorf("the issuer %s calls itself %.40q; configure that name as issuer, or the URL of its keys as jwks_url",
			k.address, told.Issuer)
	}
	if wrong := CheckURL(told.Keys); wrong != "" {
		return "", fmt.Errorf("the jwks_uri of the issuer %s %s", k.address, wrong)
	}
	return told.Keys, nil
}

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
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answers %s", address, resp.Status)
	}
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, fmt.Errorf("the answer of %s: %w", address, err)
	}
	return data, nil
}

// CheckURL completes a sentence about a wrong URL; "" if valid. Only loopback may lack https: replaced keys can sign
// for anyone.
func CheckURL(address string) string {
	u, err := url.Parse(address)
	switch {
	case err != nil, u.Host == "", u.Scheme != "https" && u.Scheme != "http":
		return "must be a full https:// URL"
	case u.User != nil:
		return "has a user or a password, which public keys do not need; remove it"
	case u.Fragment != "", u.RawQuery != "" && strings.HasSuffix(u.Path, discoveryPath):
		return "has a fragment or a query; remove it"
	case u.Scheme == "http" && !loopback(u.Hostname()):
		return "must begin with https://, so that the keys cannot be replaced in transit"
	}
	return ""
}

func loopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && addr.IsLoopback()
}
