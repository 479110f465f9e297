package gateway

import (
	"bufio"
	"net"
	"net/http"
	"time"
)

const (
	// bodyTime is how long reading a request's body may take altogether.
	bodyTime = 30 * time.Second
	// writeTime is how long a client may take to read the last write and everything that was
	// pending then: at most nonblock.MaxPending, 256 KiB, so that 4.4 KB/s are enough.
	writeTime = time.Minute
)

// paced is the answer to a request. Each write has writeTime of its own, so a stream may last,
// and a client that reads nothing is not waited for any longer.
type paced struct {
	http.ResponseWriter
	control *http.ResponseController
	taken   bool // the connection no longer carries an answer
	status  int  // of the answer; zero before it has one
}

// pace bounds the time of a request's body and of its answer. A ResponseWriter without
// deadlines, such as those of tests, stays as it is.
func pace(w http.ResponseWriter, r *http.Request) *paced {
	p := &paced{ResponseWriter: w, control: http.NewResponseController(w)}
	p.renew()
	if r.ContentLength != 0 {
		// It also bounds what net/http reads of a body that nobody reads. When the body was read to
		// its end, net/http removes the deadline.
		_ = p.control.SetReadDeadline(time.Now().Add(bodyTime))
	}
	return p
}

// renew gives the next write its own time.
func (p *paced) renew() {
	if !p.taken {
		_ = p.control.SetWriteDeadline(time.Now().Add(writeTime))
	}
}

// WriteHeader implements http.ResponseWriter.
func (p *paced) WriteHeader(status int) {
	p.renew()
	if p.status == 0 && status >= http.StatusOK {
		p.status = status
	}
	p.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (p *paced) Write(b []byte) (int, error) {
	p.renew()
	return p.ResponseWriter.Write(b) //nolint:wrapcheck // this is the same writer
}

// Unwrap is for http.ResponseController.
func (p *paced) Unwrap() http.ResponseWriter { return p.ResponseWriter }

// Hijack gives the connection away; its deadlines are its new owner's.
func (p *paced) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := p.control.Hijack()
	p.taken = err == nil
	return conn, rw, err //nolint:wrapcheck // this is the same writer
}
