package config

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"voicegw/config/setting"
	"voicegw/internal/origin"
	"voicegw/orchestrator/calls"
)

type validator struct{ *loader }

// validate checks the settled configuration. For a value that could not be parsed, it checks the default, which is
// valid.
func (v validator) validate() {
	v.validateListen()
	v.validateProviders()
	v.calendarBackend()
	v.calendarDetails()
	v.calendarFolders()
	v.validateImage()
	v.validateChat()
	v.validateStore()
	v.validateCluster()
	if at := v.config.Metrics.Listen; at != "" {
		v.listen("metrics.listen", at)
	}
	v.validateTraces()
	v.validatePaths()
	v.validateAPIKey()
	v.validateAuth()
	v.validateWebhooks()
	v.validatePhone()
	v.validateOrigins()
	v.validateHosts()
	v.validateFeatures()
	if _, err := calls.ParseClaimLanguages(v.config.Claims.Languages); err != nil {
		v.bad("claims.languages", "claims.languages: %v.", err)
	}
	v.validateExact()
	v.validateChecks()
	v.validateToolDirs()
	v.validateMCP()
	v.validateTLS()
	v.validateProxies()
	v.validateTags()
	v.wrongIf(strings.TrimSpace(v.config.Agent.Name) == "", "agent.name", "is empty; give a name, or leave it out for \"default\"")
}

func (v validator) oneOf(key, value string, allowed ...string) {
	v.wrongIf(!slices.Contains(allowed, value), key, "must be one of %s, not %s", strings.Join(allowed, ", "), quote(value))
}

func (v validator) listen(key, address string) (valid bool) {
	problem := CheckListen(address)
	if problem != "" {
		v.bad(key, "%s %s", key, problem)
	}
	return problem == ""
}

func (v validator) validateListen() {
	c := v.config
	if v.listen("listen", c.Listen) && !Loopback(c.Listen) && !c.Insecure && !c.Auth.Enabled() && !v.refusedBelow("auth") &&
		!v.refused("insecure") {
		v.wrong("listen", "is %s, which other machines can reach, and no authentication is configured, so anyone could use your "+
			"provider's key. Make an API key with voicegw keys new --name web --scopes voice,chat and paste its output under "+
			"auth.keys, or name "+
			"the issuer of your users' tokens below auth.jwt (docs/authentication.md). Otherwise listen on 127.0.0.1 and put an "+
			"authenticating proxy in front, or give --insecure (insecure: true) if everyone who can reach the address may use it",
			c.Listen)
	}
}

func (v validator) validateTraces() {
	t := v.config.Traces
	if u, err := url.Parse(t.Endpoint); err == nil && t.Protocol == TracesGRPC && strings.Trim(u.Path, "/") != "" {
		v.wrong("traces.endpoint", "has a path, which gRPC does not support; give a scheme, a host and a port, such as "+
			"http://localhost:4317")
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
func (v validator) baseURL(key, text string) {
	if text == "" {
		return
	}
	u, err := url.Parse(text)
	switch {
	case err != nil:
		v.wrong(key, "is not a URL; write for example https://proxy.example.com/v1")
	case !slices.Contains([]string{"http", "https", "ws", "wss"}, u.Scheme) || u.Host == "":
		v.wrong(key, "must be a whole URL that begins with https://, http://, wss:// or ws:// and names a host")
	case u.User != nil:
		v.wrong(key, "has a user or a password; a provider takes a key, which belongs in api_key")
	case u.Fragment != "":
		v.wrong(key, "has a fragment (#…); remove it")
	}
}

func (v validator) validateChat() {
	c := v.config.Chat
	if c.Vision != "" {
		v.oneOf("chat.vision", c.Vision, "true", "false")
	}
	v.wrongIf(c.BaseURL != "" && c.Model == "", "chat.model", "is missing; chat.base_url needs it")
	v.wrongIf(c.APIKey.IsSet() && c.BaseURL == "" && !v.refused("chat.base_url"), "chat.api_key", "is set without chat.base_url; "+
		"name the endpoint that it is for. A provider's own endpoint takes the provider's key")
}

// httpURL does not repeat the URL, because it may contain a password.
func (v validator) httpURL(key, text string) {
	if text == "" {
		return
	}
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		v.wrong(key, "must be a whole URL that begins with https:// or http:// and names a host")
	case u.User != nil:
		v.wrong(key, "has a user or a password; a key belongs in the section's api_key")
	}
}

func (v validator) validateStore() {
	s := v.config.Store
	if v.refused("store.url") {
		return
	}
	if s.URL == "" {
		v.wrongIf(s.Credentials != "", "store.url", "is missing; store.credentials are for a server of its own")
		v.wrongIf(s.Replicas > 1, "store.replicas", "is %d, but without store.url the store is inside this process alone; name a "+
			"cluster, or leave it at 1", s.Replicas)
		return
	}
	// The messages do not repeat the URL, because it may contain a password.
	for one := range strings.SplitSeq(s.URL, ",") {
		u, err := url.Parse(strings.TrimSpace(one))
		switch {
		case err != nil || u.Scheme != "nats" && u.Scheme != "tls" || u.Host == "":
			v.wrong("store.url", "must be nats://host:4222 or tls://host:4222, or a comma-separated list of them")
		case u.User != nil:
			v.wrong("store.url", "has a user, a password or a token; they belong in the file of store.credentials")
		}
	}
}

// validatePaths refuses paths that would create a folder called "~".
func (v validator) validatePaths() {
	for _, key := range v.keys {
		if p, ok := v.fields[key].value.Addr().Interface().(*setting.Path); ok {
			v.validatePath(key, *p)
		}
	}
}

func (v validator) validatePath(key string, p setting.Path) {
	switch {
	case p == setting.Stdout && key != "audit.file":
		v.wrong(key, "is \"-\"; name a file or a folder")
	case slices.Contains(strings.Split(filepath.ToSlash(string(p)), "/"), "~"):
		v.wrong(key, "has a ~, which only a shell understands; write the whole path")
	}
}

const minAPIKey = 16

func (v validator) validateAPIKey() {
	n := len(v.config.APIKey.Reveal())
	v.wrongIf(n > 0 && n < minAPIKey, "api_key", "has %d characters and could be guessed; make one of at least %d, for example with: "+
		"openssl rand -hex 32", n, minAPIKey)
}

func (v validator) validateHosts() {
	for _, text := range v.config.Hosts {
		p, err := origin.ParseHostPattern(text)
		switch {
		case strings.Contains(text, "/"):
			v.wrong("hosts", "has the entry %s; name hosts alone, without a scheme and a path, such as voice.example.com", quote(text))
		case err != nil:
			v.wrong("hosts", "has the entry %s, which %v", quote(text), err)
		case p.Every() && !v.config.Insecure:
			v.wrong("hosts", "has the entry %s: a web page could then give the gateway's address a name of its own (DNS "+
				"rebinding). Name the hosts, or give --insecure as well", quote(text))
		}
	}
}

func (v validator) validateOrigins() {
	for _, text := range v.config.Origins {
		p, bare, err := origin.ParsePattern(text)
		switch {
		case err != nil:
			v.wrong("origins", "has the entry %s, which %v; write a scheme and a host, such as https://app.example.com", quote(text), err)
		case p.Every() && !v.config.Insecure:
			v.wrong("origins", "has the entry %s: every web page that a user visits could speak through this gateway. Name the pages' "+
				"origins, or give --insecure as well", quote(text))
		case bare:
			v.warnings = append(v.warnings, fmt.Sprintf("origins has the entry %s without a scheme, which means https://%s; "+
				"write that, or http:// if the page uses it.", quote(text), text))
		}
	}
}

func (v validator) validateTags() {
	for _, key := range v.keys {
		f := v.fields[key]
		if least, bounded := f.tag.Lookup("from"); bounded {
			if strings.HasPrefix(key, "agent.budget.") {
				least = "0" // the common budget counts
			}
			v.between(key, least, f.tag.Get("to"))
		}
		if words, few := f.tag.Lookup("words"); few {
			v.oneOf(key, f.value.String(), strings.Split(words, ",")...)
		}
		if f.tag.Get("is") == "url" {
			v.httpURL(key, f.value.String())
		}
		if needed := f.tag.Get("needs"); needed != "" && !f.value.IsZero() {
			section := key[:strings.LastIndexByte(key, '.')+1]
			for name := range strings.SplitSeq(needed, ",") {
				v.wrongIf(v.fields[section+name].value.IsZero(), section+name, "is missing; the other settings of its section need it")
			}
		}
	}
	s := v.config.Sim.Speed
	v.wrongIf(s != s || s < -1 || s > 1000, "sim.speed", "must be from 0 to 1000, or -1 for all at once, not %v", s)
}

// between checks the bounds of a number or a duration. least and most have the form of a configuration.
func (v validator) between(key, least, most string) {
	value := v.fields[key].value
	low, high := reflect.New(value.Type()).Elem(), reflect.New(value.Type()).Elem()
	if err := errors.Join(field{value: low}.set(least), field{value: high}.set(most)); err != nil {
		panic("config: the tags of " + key + ": " + err.Error())
	}
	inside := func() bool { return value.Int() >= low.Int() && value.Int() <= high.Int() }
	if value.CanFloat() { // NaN is not inside
		inside = func() bool { return value.Float() >= low.Float() && value.Float() <= high.Float() }
	}
	v.wrongIf(!inside(), key, "must be from %v to %v, not %v", low, high, value)
}

var featureForm = regexp.MustCompile(`^(!)?([a-z][a-z0-9]*(?:[-_][a-z0-9]+)*)(?:@([^@!\s]+))?$`)

// Feature reports whether a feature is on for an agent. Entries for the agent override those for all.
func (c *Config) Feature(agent, name string) bool {
	switch {
	case slices.Contains(c.Features, "!"+name+"@"+agent):
		return false
	case slices.Contains(c.Features, name+"@"+agent):
		return true
	}
	return slices.Contains(c.Features, name)
}

func (v validator) validateFeatures() {
	for i, entry := range v.config.Features {
		m := featureForm.FindStringSubmatch(entry)
		switch {
		case m == nil || len(m[2]) > 64 || len(m[3]) > 64:
			v.wrong("features", "has the entry %s; a feature has small letters, digits, - and _, such as spring-sale, and may "+
				"name an agent: spring-sale@desk is on for that agent, !spring-sale@desk is off for it", quote(entry))
		case m[1] != "" && m[3] == "":
			v.wrong("features", "has the entry %s, but a feature that is not listed is off anyway; leave it out, or name the "+
				"agent for which it is off: !%s@desk", quote(entry), m[2])
		case slices.Contains(v.config.Features[:i], entry):
			v.wrong("features", "has the entry %s twice; remove one", quote(entry))
		case slices.Contains(v.config.Features[:i], "!"+entry), m[1] != "" &&
			slices.Contains(v.config.Features[:i], strings.TrimPrefix(entry, "!")):
			v.wrong("features", "says that %s is both on and off for %s; leave one", quote(m[2]), quote(m[3]))
		}
	}
}

func (v validator) validateToolDirs() {
	for i, dir := range v.config.ToolDirs {
		switch {
		case !filepath.IsAbs(dir):
			v.wrong("tool_dirs", "has the entry %s; write the whole path, from the root", quote(dir))
		case slices.Contains(v.config.ToolDirs[:i], dir):
			v.wrong("tool_dirs", "has the entry %s twice; remove one", quote(dir))
		}
	}
}

// Proxies returns TrustedProxies as networks; a single address is a network of one.
// Load has checked them.
func (c *Config) Proxies() []netip.Prefix {
	out := make([]netip.Prefix, 0, len(c.TrustedProxies))
	for _, text := range c.TrustedProxies {
		if p, err := parseProxy(text); err == nil {
			out = append(out, p)
		}
	}
	return out
}

// parseProxy reads an address or a network. The error is the end of a sentence that begins
// with the entry.
func parseProxy(text string) (netip.Prefix, error) {
	if !strings.Contains(text, "/") {
		addr, err := netip.ParseAddr(text)
		if err != nil || addr.Zone() != "" || addr.IsUnspecified() {
			return netip.Prefix{}, fmt.Errorf(
				"which is not an IP address or a network; write for example 127.0.0.1, 10.0.0.0/8 or 2001:db8::/32")
		}
		addr = addr.Unmap()
		return netip.PrefixFrom(addr, addr.BitLen()), nil
	}
	p, err := netip.ParsePrefix(text)
	switch {
	case err != nil:
		return netip.Prefix{}, fmt.Errorf("which is not a network; write an address and the length of its prefix, for example " +
			"10.0.0.0/8 or 2001:db8::/32")
	case p.Addr().Is4In6():
		return netip.Prefix{}, fmt.Errorf("which is an IPv4-mapped IPv6 address; write it as IPv4")
	case p.Bits() == 0:
		return netip.Prefix{}, fmt.Errorf("which is every address: each client could claim any address; name only the proxies")
	case p.Masked() != p:
		return netip.Prefix{}, fmt.Errorf("whose address has bits beyond its prefix; write %s", p.Masked())
	}
	return p, nil
}

func (v validator) validateProxies() {
	for _, text := range v.config.TrustedProxies {
		_, err := parseProxy(text)
		v.wrongIf(err != nil, "trusted_proxies", "has the entry %s, %v", quote(text), err)
	}
}
