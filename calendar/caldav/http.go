package caldav

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"voicegw/calendar"
)

const (
	// maxAnswer is the most that an answer may have, in bytes.
	maxAnswer = 32 << 20
	// maxRedirects is how many redirects are followed.
	maxRedirects = 5
	// maxComplaint is how much of an error's body is looked at, in bytes.
	maxComplaint = 4 << 10
)

var (
	errTooLong   = errors.New("caldav: the answer is too long")
	errRedirects = errors.New("caldav: redirected too often")
	errElsewhere = errors.New("caldav: redirected to another host")
)

// wire sends requests with the user's name. As Do it is what the library discovers
// with; an answer that is no success is an error there.
type wire struct {
	client         *http.Client
	user, password string
	now            func() time.Time
}

// Do is webdav.HTTPClient.
func (w *wire) Do(r *http.Request) (*http.Response, error) {
	resp, err := w.send(r)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode < 300 {
		return resp, nil
	}
	return nil, w.refusal(resp)
}

// send sends a request and follows redirects with its method. The answer's body is
// bounded. The error is that of the context once it has ended.
func (w *wire) send(r *http.Request) (*http.Response, error) {
	for range maxRedirects + 1 {
		if w.user != "" {
			r.SetBasicAuth(w.user, w.password)
		}
		resp, err := w.client.Do(r)
		if err != nil {
			if r.Context().Err() != nil {
				return nil, r.Context().Err()
			}
			return nil, calendar.Errorf(calendar.Transient, err, "The calendar server cannot be reached.")
		}
		resp.Body = &bounded{resp.Body, maxAnswer}
		switch resp.StatusCode {
		case http.StatusMovedPermanently, http.StatusFound, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		default:
			return resp, nil
		}
		drain(resp)
		if r, err = redirected(r, resp); err != nil {
			return nil, calendar.Errorf(calendar.Permanent, err, "The calendar server's address has changed.")
		}
	}
	return nil, calendar.Errorf(calendar.Permanent, errRedirects, "The calendar server redirects without end.")
}

// redirected makes the request that a redirect asks for.
func redirected(r *http.Request, resp *http.Response) (*http.Request, error) {
	to, err := resp.Location()
	if err != nil {
		return nil, err
	}
	if !sameHost(r.URL, to) {
		return nil, fmt.Errorf("%w: %s", errElsewhere, to.Host)
	}
	next := r.Clone(r.Context())
	next.URL, next.Host = to, ""
	if r.GetBody != nil {
		if next.Body, err = r.GetBody(); err != nil {
			return nil, err
		}
	}
	return next, nil
}

// sameHost says whether what is meant for one may be sent to the other: the same
// host and port, or the same host over TLS instead.
func sameHost(a, b *url.URL) bool {
	if !strings.EqualFold(a.Hostname(), b.Hostname()) {
		return false
	}
	return a.Scheme == b.Scheme && port(a) == port(b) || a.Scheme == "http" && b.Scheme == "https"
}

func port(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case u.Scheme == "https":
		return "443"
	default:
		return "80"
	}
}

// bounded is a body of which no more than left bytes are read.
type bounded struct {
	io.ReadCloser
	left int64
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errTooLong
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}

// drain reads what little is left, so that the connection can be used again.
func drain(resp *http.Response) {
	_, _ = io.CopyN(io.Discard, resp.Body, maxComplaint)
	_ = resp.Body.Close()
}

// readAll reads an answer and closes it.
func readAll(ctx context.Context, resp *http.Response) ([]byte, error) {
	data, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	switch {
	case err == nil:
		return data, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.Is(err, errTooLong):
		return nil, calendar.Errorf(calendar.Permanent, err, "The calendar has too much in it.")
	default:
		return nil, calendar.Errorf(calendar.Transient, err, "The calendar server broke off its answer.")
	}
}

// refusal is what an answer means that is no success. It closes the answer.
func (w *wire) refusal(resp *http.Response) *calendar.Error {
	complaint, _ := io.ReadAll(io.LimitReader(resp.Body, maxComplaint))
	drain(resp)
	cause := fmt.Errorf("%s answers %s", resp.Request.Method, resp.Status)
	e := func(kind calendar.Kind, message string) *calendar.Error {
		out := calendar.Errorf(kind, cause, "%s", message)
		out.RetryAfter = calendar.RetryAfter(resp.Header, w.now())
		return out
	}
	switch code := resp.StatusCode; {
	case code == http.StatusUnauthorized:
		return e(calendar.Auth, "The calendar server does not accept the user and password.")
	case strings.Contains(string(complaint), "no-uid-conflict"): // RFC 4791 section 5.3.2.1
		return e(calendar.Conflict, "The same event is in the calendar already, under another name.")
	case code == http.StatusForbidden:
		return e(calendar.Auth, "The calendar server does not allow it.")
	case code == http.StatusNotFound, code == http.StatusGone, code == http.StatusConflict:
		return e(calendar.NotFound, "The calendar is not on the server.")
	case code == http.StatusTooManyRequests:
		return e(calendar.RateLimit, "The calendar server is asked too often.")
	case code == http.StatusPreconditionFailed:
		return e(calendar.Conflict, "There is something else in the calendar where this event would be.")
	case code == http.StatusInsufficientStorage:
		return e(calendar.Permanent, "The calendar is full.")
	case code == http.StatusLocked, code == http.StatusRequestTimeout, code >= 500 && code != http.StatusNotImplemented:
		return e(calendar.Transient, "The calendar server does not work at the moment.")
	default:
		return e(calendar.Permanent, "The calendar server does not take the request.")
	}
}
