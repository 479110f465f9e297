package bounded_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"voicegw/internal/bounded"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// raw serves the bytes of a handler after each request, for answers that net/http's own server would not write.
func raw(t *testing.T, answer func(w io.Writer) error) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			if _, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
				_ = answer(c)
			}
			_ = c.Close()
		}
	}()
	t.Cleanup(func() { _ = l.Close(); <-done })
	return "http://" + l.Addr().String()
}

// endless writes text until its reader leaves.
func endless(w io.Writer, text string) error {
	block := []byte(strings.Repeat(text, 1+(32<<10)/len(text)))
	for {
		if _, err := w.Write(block); err != nil {
			return err
		}
	}
}

func begin(head string) string { return "HTTP/1.1 200 OK\r\n" + head + "\r\n" }

// TestEveryBound: each endless answer ends at its limit, with an error that names the service and the limit.
func TestEveryBound(t *testing.T) {
	limits := bounded.Limits{Service: "the oracle", Bytes: 4 << 20, Elements: 1000, Depth: 20, Piece: 64 << 10}
	tests := map[string]struct {
		format bounded.Format
		answer func(w io.Writer) error
		bound  bounded.Bound
		words  string
	}{
		"a body": {bounded.Bytes, func(w io.Writer) error {
			_, _ = io.WriteString(w, begin(""))
			return endless(w, "x")
		}, bounded.BoundBytes, "the oracle: the answer has more than 4194304 bytes"},
		"a body that says how long it is": {bounded.Bytes, func(w io.Writer) error {
			_, _ = io.WriteString(w, begin("Content-Length: 99999999999\r\n"))
			return endless(w, "x")
		}, bounded.BoundBytes, "the oracle: the answer has more than 4194304 bytes"},
		"a failure's body": {bounded.Bytes, func(w io.Writer) error {
			_, _ = io.WriteString(w, "HTTP/1.1 503 Service Unavailable\r\n\r\n")
			return endless(w, "x")
		}, bounded.BoundFailure, "status 503 has more than 65536 bytes"},
		"a head": {bounded.Bytes, func(w io.Writer) error {
			_, _ = io.WriteString(w, "HTTP/1.1 200 OK\r\n")
			return endless(w, "A: b\r\n")
		}, bounded.BoundHeader, "has more than 65536 bytes"},
		"a head that ends late": {bounded.Bytes, func(w io.Writer) error {
			_, err := io.WriteString(w, begin(strings.Repeat("A: b\r\n", 2*bounded.MaxHeader/6)))
			return err
		}, bounded.BoundHeader, "has more than 65536 bytes"},
		"interim answers": {bounded.Bytes, func(w io.Writer) error {
			return endless(w, "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n")
		}, bounded.BoundHeader, "has more than 65536 bytes"},
		"a redirect": {bounded.Bytes, func(w io.Writer) error {
			_, err := io.WriteString(w, "HTTP/1.1 307 Temporary Redirect\r\nLocation: /again\r\nContent-Length: 0\r\n\r\n")
			return err
		}, bounded.BoundRedirect, "redirects are not followed"},
		"a compressed body": {bounded.Bytes, func(w io.Writer) error {
			_, _ = io.WriteString(w, begin("Content-Encoding: gzip\r\n"))
			z := gzip.NewWriter(w)
			return endless(z, "\x00")
		}, bounded.BoundCompressed, "although it was asked not to"},
		"many small values": {bounded.JSON, func(w io.Writer) error {
			_, _ = io.WriteString(w, begin("")+"[")
			return endless(w, "{},")
		}, bounded.BoundElements, "more than 1000 elements"},
		"deep JSON": {bounded.JSON, func(w io.Writer) error {
			_, _ = io.WriteString(w, begin(""))
			return endless(w, "[")
		}, bounded.BoundDepth, "more than 20 levels"},
		"a line of an event": {bounded.Events, func(w io.Writer) error {
			_, _ = io.WriteString(w, begin("")+"data: \"")
			return endless(w, "x")
		}, bounded.BoundPiece, "one piece of the answer has more than 65536 bytes"},
		"lines of one event": {bounded.Events, func(w io.Writer) error {
			_, _ = io.WriteString(w, begin(""))
			return endless(w, "data: x\r\n")
		}, bounded.BoundPiece, "one piece of the answer has more than 65536 bytes"},
		"values of one event": {bounded.Events, func(w io.Writer) error {
			_, _ = io.WriteString(w, begin("")+"data: [")
			return endless(w, "0,")
		}, bounded.BoundElements, "more than 1000 elements"},
		"comments of an event stream": {bounded.Events, func(w io.Writer) error {
			_, _ = io.WriteString(w, begin(""))
			return endless(w, ": still here\n\n")
		}, bounded.BoundBytes, "more than 4194304 bytes"},
		"XML elements": {bounded.XML, func(w io.Writer) error {
			_, _ = io.WriteString(w, begin("")+"<a>")
			return endless(w, "<b/>")
		}, bounded.BoundElements, "more than 1000 elements"},
		"XML attributes": {bounded.XML, func(w io.Writer) error {
			_, _ = io.WriteString(w, begin("")+"<a")
			return endless(w, " b='/>'")
		}, bounded.BoundElements, "more than 1000 elements"},
		"deep XML": {bounded.XML, func(w io.Writer) error {
			_, _ = io.WriteString(w, begin(""))
			return endless(w, "<a x=\"/\">")
		}, bounded.BoundDepth, "more than 20 levels"},
		"a text in XML": {bounded.XML, func(w io.Writer) error {
			_, _ = io.WriteString(w, begin("")+"<a><![CDATA[")
			return endless(w, "]] >")
		}, bounded.BoundPiece, "more than 65536 bytes"},
		"a comment in XML": {bounded.XML, func(w io.Writer) error {
			_, _ = io.WriteString(w, begin("")+"<a><!-- '")
			return endless(w, "<b>")
		}, bounded.BoundPiece, "more than 65536 bytes"},
		"a document type": {bounded.XML, func(w io.Writer) error {
			_, _ = io.WriteString(w, begin("")+`<!DOCTYPE a [<!ENTITY b "c">]>`)
			return endless(w, "<a>")
		}, bounded.BoundDoctype, "document type"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var sent atomic.Int64
			url := raw(t, func(w io.Writer) error { return tt.answer(counting{w, &sent}) })
			l := limits
			l.Format = tt.format
			own := bounded.NewTransport()
			defer own.CloseIdleConnections()
			got, err := read(t.Context(), bounded.Client(&http.Client{Transport: own}, l), url)
			e, ok := bounded.As(err)
			if !ok || e.Bound != tt.bound || !strings.Contains(err.Error(), tt.words) || !strings.Contains(err.Error(), "the oracle: ") {
				t.Fatalf("after %d bytes: %v; want bound %q and %q", got, err, tt.bound, tt.words)
			}
			if int64(got) > l.Bytes {
				t.Errorf("%d bytes were handed on", got)
			}
		})
	}
}

type counting struct {
	io.Writer
	n *atomic.Int64
}

func (c counting) Write(p []byte) (int, error) {
	n, err := c.Writer.Write(p)
	c.n.Add(int64(n))
	return n, err
}

func read(ctx context.Context, c *http.Client, url string) (int, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, err
	}
	resp, err := c.Do(r)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	n, err := io.Copy(io.Discard, resp.Body)
	return int(n), err
}

// TestEndlessFraming: net/http itself limits chunk extensions and trailers, so this package does not count
// them.
func TestEndlessFraming(t *testing.T) {
	tests := map[string]func(w io.Writer) error{
		"an extension": func(w io.Writer) error {
			_, _ = io.WriteString(w, begin("Transfer-Encoding: chunked\r\n")+"1;")
			return endless(w, "a=b;")
		},
		"extensions of small chunks": func(w io.Writer) error {
			_, _ = io.WriteString(w, begin("Transfer-Encoding: chunked\r\n"))
			return endless(w, "1;"+strings.Repeat("a", 1000)+"\r\nx\r\n")
		},
		"a trailer": func(w io.Writer) error {
			_, _ = io.WriteString(w, begin("Transfer-Encoding: chunked\r\n")+"0\r\n")
			return endless(w, "A: b\r\n")
		},
	}
	for name, answer := range tests {
		t.Run(name, func(t *testing.T) {
			var sent atomic.Int64
			url := raw(t, func(w io.Writer) error { return answer(counting{w, &sent}) })
			own := bounded.NewTransport()
			defer own.CloseIdleConnections()
			if n, err := read(t.Context(), bounded.Client(&http.Client{Transport: own}, bounded.Limits{}), url); err == nil || n > 1<<20 {
				t.Errorf("%d bytes were read: %v", n, err)
			}
		})
	}
}

// TestTime: a silent, a slow and an endless server each get their time and no more.
func TestTime(t *testing.T) {
	tests := map[string]struct {
		answer func(c net.Conn)
		bound  bounded.Bound
		after  time.Duration
		words  string
	}{
		"no head": {func(net.Conn) {}, bounded.BoundIdle, 10 * time.Second, "no data for 10s"},
		"no body": {func(c net.Conn) { _, _ = io.WriteString(c, begin("")) }, bounded.BoundIdle, 10 * time.Second, "no data for 10s"},
		"a drip": {func(c net.Conn) {
			_, _ = io.WriteString(c, begin(""))
			for {
				time.Sleep(9 * time.Second) //nolint:forbidigo // the clock of synctest
				if _, err := io.WriteString(c, "x"); err != nil {
					return
				}
			}
		}, bounded.BoundWhole, time.Minute, "not complete after 1m0s"},
		"a head that drips": {func(c net.Conn) {
			for _, b := range []byte(begin("")) {
				time.Sleep(9 * time.Second) //nolint:forbidigo // the clock of synctest
				if _, err := c.Write([]byte{b}); err != nil {
					return
				}
			}
		}, bounded.BoundIdle, 10 * time.Second, "no data for 10s"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var serving sync.WaitGroup
				own := bounded.NewTransport()
				own.DialContext = func(context.Context, string, string) (net.Conn, error) {
					near, far := net.Pipe()
					serving.Go(func() {
						defer far.Close()
						if _, err := http.ReadRequest(bufio.NewReader(far)); err != nil {
							return
						}
						tt.answer(far)
						_, _ = far.Read(make([]byte, 1)) // until the client hangs up
					})
					return near, nil
				}
				began := time.Now()
				_, err := read(t.Context(), bounded.Client(&http.Client{Transport: own}, bounded.Limits{Service: "the oracle", Idle: 10 * time.Second, Whole: time.Minute}), "http://oracle.test/")
				took := time.Since(began)
				if e, ok := bounded.As(err); !ok || e.Bound != tt.bound || !e.Timeout() || !e.Passing() || took != tt.after || !strings.Contains(err.Error(), tt.words) {
					t.Errorf("after %v: %v", took, err)
				}
				own.CloseIdleConnections()
				serving.Wait()
			})
		})
	}
}

// TestWithinTheBounds: an answer within its limits is passed on unchanged, and the connection is used again.
func TestWithinTheBounds(t *testing.T) {
	text := `{"a":[1,2,"},[{\"\\"],"b":{}}`
	conns := atomic.Int64{}
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if got := r.Header.Get("Accept-Encoding"); got != "identity" {
			t.Errorf("Accept-Encoding is %q", got)
		}
		_, _ = io.WriteString(w, text)
	}))
	srv.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			conns.Add(1)
		}
	}
	srv.Start()
	defer srv.Close()
	own := bounded.NewTransport()
	defer own.CloseIdleConnections()
	// The elements: 2 objects, 1 list, 3 commas.
	c := bounded.Client(&http.Client{Transport: own}, bounded.Limits{Format: bounded.JSON, Bytes: int64(len(text)), Elements: 6, Depth: 2})
	for range 3 {
		resp, err := c.Get(srv.URL)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(resp.Body)
		if err != nil || string(got) != text {
			t.Fatalf("%q: %v", got, err)
		}
		resp.Body.Close()
	}
	if conns.Load() != 1 {
		t.Errorf("%d connections for 3 requests", conns.Load())
	}
}

// TestCancelledCaller: the end of the caller's context is not reported as a limit.
func TestCancelledCaller(t *testing.T) {
	url := raw(t, func(w io.Writer) error {
		_, _ = io.WriteString(w, begin(""))
		return endless(w, "x")
	})
	own := bounded.NewTransport()
	defer own.CloseIdleConnections()
	ctx, cancel := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := bounded.Client(&http.Client{Transport: own}, bounded.Limits{Bytes: 1 << 40}).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	cancel()
	if _, err := io.Copy(io.Discard, resp.Body); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// values is the number of JSON values that encoding/json finds.
func values(text []byte) (n int64) {
	d := json.NewDecoder(bytes.NewReader(text))
	for {
		token, err := d.Token()
		if err != nil {
			return n
		}
		if token != json.Delim('}') && token != json.Delim(']') {
			n++
		}
	}
}

// FuzzJSON: text within the limit has at most twice as many values as the limit (an object's keys are tokens too),
// whatever the size of the pieces.
func FuzzJSON(f *testing.F) {
	f.Add([]byte(`{"a":[1,2,"\\\"",{"b":null}]}`), 3)
	f.Add([]byte(`["\u0022,[,[,[", "]`), 1)
	f.Fuzz(func(t *testing.T, text []byte, cut int) {
		const most = 8
		got, err := through(text, cut, bounded.Limits{Format: bounded.JSON, Elements: most})
		if err == nil && !bytes.Equal(got, text) {
			t.Fatalf("%q became %q", text, got)
		}
		var one any
		if n := values(text); err == nil && json.Unmarshal(text, &one) == nil && n > 2*most+1 {
			t.Errorf("%d values pass a bound of %d: %q", n, most, text)
		}
	})
}

// FuzzXML: text within the limits has no more start tags and attributes, and no deeper nesting, than they allow.
func FuzzXML(f *testing.F) {
	for _, text := range []string{
		`<a b="c>"><d/><![CDATA[<e>]]]></a>`, `<?xml version="1.0"?><a><!-- " --><b/><?x " ?><c/></a>`, `<!D "><a/>`, `<a><![CDATA["]]><b/><b/><b/><b/><b/></a>`, `<a><!--"--><b/><b/><b/><b/><b/></a>`, `<a><?x "?><b/><b/><b/><b/><b/></a>`, `<a><b></b><b></b></a>`,
	} {
		f.Add([]byte(text), 2)
	}
	f.Fuzz(func(t *testing.T, text []byte, cut int) {
		const most, deep = 4, 3
		_, err := through(text, cut, bounded.Limits{Format: bounded.XML, Elements: most, Depth: deep})
		if err != nil {
			return
		}
		d := xml.NewDecoder(bytes.NewReader(text))
		n, depth := 0, 0
		for {
			token, err := d.Token()
			if err != nil {
				break
			}
			switch token := token.(type) {
			case xml.StartElement:
				n += 1 + len(token.Attr)
				depth++
			case xml.EndElement:
				depth--
			}
			if n > most || depth > deep {
				t.Fatalf("%d elements and a depth of %d pass: %q", n, depth, text)
			}
		}
	})
}

// FuzzEvents: in text within the limit, the bytes between two empty lines do not exceed it.
func FuzzEvents(f *testing.F) {
	f.Add([]byte("data: a\n\ndata: b\r\n\r\n"), 3)
	f.Add([]byte(strings.Repeat("a\n", 20)), 3)
	f.Add([]byte("\r\r\n\r\r\n\r\r\n\r\r\n\r\r\n\r\r\n\r\r\n\r\r\n"), 1)
	f.Fuzz(func(t *testing.T, text []byte, cut int) {
		const most = 12
		if _, err := through(text, cut, bounded.Limits{Format: bounded.Events, Piece: most}); err != nil {
			return
		}
		lines, held := bufio.NewScanner(bytes.NewReader(text)), 0
		for lines.Scan() {
			if held += len(lines.Bytes()); len(lines.Bytes()) == 0 {
				held = 0
			}
			if held > most {
				t.Fatalf("an event of %d bytes passes: %q", held, text)
			}
		}
	})
}

// through reads text through the limits, in pieces of cut bytes.
func through(text []byte, cut int, l bounded.Limits) ([]byte, error) {
	from := roundTrip(func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(text))}, nil
	})
	resp, err := bounded.Wrap(from, l).RoundTrip(httptest.NewRequest(http.MethodGet, "/", nil))
	if err != nil {
		return nil, fmt.Errorf("no answer: %w", err)
	}
	defer resp.Body.Close()
	var all []byte
	piece := make([]byte, 1+abs(cut)%16)
	for {
		n, err := resp.Body.Read(piece)
		all = append(all, piece[:n]...)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return all, err
		}
	}
}

func abs(n int) int { return max(n%1024, -(n % 1024)) }

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
