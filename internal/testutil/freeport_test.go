package testutil

import (
	"net"
	"strconv"
	"testing"
)

// TestAddr: each address can be listened on, differs each time, is not one of the ports
// that systems give away, and none that somebody listens on.
func TestAddr(t *testing.T) {
	seen := map[string]bool{}
	for range 50 {
		addr, err := FreeAddr()
		if err != nil {
			t.Fatal(err)
		}
		_, text, _ := net.SplitHostPort(addr)
		if port, _ := strconv.Atoi(text); seen[addr] || port < 1024 || port >= 32768 {
			t.Fatalf("%s, after %d others", addr, len(seen))
		}
		seen[addr] = true
		ln, err := net.Listen("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { ln.Close() })
	}
	// All the way round: those that are still listened on are passed over.
	next.Add(-50)
	if addr, err := FreeAddr(); err != nil || seen[addr] {
		t.Errorf("%s is in use, %v", addr, err)
	}
}
