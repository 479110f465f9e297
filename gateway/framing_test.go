package gateway

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
)

// seeAll feeds a stream to a framing, in pieces of n bytes.
func seeAll(stream string, n int) error {
	var f framing
	for len(stream) > 0 {
		n := min(n, len(stream))
		if err := f.see([]byte(stream[:n])); err != nil {
			return err
		}
		stream = stream[n:]
	}
	return nil
}

const getHead = "GET / HTTP/1.1\r\nHost: a\r\n"

// TestFraming: the requests with an unambiguous end, alone, after others, and in pieces of any size.
func TestFraming(t *testing.T) {
	for name, tc := range map[string]struct {
		stream string
		bad    bool
	}{
		"no body":                      {getHead + "\r\n", false},
		"a body":                       {getHead + "Content-Length: 3\r\n\r\nabc", false},
		"chunks":                       {getHead + "Transfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n0\r\nX: y\r\n\r\n", false},
		"both":                         {getHead + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n", true},
		"both, the other way":          {getHead + "transfer-encoding: chunked\r\ncontent-length: 3\r\n\r\n", true},
		"both, in capitals":            {getHead + "TRANSFER-ENCODING: chunked\r\nCONTENT-LENGTH: 0\r\n\r\n", true},
		"both, with bare line feeds":   {"GET / HTTP/1.1\nHost: a\nContent-Length: 3\nTransfer-Encoding: chunked\n\n", true},
		"both, unknown encoding":       {getHead + "Content-Length: 3\r\nTransfer-Encoding: x\r\n\r\n", true},
		"the same length twice":        {getHead + "Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc", false},
		"two lengths":                  {getHead + "Content-Length: 3\r\nContent-Length: 4\r\n\r\n", true},
		"a length that is a list":      {getHead + "Content-Length: 3, 3\r\n\r\n", true},
		"a length with a sign":         {getHead + "Content-Length: +3\r\n\r\n", true},
		"a length that is far away":    {getHead + "Content-Length:" + strings.Repeat(" ", 200) + "3\r\n\r\n", true},
		"a folded encoding":            {getHead + "Transfer-Encoding:\r\n chunked\r\n\r\n", true},
		"any folded line":              {getHead + "X: a\r\n\tb\r\n\r\n", true},
		"an encoding in HTTP/1.0":      {"GET / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", true},
		"a body that looks like both":  {getHead + "Content-Length: 46\r\n\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n", false},
		"a chunk that looks like both": {getHead + "Transfer-Encoding: chunked\r\n\r\n13\r\nContent-Length: 3\r\n\r\n0\r\n\r\n", false},
		"a chunk without a size":       {getHead + "Transfer-Encoding: chunked\r\n\r\nx\r\n", true},
		"a chunk that is too long":     {getHead + "Transfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n", true},
		"the name within a value":      {getHead + "X: Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", false},
		"a similar name":               {getHead + "X-Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", false},
		"a space before the colon":     {getHead + "Content-Length : 3\r\nTransfer-Encoding: chunked\r\n\r\n", true},
		"a long first line":            {"GET /" + strings.Repeat("x", 5000) + " HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", true},
	} {
		for before, stream := range map[string]string{
			"": "", "after a body": getHead + "Content-Length: 3\r\n\r\nabc", "after chunks": getHead + "Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n",
			"after empty lines": "POST / HTTP/1.1\r\n\r\n\r\n\r\n",
		} {
			for _, n := range []int{1, 2, 7, 1 << 20} {
				if err := seeAll(stream+tc.stream, n); errors.Is(err, errFraming) != tc.bad {
					t.Errorf("%s %s, in pieces of %d: %v", name, before, n, err)
				}
			}
		}
	}
}

var lengthLine = regexp.MustCompile(`(?im)^content-length[ \t]*:`)

// FuzzFraming: no request with both headers that net/http accepts passes, however many precede it; and the size of the
// pieces changes nothing.
func FuzzFraming(f *testing.F) {
	f.Add(getHead + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")
	f.Add(getHead + "Content-Length: 3\r\n\r\nabc" + getHead + "Transfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n0\r\n\r\n")
	f.Add("POST / HTTP/1.1\nHost: a\nTransfer-Encoding: chunked\n\n2 ;x\nab\r\n0\nA: b\n\n" + getHead + "\r\n")
	f.Add("GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n")
	f.Fuzz(func(t *testing.T, stream string) {
		err := seeAll(stream, 1<<30)
		for _, n := range []int{1, 3} {
			if again := seeAll(stream, n); again != err {
				t.Fatalf("in pieces of %d: %v, else %v", n, again, err)
			}
		}
		if err != nil {
			return
		}
		under := strings.NewReader(stream)
		r := bufio.NewReaderSize(under, 1<<16)
		for {
			begin := len(stream) - under.Len() - r.Buffered()
			req, err := http.ReadRequest(r)
			if err != nil {
				return
			}
			head := []byte(stream[begin : len(stream)-under.Len()-r.Buffered()])
			if len(req.TransferEncoding) > 0 && lengthLine.Match(bytes.ReplaceAll(head, []byte("\r"), nil)) {
				t.Fatalf("net/http accepts a request with both:\n%q", head)
			}
			if _, err := io.Copy(io.Discard, req.Body); err != nil {
				return
			}
		}
	})
}
