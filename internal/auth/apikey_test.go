package auth

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
)

// TestKeys: a new key can be read again; a text of another form is not a key, and guessable keys are invalid.
func TestKeys(t *testing.T) {
	seen := map[string]bool{}
	for range 100 {
		k := NewAPIKey()
		again, err := ParseAPIKey(k.Reveal())
		if err != nil || again != k || seen[k.ID()] || len(k.Reveal()) != 56 {
			t.Fatalf("%v is read as %v, %v", k, again, err)
		}
		seen[k.ID()] = true
		sum := sha256.Sum256([]byte(k.Reveal()))
		if k.Hash().String() != hex.EncodeToString(sum[:]) {
			t.Errorf("%s: its hash is %s", k, k.Hash())
		}
		for _, printed := range []string{fmt.Sprint(k), fmt.Sprintf("%+v", k), fmt.Sprintf("%#v", k), fmt.Sprintf("%q", k), fmt.Sprintf("%s", []APIKey{k})} {
			if strings.Contains(printed, k.Reveal()[13:]) {
				t.Errorf("it is printed: %s", printed)
			}
		}
	}
	if k, err := ParseAPIKey(aKey); err != nil || k.ID() != "0123abcd" {
		t.Errorf("%v, %v", k, err)
	}
	for name, text := range map[string]string{
		"nothing":                 "",
		"an id alone":             "vgk_0123abcd",
		"without a secret":        "vgk_0123abcd_",
		"another prefix":          "sk_0123abcd_" + aSecret,
		"a prefix in capitals":    "VGK_0123abcd_" + aSecret,
		"an id in capitals":       "vgk_0123ABCD_" + aSecret,
		"a short id":              "vgk_0123abc_" + aSecret,
		"a long id":               "vgk_0123abcde_" + aSecret,
		"a short secret":          aKey[:len(aKey)-1],
		"a long secret":           aKey + "A",
		"bits beyond its end":     aKey[:len(aKey)-1] + "h",
		"padded":                  aKey[:len(aKey)-1] + "=",
		"not base64url":           aKey[:len(aKey)-1] + "+",
		"with a line break":       aKey[:30] + "\n" + aKey[31:],
		"a space before":          " " + aKey,
		"one character only":      "vgk_0123abcd_" + strings.Repeat("A", 43),
		"a few characters":        "vgk_0123abcd_" + strings.Repeat("abcd", 10) + "abA",
		"a password, often":       "vgk_0123abcd_" + strings.Repeat("Passw0rd", 6)[:42] + "A",
		"letters that look alike": strings.Replace(aKey, "e", "е", 1),
	} {
		if k, err := ParseAPIKey(text); err == nil || k != (APIKey{}) || strings.Contains(err.Error(), aSecret[:20]) {
			t.Errorf("%s: %v, %v", name, k, err)
		}
	}
}

// TestHashes: a hash has exactly 64 digits.
func TestHashes(t *testing.T) {
	h := NewAPIKey().Hash()
	for _, text := range []string{h.String(), strings.ToUpper(h.String())} {
		if again, err := ParseKeyHash(text); err != nil || again != h {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, text := range []string{"", h.String()[1:], h.String() + "00", h.String()[:63] + "g", "sha256:" + h.String()} {
		if _, err := ParseKeyHash(text); err == nil {
			t.Errorf("%q is a hash", text)
		}
	}
}

// FuzzParse: a parsed key is written as it was read, and no other text is the same key.
func FuzzParse(f *testing.F) {
	f.Add(aKey)
	f.Add("vgk_0123abcd_" + strings.Repeat("A", 43))
	f.Add("vgk__")
	f.Fuzz(func(t *testing.T, text string) {
		k, err := ParseAPIKey(text)
		if err != nil {
			if strings.Contains(err.Error(), text) && len(text) > 8 {
				t.Errorf("the error repeats %q", text)
			}
			return
		}
		if k.Reveal() != text || len(text) != 56 || !ValidKeyID(k.ID()) || strings.Contains(k.String(), text[13:]) {
			t.Errorf("%q is read as %v", text, k)
		}
	})
}
