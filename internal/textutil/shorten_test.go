package textutil

import "testing"

func TestTo(t *testing.T) {
	for _, tc := range []struct {
		text string
		most int
		want string
	}{
		{"", 0, ""}, {"abc", 3, "abc"}, {"abcd", 3, "abc…"}, {"abc", 0, "…"},
		{"aé", 3, "aé"}, {"aéb", 3, "aé…"}, {"aéb", 2, "a…"}, {"😀😀", 7, "😀…"},
	} {
		if got := Shorten(tc.text, tc.most); got != tc.want {
			t.Errorf("%q to %d bytes: %q, want %q", tc.text, tc.most, got, tc.want)
		}
	}
}
