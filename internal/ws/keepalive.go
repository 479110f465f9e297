package ws

import "sync/atomic"

// watch counts the calls of KeepAlive during which a connection was silent. It does not measure time, so that clients
// are not silent because this process was stopped for a minute.
type watch struct {
	sent, came atomic.Bool // bytes were written, or read, since the last call

	// Used only by KeepAlive.
	quiet, silent uint8 // calls in a row without written, or read, bytes
	asked         bool  // this side has sent a ping since the other side fell silent
}

// spoke records that bytes are written, heard that bytes were read.
func (w *watch) spoke() { note(&w.sent) }
func (w *watch) heard() { note(&w.came) }

// note runs for each frame, and a load is cheaper than a store.
func note(b *atomic.Bool) {
	if !b.Load() {
		b.Store(true)
	}
}

// KeepAlive pings the other side (RFC 6455, section 5.5.2) if pingAfter calls saw no bytes written, or none read. It
// reports false if lostAfter calls saw no bytes read although the other side had a ping to answer or data to
// acknowledge. Every byte counts, and a connection is alive while the kernel accepts pending bytes, even slowly. Both
// limits must be below 256.
//
// The caller must call it at a fixed interval, from one goroutine at a time. It does not wait, and sends no ping while
// bytes are pending or another goroutine writes, because the ping would arrive after them.
func (c *Conn) KeepAlive(pingAfter, lostAfter int) bool {
	w := &c.watch
	ready := c.under.Ready()
	// A drainer may write the pings too, so moved bytes count only if more are pending.
	slow := c.under.Moved() && !ready
	if w.came.Swap(false) || slow {
		w.silent, w.asked = 0, false
	} else if int(w.silent) < lostAfter {
		w.silent++
	}
	if w.sent.Swap(false) {
		w.quiet = 0
	} else if int(w.quiet) < pingAfter {
		w.quiet++
	}
	if int(w.silent) >= lostAfter && (w.asked || !ready) {
		return false
	}
	if (int(w.quiet) >= pingAfter || int(w.silent) >= pingAfter && !w.asked) && c.tryPing() {
		w.sent.Store(false) // a ping itself does not count
		w.quiet, w.asked = 0, true
	}
	return true
}

// tryPing sends a ping and reports true, unless another goroutine is writing or bytes are pending.
func (c *Conn) tryPing() bool {
	if !c.writing.TryLock() {
		return false
	}
	m := NewMessage()
	defer m.free()
	// No other goroutine can write now, so put does not wait for room after Ready.
	sent := c.under.Ready() && c.put(opPing, c.seal(opPing, m)) == nil // the next read returns the error
	c.writing.Unlock()
	c.settle()
	return sent
}
