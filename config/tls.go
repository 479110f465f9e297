package config

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"voicegw/config/setting"
)

// TLS configures TLS with clients. Without certificates and hosts the gateway uses no TLS.
type TLS struct {
	// Certificates with `cert` and `key` in PEM files; turns on [TLS](tls.md). As a variable or flag:
	// `cert.pem=key.pem`.
	Certificates Certificates `key:"certificates" eg:"[{cert: /etc/voicegw/tls.crt, key: /etc/voicegw/tls.key}]"`
	ACME         ACME         `key:"acme"`
}

// Enabled reports whether the gateway uses TLS with its clients.
func (t TLS) Enabled() bool { return len(t.Certificates)+len(t.ACME.Hosts) > 0 }

// Scheme returns http or https.
func (t TLS) Scheme() string {
	if t.Enabled() {
		return "https"
	}
	return "http"
}

// Certificate is a certificate with its chain, and its key, both PEM files. Load does not read them.
type Certificate struct{ Cert, Key setting.Path }

// Certificates are in the order of the file. In a variable or a flag they are written as cert.pem=key.pem, with commas
// between them.
type Certificates []Certificate

// ACME orders certificates from an authority (RFC 8555).
type ACME struct {
	// Names to order certificates for; turns on TLS. They count as `hosts`.
	Hosts []string `key:"hosts" eg:"[voice.example.com]"`
	// Contact for the authority.
	Email string `key:"email" eg:"operator@example.com"`
	// The authority's directory URL. Using it accepts its terms.
	Directory string `key:"directory" is:"url" unset:"Let's Encrypt" eg:"https://acme-v02.api.letsencrypt.org/directory"`
	// Folder for certificates and keys.
	Cache setting.Path `key:"cache" unset:"certificates in data_dir" eg:"/var/lib/voicegw/certificates"`
}

// parseCertificates reads certificates from a variable or a flag. The error is the end of a sentence.
func parseCertificates(text string) (Certificates, error) {
	var list Certificates
	for _, one := range splitList(text) {
		cert, key, both := strings.Cut(one, "=")
		if !both || cert == "" || key == "" {
			return nil, fmt.Errorf("must be certificates with their keys, such as cert.pem=key.pem, with commas "+
				"between them, not %s", quote(one))
		}
		list = append(list, Certificate{setting.Path(cert), setting.Path(key)})
	}
	return list, nil
}

func (w walker) certificates(key string, n *yaml.Node, out *Certificates) {
	var list Certificates
	for _, item := range n.Content {
		item = resolve(item)
		if item.Kind != yaml.MappingNode {
			w.problem(item, "%s must be a list of sections with cert and key; this entry is %s.", key, kindName(item))
			continue
		}
		var c Certificate
		names := map[string]*setting.Path{"cert": &c.Cert, "key": &c.Key}
		for i := 0; i+1 < len(item.Content); i += 2 {
			name, value := item.Content[i], resolve(item.Content[i+1])
			field := names[name.Value]
			switch {
			case field == nil:
				w.problem(name, "An entry of %s has cert and key, not %s.", key, quote(name.Value))
			case *field != "":
				w.problem(name, "%s is set twice; remove one.", name.Value)
			case value.Kind != yaml.ScalarNode || value.Tag == "!!null" || value.Value == "":
				w.problem(value, "%s must be the name of a file, not %s.", name.Value, kindName(value))
			default:
				*field = setting.Path(value.Value)
			}
		}
		if c.Cert == "" || c.Key == "" {
			w.problem(item, "An entry of %s needs both cert and key.", key)
		}
		list = append(list, c)
	}
	*out = list
	w.loader.where[key] = at(w.name, n.Line)
}

// validateTLS checks the settings; package certs checks the files.
func (v validator) validateTLS() {
	t := v.config.TLS
	for _, c := range t.Certificates {
		for _, p := range []setting.Path{c.Cert, c.Key} {
			v.validatePath("tls.certificates", p)
		}
	}
	v.wrongIf(len(t.ACME.Hosts) == 0 && (t.ACME.Email != "" || t.ACME.Directory != "" || t.ACME.Cache != ""), "tls.acme.hosts",
		"is missing; name the hosts to order certificates for, or remove the other settings of tls.acme")
	v.wrongIf(strings.HasPrefix(t.ACME.Directory, "http://"), "tls.acme.directory", "must begin with https://, because others could "+
		"change the authority's answers")
	if e := t.ACME.Email; e != "" && (strings.Count(e, "@") != 1 || strings.ContainsAny(e, " <>,:")) {
		v.wrong("tls.acme.email", "must be one address, such as operator@example.com, not %s", quote(e))
	}
}
