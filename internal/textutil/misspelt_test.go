package textutil

import (
	"strings"
	"testing"
)

func TestNearest(t *testing.T) {
	known := []string{"listen", "provider", "providers", "log", "limits.sessions_per_address"}
	for word, want := range map[string]string{
		"listn": "listen", "LISTEN": "listen", "lsiten": "listen", "provder": "provider", "providerss": "providers",
		"lgo": "", "lo": "log", "logg": "log", "x": "", "": "", "something": "",
		"limit.session_per_address": "limits.sessions_per_address", strings.Repeat("listen", 20): "",
	} {
		if got := Nearest(word, known); got != want {
			t.Errorf("%q: %q, want %q", word, got, want)
		}
	}
}

func FuzzNearest(f *testing.F) {
	f.Add("listn", "listen")
	f.Add("", "\xff")
	f.Fuzz(func(t *testing.T, word, known string) {
		got := Nearest(word, []string{known})
		if got != "" && got != known {
			t.Fatalf("%q is not a known word", got)
		}
		if word == known && word != "" && len(word) <= maxWord && got != known {
			t.Fatalf("%q is not like itself", word)
		}
	})
}
