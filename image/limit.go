package image

import (
	"fmt"
	"io"
	"net/http"
)

// LimitAnswers returns a client like c whose answers end with an error that wraps ErrSize
// after most bytes: the SDKs read a whole answer into memory. Nil is http.DefaultClient.
func LimitAnswers(c *http.Client, most int64) *http.Client {
	if c == nil {
		c = http.DefaultClient
	}
	limited := *c
	limited.Transport = &limiter{c.Transport, most}
	if c.Transport == nil {
		limited.Transport = &limiter{http.DefaultTransport, most}
	}
	return &limited
}

type limiter struct {
	http.RoundTripper
	most int64
}

func (l *limiter) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := l.RoundTripper.RoundTrip(r)
	if err == nil {
		resp.Body = &limitedBody{resp.Body, l.most}
	}
	return resp, err
}

type limitedBody struct {
	io.ReadCloser
	left int64
}

func (b *limitedBody) Read(p []byte) (int, error) {
	if b.left < 0 {
		return 0, fmt.Errorf("the answer: %w", ErrSize)
	}
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1]
	}
	n, err := b.ReadCloser.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return n, fmt.Errorf("the answer: %w", ErrSize)
	}
	return n, err
}
