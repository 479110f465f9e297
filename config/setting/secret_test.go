package setting

import (
	"strings"
	"testing"
)

// FuzzParsePairs: names and values have no line breaks, which would start another header.
func FuzzParsePairs(f *testing.F) {
	f.Add("authorization=Bearer%20abc,x=y")
	f.Add("a=%0d%0ab")
	f.Fuzz(func(t *testing.T, text string) {
		pairs, err := ParsePairs(text)
		if err != nil && pairs != nil {
			t.Error("there are pairs and an error")
		}
		for name, value := range pairs {
			if name == "" || strings.ContainsAny(name+value, "\r\n\x00") {
				t.Errorf("%q: %q", name, value)
			}
		}
	})
}
