package bounded_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"voicegw/internal/bounded"
)

// put sends a request with its own transport.
func put(t *testing.T, ctx context.Context, address string, dial func(context.Context, string, string) (net.Conn, error)) error {
	t.Helper()
	transport := bounded.NewTransport()
	transport.DisableKeepAlives = true
	if dial != nil {
		transport.DialContext = dial
	}
	defer transport.CloseIdleConnections()
	r, err := http.NewRequestWithContext(ctx, http.MethodPut, address, strings.NewReader("an event"))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := bounded.Over(transport, bounded.Limits{}).Do(r)
	if err == nil {
		_ = resp.Body.Close()
	}
	return err
}

// TestUnsent: a request without a connection was not sent. For all others this is unknown, however they ended.
func TestUnsent(t *testing.T) {
	taken := make(chan struct{}, 1) // the server has the request
	hold := make(chan struct{})     // the server waits for it
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/reset":
			panic(http.ErrAbortHandler)
		case "/hang":
			taken <- struct{}{}
			<-hold
		}
	}))
	t.Cleanup(func() { close(hold); srv.Close() })
	refused, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := "http://" + refused.Addr().String()
	_ = refused.Close()

	for name, tc := range map[string]struct {
		err    error
		unsent bool
	}{
		"refused":        {put(t, t.Context(), closed, nil), true},
		"no such name":   {put(t, t.Context(), "http://nowhere.invalid", nil), true},
		"not TLS":        {put(t, t.Context(), strings.Replace(srv.URL, "http:", "https:", 1), nil), true},
		"broken off":     {put(t, t.Context(), srv.URL+"/reset", nil), false},
		"no time left":   {dead(t, srv.URL), true},
		"hangs, dialing": {hangingDial(t), true},
		"hangs, asked": {func() error {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			go func() { <-taken; cancel() }()
			return put(t, ctx, srv.URL+"/hang", nil)
		}(), false},
		"a transport without trace": {func() error {
			r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, srv.URL, nil)
			_, err := bounded.Wrap(silent{}, bounded.Limits{}).RoundTrip(r)
			return err
		}(), false},
	} {
		if tc.err == nil || bounded.Unsent(tc.err) != tc.unsent {
			t.Errorf("%s: unsent is %t of %v", name, bounded.Unsent(tc.err), tc.err)
		}
	}
	if err := put(t, t.Context(), srv.URL, nil); err != nil {
		t.Error(err)
	}
}

// dead is a request with an ended context.
func dead(t *testing.T, address string) error {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return put(t, ctx, address, nil)
}

// hangingDial is a dial that gets no connection before the context ends.
func hangingDial(t *testing.T) error {
	ctx, cancel := context.WithCancel(t.Context())
	return put(t, ctx, "http://127.0.0.1:1", func(dialing context.Context, _, _ string) (net.Conn, error) {
		cancel()
		<-dialing.Done()
		return nil, dialing.Err()
	})
}

type silent struct{}

func (silent) RoundTrip(*http.Request) (*http.Response, error) { return nil, errors.New("no") }
