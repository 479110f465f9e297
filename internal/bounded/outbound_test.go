package bounded

import (
	"net/netip"
	"testing"
)

// TestAddresses: the public addresses, and those that are never allowed.
func TestAddresses(t *testing.T) {
	for address, want := range map[string][2]bool{
		"93.184.215.14:443": {true, true}, "[2606:2800:220::1]:443": {true, true},
		"127.0.0.1:1": {false, true}, "10.1.2.3:443": {false, true}, "192.168.1.1:443": {false, true}, "100.64.1.1:443": {false, true}, "[::1]:1": {false, true},
		"[fd00::1]:1": {false, true}, "[::ffff:127.0.0.1]:1": {false, true}, "[64:ff9b::7f00:1]:1": {false, true},
		"169.254.169.254:80": {false, false}, "[fe80::1%eth0]:80": {false, false}, "0.0.0.0:80": {false, false}, "[::]:80": {false, false}, "224.0.0.1:80": {false, false},
		"[fd00:ec2::254]:80": {false, false}, "[::ffff:168.63.129.16]:80": {false, false}, "100.100.100.200:80": {false, false},
		"[::127.0.0.1]:80": {false, true}, "[2001::7f00:1]:80": {false, true}, "[fec0::1]:80": {false, true},
	} {
		for i, private := range []bool{false, true} {
			if got := checkAddress(netip.MustParseAddrPort(address).Addr(), private) == nil; got != want[i] {
				t.Errorf("%s, private %v: %v", address, private, got)
			}
		}
	}
}
