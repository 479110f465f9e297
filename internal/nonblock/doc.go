// Package nonblock holds network connections that nobody has to wait for.
//
// What the kernel does not take of a write at once is kept, up to a bound, and written
// when the peer takes it. It is what lets a goroutine that reads one connection write to
// another one itself: it asks Ready first, and hands over to a queue when the peer is slow.
//
// A [Loop] reads many connections on one goroutine (Linux only; elsewhere, and for what is
// no socket, Notify says no): a connection on which nothing comes then is no goroutine, and
// holds no buffer.
package nonblock
