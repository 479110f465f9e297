package config

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"voicegw/config/setting"
	"voicegw/internal/origin"
)

// validate checks the settled configuration. For a value that could not be parsed, it checks the default, which is
// valid.
func (l *loader) validate() {
	l.validateListen()
	l.validateProviders()
	l.validateKB()
	l.validateCalendar()
	l.validateImage()
	l.validateChat()
	l.validateStore()
	l.validateCluster()
	l.validateMetrics()
	l.validateTraces()
	l.validatePaths()
	l.validateAPIKey()
	l.validateAuth()
	l.validateWebhooks()
	l.validateOrigins()
	l.validateHosts()
	l.validateFeatures()
	l.validateTLS()
	l.validateProxies()
	l.validateTags()
	if strings.TrimSpace(l.config.Agent.Name) == "" {
		l.bad("agent.name", "agent.name is empty; give a name, or leave it out for \"default\".")
	}
}

func (l *loader) oneOf(key, value string, allowed ...string) {
	if !slices.Contains(allowed, value) {
		l.bad(key, "%s must be one of %s, not %s.", key, strings.Join(allowed, ", "), quote(value))
	}
}

// validateAddress reports whether there is an address to listen on.
func (l *loader) validateAddress() bool {
	err := CheckListen(l.config.Listen)
	if err != "" {
		l.bad("listen", "listen %s", err)
	}
	return err == ""
}

func (l *loader) validateListen() {
	c := l.config
	if !l.validateAddress() {
		return
	}
	if !Loopback(c.Listen) && !c.Insecure && !c.Auth.Enabled() && !l.refusedBelow("auth") && !l.refused("insecure") {
		l.bad("listen", "listen is %s, which other machines can reach, and nothing says who may use the gateway and so your "+
			"provider's key. "+
			"Make an API key with voicegw keys new --name web --scopes voice,chat and paste its output under auth.keys, or "+
			"name the issuer of your users' tokens below auth.jwt (docs/authentication.md). "+
			"Otherwise listen on 127.0.0.1 and put an authenticating proxy in front, or give --insecure (insecure: true) if "+
			"everyone who can reach the address may use it.", c.Listen)
	}
}

func (l *loader) validateMetrics() {
	if at := l.config.Metrics.Listen; at != "" {
		if text := CheckListen(at); text != "" {
			l.bad("metrics.listen", "metrics.listen %s", text)
		}
	}
}

func (l *loader) validateTraces() {
	t := l.config.Traces
	if u, err := url.Parse(t.Endpoint); err == nil && t.Protocol == TracesGRPC && strings.Trim(u.Path, "/") != "" {
		l.bad("traces.endpoint", "traces.endpoint has a path, which gRPC does not support; give a scheme, a host and a port, such as "+
			"http://localhost:4317.")
	}
}

// CheckListen returns the problem of an address to listen on, as the end of a sentence; "" if it is valid.
func CheckListen(address string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "must be an address with a port, such as 127.0.0.1:8080 or [::1]:8080, not " + quote(address) + "."
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		return "has the port " + quote(port) + "; a port is a number from 0 to 65535."
	}
	if strings.ContainsAny(host, "/ ") {
		return "has the host " + quote(host) + "; give a name or an IP address alone."
	}
	return ""
}

// baseURL does not repeat the URL, because it may contain a password.
func (l *loader) baseURL(key, text string) {
	if text == "" {
		return
	}
	u, err := url.Parse(text)
	switch {
	case err != nil:
		l.bad(key, "%s is not a URL; write for example https://proxy.example.com/v1.", key)
	case !slices.Contains([]string{"http", "https", "ws", "wss"}, u.Scheme) || u.Host == "":
		l.bad(key, "%s must be a whole URL that begins with https://, http://, wss:// or ws:// and names a host.", key)
	case u.User != nil:
		l.bad(key, "%s holds a user or a password; a provider takes a key, which belongs into api_key.", key)
	case u.Fragment != "":
		l.bad(key, "%s has a fragment (#…); remove it.", key)
	}
}

func (l *loader) validateKB() {
	e, q := l.config.KB.Embeddings, l.config.KB.Qdrant
	for _, need := range []struct{ has, key, value string }{
		{e.BaseURL, "kb.embeddings.model", e.Model},
		{e.Model, "kb.embeddings.base_url", e.BaseURL},
		{e.APIKey.Reveal(), "kb.embeddings.base_url", e.BaseURL},
		{string(e.Cache), "kb.embeddings.base_url", e.BaseURL},
		{q.APIKey.Reveal(), "kb.qdrant.url", q.URL},
		{q.URL, "kb.qdrant.collection", q.Collection},
	} {
		if need.has != "" && need.value == "" {
			l.bad(need.key, "%s is missing; the other settings of its section need it.", need.key)
		}
	}
}

func (l *loader) validateChat() {
	c := l.config.Chat
	if c.Vision != "" {
		l.oneOf("chat.vision", c.Vision, "true", "false")
	}
	if c.BaseURL != "" && c.Model == "" {
		l.bad("chat.model", "chat.model is missing; chat.base_url needs it.")
	}
	if c.APIKey.IsSet() && c.BaseURL == "" && !l.refused("chat.base_url") {
		l.bad("chat.api_key", "chat.api_key is set without chat.base_url; name the endpoint that it is for. A provider's own "+
			"endpoint takes the provider's key.")
	}
}

// httpURL does not repeat the URL, because it may contain a password.
func (l *loader) httpURL(key, text string) {
	if text == "" {
		return
	}
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		l.bad(key, "%s must be a whole URL that begins with https:// or http:// and names a host.", key)
	case u.User != nil:
		l.bad(key, "%s holds a user or a password; a key belongs into the section's api_key.", key)
	}
}

func (l *loader) validateStore() {
	s := l.config.Store
	if l.refused("store.url") {
		return
	}
	if s.URL == "" {
		if s.Credentials != "" {
			l.bad("store.url", "store.url is missing; store.credentials are for a server of its own.")
		}
		if s.Replicas > 1 {
			l.bad("store.replicas", "store.replicas is %d, but without store.url the store is inside this process alone; name "+
				"a cluster, or leave it at 1.", s.Replicas)
		}
		return
	}
	// The messages do not repeat the URL, because it may contain a password.
	for one := range strings.SplitSeq(s.URL, ",") {
		u, err := url.Parse(strings.TrimSpace(one))
		switch {
		case err != nil || u.Scheme != "nats" && u.Scheme != "tls" || u.Host == "":
			l.bad("store.url", "store.url must be nats://host:4222 or tls://host:4222, or a comma-separated list of them.")
		case u.User != nil:
			l.bad("store.url", "store.url holds a user, a password or a token; they belong into the file of store.credentials.")
		}
	}
}

// validatePaths refuses paths that would create a folder called "~".
func (l *loader) validatePaths() {
	for _, key := range l.keys {
		if p, ok := l.fields[key].value.Addr().Interface().(*setting.Path); ok {
			l.validatePath(key, *p)
		}
	}
}

func (l *loader) validatePath(key string, p setting.Path) {
	switch {
	case p == setting.Stdout && key != "audit.file":
		l.bad(key, "%s is \"-\"; name a file or a folder.", key)
	case slices.Contains(strings.Split(filepath.ToSlash(string(p)), "/"), "~"):
		l.bad(key, "%s holds ~, which only a shell understands; write the whole path.", key)
	}
}

// minAPIKey is the minimum length of a key that cannot be guessed.
const minAPIKey = 16

func (l *loader) validateAPIKey() {
	if n := len(l.config.APIKey.Reveal()); n > 0 && n < minAPIKey {
		l.bad("api_key", "api_key has %d characters and could be guessed; make one of at least %d, for example with: "+
			"openssl rand -hex 32.", n, minAPIKey)
	}
}

func (l *loader) validateHosts() {
	for _, text := range l.config.Hosts {
		p, err := origin.ParseHostPattern(text)
		switch {
		case strings.Contains(text, "/"):
			l.bad("hosts", "hosts holds %s; name hosts alone, without a scheme and a path, such as voice.example.com.", quote(text))
		case err != nil:
			l.bad("hosts", "hosts holds %s, which %v.", quote(text), err)
		case p.Every() && !l.config.Insecure:
			l.bad("hosts", "hosts holds %s: a web page could then give the gateway's address a name of its own (DNS "+
				"rebinding). Name the hosts, or give --insecure as well.", quote(text))
		}
	}
}

func (l *loader) validateOrigins() {
	for _, text := range l.config.Origins {
		p, bare, err := origin.ParsePattern(text)
		switch {
		case err != nil:
			l.bad("origins", "origins holds %s, which %v; write a scheme and a host, such as https://app.example.com.", quote(text), err)
		case p.Every() && !l.config.Insecure:
			l.bad("origins", "origins holds %s: every web page that a user visits could speak through this gateway. Name the "+
				"pages' origins, or give --insecure as well.", quote(text))
		case bare:
			l.warnings = append(l.warnings, fmt.Sprintf("origins holds %s without a scheme, which means https://%s; write it "+
				"that, or with http:// if the page uses it.", quote(text), text))
		}
	}
}

// validateTags checks each setting against the tags of its field.
func (l *loader) validateTags() {
	for _, key := range l.keys {
		f := l.fields[key]
		if least, bounded := f.tag.Lookup("from"); bounded {
			if strings.HasPrefix(key, "agent.budget.") {
				least = "0" // the common budget counts
			}
			l.between(key, least, f.tag.Get("to"))
		}
		if words, few := f.tag.Lookup("words"); few {
			l.oneOf(key, f.value.String(), strings.Split(words, ",")...)
		}
		if f.tag.Get("is") == "url" {
			l.httpURL(key, f.value.String())
		}
	}
	if s := l.config.Sim.Speed; s != s || s < -1 || s > 1000 {
		l.bad("sim.speed", "sim.speed must be from 0 to 1000, or -1 for all at once, not %v.", s)
	}
}

// between checks the bounds of a number or a duration. least and most have the form of a configuration.
func (l *loader) between(key, least, most string) {
	value := l.fields[key].value
	low, high := reflect.New(value.Type()).Elem(), reflect.New(value.Type()).Elem()
	if err := errors.Join(field{value: low}.set(least), field{value: high}.set(most)); err != nil {
		panic("config: the tags of " + key + ": " + err.Error())
	}
	inside := func() bool { return value.Int() >= low.Int() && value.Int() <= high.Int() }
	if value.CanFloat() { // NaN is not inside
		inside = func() bool { return value.Float() >= low.Float() && value.Float() <= high.Float() }
	}
	if !inside() {
		l.bad(key, "%s must be from %v to %v, not %v.", key, low, high, value)
	}
}
