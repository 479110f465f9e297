package config

import (
	"errors"
	"strings"
	"testing"
)

// TestLastCredential: if credentials were required before, a reload never admits clients without them, on any address
// and for any cause of the missing credentials. A change that admits no client is accepted.
func TestLastCredential(t *testing.T) {
	const (
		public   = "listen: 0.0.0.0:8080\n"
		keys     = "auth:\n  keys:" + keyA + "\n"
		expired  = "auth:\n  keys:\n    a: {id: aaaaaaaa, sha256: \"1111111111111111111111111111111111111111111111111111111111111111\", scopes: [voice], expires: 2020-01-01}\n"
		issuer   = "auth:\n  jwt:\n    people: {issuer: \"https://id.example.com\", audience: [voice], jwks_url: \"https://id.example.com/keys\"}\n"
		keyFile  = "auth:\n  jwt:\n    people: {issuer: \"https://id.example.com\", audience: [voice], keys_file: keys.pem}\n"
		operator = "api_key: 0123456789abcdef\n"
		gone     = "auth has no key and no issuer any more"
	)
	for name, tc := range map[string]struct {
		now, read string
		keys      string // the content of keys.pem at the reload
		flags     []Flag
		want      string // part of the error; empty if the reload succeeds
	}{
		"an empty file":                      {now: public + keys, read: "", want: gone},
		"an empty file, on loopback":         {now: keys, read: "", want: gone},
		"only comments":                      {now: keys, read: "# auth:\n#   keys:\n", want: gone},
		"cut off before auth":                {now: public + keys, read: public, want: "which other machines can reach"},
		"cut off before auth, on loopback":   {now: "limits: {sessions: 5}\n" + keys, read: "limits: {sessions: 5}\n", want: gone},
		"auth without a value":               {now: public + keys, read: public + "auth:\n", want: "which other machines can reach"},
		"auth without a value, on loopback":  {now: keys, read: "auth:\n", want: gone},
		"keys without a value":               {now: keys, read: "auth:\n  keys:\n", want: gone},
		"only enforce_expiry":                {now: keys, read: "auth: {enforce_expiry: true}\n", want: gone},
		"the address changes as well":        {now: public + keys, read: "listen: 127.0.0.1:8080\n", want: gone},
		"insecure is added":                  {now: public + keys, read: public + "insecure: true\n", want: gone},
		"insecure before and after":          {now: public + "insecure: true\n" + keys, read: public + "insecure: true\n", want: gone},
		"the address is a flag":              {now: keys, read: "", flags: []Flag{{"--listen", "listen", "0.0.0.0:8080"}}, want: "which other machines can reach"},
		"the key is a flag":                  {now: "", read: "", flags: []Flag{{"--set", "auth.keys.f.id", "ffffffff"}, {"--set", "auth.keys.f.sha256", strings.Repeat("3", 64)}, {"--set", "auth.keys.f.scopes", "voice"}}},
		"an issuer":                          {now: public + issuer, read: "", want: gone},
		"an issuer instead of a key":         {now: public + keys, read: public + issuer},
		"a key instead of an issuer":         {now: public + issuer, read: public + keys},
		"only operators have a key":          {now: keys + operator, read: operator, want: gone},
		"the operators' key":                 {now: operator, read: "", want: "api_key is gone"},
		"auth instead of the operators' key": {now: operator, read: keys},
		"the operators' key, with auth":      {now: operator + keys, read: keys},
		"another operators' key":             {now: operator, read: "api_key: fedcba9876543210\n"},
		"all keys have expired":              {now: keys, read: expired},
		"expired keys are removed":           {now: expired, read: "", want: gone},
		"a file of keys that is empty":       {now: keyFile, read: keyFile, keys: "", want: "keys_file: the file"},
		"a file of keys without a key":       {now: keyFile, read: keyFile, keys: "{\"keys\": []}", want: "keys_file: the file"},
		"a file of other keys":               {now: keyFile, read: keyFile, keys: aKeySet},
		"none before, none after":            {now: "", read: ""},
		"the first key":                      {now: "", read: keys},
	} {
		t.Run(name, func(t *testing.T) {
			load := func(text, keys string) (*Config, error) {
				c, _, err := Load(Source{File: "voicegw.yaml", Flags: tc.flags, ReadFile: files{"voicegw.yaml": text, "keys.pem": keys}.ReadFile})
				return c, err
			}
			now, err := load(tc.now, aKeySet)
			if err != nil {
				t.Fatal(err)
			}
			read, err := load(tc.read, tc.keys)
			var to Takeover
			if err == nil {
				to, err = TakeOver(now, read)
			}
			if tc.want == "" {
				if err != nil || to.Next.Auth.Enabled() != read.Auth.Enabled() || to.Next.APIKey != read.APIKey {
					t.Errorf("the reload fails: %v", err)
				}
				return
			}
			var problems Problems
			if !errors.As(err, &problems) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

// TestReloadNamesUnchangedSettings: if a reload is refused because of a value from the start, the error names the place
// of that value and the settings that a reload does not change.
func TestReloadNamesUnchangedSettings(t *testing.T) {
	now, next := read(t, "listen: 127.0.0.1:8080\n"), read(t, "insecure: true\nhosts: ['*']\ndrain_timeout: 1m\n")
	_, err := TakeOver(now, next)
	if want := "voicegw.yaml:2: hosts has the entry \"*\""; err == nil || !strings.HasPrefix(err.Error(), want) || !strings.HasSuffix(err.Error(), "A reload leaves these settings as they were at the start: drain_timeout, insecure.") {
		t.Errorf("the error is %v", err)
	}
	public, private := read(t, "listen: 0.0.0.0:8080\nauth:\n  keys:"+keyA+"\n"), read(t, "# nothing\nlisten: 127.0.0.1:8080\n")
	if _, err = TakeOver(public, private); err == nil || !strings.Contains(err.Error(), "voicegw.yaml:1, at the start: listen is 0.0.0.0:8080") {
		t.Errorf("the error is %v", err)
	}
}
