package config

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"voicegw/config/setting"
	"voicegw/internal/testutil"
)

// alternatives are two values of a setting, each as variables; either is valid with the defaults of the other settings,
// unless the setting requires another one.
type alternatives [2]map[string]string

// These variables make a name of a section valid.
var (
	someKey     = map[string]string{"auth.keys.any.id": "aaaaaaaa", "auth.keys.any.sha256": strings.Repeat("1", 64), "auth.keys.any.scopes": "voice"}
	someIssuer  = map[string]string{"auth.jwt.any.issuer": "https://id.example.com", "auth.jwt.any.audience": "voice"}
	someMCP     = map[string]string{"mcp.lock": "/etc/mcp.lock.json", "mcp.servers.any.url": "https://crm.example.com/mcp"}
	program     = map[string]string{"mcp.lock": "/etc/mcp.lock.json", "mcp.servers.any.command": "/bin/crm"}
	someCheck   = map[string]string{"checks.rules.any.kind": "words", "checks.rules.any.words": "damn"}
	someWebhook = map[string]string{"webhooks.any.url": "https://hooks.example.com", "webhooks.any.secret": "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="}
)

func with(more map[string]string, keyValues ...string) map[string]string {
	all := maps.Clone(more)
	if all == nil {
		all = map[string]string{}
	}
	for i := 0; i < len(keyValues); i += 2 {
		all[keyValues[i]] = keyValues[i+1]
	}
	return all
}

// flat returns variables as arguments of with.
func flat(vars map[string]string) (all []string) {
	for key, value := range vars {
		all = append(all, key, value)
	}
	return all
}

// twoValues returns the settings whose values do not follow from their types and tags. Any name stands in for the names
// of a section.
func twoValues() map[string]alternatives {
	issuer := with(someIssuer, "auth.jwt.any.jwks_url", "https://id.example.com/keys")
	secret, other := strings.Repeat("a", 32), strings.Repeat("b", 32)
	embeddings := with(nil, "kb.embeddings.base_url", "https://e.example.com", "kb.embeddings.model", "m")
	caldav := with(nil, "calendar.caldav.url", "https://dav.example.com", "calendar.caldav.user", "ada")
	google := with(nil, "calendar.google.credentials", "google.json")
	cluster := with(nil, "cluster.listen", "127.0.0.1:9000", "cluster.url", "http://10.0.0.1:9000", "cluster.secret", secret, "store.url", "nats://nats:4222")
	of := func(base map[string]string, key, one, two string) alternatives {
		return alternatives{with(base, key, one), with(base, key, two)}
	}
	return map[string]alternatives{
		"listen":                          {nil, with(nil, "listen", "0.0.0.0:8080")},
		"hosts":                           {nil, with(nil, "hosts", "*")},
		"exact.api_key":                   of(with(nil, "exact.base_url", "https://s.example.com/v1"), "exact.api_key", "", "key"),
		"claims.languages":                of(nil, "claims.languages", "de", ""),
		"origins":                         {nil, with(nil, "origins", "*")},
		"tool_dirs":                       {nil, with(nil, "tool_dirs", "/etc/voicegw/tools")},
		"trusted_proxies":                 {nil, with(nil, "trusted_proxies", "10.0.0.0/8")},
		"tls.certificates":                {nil, with(nil, "tls.certificates", "c.pem=k.pem")},
		"tls.acme.email":                  of(with(nil, "tls.acme.hosts", "a.example.com"), "tls.acme.email", "", "me@example.com"),
		"tls.acme.directory":              of(with(nil, "tls.acme.hosts", "a.example.com"), "tls.acme.directory", "", "https://acme.example.com"),
		"tls.acme.cache":                  of(with(nil, "tls.acme.hosts", "a.example.com"), "tls.acme.cache", "", "cache"),
		"tls.acme.hosts":                  {nil, with(nil, "tls.acme.hosts", "a.example.com")},
		"api_key":                         {nil, with(nil, "api_key", secret)},
		"phone.numbers":                   {nil, with(nil, "phone.numbers", "+15550100=default")},
		"phone.transfers":                 {nil, with(nil, "phone.transfers", "sales=+15550123")},
		"phone.outbound.from":             {nil, with(nil, "phone.outbound.from", "+15550100")},
		"phone.outbound.prefixes":         {nil, with(nil, "phone.outbound.prefixes", "+1555")},
		"provider":                        {nil, with(nil, "provider", "openai")},
		"providers.fallback":              {nil, with(nil, "providers.fallback", "openai")},
		"chat.base_url":                   {nil, with(nil, "chat.base_url", "https://chat.example.com", "chat.model", "m")},
		"chat.api_key":                    of(with(nil, "chat.base_url", "https://chat.example.com", "chat.model", "m"), "chat.api_key", "", "chat-key"),
		"chat.vision":                     {nil, with(nil, "chat.vision", "true")},
		"kb.embeddings.base_url":          {nil, embeddings},
		"kb.embeddings.api_key":           of(embeddings, "kb.embeddings.api_key", "", "key"),
		"kb.embeddings.model":             of(embeddings, "kb.embeddings.model", "m", "n"),
		"kb.embeddings.cache":             of(embeddings, "kb.embeddings.cache", "", "cache"),
		"kb.qdrant.url":                   {nil, with(nil, "kb.qdrant.url", "https://q.example.com")},
		"kb.qdrant.api_key":               of(with(nil, "kb.qdrant.url", "https://q.example.com"), "kb.qdrant.api_key", "", "key"),
		"kb.qdrant.collection":            of(with(nil, "kb.qdrant.url", "https://q.example.com"), "kb.qdrant.collection", "a", "b"),
		"calendar.time_zone":              {nil, with(nil, "calendar.time_zone", "Europe/Berlin")},
		"calendar.email":                  {nil, with(nil, "calendar.email", "ada@example.com")},
		"calendar.meeting_url":            {nil, with(nil, "calendar.meeting_url", "https://meet.example.com/{id}")},
		"calendar.backend":                {nil, with(nil, "calendar.backend", "folder")},
		"calendar.caldav.url":             {nil, caldav},
		"calendar.caldav.user":            of(caldav, "calendar.caldav.user", "ada", "bob"),
		"calendar.caldav.password":        of(caldav, "calendar.caldav.password", "", "secret"),
		"calendar.google.credentials":     {nil, google},
		"calendar.google.subject":         of(google, "calendar.google.subject", "", "ada@example.com"),
		"calendar.google.base_url":        of(google, "calendar.google.base_url", "", "https://g.example.com"),
		"image.provider":                  {nil, with(nil, "image.provider", "openai", "image.api_key", "key")},
		"image.api_key":                   of(with(nil, "image.provider", "openai"), "image.api_key", "", "key"),
		"image.base_url":                  of(with(nil, "image.provider", "openai", "image.api_key", "key"), "image.base_url", "", "https://i.example.com"),
		"store.url":                       {nil, with(nil, "store.url", "nats://nats:4222")},
		"store.credentials":               of(with(nil, "store.url", "nats://nats:4222"), "store.credentials", "", "nats.creds"),
		"store.replicas":                  of(with(nil, "store.url", "nats://nats:4222"), "store.replicas", "1", "3"),
		"cluster.listen":                  {nil, cluster},
		"cluster.url":                     of(cluster, "cluster.url", "http://10.0.0.1:9000", "http://10.0.0.2:9000"),
		"cluster.secret":                  of(cluster, "cluster.secret", secret, other),
		"metrics.listen":                  {nil, with(nil, "metrics.listen", "0.0.0.0:9090")},
		"sim.speed":                       {nil, with(nil, "sim.speed", "2")},
		"sim.use":                         {nil, with(nil, "sim.use", "always")},
		"tools.weather_lookup_next.share": {nil, with(nil, "tools.weather_lookup_next.share", "20")},

		"providers.any.wire":           {with(nil, "providers.any.wire", "openai"), with(nil, "providers.any.wire", "gemini")},
		"providers.any.base_url":       {with(nil, "providers.any.wire", "openai"), with(nil, "providers.any.wire", "openai", "providers.any.base_url", "https://p.example.com")},
		"providers.any.api_key":        of(with(nil, "providers.any.wire", "openai"), "providers.any.api_key", "one", "two"),
		"providers.any.thinking":       of(with(nil, "providers.any.wire", "gemini"), "providers.any.thinking", "", "low"),
		"providers.any.translate_to":   of(with(nil, "providers.any.wire", "gemini"), "providers.any.translate_to", "", "es"),
		"providers.any.translate_echo": of(with(nil, "providers.any.wire", "gemini"), "providers.any.translate_echo", "", "true"),
		"providers.gemini.api_key":     of(nil, "providers.gemini.api_key", "one", "two"),
		"providers.openai.api_key":     of(nil, "providers.openai.api_key", "one", "two"),
		"providers.gemini.wire":        {nil, with(nil, "providers.gemini.wire", "openai")},
		"providers.openai.wire":        {nil, with(nil, "providers.openai.wire", "gemini")},
		"providers.live.api_key":       of(nil, "providers.live.api_key", "one", "two"),
		"providers.live.wire":          {nil, with(nil, "providers.live.wire", "openai")},
		"providers.live.base_url":      of(nil, "providers.live.base_url", "", "https://p.example.com"),
		"providers.gemini.base_url":    of(nil, "providers.gemini.base_url", "", "https://p.example.com"),
		"providers.openai.base_url":    of(nil, "providers.openai.base_url", "", "https://p.example.com"),

		"auth.keys.any":               {nil, someKey},
		"auth.keys.any.id":            of(someKey, "auth.keys.any.id", "aaaaaaaa", "bbbbbbbb"),
		"auth.keys.any.sha256":        of(someKey, "auth.keys.any.sha256", strings.Repeat("1", 64), strings.Repeat("2", 64)),
		"auth.keys.any.scopes":        of(someKey, "auth.keys.any.scopes", "voice", "chat"),
		"auth.keys.any.expires":       of(someKey, "auth.keys.any.expires", "", "2020-01-01"),
		"auth.jwt.any":                {nil, issuer},
		"auth.jwt.any.issuer":         of(issuer, "auth.jwt.any.issuer", "https://id.example.com", "https://di.example.com"),
		"auth.jwt.any.audience":       of(issuer, "auth.jwt.any.audience", "voice", "chat"),
		"auth.jwt.any.jwks_url":       of(issuer, "auth.jwt.any.jwks_url", "https://id.example.com/keys", "https://id.example.com/k"),
		"auth.jwt.any.discovery":      {issuer, with(someIssuer, "auth.jwt.any.discovery", "true")},
		"auth.jwt.any.keys_file":      {issuer, with(someIssuer, "auth.jwt.any.keys_file", "keys.pem")},
		"auth.jwt.any.hs_secret":      of(someIssuer, "auth.jwt.any.hs_secret", secret, other),
		"auth.jwt.any.algs":           of(issuer, "auth.jwt.any.algs", "RS256", "ES256"),
		"auth.jwt.any.claims.user":    of(issuer, "auth.jwt.any.claims.user", "sub", "mail"),
		"auth.jwt.any.scopes":         of(issuer, "auth.jwt.any.scopes", "voice", "chat"),
		"mcp.lock":                    of(nil, "mcp.lock", "", "/etc/mcp.lock.json"),
		"mcp.servers.any":             {nil, someMCP},
		"mcp.servers.any.url":         of(someMCP, "mcp.servers.any.url", "https://crm.example.com/mcp", "https://crm.example.org/mcp"),
		"mcp.servers.any.headers":     of(someMCP, "mcp.servers.any.headers", "", "authorization=Bearer%20abc"),
		"mcp.servers.any.user_header": of(someMCP, "mcp.servers.any.user_header", "", "x-user"),
		"mcp.servers.any.command":     of(program, "mcp.servers.any.command", "/bin/crm", "/bin/mrc"),
		"mcp.servers.any.env":         of(program, "mcp.servers.any.env", "", "A=b"),
		"checks.order":                {someCheck, with(someCheck, "checks.order", "any")},
		"checks.rules.any.kind":       {someCheck, with(nil, "checks.rules.any.kind", "patterns", "checks.rules.any.patterns", "damn")},
		"checks.rules.any.patterns":   of(with(nil, "checks.rules.any.kind", "patterns"), "checks.rules.any.patterns", "a", "b"),
		"checks.rules.any.url":        of(with(nil, "checks.rules.any.kind", "http"), "checks.rules.any.url", "https://a.example.com", "https://b.example.com"),
		"checks.rules.any.secret":     of(someCheck, "checks.rules.any.secret", "", "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="),
		"checks.rules.any.question":   of(with(nil, "checks.rules.any.kind", "model"), "checks.rules.any.question", "Is it?", "Is it not?"),
		"checks.rules.any.outcome":    of(someCheck, "checks.rules.any.outcome", "cut", "end"),
		"webhooks.any":                {nil, someWebhook},
		"webhooks.any.url":            of(someWebhook, "webhooks.any.url", "https://hooks.example.com", "https://skooh.example.com"),
		"webhooks.any.secret":         of(someWebhook, "webhooks.any.secret", "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=", "whsec_YWJjZGVmMDEyMzQ1Njc4OTAxMjM0NTY3ODlhYmNkZWY="),
		"webhooks.any.old_secret":     of(someWebhook, "webhooks.any.old_secret", "", "whsec_YWJjZGVmMDEyMzQ1Njc4OTAxMjM0NTY3ODlhYmNkZWY="),
		"webhooks.any.events":         of(someWebhook, "webhooks.any.events", "session.started", "session.ended"),
	}
}

// twoValuesOf returns two values of a setting by its type and tags, or false if these do not determine valid values.
func twoValuesOf(key string, f field) (alternatives, bool) {
	var base map[string]string
	for prefix, makes := range map[string]map[string]string{
		"auth.keys.any.": someKey, "auth.jwt.any.": with(someIssuer, "auth.jwt.any.jwks_url", "https://id.example.com/keys"),
		"webhooks.any.": someWebhook, "mcp.servers.any.": someMCP, "checks.rules.any.": someCheck, "providers.any.": with(nil, "providers.any.wire", "openai"),
	} {
		if strings.HasPrefix(key, prefix) {
			base = makes
		}
	}
	value := ""
	switch f.value.Interface().(type) {
	case bool:
		value = fmt.Sprint(!f.value.Bool())
	case int, float64:
		if value = f.tag.Get("from"); value == "" || value == fmt.Sprint(f.value) {
			value = "3"
		}
		if value == "0" || value == "-1" {
			value = "1"
		}
	case setting.Path, setting.File:
		value = "some.file"
	case []string:
		value = "some"
	case string:
		switch {
		case f.tag.Get("words") != "":
			words := strings.Split(f.tag.Get("words"), ",")
			value = words[len(words)-1]
		case f.tag.Get("is") == "url":
			value = "https://some.example.com"
		default:
			value = "some"
		}
	case setting.Secret:
		value = "some-secret"
	default:
		if f.tag.Get("from") == "" {
			return alternatives{}, false
		}
		value = f.tag.Get("to")
	}
	return alternatives{base, with(base, key, value)}, true
}

// loadFrom loads a configuration from variables.
func loadFrom(vars ...map[string]string) (*Config, error) {
	var environ []string
	single := 0
	for _, some := range vars {
		single += min(1, len(some))
		for key, value := range some {
			environ = append(environ, env(key)+"="+value)
		}
	}
	slices.Sort(environ)
	id := strings.Join(environ, "\n")
	if c, ok := loads.Load(id); ok {
		return c.(*Config), nil
	}
	c, _, err := Load(Source{Environ: environ, Tools: anyTools, ReadFile: func(name string) ([]byte, error) {
		switch {
		case strings.HasSuffix(name, "keys.pem"):
			return []byte(aPublicKey), nil
		case strings.HasSuffix(name, ".file"):
			return []byte("text"), nil
		}
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}})
	if err == nil && single <= 1 {
		loads.Store(id, c)
	}
	return c, err
}

// loads caches the configurations with one setting, which many pairs need.
var loads sync.Map

const aPublicKey = "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=\n-----END PUBLIC KEY-----\n"

// TestPairs combines every setting that reloads with every setting that needs a restart, with two values of each. A
// reload gives the configuration that Load gives for the new value of the one and the old value of the other. It is
// refused if Load refuses that, or if it would remove the last credential. testdata/reload_pairs.txt has the refused
// pairs.
func TestPairs(t *testing.T) {
	special := twoValues()
	l := newLoader(Source{Wires: Wires(), Tools: anyTools})
	for _, in := range namedSections {
		l.introduce(&in, "any")
	}
	values := map[string]alternatives{}
	for _, key := range l.keys {
		if l.secretFiles[key] != "" { // only another way to set the secret
			continue
		}
		two, ok := special[key]
		if !ok {
			two, ok = twoValuesOf(key, l.fields[key])
		}
		if !ok {
			t.Fatalf("give %s two values in twoValues", key)
		}
		values[key] = two
	}
	for _, whole := range []string{"auth.keys.any", "auth.jwt.any", "webhooks.any", "mcp.servers.any"} {
		values[whole] = special[whole]
	}
	// These have a value that another setting must allow, or that only another wire accepts.
	dependent := []string{"listen", "hosts", "origins", "providers.fallback", "providers.gemini.reasoning", "providers.gemini.transcription_model", "providers.openai.thinking",
		"providers.gemini.dialect", "providers.gemini.load_time", "providers.openai.translate_to", "providers.openai.translate_echo"}
	for _, setting := range l.wireSettings() {
		dependent = append(dependent, "providers.live."+setting) // live has none
	}
	for key, two := range values {
		for i := range two {
			if _, err := loadFrom(two[i]); err != nil && !slices.Contains(dependent, key) {
				t.Errorf("%s: value %d: %v", key, i, err)
			}
		}
	}
	if t.Failed() {
		return
	}
	// The numbers and durations of a section, each with its own limits, change together.
	for _, key := range l.keys {
		if _, bounded := l.fields[key].tag.Lookup("from"); bounded {
			together := key[:strings.LastIndexByte(key, '.')+1]
			if Reloads(key) != Reloads(together+"*") { // an exception in its section
				continue
			}
			for i, vars := range values[key] {
				all := values[together+"*"]
				all[i] = with(all[i], flat(vars)...)
				values[together+"*"] = all
			}
			delete(values, key)
		}
	}
	keys := slices.Sorted(maps.Keys(values))
	var of sync.WaitGroup
	rows := make([][]string, len(keys))
	for i, reloads := range keys {
		if !Reloads(reloads) || testutil.RaceEnabled && i%8 != 0 {
			continue
		}
		of.Go(func() {
			for _, stays := range keys {
				if !Reloads(stays) {
					for _, why := range pair(t, reloads, stays, values[reloads], values[stays]) {
						rows[i] = append(rows[i], fmt.Sprintf("%s\t%s\t%s", reloads, stays, why))
					}
				}
			}
		})
	}
	of.Wait()
	if testutil.RaceEnabled {
		return
	}
	got := strings.Join(slices.Compact(slices.Concat(rows...)), "\n") + "\n"
	want, err := os.ReadFile("testdata/reload_pairs.txt")
	if err != nil || got != string(want) {
		t.Errorf("%v: the refused pairs differ from testdata/reload_pairs.txt:\n%s", err, got)
	}
}

// pair reloads the combinations of two settings in which both change, and returns the prefixes of the problems for
// which it is refused, except for missing credentials, which TestLastCredential covers.
func pair(t *testing.T, reloads, stays string, a, b alternatives) (refused []string) {
	t.Helper()
	var loaded [2][2]*Config
	var failed [2][2]error
	for i := range a {
		for j := range b {
			loaded[i][j], failed[i][j] = loadFrom(a[i], b[j])
		}
	}
	for i := range a {
		for j := range b {
			now, read, want := loaded[i][j], loaded[1-i][1-j], loaded[1-i][j]
			if now == nil || read == nil || i == 1 && j == 0 { // the last combination gives the defaults
				continue
			}
			to, err := TakeOver(now, read)
			opens := want != nil && (now.Auth.Enabled() && !want.Auth.Enabled() || now.APIKey.IsSet() && !want.APIKey.IsSet() && !want.Auth.Enabled())
			if wrong := failed[1-i][j] != nil || opens; wrong != (err != nil) {
				t.Errorf("%s (%d to %d) and %s (%d to %d): a reload: %v, a load: %v", reloads, i, 1-i, stays, j, 1-j, err, failed[1-i][j])
			}
			if err != nil {
				if !opens {
					message, _, _ := strings.Cut(err.(Problems)[0].Message, ",")
					refused = append(refused, message)
				}
				continue
			}
			if i != 0 || j != 1 { // one combination shows which values apply
				continue
			}
			got, whole := byKey(to.Next.fields()), byKey(want.fields())
			for key, f := range whole {
				if !sameServices(now, read) && strings.HasPrefix(key, "provider") {
					continue
				}
				if g, ok := got[key]; !ok || !reflect.DeepEqual(g.value.Interface(), f.value.Interface()) {
					t.Errorf("%s (%d to %d) and %s (%d to %d): a reload makes %s of %s, not %s", reloads, i, 1-i, stays, j, 1-j, g.value, key, f.value)
				}
			}
		}
	}
	return refused
}
