// Package nonblock provides network connections for which no goroutine has to wait.
//
// Bytes of a write that the kernel does not accept at once are kept, up to a bound, and
// written when the peer accepts them. So a goroutine that reads one connection may itself
// write to another one: it asks Ready first, and uses a queue if the peer is slow.
//
// To read a connection without waiting, give it a function, which is called when there may be
// something to read: see [Conn.Notify]. On Linux one goroutine calls the functions of many
// sockets (see [Loops]), so that an idle connection needs no goroutine and holds no buffer.
// On other systems each connection has its own goroutine, which calls the function in the
// same way.
package nonblock
