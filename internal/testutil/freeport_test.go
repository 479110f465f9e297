package testutil

import (
	"net"
	"strconv"
	"testing"
)

// TestAddr: each address is new and free, and its port is outside the ephemeral range.
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
	// The next candidates are the ports in use.
	next.Add(-50)
	if addr, err := FreeAddr(); err != nil || seen[addr] {
		t.Errorf("%s is in use, %v", addr, err)
	}
}
