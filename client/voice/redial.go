package voice

import (
	"context"
	"slices"
	"time"
)

// dialled is the result of dialling.
type dialled struct {
	conn Conn // nil after an error
	err  error
}

// closer is a Conn that can also be closed abruptly.
type closer interface {
	// Reset sends RST without a close frame, as a failing network does.
	Reset()
	// GoAway closes like a browser leaving the page.
	GoAway()
}

// applyRequests carries out the conversation's requests about connections.
func (r *runner) applyRequests(ctx context.Context) {
	r.mu.Lock()
	requests := r.c.conn.requests
	r.c.conn.requests = nil
	for _, request := range requests {
		if request != requestDial {
			r.gen++ // ignore what its reader still delivers
		}
	}
	r.mu.Unlock()
	for _, request := range requests {
		switch request {
		case requestDial:
			r.helpers.Go(func() { r.dial(ctx) })
		case requestReset:
			if conn, ok := r.Conn.(closer); ok {
				conn.Reset()
			}
			r.Conn.Abort()
		case requestGoAway:
			conn := r.Conn
			r.helpers.Go(func() { // without waiting for the gateway
				if conn, ok := conn.(closer); ok {
					conn.GoAway()
				}
				conn.Abort()
			})
		}
	}
}

// dial opens another connection and passes it to run.
func (r *runner) dial(ctx context.Context) {
	conn, err := r.Dial(ctx)
	select {
	case r.dialled <- dialled{conn, err}:
	case <-r.stopped:
		if err == nil {
			conn.Abort()
		}
	}
}

// change switches to a new connection.
func (r *runner) change(d dialled) {
	if d.err != nil {
		r.locked(func(now time.Time) { r.c.conn.dialFailed(now, d.err) })
		return
	}
	wanted, replaces := false, false
	r.locked(func(now time.Time) {
		if wanted, replaces = r.c.dialled(now); replaces {
			r.replaced = r.gen
		}
		if wanted {
			r.gen++ // data of the previous one is ignored
		}
	})
	if !wanted {
		d.conn.Abort()
		return
	}
	if replaces {
		r.old = append(r.old, r.Conn) // the gateway closes it
	} else {
		r.Conn.Abort()
	}
	if len(r.old) > maxOld {
		r.old[0].Abort()
		r.old = slices.Delete(r.old, 0, 1)
	}
	r.Conn = d.conn
	r.free = time.Now()
	r.watch.Stop()
	r.watch, r.watched = time.AfterFunc(writeTime, d.conn.Abort), r.free
	r.read(d.conn)
}

// maxOld limits replaced connections that the gateway has not closed yet.
const maxOld = 4
