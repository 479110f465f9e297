//go:build linux

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"voicegw/internal/testutil"
)

// kind is a relay that can be measured.
type kind struct {
	name  string
	about string
	speak string // the protocol of its clients
	wire  string // the protocol of its provider
	start func(b *bench, to upstream) (*relay, error)
}

// upstream is the provider of a relay.
type upstream struct {
	addr string // host:port
	cert string // file with the certificate to trust, PEM; empty without TLS
	// front has what the relay shows to its clients; empty without TLS towards them.
	front pair
}

// pair names the PEM files of a certificate and its key.
type pair struct{ cert, key string }

// url returns the provider's address with a scheme (http or ws), or the secure scheme for TLS.
func (u upstream) url(scheme string) string {
	if u.cert != "" {
		scheme += "s"
	}
	return scheme + "://" + u.addr
}

// overTLS returns a kind that speaks TLS to its provider, as with a real one.
func (k kind) overTLS() kind {
	k.name += tlsSuffix
	return k
}

// withTLS returns a kind whose clients speak TLS to it.
func (k kind) withTLS() kind {
	k.name = tlsPrefix + k.name
	return k
}

// tlsSuffix marks a kind that speaks TLS to its provider, before the @ of a build, and tlsPrefix one
// whose clients speak TLS to it.
const (
	tlsSuffix = "+tls"
	tlsPrefix = "tls+"
)

// plain returns the name without tlsPrefix and tlsSuffix, and which of them were there.
func (k kind) plain() (name string, front, secure bool) {
	name, _, _ = strings.Cut(k.name, "@")
	name, front = strings.CutPrefix(name, tlsPrefix)
	name, secure = strings.CutSuffix(name, tlsSuffix)
	return name, front, secure
}

// beside returns other in the form that can be compared with k: with TLS where k speaks TLS.
func (k kind) beside(other kind) kind {
	_, front, secure := k.plain()
	if secure {
		other = other.overTLS()
	}
	if front {
		other = other.withTLS()
	}
	return other
}

// The relays. Those whose clients speak the provider's protocol pass bytes on; the gateway
// must also convert.
var (
	direct       = kind{"direct", "no relay at all", speakGemini, wireGemini, startDirect}
	nginx        = kind{"nginx", "proxies WebSockets, converts nothing", speakGemini, wireGemini, startNginx}
	gatewayKind  = kind{"voicegw", "voicegw serve, Gemini's wire", speakVoicegw, wireGemini, startGateway}
	gatewayOther = kind{"voicegw/openai", "voicegw serve, OpenAI's wire", speakVoicegw, wireOpenAI, startGateway}
)

// build returns a gateway that is another program than the one that is measured by default.
func (k kind) build(program string) kind {
	k.name += "@" + program
	k.start = func(b *bench, to upstream) (*relay, error) { return startBuild(b, program, to) }
	return k
}

// relay is a running relay.
type relay struct {
	addr  string
	proc  *process // nil for direct
	probe *http.Client
}

func (r *relay) stop() {
	if r.proc != nil {
		r.proc.stop()
	}
}

func startDirect(_ *bench, to upstream) (*relay, error) { return &relay{addr: to.addr}, nil }

// nginxConf is a WebSocket proxy in one process, as in nginx's documentation
// (nginx.org/en/docs/http/websocket.html), without a log.
const nginxConf = `daemon off;
master_process off;
worker_rlimit_nofile 65536;
pid %[1]s/nginx.pid;
error_log stderr crit;
events { worker_connections 32768; }
http {
	access_log off;
	client_body_temp_path %[1]s/body;
	proxy_temp_path %[1]s/proxy;
	fastcgi_temp_path %[1]s/fastcgi;
	uwsgi_temp_path %[1]s/uwsgi;
	scgi_temp_path %[1]s/scgi;
	server {
		listen %[2]s%[4]s;
		location / {
			proxy_pass %[3]s;
			proxy_ssl_protocols TLSv1.3;
			proxy_http_version 1.1;
			proxy_set_header Upgrade $http_upgrade;
			proxy_set_header Connection "Upgrade";
			proxy_set_header Host $host;
			proxy_read_timeout 1h;
		}
	}
}
`

// nginx returns the rest of the directive listen, and those of the certificate.
func (p pair) nginx() string {
	if p.cert == "" {
		return ""
	}
	return fmt.Sprintf(" ssl;\n\t\tssl_protocols TLSv1.3;\n\t\tssl_certificate %s;\n\t\tssl_certificate_key %s", p.cert, p.key)
}

func startNginx(b *bench, to upstream) (*relay, error) {
	addr, err := testutil.FreeAddr()
	if err != nil {
		return nil, err
	}
	conf := filepath.Join(b.dir, "nginx.conf")
	if err := os.WriteFile(conf, fmt.Appendf(nil, nginxConf, b.dir, addr, to.url("http"), to.front.nginx()), 0o600); err != nil {
		return nil, err
	}
	p, err := start(b.relayOn, nil, b.nginx, "-c", conf, "-p", b.dir)
	if err != nil {
		return nil, err
	}
	return listening(p, addr)
}

func startGateway(b *bench, to upstream) (*relay, error) {
	return startBuild(b, b.gateway, to)
}

// startBuild starts the program as it is shipped, except for the file that lets the bench look
// inside (scripts/bench/probe.go).
func startBuild(b *bench, program string, to upstream) (*relay, error) {
	addr, err := testutil.FreeAddr()
	if err != nil {
		return nil, err
	}
	data, err := os.MkdirTemp(b.dir, "data")
	if err != nil {
		return nil, err
	}
	socket := filepath.Join(data, "probe")
	// In the environment, because a release of before ignores a setting there that it does not know.
	env := []string{
		"RELAYBENCH_PROBE=" + socket,
		"VOICEGW_LIMITS_SESSIONS=20000", "VOICEGW_LIMITS_WAITING=20000", "VOICEGW_LIMITS_EXEMPT_LOOPBACK=true",
		"VOICEGW_PROVIDERS_GEMINI_API_KEY=bench", "VOICEGW_PROVIDERS_GEMINI_BASE_URL=" + to.url("http"),
		"VOICEGW_PROVIDERS_OPENAI_API_KEY=bench", "VOICEGW_PROVIDERS_OPENAI_BASE_URL=" + to.url("http") + "/v1",
	}
	if to.cert != "" {
		env = append(env, "SSL_CERT_FILE="+to.cert)
	}
	if f := to.front; f.cert != "" {
		env = append(env, "VOICEGW_TLS_CERTIFICATES="+f.cert+"="+f.key)
	}
	p, err := start(b.relayOn, env, program, "serve", "--listen", addr, "--data-dir", data, "--log-level", "warn")
	if err != nil {
		return nil, err
	}
	r, err := listening(p, addr)
	if err != nil {
		return nil, err
	}
	r.probe = &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}}
	return r, nil
}

// startTime bounds how long a relay may take to listen.
const startTime = 20 * time.Second

// listening waits until a relay accepts connections.
func listening(p *process, addr string) (*relay, error) {
	for deadline := time.Now().Add(startTime); time.Now().Before(deadline); {
		conn, err := net.Dial("tcp", addr)
		if err == nil {
			return &relay{addr: addr, proc: p}, conn.Close()
		}
		<-time.After(20 * time.Millisecond)
	}
	p.stop()
	return nil, fmt.Errorf("%s does not listen on %s after %s%s", strings.Join(p.cmd.Args, " "), addr, startTime, p.stderr.text())
}

// inside is what the probe of a gateway reports.
type inside struct {
	Mallocs    uint64
	Goroutines int
}

// settled lets a gateway collect its garbage twice, because what a pool keeps is gone only then.
func (r *relay) settled() (inside, error) {
	if in, err := r.look("settled"); err != nil {
		return in, err
	}
	return r.look("settled")
}

// look asks the probe; for "settled" the gateway first collects its garbage and returns free
// memory.
func (r *relay) look(path string) (in inside, err error) {
	if r.probe == nil {
		return in, nil
	}
	resp, err := r.probe.Get("http://probe/" + path)
	if err != nil {
		return in, err
	}
	defer func() { _ = resp.Body.Close() }()
	return in, json.NewDecoder(resp.Body).Decode(&in)
}
