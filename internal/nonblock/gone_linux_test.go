package nonblock

import (
	"net"
	"runtime"
	"testing"
)

// TestGone: Gone reports a peer that has closed or reset its connection, even with unread data, but not one that has only
// sent data.
func TestGone(t *testing.T) {
	for name, end := range map[string]func(*net.TCPConn){
		"closed": func(c *net.TCPConn) { _ = c.Close() },
		"reset":  func(c *net.TCPConn) { _ = c.SetLinger(0); _ = c.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			ln, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = ln.Close() }()
			peer, err := net.Dial("tcp", ln.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			accepted, err := ln.Accept()
			if err != nil {
				t.Fatal(err)
			}
			c := Wrap(accepted)
			if _, err := peer.Write([]byte("left to read")); err != nil {
				t.Fatal(err)
			}
			if c.Gone() {
				t.Error("a peer that has sent data is reported as gone")
			}
			end(peer.(*net.TCPConn))
			for !c.Gone() {
				runtime.Gosched()
			}
			if err := c.Close(); err != nil {
				t.Fatal(err)
			}
			if !c.Gone() {
				t.Error("a connection that is closed on this side is not reported as gone")
			}
		})
	}
}
