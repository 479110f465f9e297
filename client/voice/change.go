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
func (l *line) applyRequests(ctx context.Context) {
	l.mu.Lock()
	requests := l.talk.requests
	l.talk.requests = nil
	for _, w := range requests {
		if w != requestDial {
			l.gen++ // ignore what its reader still delivers
		}
	}
	l.mu.Unlock()
	for _, w := range requests {
		switch w {
		case requestDial:
			l.helpers.Go(func() { l.dial(ctx) })
		case requestReset:
			if conn, ok := l.Conn.(closer); ok {
				conn.Reset()
			}
			l.Conn.Abort()
		case requestGoAway:
			l.leave(l.Conn)
		}
	}
}

// leave closes a connection like a browser leaving the page, without waiting for the gateway.
func (l *line) leave(conn Conn) {
	l.helpers.Go(func() {
		if conn, ok := conn.(closer); ok {
			conn.GoAway()
		}
		conn.Abort()
	})
}

// dial opens another connection and passes it to run.
func (l *line) dial(ctx context.Context) {
	conn, err := l.Dial(ctx)
	select {
	case l.dialled <- dialled{conn, err}:
	case <-l.stopped:
		if err == nil {
			conn.Abort()
		}
	}
}

// change switches to a new connection.
func (l *line) change(d dialled) {
	if d.err != nil {
		l.locked(func(now time.Time) { l.talk.undialled(now, d.err) })
		return
	}
	wanted, replaces := false, false
	l.locked(func(now time.Time) {
		if wanted, replaces = l.talk.dialled(now); replaces {
			l.replaced = l.gen
		}
		if wanted {
			l.gen++ // data of the previous one is ignored
		}
	})
	if !wanted {
		d.conn.Abort()
		return
	}
	if replaces {
		l.old = append(l.old, l.Conn) // the gateway closes it
	} else {
		l.Conn.Abort()
	}
	if len(l.old) > maxOld {
		l.old[0].Abort()
		l.old = slices.Delete(l.old, 0, 1)
	}
	l.Conn = d.conn
	l.free = time.Now()
	l.watch.Stop()
	l.watch, l.watched = time.AfterFunc(writeTime, d.conn.Abort), l.free
	l.read(d.conn)
}

// maxOld limits replaced connections that the gateway has not closed yet.
const maxOld = 4
