package ws

import "sync/atomic"

// watch counts the calls of KeepAlive during which a connection was silent. It counts calls and
// not time, so that a process that was stopped for a minute takes no client for silent.
type watch struct {
	sent, came atomic.Bool // bytes were written, or read, since the last call

	// Used only by KeepAlive.
	quiet, silent uint8 // calls in a row without anything written, or read
	asked         bool  // since it fell silent, the other side has had a ping to answer
}

// spoke and heard note that bytes are written, and that bytes have been read. They run for each
// frame, and a load is cheaper than a store.
func (w *watch) spoke() { note(&w.sent) }
func (w *watch) heard() { note(&w.came) }

func note(b *atomic.Bool) {
	if !b.Load() {
		b.Store(true)
	}
}

// KeepAlive pings the other side (RFC 6455, section 5.5.2) if nothing was written, or nothing has
// come, during pingAfter calls. It reports false if nothing has come during lostAfter calls although
// the other side had something to answer or to acknowledge. Every byte counts, and a connection
// is alive while pending bytes leave it, however slowly. Both limits are below 256.
//
// The caller calls it at a fixed interval, from one goroutine at a time. It does not wait, and sends
// no ping while bytes are pending or another goroutine writes: the ping would arrive after them.
func (c *Conn) KeepAlive(pingAfter, lostAfter int) bool {
	w := &c.watch
	ready := c.under.Ready()
	// Where the drainer writes every byte, a ping leaves that way too: it counts only if more is pending.
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
		w.sent.Store(false) // the next ping is due after as many calls as this one
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
	// Asked while no other goroutine can write: after this, put cannot wait for room.
	sent := c.under.Ready() && c.put(opPing, c.seal(opPing, m)) == nil // reading returns the reason of an error
	c.writing.Unlock()
	c.settle()
	return sent
}
