package certs

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"slices"
	"strings"
	"time"
)

// Pair names the PEM files of one certificate.
type Pair struct {
	Cert string // the certificate and its intermediates
	Key  string // the private key
}

// Problem is an error in one file or setting.
type Problem struct {
	Where   string // "certificates[0].cert", "acme.hosts"
	Message string // one sentence
}

// Problems are all problems found. It is an error.
type Problems []Problem

func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i, one := range p {
		lines[i] = one.Where + ": " + one.Message
	}
	return strings.Join(lines, " ")
}

const maxFile = 1 << 20

// files is the content of the files at one time.
type files struct {
	all    []*tls.Certificate            // in order of the settings
	byName map[string][]*tls.Certificate // by lower-case name, such as *.example.com
	bytes  []byte                        // of all files, to detect changes
}

func readFiles(pairs []Pair, now time.Time) (*files, error) {
	f := &files{byName: map[string][]*tls.Certificate{}}
	var problems Problems
	for i, p := range pairs {
		where := fmt.Sprintf("certificates[%d].", i)
		cert, wrongCert := readFile(p.Cert)
		key, wrongKey := readFile(p.Key)
		f.bytes = append(append(append(f.bytes, cert...), 0), key...)
		var c *tls.Certificate
		if wrongCert == "" && wrongKey == "" {
			c, wrongCert = parse(cert, key, p, now)
		}
		if wrongCert != "" {
			problems = append(problems, Problem{where + "cert", wrongCert})
		}
		if wrongKey != "" {
			problems = append(problems, Problem{where + "key", wrongKey})
		}
		if c == nil {
			continue
		}
		f.all = append(f.all, c)
		for _, name := range names(c.Leaf) {
			f.byName[name] = append(f.byName[name], c)
		}
	}
	if len(problems) > 0 {
		return f, problems
	}
	return f, nil
}

func readFile(name string) (data []byte, wrong string) {
	if name == "" {
		return nil, "It is missing; set the files of both the certificate and its key."
	}
	f, err := os.Open(name)
	if err == nil {
		data, err = io.ReadAll(io.LimitReader(f, maxFile+1))
		err = errors.Join(err, f.Close())
		if err == nil && len(data) > maxFile {
			return nil, fmt.Sprintf("The file %s exceeds %d bytes and is not a certificate.", name, maxFile)
		}
		if err == nil {
			return data, ""
		}
	}
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		err = pe.Err
	}
	return nil, fmt.Sprintf("The file %s cannot be read: %v.", name, err)
}

// parse reads and checks one certificate; wrong is the problem if c is nil.
func parse(cert, key []byte, p Pair, now time.Time) (c *tls.Certificate, wrong string) {
	if !bytes.Contains(cert, []byte("-----BEGIN CERTIFICATE-----")) {
		return nil, fmt.Sprintf("The file %s has no PEM certificate.", p.Cert)
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Sprintf("The certificate %s and the key %s do not match: %s.", p.Cert, p.Key,
			strings.TrimPrefix(err.Error(), "tls: "))
	}
	leaf := pair.Leaf
	server := len(leaf.ExtKeyUsage) == 0 && len(leaf.UnknownExtKeyUsage) == 0 ||
		slices.Contains(leaf.ExtKeyUsage, x509.ExtKeyUsageServerAuth) || slices.Contains(leaf.ExtKeyUsage, x509.ExtKeyUsageAny)
	switch {
	case now.After(leaf.NotAfter):
		return nil, fmt.Sprintf("The certificate %s expired at %s; renew it.", p.Cert, leaf.NotAfter.UTC().Format(time.RFC3339))
	case now.Before(leaf.NotBefore):
		return nil, fmt.Sprintf("The certificate %s is valid only from %s; check this machine's clock.", p.Cert,
			leaf.NotBefore.UTC().Format(time.RFC3339))
	case len(names(leaf)) == 0:
		return nil, fmt.Sprintf("The certificate %s has no host name (subjectAltName), so clients reject it.", p.Cert)
	case !server:
		return nil, fmt.Sprintf("The certificate %s is not for servers (extendedKeyUsage); get one for TLS servers.", p.Cert)
	}
	return &pair, ""
}

func names(leaf *x509.Certificate) []string {
	var all []string
	for _, name := range leaf.DNSNames {
		all = append(all, strings.ToLower(name))
	}
	for _, ip := range leaf.IPAddresses {
		all = append(all, ip.String())
	}
	return all
}

// pick returns the certificate for a client, or nil. Among several for one name, such as ECDSA and RSA, it returns the
// first that the client supports. A client without a server name, or with an unknown one, gets the first certificate,
// as with other servers.
func (f *files) pick(hello *tls.ClientHelloInfo) *tls.Certificate {
	list := f.of(normal(hello.ServerName))
	if hello.ServerName == "" && hello.Conn != nil {
		if tcp, ok := hello.Conn.LocalAddr().(*net.TCPAddr); ok {
			list = f.of(tcp.IP.String())
		}
	}
	if len(list) == 0 {
		list = f.all
	}
	for _, c := range list {
		if hello.SupportsCertificate(c) == nil {
			return c
		}
	}
	if len(list) == 0 {
		return nil
	}
	return list[0]
}

func (f *files) of(name string) []*tls.Certificate {
	if list := f.byName[name]; len(list) > 0 || name == "" {
		return list
	}
	_, parent, _ := strings.Cut(name, ".")
	return f.byName["*."+parent]
}

// normal returns a server name in the form of byName's keys.
func normal(name string) string { return strings.ToLower(strings.TrimSuffix(name, ".")) }

// NameOf returns the first certificate of a PEM file and one of its host names. For *.example.com it is any.example.com.
func NameOf(file string) (host string, leaf *x509.Certificate, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", nil, err
	}
	if block, _ := pem.Decode(text); block != nil && block.Type == "CERTIFICATE" {
		leaf, err = x509.ParseCertificate(block.Bytes)
	}
	if err != nil || leaf == nil || len(names(leaf)) == 0 {
		return "", nil, fmt.Errorf("no certificate in %s names a host", file)
	}
	return strings.Replace(names(leaf)[0], "*", "any", 1), leaf, nil
}
