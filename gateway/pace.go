package gateway

import (
	"bufio"
	"net"
	"net/http"
	"time"
)

const (
	bodyTime = 30 * time.Second
	// writeTime limits a write with all before it: at most nonblock.MaxPending, 256 KiB, so 4.4 KB/s are enough.
	writeTime = time.Minute
)

// paced is a response with writeTime for each write, so that streams may last but stalled clients don't block.
type paced struct {
	http.ResponseWriter
	control *http.ResponseController
	taken   bool // the connection no longer carries a response
	status  int  // zero before the response has one
}

// pace limits the time of a request's body and response, if the ResponseWriter has deadlines.
func pace(w http.ResponseWriter, r *http.Request) *paced {
	p := &paced{ResponseWriter: w, control: http.NewResponseController(w)}
	p.renew()
	if r.ContentLength != 0 {
		// This also limits net/http's reading of an unread body. At its end, net/http removes the deadline.
		_ = p.control.SetReadDeadline(time.Now().Add(bodyTime))
	}
	return p
}

func (p *paced) renew() {
	if !p.taken {
		_ = p.control.SetWriteDeadline(time.Now().Add(writeTime))
	}
}

func (p *paced) WriteHeader(status int) {
	p.renew()
	if p.status == 0 && status >= http.StatusOK {
		p.status = status
	}
	p.ResponseWriter.WriteHeader(status)
}

func (p *paced) Write(b []byte) (int, error) {
	p.renew()
	return p.ResponseWriter.Write(b) //nolint:wrapcheck // this is the same writer
}

func (p *paced) Unwrap() http.ResponseWriter { return p.ResponseWriter }

func (p *paced) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := p.control.Hijack()
	p.taken = err == nil
	return conn, rw, err //nolint:wrapcheck // this is the same writer
}
