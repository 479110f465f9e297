package main

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"voicegw/internal/testutil"
)

// signer is an identity provider with one key.
type signer struct{ key ed25519.PrivateKey }

func newSigner(t *testing.T) signer {
	t.Helper()
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	return signer{key}
}

// publish replaces the public key file that the gateway reads, atomically.
func (s signer) publish(t *testing.T, file string) {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(s.key.Public())
	if err == nil {
		err = os.WriteFile(file+".new", pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), 0o600)
	}
	if err == nil {
		err = os.Rename(file+".new", file)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// token is a token of a user (RFC 7519).
func (s signer) token() string {
	part := base64.RawURLEncoding.EncodeToString
	text := part([]byte(`{"alg":"EdDSA"}`)) + "." + part(fmt.Appendf(nil, `{"iss":"https://id.example.com","aud":"voice","sub":"ada","scope":"voice","exp":%d}`, time.Now().Add(time.Hour).Unix()))
	return text + "." + part(ed25519.Sign(s.key, []byte(text)))
}

// TestKeysFileIsWatched: the gateway loads a replaced key file of an issuer without a reload. An invalid file changes
// nothing.
func TestKeysFileIsWatched(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, keys := filepath.Join(dir, "voicegw.yaml"), filepath.Join(dir, "keys.pem")
	first, second := newSigner(t), newSigner(t)
	first.publish(t, keys)
	text := "auth:\n  jwt:\n    people:\n      issuer: https://id.example.com\n      audience: [voice]\n      keys_file: " + keys + "\n      algs: [EdDSA]\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	r := start(t, "--config", file)
	status := func(s signer) int {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+r.addr+"/v1/sessions", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+s.token())
		req.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		return resp.StatusCode
	}
	if a, b := status(first), status(second); a >= 400 || b != http.StatusUnauthorized {
		t.Fatalf("its own key: %d, another key: %d", a, b)
	}

	if err := os.WriteFile(keys+".new", []byte("nothing"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(keys+".new", keys); err != nil {
		t.Fatal(err)
	}
	if said := r.logged("invalid configuration; keeping the current one"); !strings.Contains(fmt.Sprint(said), "keys") {
		t.Errorf("the log has %v", said)
	}
	if got := status(first); got >= 400 {
		t.Errorf("after an invalid file its own key gets %d", got)
	}

	second.publish(t, keys)
	testutil.WaitUntil(t, "the new key counts", func() bool { return status(second) < 400 })
	if got := status(first); got != http.StatusUnauthorized {
		t.Errorf("the old key gets %d", got)
	}
}
