package config

import (
	"net"
	"net/netip"
	"strings"

	"voicegw/config/setting"
)

// Cluster lets gateways with a common store relay each other's clients. An empty Listen disables it.
type Cluster struct {
	// Address for other gateways; clients must not reach it.
	Listen string `key:"listen" unset:"off" eg:"10.0.0.1:8090"`
	// That address as others reach it: `http://10.0.0.1:8090`.
	URL string `key:"url" eg:"http://10.0.0.1:8090"`
	// At least 32 bytes, the same everywhere: `openssl rand -hex 32`. It signs requests; resume tokens are readable
	// without https.
	Secret setting.Secret `key:"secret" eg:"0000000000000000000000000000000000000000000000000000000000000000"`
}

// Enabled reports whether this gateway is part of a cluster.
func (c Cluster) Enabled() bool { return c.Listen != "" }

// minClusterSecret is the minimum length in bytes; see cluster.MinSecret.
const minClusterSecret = 32

func (v validator) validateCluster() {
	c := v.config.Cluster
	if !c.Enabled() {
		if c.URL != "" {
			v.wrong("cluster.listen", "is missing; name the address on which this gateway serves the others, or remove cluster.url")
		} else if c.Secret.IsSet() {
			// A single gateway may later become part of a cluster and keep its secret.
			v.warnings = append(v.warnings, "cluster.secret is not used without cluster.listen.")
		}
		return
	}
	v.listen("cluster.listen", c.Listen)
	v.config.Cluster.URL = bracketed(c.URL)
	v.httpURL("cluster.url", v.config.Cluster.URL)
	v.wrongIf(c.URL == "", "cluster.url", "is missing; name the address at which the other gateways reach cluster.listen, for "+
		"example http://10.0.0.1:8090")
	switch n := len(c.Secret.Reveal()); {
	case n == 0:
		v.wrong("cluster.secret", "is missing; make one with: openssl rand -hex 32, and give all gateways the same")
	case n < minClusterSecret:
		v.wrong("cluster.secret", "has %d bytes and could be guessed; make one of at least %d, for example with: openssl rand -hex 32",
			n, minClusterSecret)
	}
	v.wrongIf(v.config.Store.URL == "", "store.url", "is missing; cluster.listen needs a store that all gateways have in common")
}

// bracketed adds brackets to an IPv6 address in a URL, because Kubernetes omits them.
func bracketed(url string) string {
	scheme, at, _ := strings.Cut(url, "://")
	colon := strings.LastIndexByte(at, ':')
	if colon < 0 {
		return url
	}
	if addr, err := netip.ParseAddr(at[:colon]); err != nil || !addr.Is6() {
		return url
	}
	return scheme + "://" + net.JoinHostPort(at[:colon], at[colon+1:])
}
