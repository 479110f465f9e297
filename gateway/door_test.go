package gateway

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"voicegw/gateway/phone"
	"voicegw/internal/agent"
	"voicegw/internal/mcp"
	"voicegw/internal/origin"
	"voicegw/protocol"
	"voicegw/registry"
	"voicegw/store"
)

// allow parses patterns of origins.
func allow(t testing.TB, texts ...string) (out []origin.Pattern) {
	t.Helper()
	for _, text := range texts {
		p, _, err := origin.ParsePattern(text)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, p)
	}
	return out
}

// named parses patterns of hosts.
func named(t testing.TB, texts ...string) (out origin.Hosts) {
	t.Helper()
	for _, text := range texts {
		p, err := origin.ParseHostPattern(text)
		if err != nil {
			t.Fatal(err)
		}
		out.Patterns = append(out.Patterns, p)
	}
	return out
}

// everyRoute is a Server that has every endpoint.
func everyRoute(t *testing.T, change func(*Options)) *Server {
	t.Helper()
	s, _ := chatServer(t, &fakeAgent{}, func(o *Options) {
		o.Page = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "the page") })
		o.Tools = func() *registry.Snapshot { return &registry.Snapshot{} }
		o.Auth, o.Approvals = operators(testKey), noApprovals{}
		o.Jobs = &fakeJobs{}
		o.Images, o.Blocks, o.Voice, o.Simulator = broken{}, &fakeBlocks{}, &desk{}, &fakeSimulator{}
		o.Metrics, o.MCP = o.Page, fakeMCP{}
		o.Phone = phone.New(phone.Options{Voice: &desk{}})
		o.Reload = func() (Reloaded, error) { return Reloaded{}, nil }
		o.Directory, o.Nodes, o.Peers, o.Drain, o.Usage = noSessions{}, &nodes{}, &peers{}, &fakeDrain{}, &fakeUsage{}
		o.Agents = agent.New(agent.Options{Default: agent.Agent{ID: "default"}, World: func() agent.World { return agent.World{} }})
		// These tests do not call the endpoints of missing options.
		for i, v := 0, reflect.ValueOf(*o); i < v.NumField(); i++ {
			if field := v.Type().Field(i); field.Type.Kind() == reflect.Interface && v.Field(i).IsNil() {
				t.Fatalf("%s is missing", field.Name)
			}
		}
		if change != nil {
			change(o)
		}
	})
	return s
}

// fakeMCP answers every message alike.
type fakeMCP struct{}

func (fakeMCP) Serve(w http.ResponseWriter, _ *http.Request, _ mcp.Caller, _ bool) {
	answer(w, http.StatusOK, map[string]string{"jsonrpc": "2.0"})
}

// noApprovals is an empty list of approvals.
type noApprovals struct{}

func (noApprovals) Open(context.Context, time.Time) ([]store.Approval, error) { return nil, nil }

// visit requests a route as a caller with all other rights.
func visit(s *Server, pattern string, change func(*http.Request)) *httptest.ResponseRecorder {
	method, path, ok := strings.Cut(pattern, " ")
	if !ok {
		method, path = "GET", pattern
	}
	path = strings.NewReplacer("{id}", "x", "{user}", "x", "{token...}", "x").Replace(path)
	return ask(s, method, path, change)
}

// TestForeignPagesAreRefused: requests that a browser sends for a foreign page are refused at every route, before its
// handler.
func TestForeignPagesAreRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*http.Request)
		status int
		code   string
		says   string
		embeds bool // any page may link to public resources
	}{
		"a rebound name":                {change: page("evil.test", "http://evil.test"), status: 421, code: "host", says: "evil.test"},
		"a rebound name with a port":    {change: page("evil.test:8080", "http://evil.test:8080"), status: 421, code: "host", says: "setting hosts"},
		"a rebound name's link":         {change: host("evil.test:8080"), status: 421, code: "host"},
		"a name that begins well":       {change: page("localhost.evil.test:8080", "http://localhost.evil.test:8080"), status: 421, code: "host"},
		"an address that begins so":     {change: page("127.0.0.1.evil.test", "http://127.0.0.1.evil.test"), status: 421, code: "host"},
		"a name with userinfo":          {change: host("localhost@evil.test"), status: 421, code: "host"},
		"an address in another form":    {change: host("2130706433:8080"), status: 421, code: "host"},
		"another alphabet":              {change: host("lоcalhost:8080"), status: 421, code: "host"},
		"an unknown port":               {change: host("localhost:65536"), status: 421, code: "host"},
		"no host":                       {change: host(""), status: 421, code: "host"},
		"every address":                 {change: host("0.0.0.0:8080"), status: 421, code: "host"},
		"an address of another machine": {change: host("192.168.1.2:8080"), status: 421, code: "host"},
		"a foreign page":                {change: page("localhost:8080", "https://evil.test"), status: 403, code: "origin", says: "setting origins"},
		"a page of another port":        {change: page("localhost:8080", "http://localhost:3000"), status: 403, code: "origin"},
		"a page of another scheme":      {change: page("localhost:8080", "https://localhost:8080"), status: 403, code: "origin"},
		"a page of another name of us":  {change: page("localhost:8080", "http://127.0.0.1:8080"), status: 403, code: "origin"},
		"a page from nowhere":           {change: page("localhost:8080", "null"), status: 403, code: "origin"},
		"a page without an origin":      {change: page("localhost:8080", ""), status: 403, code: "origin"},
		"two origins":                   {change: page("localhost:8080", "http://localhost:8080", "http://evil.test"), status: 403, code: "origin"},
		"the same origin twice":         {change: page("localhost:8080", "http://localhost:8080", "http://localhost:8080"), status: 403, code: "origin"},
		"two origins in one":            {change: page("localhost:8080", "http://localhost:8080, http://evil.test"), status: 403, code: "origin"},
		"two sites":                     {change: sites("same-origin", "cross-site"), status: 403, code: "origin"},
		"a foreign page's image":        {change: sites("cross-site"), status: 403, code: "origin", embeds: true},
		"a page of the same site":       {change: sites("same-site"), status: 403, code: "origin", embeds: true},
		"an unknown site":               {change: sites("evil"), status: 403, code: "origin", embeds: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := everyRoute(t, nil)
			if len(s.routes.patterns) < 20 {
				t.Fatalf("there are only the routes %q", s.routes.patterns)
			}
			for _, pattern := range append(slices.Clone(s.routes.patterns), "TRACE /", "POST /v1/nothing") {
				w := visit(s, pattern, tc.change)
				if tc.embeds && embeddable(strings.TrimLeft(pattern, "ABCDEFGHIJKLMNOPQRSTUVWXYZ ")) {
					if w.Code == tc.status {
						t.Errorf("%s: %d %s", pattern, w.Code, w.Body)
					}
					continue
				}
				if w.Code != tc.status || !strings.Contains(w.Body.String(), `"code":"`+tc.code+`"`) || !strings.Contains(w.Body.String(), tc.says) {
					t.Errorf("%s: %d %s", pattern, w.Code, w.Body)
				}
			}
		})
	}
}

// page is a request of a page of an origin, or of several; host is the requested host.
func page(host string, origins ...string) func(*http.Request) {
	return func(r *http.Request) { r.Host, r.Header["Origin"] = host, origins }
}

func sites(values ...string) func(*http.Request) {
	return func(r *http.Request) { r.Header["Sec-Fetch-Site"] = values }
}

// TestAllowedPagesPass: programs, the gateway's own page and the configured pages reach every route, which then decides
// itself.
func TestAllowedPagesPass(t *testing.T) {
	for name, change := range map[string]func(*http.Request){
		"a program":                              nil,
		"a program, by address":                  host("127.0.0.1:8080"),
		"a program, over IPv6":                   host("[::1]:8080"),
		"a name below localhost":                 page("voice.localhost:8080", "http://voice.localhost:8080"),
		"capitals and a dot":                     page("LOCALHOST.:8080", "http://localhost:8080"),
		"its own page":                           page("localhost:8080", "http://localhost:8080"),
		"its own page on port 80":                page("localhost", "http://localhost"),
		"its own page, according to the browser": sites("same-origin"),
		"typed into a browser":                   sites("none"),
		"a page that is named":                   page("localhost:8080", "https://app.example.com"),
		"a page that is named, by port":          page("localhost:8080", "http://localhost:5173"),
		"a name that is named":                   page("voice.example.com", "http://voice.example.com"),
		"a proxy that ends TLS":                  page("voice.example.com", "https://voice.example.com"),
		"according to a proxy": func(r *http.Request) {
			page("localhost:8443", "https://localhost:8443")(r)
			r.RemoteAddr = "10.0.0.1:40000"
			r.Header.Set("X-Forwarded-Proto", "https")
		},
		"TLS": func(r *http.Request) {
			page("voice.example.com", "https://voice.example.com")(r)
			r.TLS = &tls.ConnectionState{}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := everyRoute(t, func(o *Options) {
				o.Hosts, o.Origins = named(t, "voice.example.com"), allow(t, "https://app.example.com", "http://localhost:5173")
				o.TrustedProxies = proxies()
			})
			for _, pattern := range s.routes.patterns {
				if w := visit(s, pattern, change); w.Code == 421 || strings.Contains(w.Body.String(), `"code":"origin"`) || strings.Contains(w.Body.String(), `"code":"host"`) {
					t.Errorf("%s: %d %s", pattern, w.Code, w.Body)
				}
			}
		})
	}
}

// TestSchemeCounts: over TLS, or behind a proxy with TLS, a page loaded without TLS is foreign: an attacker in its
// network may have written it.
func TestSchemeCounts(t *testing.T) {
	s := everyRoute(t, func(o *Options) { o.Hosts, o.TrustedProxies = named(t, "voice.example.com"), proxies() })
	for name, change := range map[string]func(*http.Request){
		"TLS": func(r *http.Request) { r.TLS = &tls.ConnectionState{} },
		"a proxy": func(r *http.Request) {
			r.RemoteAddr = "10.0.0.1:40000"
			r.Header.Set("X-Forwarded-Proto", "https")
		},
	} {
		w := visit(s, "GET /v1/providers", func(r *http.Request) {
			page("voice.example.com", "http://voice.example.com")(r)
			change(r)
		})
		if w.Code != 403 {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
	w := visit(s, "GET /v1/providers", func(r *http.Request) {
		page("voice.example.com", "https://voice.example.com")(r)
		r.RemoteAddr = "10.0.0.1:40000"
		r.Header.Set("X-Forwarded-Proto", "http")
	})
	if w.Code != 403 {
		t.Errorf("a page of https where the connection is known to be plain: %d", w.Code)
	}
	w = visit(s, "GET /v1/providers", func(r *http.Request) {
		page("localhost:8443", "https://localhost:8443")(r)
		r.RemoteAddr = "192.0.2.7:40000"
		r.Header.Set("X-Forwarded-Proto", "https")
	})
	if w.Code != 403 {
		t.Errorf("https, according to an untrusted proxy: %d", w.Code)
	}
}

// TestOriginsOverASocket: odd requests, as net/http parses them, do not bypass the check.
func TestOriginsOverASocket(t *testing.T) {
	srv := httptest.NewServer(everyRoute(t, nil))
	defer srv.Close()
	for request, want := range map[string]string{
		"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n":                              "200",
		"GET /healthz HTTP/1.0\r\n\r\n":                                                 "421",
		"GET /healthz HTTP/1.1\r\n\r\n":                                                 "400",
		"GET /healthz HTTP/1.1\r\nHost:\r\n\r\n":                                        "421",
		"GET /healthz HTTP/1.1\r\nHost: localhost\r\nHost: evil.test\r\n\r\n":           "400",
		"GET /healthz HTTP/1.1\r\nHost: localhost, evil.test\r\n\r\n":                   "400",
		"GET http://evil.test/healthz HTTP/1.1\r\nHost: localhost\r\n\r\n":              "421",
		"GET http://localhost/healthz HTTP/1.1\r\nHost: evil.test\r\n\r\n":              "200", // RFC 9112, section 3.2.2: the target counts
		"GET //v1/../healthz HTTP/1.1\r\nHost: evil.test\r\n\r\n":                       "421",
		"OPTIONS * HTTP/1.1\r\nHost: evil.test\r\nOrigin: http://evil.test\r\n\r\n":     "200", // net/http answers it itself, without a body
		"GET /v1/voice HTTP/1.1\r\nHost: localhost\r\nOrigin: null\r\nOrigin: \r\n\r\n": "403",
	} {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", srv.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(conn, strings.Replace(request, "\r\n\r\n", "\r\nConnection: close\r\n\r\n", 1))
		got, err := io.ReadAll(conn)
		conn.Close()
		if err != nil || len(got) < 12 || string(got[9:12]) != want {
			t.Errorf("%q is answered %q, %v; want %s", request, got, err, want)
		}
	}
}

// TestHandshakesAreChecked: WebSockets have the same rule as other requests, and no second one.
func TestHandshakesAreChecked(t *testing.T) {
	s := everyRoute(t, func(o *Options) { o.Origins = allow(t, "https://app.example.com") })
	srv := httptest.NewServer(s)
	defer srv.Close()
	own := "http://" + srv.Listener.Addr().String()
	for name, tc := range map[string]struct {
		host    string
		origins []string
		ok      bool
	}{
		"a program":          {ok: true},
		"its own page":       {origins: []string{own}, ok: true},
		"a named page":       {origins: []string{"https://app.example.com"}, ok: true},
		"over http":          {origins: []string{"http://app.example.com"}},
		"its own over https": {origins: []string{"https" + strings.TrimPrefix(own, "http")}},
		"rebound":            {host: "evil.test:8080", origins: []string{"http://evil.test:8080"}},
		"two origins":        {origins: []string{own, "https://evil.test"}},
		"null":               {origins: []string{"null"}},
	} {
		client := &http.Client{Transport: renamed(tc.host)}
		c, err := protocol.Dial(context.Background(), srv.URL+"/v1/voice", protocol.DialOptions{Client: client, Header: http.Header{"Origin": tc.origins}})
		if (err == nil) != tc.ok {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil {
			c.Abort()
		}
		client.CloseIdleConnections()
	}
}
