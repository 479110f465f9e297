package deploy

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestBalancer starts the compose file's nginx before a real gateway: the page, a WebSocket of the page, and the error
// page for another site.
func TestBalancer(t *testing.T) {
	nginx := installed(t, "nginx", "the compose file's balancer is not started")
	p, err := compose(t, "VOICEGW_API_KEY=an-operators-key-0123456789", "VOICEGW_CLUSTER_SECRET="+strings.Repeat("0123456789abcdef", 4))
	if err != nil {
		t.Fatal(err)
	}
	gateway, address := startGateway(t, p), freeAddress(t)
	root := t.TempDir()
	mount(t, p, "balancer", root)
	config := filepath.Join(root, "etc/nginx/nginx.conf")
	text, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	local := regexp.MustCompile(`gateway-[123]:8080`).ReplaceAllString(string(text), gateway)
	local = strings.Replace(local, "listen 8080;", "listen "+address+";", 1)
	places := "http {\n\taccess_log off;\n"
	for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		places += "\t" + kind + "_temp_path " + filepath.Join(root, kind) + ";\n"
	}
	write(t, config, strings.Replace(local, "http {\n", places, 1))
	args := []string{"-e", "stderr", "-p", root, "-c", config, "-g", "daemon off; master_process off; pid " + filepath.Join(root, "pid") + ";"}
	if out, err := exec.Command(nginx, append(args, "-t")...).CombinedOutput(); err != nil {
		t.Fatalf("nginx -t: %v\n%s", err, out)
	}
	run(t, exec.Command(nginx, args...))
	await(t, "nginx answers", func() bool {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			return false
		}
		return conn.Close() == nil
	})
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		request string
		want    int
	}{
		"the page":                {"GET / HTTP/1.1\r\nHost: localhost:" + port + "\r\n\r\n", http.StatusOK},
		"its WebSocket":           {upgrade("localhost:"+port, "http://localhost:"+port), http.StatusSwitchingProtocols},
		"another site's":          {upgrade("localhost:"+port, "http://evil.example.com"), http.StatusForbidden},
		"another port's":          {upgrade("localhost:"+port, "http://localhost:1"), http.StatusForbidden},
		"a name of another site":  {"GET / HTTP/1.1\r\nHost: evil.example.com\r\n\r\n", http.StatusMisdirectedRequest},
		"the gateways' readiness": {"GET /readyz HTTP/1.1\r\nHost: localhost:" + port + "\r\n\r\n", http.StatusOK},
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := net.Dial("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if _, err := io.WriteString(conn, test.request); err != nil {
				t.Fatal(err)
			}
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if resp.StatusCode != test.want {
				t.Errorf("status %s, want %d", resp.Status, test.want)
			}
		})
	}
}

// upgrade is a page's request for a conversation.
func upgrade(host, page string) string {
	return "GET /v1/voice HTTP/1.1\r\nHost: " + host + "\r\nOrigin: " + page + "\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: voicegw.v1\r\n\r\n"
}
