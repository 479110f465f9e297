package cluster

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// MinSecret is the minimum secret length in bytes.
const MinSecret = 32

// The signature header: "t=<unix seconds>,n=<nonce>,s=<hex of HMAC-SHA256>".
const signatureHeader = "Voicegw-Signature"

// signatureLife is the maximum difference between a signature's time and this node's clock.
const signatureLife = time.Minute

// maxNonces bounds the nonces remembered against replays. Nodes send one for each relayed client.
const maxNonces = 64 << 10

var (
	errUnsigned = errors.New("the request has no valid signature of this cluster; check cluster.secret on both nodes")
	errOld      = errors.New("the signature is too old; synchronise the nodes' clocks")
	errRepeated = errors.New("repeated request")
	errBusy     = errors.New("too many requests from other nodes")
)

type signer struct {
	secret []byte // immutable

	mu     sync.Mutex // guards the following field
	nonces map[string]time.Time
}

func newSigner(secret []byte) *signer {
	return &signer{secret: secret, nonces: make(map[string]time.Time)}
}

func (s *signer) sign(r *http.Request, now time.Time) {
	t, nonce := strconv.FormatInt(now.Unix(), 10), rand.Text()
	r.Header.Set(signatureHeader, fmt.Sprintf("t=%s,n=%s,s=%s", t, nonce, s.mac(r, t, nonce)))
}

// mac covers everything that a receiver acts upon.
func (s *signer) mac(r *http.Request, t, nonce string) string {
	h := hmac.New(sha256.New, s.secret)
	for _, part := range []string{r.Method, r.URL.EscapedPath(), t, nonce, r.Header.Get(helloHeader)} {
		h.Write([]byte(strconv.Itoa(len(part)) + ":" + part)) // a hash.Hash never fails
	}
	return hex.EncodeToString(h.Sum(nil))
}

// check returns an error unless another node signed the request within signatureLife and it hasn't been seen before.
func (s *signer) check(r *http.Request, now time.Time) error {
	t, nonce, mac, ok := parseSignature(r.Header.Get(signatureHeader))
	if !ok || !hmac.Equal([]byte(mac), []byte(s.mac(r, t, nonce))) {
		return errUnsigned
	}
	seconds, err := strconv.ParseInt(t, 10, 64)
	if err != nil {
		return errUnsigned
	}
	if age := now.Sub(time.Unix(seconds, 0)).Abs(); age > signatureLife {
		return errOld
	}
	return s.once(nonce, now)
}

func (s *signer) once(nonce string, now time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, seen := s.nonces[nonce]; seen {
		return errRepeated
	}
	if len(s.nonces) >= maxNonces {
		for n, at := range s.nonces {
			if now.Sub(at) > 2*signatureLife {
				delete(s.nonces, n)
			}
		}
	}
	if len(s.nonces) >= maxNonces {
		return errBusy
	}
	s.nonces[nonce] = now
	return nil
}

func parseSignature(header string) (t, nonce, mac string, ok bool) {
	parts := strings.Split(header, ",")
	if len(parts) != 3 || len(header) > 256 {
		return "", "", "", false
	}
	for i, prefix := range []string{"t=", "n=", "s="} {
		if parts[i], ok = strings.CutPrefix(parts[i], prefix); !ok || parts[i] == "" {
			return "", "", "", false
		}
	}
	return parts[0], parts[1], parts[2], true
}
