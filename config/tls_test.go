package config

import (
	"slices"
	"strings"
	"testing"
)

// TestTLS covers certificates from a file and from variables, and the errors of invalid ones.
func TestTLS(t *testing.T) {
	const file = "etc/voicegw.yaml"
	c, _, err := Load(Source{File: file, ReadFile: files{file: `
tls:
  certificates:
    - {cert: one.crt, key: one.key}
    - cert: /two.crt
      key: /two.key
  acme: {hosts: [voice.example.com], email: a@example.com, directory: "https://ca.example.com/dir", cache: certs}
`}.ReadFile})
	if err != nil {
		t.Fatal(err)
	}
	if want := (Certificates{{"etc/one.crt", "etc/one.key"}, {"/two.crt", "/two.key"}}); !slices.Equal(c.TLS.Certificates, want) {
		t.Errorf("the certificates are %q", c.TLS.Certificates)
	}
	if a := c.TLS.ACME; !c.TLS.Enabled() || !slices.Equal(a.Hosts, []string{"voice.example.com"}) || a.Email != "a@example.com" || a.Directory != "https://ca.example.com/dir" || a.Cache != "etc/certs" {
		t.Errorf("ACME is %+v", a)
	}
	c, _, err = Load(Source{Environ: []string{"VOICEGW_TLS_CERTIFICATES=a.crt=a.key, b.crt=b.key"}})
	if want := (Certificates{{"a.crt", "a.key"}, {"b.crt", "b.key"}}); err != nil || !slices.Equal(c.TLS.Certificates, want) {
		t.Errorf("the certificates of the variable are %q, %v", c.TLS.Certificates, err)
	}
	if c, _, err := Load(Source{}); err != nil || c.TLS.Enabled() {
		t.Errorf("TLS without settings: %v", err)
	}
	for text, want := range map[string]string{
		"certificates: [{cert: a}]":                                    "needs both cert and key",
		"certificates: [{cert: a, key: b, chain: c}]":                  "has cert and key, not \"chain\"",
		"certificates: [{cert: a, cert: b, key: c}]":                   "cert is set twice",
		"certificates: [{cert: [a], key: b}]":                          "must be the name of a file, not a list",
		"certificates: [{cert: , key: b}]":                             "must be the name of a file, not empty",
		"certificates: [a.pem]":                                        "this entry is the value \"a.pem\"",
		"certificates: {cert: a, key: b}":                              "must be a list, not a section",
		"certificates: a.pem":                                          "such as cert.pem=key.pem",
		"certificates: [{cert: ~/a, key: b}]":                          "which only a shell understands",
		"acme: {email: a@example.com}":                                 "tls.acme.hosts is missing",
		"acme: {hosts: [a.example.com], email: nobody}":                "must be one address",
		"acme: {hosts: [a.example.com], directory: \"http://ca/dir\"}": "must begin with https://",
		"acme: {hosts: [a.example.com], directory: ca}":                "must be a whole URL",
	} {
		_, _, err := Load(Source{File: file, ReadFile: files{file: "tls: {" + text + "}"}.ReadFile})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
