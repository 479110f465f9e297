package main

import "testing"

// TestDebugListenerAddress: profiles are served only to this machine.
func TestDebugListenerAddress(t *testing.T) {
	for address, ok := range map[string]bool{
		"127.0.0.1:6060": true, "localhost:0": true, "[::1]:6060": true,
		"0.0.0.0:6060": false, ":6060": false, "192.0.2.1:6060": false, "6060": false, "127.0.0.1:port": false,
	} {
		if text := checkDebugListen(address); (text == "") != ok {
			t.Errorf("%s: %q", address, text)
		}
	}
}
