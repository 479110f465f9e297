package config

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// TestWrongIsNotMissing: a value of the wrong kind is reported once, and not as missing as well.
func TestWrongIsNotMissing(t *testing.T) {
	l := newLoader(Source{Wires: Wires(), Tools: anyTools})
	for _, in := range namedSections {
		l.introduce(&in, "any")
	}
	// These are the other settings that each setting requires.
	bases := map[string]map[string]string{
		"auth.keys.any.": someKey, "auth.jwt.any.": someIssuer, "webhooks.any.": someWebhook, "mcp.servers.any.": someMCP, "checks.rules.any.": someCheck,
		"providers.any.":   {"providers.any.wire": "openai"},
		"cluster.":         {"cluster.listen": "127.0.0.1:9000", "cluster.url": "http://10.0.0.1:9000", "cluster.secret": strings.Repeat("a", 32), "store.url": "nats://nats:4222"},
		"kb.embeddings.":   {"kb.embeddings.base_url": "https://e.example.com", "kb.embeddings.model": "m"},
		"kb.qdrant.":       {"kb.qdrant.url": "https://q.example.com", "kb.qdrant.api_key": "key"},
		"store.":           {"store.url": "nats://nats:4222", "store.credentials": "nats.creds", "store.replicas": "3"},
		"calendar.caldav.": {"calendar.backend": "caldav", "calendar.caldav.url": "https://dav.example.com", "calendar.caldav.user": "ada", "calendar.caldav.password": "secret"},
		"calendar.google.": {"calendar.backend": "google", "calendar.google.credentials": "google.json", "calendar.google.subject": "ada@example.com"},
		"chat.":            {"chat.base_url": "https://chat.example.com", "chat.model": "m", "chat.api_key": "key"},
		"tls.acme.":        {"tls.acme.hosts": "a.example.com", "tls.acme.email": "me@example.com"},
	}
	for _, key := range l.keys {
		vars := map[string]string{}
		for prefix, base := range bases {
			if strings.HasPrefix(key, prefix) {
				vars = maps.Clone(base)
			}
		}
		if strings.HasPrefix(key, "auth.jwt.any.") {
			source := "auth.jwt.any.jwks_url"
			if slices.Contains([]string{"auth.jwt.any.discovery", "auth.jwt.any.keys_file", "auth.jwt.any.hs_secret", "auth.jwt.any.hs_secret_file"}, key) {
				source = key
			}
			vars[source] = "https://id.example.com/keys"
		}
		delete(vars, key)
		text, indent := "", ""
		for name := range strings.SplitSeq(key, ".") {
			text += indent + name + ":\n"
			indent += "  "
		}
		text += indent + "- [wrong]\n" // a list in a list
		var environ []string
		for k, v := range vars {
			environ = append(environ, env(k)+"="+v)
		}
		_, _, err := Load(Source{File: "voicegw.yaml", Environ: environ, Tools: anyTools, ReadFile: files{"voicegw.yaml": text}.ReadFile})
		problems, _ := err.(Problems)
		if len(problems) != 1 || !strings.HasPrefix(problems[0].Message, key+" must be ") {
			t.Errorf("%s: %v", key, err)
		}
	}
}

// TestUselessScopes: a key with scopes for tools only is refused with this reason.
func TestUselessScopes(t *testing.T) {
	_, _, err := load(t, "auth:\n  keys:\n    a: {id: aaaaaaaa, sha256: \""+strings.Repeat("1", 64)+"\", scopes: ['kb:staff']}\n", nil)
	if err == nil || !strings.Contains(err.Error(), "auth.keys.a.scopes has only scopes for tools, which open no endpoint") {
		t.Errorf("the error is %v", err)
	}
}
