package main

import "testing"

// TestSchedulers: on one core the program sets GOMAXPROCS to two, unless the environment sets it.
func TestSchedulers(t *testing.T) {
	for _, tc := range []struct {
		n    int
		env  string
		want int
	}{
		{1, "", 2},
		{1, "1", 0},
		{2, "", 0},
		{16, "", 0},
	} {
		if got := schedulers(tc.n, tc.env); got != tc.want {
			t.Errorf("with %d and GOMAXPROCS=%q: %d, want %d", tc.n, tc.env, got, tc.want)
		}
	}
}

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
