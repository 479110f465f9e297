package voice

import (
	"context"
	"slices"
	"time"
)

// dialled is what came of opening another connection.
type dialled struct {
	conn Conn // nil if there is an error
	err  error
}

// parting is a Conn that can end in other ways than with Abort.
type parting interface {
	// Reset ends it as a network does: with RST, and without a close frame.
	Reset()
	// GoAway ends it as a browser does whose page goes away.
	GoAway()
}

// fulfil does what the conversation wants done to its connections.
func (l *line) fulfil(ctx context.Context) {
	l.mu.Lock()
	wishes := l.talk.wishes
	l.talk.wishes = nil
	for _, w := range wishes {
		if w != wishDial {
			l.gen++ // what its reader still brings is of no interest
		}
	}
	l.mu.Unlock()
	for _, w := range wishes {
		switch w {
		case wishDial:
			l.helpers.Go(func() { l.dial(ctx) })
		case wishReset:
			if conn, ok := l.Conn.(parting); ok {
				conn.Reset()
			}
			l.Conn.Abort()
		case wishGoAway:
			l.leave(l.Conn)
		}
	}
}

// leave closes a connection as a page does that goes away. It does not wait for the gateway.
func (l *line) leave(conn Conn) {
	l.helpers.Go(func() {
		if conn, ok := conn.(parting); ok {
			conn.GoAway()
		}
		conn.Abort()
	})
}

// dial opens another connection and gives it to run.
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

// change makes a new connection the one that counts.
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
			l.gen++ // from now on nothing counts that comes of the one before
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

// maxOld is how many connections that were replaced are left open at most: the gateway closes them.
const maxOld = 4
