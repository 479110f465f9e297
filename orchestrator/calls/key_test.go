package calls

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"testing"

	"voicegw/registry"
)

func TestTrusted(t *testing.T) {
	for id, want := range map[string]bool{
		"":                          false,
		"12345678":                  false, // eight characters are too few to be unique
		"123456789":                 true,
		"call_abcdefghij":           true,
		"fc_1234567890":             true,
		"function-call-17482930123": true,
		"tmp_1234567890":            false,
		"TEMP-1234567890":           false,
		"call_tmp_1234567890":       false,
		"call-temp1234567890":       false,
		"fc_tmp1234567890":          false,
		"attempt_1234567890":        true, // temp is not its prefix
	} {
		if got := ProviderKey(id) != ""; got != want {
			t.Errorf("%q is trusted: %t, want %t", id, got, want)
		}
	}
}

func TestKeyOf(t *testing.T) {
	key := func(id, tool, args string, turn int) string {
		return cmp.Or(ProviderKey(id), HashKey(tool, registry.Decode(json.RawMessage(args)).Text(), turn))
	}
	if got := key("call_abcdefghij", "get", `{}`, 3); got != "provider:call_abcdefghij" {
		t.Errorf("the key of a trusted id is %s", got)
	}
	sum := sha256.Sum256([]byte(`get{"a":1,"b":2}3`))
	want := "hash:3:" + hex.EncodeToString(sum[:8])
	for _, args := range []string{`{"a":1,"b":2}`, ` { "b" : 2, "a" : 1.0 } `, `{"b":2e0,"a":1}`} {
		if got := key("short", "get", args, 3); got != want {
			t.Errorf("the key of %s is %s, want %s", args, got, want)
		}
	}
	for _, other := range []string{
		key("", "get", `{"a":1,"b":2}`, 4), key("", "search", `{"a":1,"b":2}`, 3), key("", "get", `{"a":1,"b":3}`, 3),
		key("", "get", `{"a":"1","b":2}`, 3), key("", "get", ``, 3),
	} {
		if other == want {
			t.Errorf("another call has the same key %s", other)
		}
	}
	if key("", "get", ``, 1) != key("", "get", ` {} `, 1) {
		t.Error("no arguments and an empty object have different keys")
	}
}

// FuzzKeys: any arguments of a model have one canonical form, which names the call.
func FuzzKeys(f *testing.F) {
	for _, args := range []string{``, `{}`, `{"a":[1,2.50,{"b":null}]}`, `{"a":1,"a":2}`, `nonsense`, `"\ud800"`, `1e400`, "\x00", `{"top_k":1e2}`} {
		f.Add("call_abcdefghij", args)
	}
	f.Fuzz(func(t *testing.T, id, args string) {
		form := registry.Decode(json.RawMessage(args)).Text()
		if again := registry.Decode(json.RawMessage(form)).Text(); again != form {
			t.Fatalf("%q becomes %q, and that %q", args, form, again)
		}
		if spaced := registry.Decode(json.RawMessage(" \n\t" + args + "\r ")).Text(); spaced != form {
			t.Fatalf("%q with spaces becomes %q, want %q", args, spaced, form)
		}
		key := cmp.Or(ProviderKey(id), HashKey("get", form, 2))
		if (ProviderKey(id) != "") != strings.HasPrefix(key, "provider:") || ProviderKey(id) == "" && len(key) != len("hash:2:")+16 {
			t.Fatalf("the id %q gives the key %q", id, key)
		}
	})
}
