package voice

import (
	"fmt"
	"strings"
)

// sound is a phone of a word and, for a vowel, its stress: 0 none, 1 primary, 2 secondary.
type sound struct {
	ph     phone
	stress uint8
}

// parseSounds reads "HH AX L OW1".
func parseSounds(s string) ([]sound, error) {
	var out []sound
	for _, f := range strings.Fields(s) {
		var st uint8
		name := strings.TrimRight(f, "012")
		if len(name) < len(f) {
			st = f[len(f)-1] - '0'
		}
		p, ok := phoneByName(name)
		if !ok {
			return nil, fmt.Errorf("voice: %q is not a phone", f)
		}
		out = append(out, sound{p, st})
	}
	return out, nil
}

// mustSounds is parseSounds for the embedded tables; a test loads them all.
func mustSounds(s string) []sound {
	out, err := parseSounds(s)
	if err != nil {
		panic(err)
	}
	return out
}

func phoneByName(name string) (phone, bool) {
	for i := range phoneTable {
		if phoneTable[i].name == name {
			return phone(i), true
		}
	}
	return 0, false
}
