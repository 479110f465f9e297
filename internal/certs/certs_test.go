package certs

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"log/slog"
	"maps"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"voicegw/internal/testutil"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// authority signs certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{}
	var err error
	if a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, a.key.Public(), a.key)
	if err == nil {
		a.cert, err = x509.ParseCertificate(der)
	}
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// wanted describes a certificate; the zero value is a valid one without a name.
type wanted struct {
	names   []string
	serial  int64
	from    time.Duration // since now
	to      time.Duration // since now; 0: an hour
	rsa     bool
	forMail bool
}

// write writes a certificate and its key into a folder.
func (a *authority) write(t *testing.T, dir string, w wanted) Pair {
	t.Helper()
	var key crypto.Signer
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if w.rsa {
		key, err = rsa.GenerateKey(rand.Reader, 2048)
	}
	if err != nil {
		t.Fatal(err)
	}
	if w.to == 0 {
		w.to = time.Hour
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(w.serial + 2), NotBefore: time.Now().Add(w.from - time.Minute), NotAfter: time.Now().Add(w.to)}
	if w.forMail {
		template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageEmailProtection}
	}
	for _, name := range w.names {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	p := Pair{filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")}
	writeFile(t, p.Cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	writeFile(t, p.Key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}))
	return p
}

func writeFile(t *testing.T, name string, data []byte) {
	t.Helper()
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// shown makes a handshake with a store's settings, and returns the certificate that it got.
func (a *authority) shown(s *Store, name string, change func(*tls.Config)) (*x509.Certificate, error) {
	roots := x509.NewCertPool()
	roots.AddCert(a.cert)
	config := &tls.Config{ServerName: name, RootCAs: roots}
	if change != nil {
		change(config)
	}
	near, far := net.Pipe()
	var serving sync.WaitGroup
	defer serving.Wait()
	defer near.Close()
	serving.Go(func() {
		defer far.Close()
		_ = tls.Server(far, s.Config()).Handshake() // the client reports the error
		_, _ = io.Copy(io.Discard, far)             // until the client has left
	})
	c := tls.Client(near, config)
	if err := c.Handshake(); err != nil {
		return nil, err
	}
	return c.ConnectionState().PeerCertificates[0], nil
}

// TestSeveralCertificates: a client gets the certificate of its host, of a matching pattern, of a kind that it supports,
// or the first one.
func TestSeveralCertificates(t *testing.T) {
	a := newAuthority(t)
	s, err := Open(Options{Files: []Pair{
		a.write(t, t.TempDir(), wanted{serial: 1, names: []string{"one.example.com", "127.0.0.1"}}),
		a.write(t, t.TempDir(), wanted{serial: 2, names: []string{"*.example.com"}}),
		a.write(t, t.TempDir(), wanted{serial: 3, names: []string{"one.example.com"}, rsa: true, to: 30 * time.Minute}),
	}})
	if err != nil {
		t.Fatal(err)
	}
	onlyRSA := func(c *tls.Config) {
		c.MaxVersion, c.CipherSuites = tls.VersionTLS12, []uint16{tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256}
	}
	for _, tc := range []struct {
		name   string
		change func(*tls.Config)
		serial int64 // 0: refused
	}{
		{"one.example.com", nil, 1}, {"ONE.example.com.", nil, 1}, {"two.example.com", nil, 2}, {"one.example.com", onlyRSA, 3},
		{"127.0.0.1", nil, 1}, {"a.two.example.com", nil, 0}, {"example.org", nil, 0},
		{"one.example.com", func(c *tls.Config) { c.MaxVersion = tls.VersionTLS11 }, 0},
	} {
		c, err := a.shown(s, tc.name, tc.change)
		switch {
		case tc.serial == 0:
			if err == nil {
				t.Errorf("%s is accepted", tc.name)
			}
		case err != nil:
			t.Errorf("%s: %v", tc.name, err)
		case c.SerialNumber.Int64() != tc.serial+2:
			t.Errorf("%s gets certificate %d, want %d", tc.name, c.SerialNumber.Int64()-2, tc.serial)
		}
	}
	if got := s.Hosts(); !slices.Equal(got, []string{"*.example.com", "127.0.0.1", "one.example.com"}) {
		t.Errorf("the hosts are %q", got)
	}
	ends := s.Expiry()
	if left := time.Until(ends["one.example.com"]); len(ends) != 3 || left > 31*time.Minute {
		t.Errorf("they end at %v; the first of one.example.com in %s", ends, left)
	}
}

// TestAllProblemsAtOnce: one error has all problems of the files, with the file and the solution.
func TestAllProblemsAtOnce(t *testing.T) {
	a := newAuthority(t)
	good := a.write(t, t.TempDir(), wanted{names: []string{"good.example.com"}})
	other := a.write(t, t.TempDir(), wanted{names: []string{"other.example.com"}})
	noPEM := filepath.Join(t.TempDir(), "x")
	writeFile(t, noPEM, []byte("not PEM"))
	_, err := Open(Options{
		Files: []Pair{
			good,
			{good.Cert, other.Key},
			{"/missing/tls.crt", "/missing/tls.key"},
			{noPEM, good.Key},
			{good.Cert, noPEM},
			{good.Cert, ""},
			a.write(t, t.TempDir(), wanted{names: []string{"old.example.com"}, from: -2 * time.Hour, to: -time.Minute}),
			a.write(t, t.TempDir(), wanted{names: []string{"early.example.com"}, from: 30 * time.Minute}),
			a.write(t, t.TempDir(), wanted{}),
			a.write(t, t.TempDir(), wanted{names: []string{"mail.example.com"}, forMail: true}),
			{t.TempDir(), good.Key},
		},
		ACME: &ACME{Hosts: []string{"voice.example.com", "*.example.com", "192.0.2.1", "a.example.com:443", "localhost"}, Cache: t.TempDir()},
	})
	problems, ok := errors.AsType[Problems](err)
	if !ok {
		t.Fatal(err)
	}
	want := []Problem{
		{"certificates[1].cert", "do not match: private key does not match public key."},
		{"certificates[2].cert", "/missing/tls.crt cannot be read: no such file or directory."},
		{"certificates[2].key", "/missing/tls.key cannot be read"},
		{"certificates[3].cert", "no PEM certificate"},
		{"certificates[4].cert", "do not match: failed to find any PEM data in key input."},
		{"certificates[5].key", "It is missing"},
		{"certificates[6].cert", "expired at"},
		{"certificates[7].cert", "is valid only from"},
		{"certificates[8].cert", "has no host name"},
		{"certificates[9].cert", "is not for servers"},
		{"certificates[10].cert", "cannot be read: is a directory."},
		{"acme.hosts", `"*.example.com"`}, {"acme.hosts", `"192.0.2.1"`}, {"acme.hosts", `"a.example.com:443"`}, {"acme.hosts", `"localhost"`},
	}
	for i, p := range problems {
		if i >= len(want) || p.Where != want[i].Where || !strings.Contains(p.Message, want[i].Message) {
			t.Errorf("problem %d: %+v", i, p)
		}
	}
	if len(problems) != len(want) {
		t.Errorf("%d problems, want %d", len(problems), len(want))
	}
}

// lines is a log.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// runs runs a store until the end of the test.
func runs(t *testing.T, s *Store) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { s.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
}

// TestFilesThatChange: changed files are read again, whether written in place, replaced, or behind a replaced link, as in
// Kubernetes. A broken one changes nothing and is logged.
func TestFilesThatChange(t *testing.T) {
	a := newAuthority(t)
	for name, renew := range map[string]func(dir string, serial int64){
		"in place": func(dir string, serial int64) {
			a.write(t, dir, wanted{serial: serial, names: []string{"voice.example.com"}})
		},
		"replaced": func(dir string, serial int64) {
			p := a.write(t, t.TempDir(), wanted{serial: serial, names: []string{"voice.example.com"}})
			for from, to := range map[string]string{p.Key: "tls.key", p.Cert: "tls.crt"} {
				data, err := os.ReadFile(from)
				if err != nil {
					t.Fatal(err)
				}
				writeFile(t, filepath.Join(dir, "new"), data)
				if err := os.Rename(filepath.Join(dir, "new"), filepath.Join(dir, to)); err != nil {
					t.Fatal(err)
				}
			}
		},
		"a link": func(dir string, serial int64) {
			version, err := os.MkdirTemp(dir, "..version")
			if err != nil {
				t.Fatal(err)
			}
			a.write(t, version, wanted{serial: serial, names: []string{"voice.example.com"}})
			link := filepath.Join(dir, "..data_tmp")
			if err := errors.Join(os.Symlink(version, link), os.Rename(link, filepath.Join(dir, "..data"))); err != nil {
				t.Fatal(err)
			}
			for _, file := range []string{"tls.crt", "tls.key"} {
				if err := os.Symlink("..data/"+file, filepath.Join(dir, file)); err != nil && !errors.Is(err, os.ErrExist) {
					t.Fatal(err)
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			renew(dir, 1)
			var log lines
			s, err := Open(Options{Files: []Pair{{filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")}}, Logger: slog.New(slog.NewTextHandler(&log, nil))})
			if err != nil {
				t.Fatal(err)
			}
			runs(t, s)
			serial := func() int64 {
				c, err := a.shown(s, "voice.example.com", nil)
				if err != nil {
					t.Fatal(err)
				}
				return c.SerialNumber.Int64() - 2
			}
			if got := serial(); got != 1 {
				t.Fatalf("certificate %d is shown first", got)
			}
			for n := range int64(3) {
				renew(dir, n+2)
				testutil.WaitUntil(t, "the next certificate is shown", func() bool { return serial() == n+2 })
			}
			writeFile(t, filepath.Join(dir, "tls.crt"), []byte("broken"))
			writeFile(t, filepath.Join(dir, "x"), nil) // files behind the link are not watched
			testutil.WaitUntil(t, "the broken one is logged", func() bool { return strings.Contains(log.String(), "no PEM certificate") })
			if got := serial(); got != 4 {
				t.Errorf("certificate %d is shown, want the last good one", got)
			}
			if s.Reload() == nil {
				t.Error("a broken file is loaded")
			}
		})
	}
}

// TestReloadIsAllOrNothing: if one of two is broken, the other does not change either.
func TestReloadIsAllOrNothing(t *testing.T) {
	a := newAuthority(t)
	one, two := t.TempDir(), t.TempDir()
	s, err := Open(Options{Files: []Pair{
		a.write(t, one, wanted{serial: 1, names: []string{"one.example.com"}}),
		a.write(t, two, wanted{serial: 2, names: []string{"two.example.com"}}),
	}})
	if err != nil {
		t.Fatal(err)
	}
	a.write(t, one, wanted{serial: 3, names: []string{"one.example.com"}})
	broken := a.write(t, two, wanted{serial: 4, names: []string{"two.example.com"}, to: -time.Second, from: -time.Hour})
	problems, ok := errors.AsType[Problems](s.Reload())
	if !ok || len(problems) != 1 || problems[0].Where != "certificates[1].cert" || !strings.Contains(problems[0].Message, broken.Cert) {
		t.Fatalf("reloading returned %v", problems)
	}
	before := s.Expiry()
	if c, err := a.shown(s, "one.example.com", nil); err != nil || c.SerialNumber.Int64() != 3 {
		t.Errorf("one.example.com shows %v, %v", c, err)
	}
	a.write(t, two, wanted{serial: 4, names: []string{"two.example.com", "three.example.com"}, to: 2 * time.Hour})
	if err := s.Reload(); err != nil {
		t.Fatal(err)
	}
	if c, err := a.shown(s, "three.example.com", nil); err != nil || c.SerialNumber.Int64() != 6 {
		t.Errorf("three.example.com shows %v, %v", c, err)
	}
	if maps.Equal(before, s.Expiry()) {
		t.Error("they end as before")
	}
}

// FuzzCertificate: any file is a problem with a text or a certificate with a name.
func FuzzCertificate(f *testing.F) {
	f.Add([]byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"), []byte("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"))
	f.Add([]byte(""), []byte("x"))
	f.Fuzz(func(t *testing.T, cert, key []byte) {
		c, wrong := parse(cert, key, Pair{"c", "k"}, time.Now())
		if (c == nil) == (wrong == "") {
			t.Fatalf("%v, %q", c, wrong)
		}
	})
}
