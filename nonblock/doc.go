// Package nonblock holds a network connection whose writes do not wait for the
// peer: what the kernel does not take at once is kept, up to a bound, and written
// by a goroutine that exists only meanwhile.
//
// It is what lets a goroutine that reads one connection write to another one
// itself: it asks Ready first, and hands over to a queue when the peer is slow.
package nonblock
