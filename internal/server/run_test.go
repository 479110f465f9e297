package server

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
