package auth

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"
	"time"
)

// inPEM writes a public key in the form of a file; kid may be empty.
func (s signer) inPEM(t *testing.T, kid string) string {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(s.key.Public())
	if err != nil {
		t.Fatal(err)
	}
	return block("PUBLIC KEY", der, kid)
}

func block(kind string, der []byte, kid string) string {
	b := &pem.Block{Type: kind, Bytes: der}
	if kid != "" {
		b.Headers = map[string]string{"kid": kid}
	}
	return string(pem.EncodeToMemory(b))
}

// certificate returns a self-signed certificate of a key.
func (s signer) certificate(t *testing.T) string {
	t.Helper()
	about := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "id"}, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, about, about, s.key.Public(), s.key)
	if err != nil {
		t.Fatal(err)
	}
	return block("CERTIFICATE", der, "")
}

// TestKeyFilesInPEM: the tokens that a PEM file of keys accepts, and the refused files.
func TestKeyFilesInPEM(t *testing.T) {
	rs, es, ed := newSigner(t, "r", "RS256"), newSigner(t, "e", "ES256"), newSigner(t, "d", "EdDSA")
	small, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(ed.key)
	if err != nil {
		t.Fatal(err)
	}
	nameless := func(s signer) string { return signer{"", s.alg, s.key}.token(t, valid(nil)) }
	named := func(s signer) string { return s.token(t, valid(nil)) }
	for name, tc := range map[string]struct {
		file   string
		opens  []string
		closed []string
		says   string // the reason of the refusal
	}{
		"one key":                {rs.inPEM(t, ""), []string{named(rs), nameless(rs)}, []string{named(es), nameless(newSigner(t, "r", "EdDSA"))}, ""},
		"a certificate":          {es.certificate(t), []string{nameless(es)}, []string{named(rs)}, ""},
		"RSA in its own form":    {block("RSA PUBLIC KEY", x509.MarshalPKCS1PublicKey(rs.key.Public().(*rsa.PublicKey)), ""), []string{nameless(rs)}, nil, ""},
		"words before and after": {"Our key:\n" + ed.inPEM(t, "") + "The end.\n", []string{nameless(ed)}, nil, ""},
		"one with a kid":         {ed.inPEM(t, "d"), []string{named(ed)}, []string{nameless(ed)}, ""},
		"several":                {ed.inPEM(t, "d") + rs.inPEM(t, "r"), []string{named(ed), named(rs)}, []string{nameless(rs), signer{"d", rs.alg, rs.key}.token(t, valid(nil))}, ""},
		"several without a kid":  {ed.inPEM(t, "") + rs.inPEM(t, "r"), nil, nil, "each needs a kid"},
		"one kid twice":          {ed.inPEM(t, "d") + rs.inPEM(t, "d"), nil, nil, "two of its keys"},
		"a private key":          {block("PRIVATE KEY", private, ""), nil, nil, "only the issuer may have"},
		"a request":              {block("CERTIFICATE REQUEST", private, ""), nil, nil, "neither"},
		"a short key":            {signer{"s", "RS256", small}.inPEM(t, ""), nil, nil, "1024 bits"},
		"broken":                 {block("PUBLIC KEY", []byte("x"), ""), nil, nil, "cannot be read"},
		"cut off":                {ed.inPEM(t, "")[:40], nil, nil, "no PEM block"},
		"too many":               {strings.Repeat(ed.inPEM(t, ""), maxSetKeys+1), nil, nil, ""},
		"too large":              {ed.inPEM(t, "") + strings.Repeat(" ", maxSetBytes), nil, nil, "the maximum is"},
	} {
		i := theIssuer()
		i.KeySet = []byte(tc.file)
		if wrong := CheckKeyFile(i.KeySet); len(tc.opens) == 0 {
			if wrong == nil || !strings.Contains(wrong.Error(), tc.says) {
				t.Errorf("%s: %v", name, wrong)
			}
			continue
		}
		a := newAuth(t, Options{Issuers: []Issuer{i}})
		for n, token := range tc.opens {
			if why := refusedFor(a, token); why != "" {
				t.Errorf("%s, token %d is refused: %s", name, n, why)
			}
		}
		for n, token := range tc.closed {
			if why := refusedFor(a, token); why != ReasonToken {
				t.Errorf("%s, other token %d: %q", name, n, why)
			}
		}
	}
}
