package webhook

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"voicegw/internal/bounded"
)

// TestProxy: events go through the proxy of the environment, which resolves names unknown to this machine. The proxy gets
// no request for an address forbidden to webhooks either.
func TestProxy(t *testing.T) {
	var mu sync.Mutex
	var asked []string
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, r.Host+" "+string(body))
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
		}
	}))
	defer proxy.Close()
	at, err := url.Parse(proxy.URL)
	if err != nil {
		t.Fatal(err)
	}
	for address, tc := range map[string]struct {
		private, direct bool
		want            string
	}{
		"http://hooks.invalid/in":    {want: ""},
		"http://93.184.215.14/in":    {want: ""},
		"http://10.1.2.3/in":         {want: bounded.ErrAddress.Error()},
		"http://10.1.2.4/in":         {private: true, want: ""},
		"http://169.254.169.254/in":  {private: true, want: bounded.ErrAddress.Error()},
		"http://[::1]/in":            {want: bounded.ErrAddress.Error()},
		"http://localhost/in":        {want: bounded.ErrAddress.Error()},
		"http://127.0.0.1:1/in":      {private: true, direct: true, want: "cannot connect"},
		"http://192.168.255.1/other": {direct: true, want: bounded.ErrAddress.Error()},
	} {
		p := newPoster(Endpoint{Name: "x", URL: address, Private: tc.private, Secrets: []Secret{}})
		p.out.Proxy = func(*http.Request) (*url.URL, error) {
			if tc.direct {
				return nil, nil //nolint:nilnil // as http.ProxyFromEnvironment
			}
			return at, nil
		}
		got := p.post(context.Background(), "id", []byte(address))
		p.close()
		if got.ok != (tc.want == "") || !strings.HasPrefix(got.why, tc.want) {
			t.Errorf("%s: %+v, want %q", address, got, tc.want)
		}
		mu.Lock()
		through := len(asked) == 1 && strings.HasSuffix(asked[0], address)
		if through != (tc.want == "") || len(asked) > 1 {
			t.Errorf("%s: the proxy was asked %q", address, asked)
		}
		asked = nil
		mu.Unlock()
	}
}
