// Package nonblock provides network connections that need no waiting goroutine.
//
// A connection keeps bytes that the kernel does not accept at once, up to a bound, and writes
// them when the peer accepts them. So a goroutine that reads one connection may itself write to
// another one: it asks Ready first, and uses a queue if the peer is slow.
//
// To read without waiting, give the connection a function to call when there may be something
// to read: see [Conn.Notify]. On Linux one goroutine calls the functions of many sockets (see
// [Loops]), so that an idle connection needs no goroutine and holds no buffer. On other systems
// each connection has its own goroutine, which calls the function in the same way.
package nonblock
