// Package nonblock holds network connections that nobody has to wait for.
//
// What the kernel does not take of a write at once is kept, up to a bound, and written when
// the peer takes it. So a goroutine that reads one connection may write to another one
// itself: it asks Ready first, and hands over to a queue when the peer is slow.
//
// Whoever wants to hear a connection gives it a function, which is called when there may be
// something to read: see [Conn.Notify]. On Linux one goroutine calls the functions of many
// sockets (see [Loops]), so that a connection on which nothing comes is no goroutine and
// holds no buffer. Everywhere else each connection has a goroutine of its own, which calls
// the function in the same way.
package nonblock
