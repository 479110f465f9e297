// Package origin compares the names that decide who may use a server: a request's Host (RFC 9110, 7.2) and its page's
// Origin (RFC 6454, 7; the Fetch Standard, read 2026-11-22). Unreadable ones are errors, never guesses.
package origin

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Origin is the origin of a page. Equal Origins are the same.
type Origin struct {
	Scheme string
	// Host has the scheme's default port if none was given, and 0 if the scheme has no default.
	Host Host
}

// DefaultPort returns the default port of an http or https scheme, and 0 for every other scheme.
func DefaultPort(scheme string) uint16 {
	switch scheme {
	case "http", "ws":
		return 80
	case "https", "wss":
		return 443
	default:
		return 0
	}
}

// Parse reads "https://app.example.com:8443". "null", a hidden origin, is an error, which completes a sentence.
func Parse(text string) (Origin, error) {
	scheme, rest, ok := strings.Cut(text, "://")
	scheme = strings.ToLower(scheme)
	if !ok || !isScheme(scheme) {
		return Origin{}, errors.New("has no scheme and host, such as https://app.example.com")
	}
	host, err := ParseHost(rest)
	if err != nil {
		return Origin{}, err
	}
	host.Port = cmp.Or(host.Port, DefaultPort(scheme))
	return Origin{Scheme: scheme, Host: host}, nil
}

// isScheme says whether text is a scheme in lower case (RFC 3986, section 3.1).
func isScheme(text string) bool {
	return text != "" && text[0] >= 'a' && text[0] <= 'z' && strings.Trim(text, "abcdefghijklmnopqrstuvwxyz0123456789+-.") == ""
}

// String returns the origin in the form of browsers: without the scheme's default port.
func (o Origin) String() string {
	h := o.Host
	if h.Port == DefaultPort(o.Scheme) {
		h.Port = 0
	}
	return o.Scheme + "://" + h.String()
}

// Pattern matches origins.
type Pattern struct {
	HostPattern
	scheme  string // empty for every scheme
	anyPort bool
}

// ParsePattern reads "https://*.example.com", "http://localhost:*" or "*". Without a scheme it matches https, and bare
// is true. The error completes a sentence about the input.
func ParsePattern(text string) (p Pattern, bare bool, err error) {
	if text == "*" {
		return Pattern{HostPattern: HostPattern{every: true}, anyPort: true}, false, nil
	}
	scheme, rest, ok := strings.Cut(text, "://")
	if !ok {
		scheme, rest, bare = "https", text, true
	}
	scheme = strings.ToLower(scheme)
	if !isScheme(scheme) {
		return Pattern{}, false, errors.New("has an invalid scheme")
	}
	p.scheme = scheme
	rest, p.anyPort = strings.CutSuffix(rest, ":*")
	if p.HostPattern, err = ParseHostPattern(rest); err != nil {
		return Pattern{}, false, err
	}
	if p.anyPort && p.host.Port != 0 {
		return Pattern{}, false, errors.New("has two ports")
	}
	p.host.Port = cmp.Or(p.host.Port, DefaultPort(scheme))
	return p, bare, nil
}

// Match says whether the pattern matches o.
func (p Pattern) Match(o Origin) bool {
	return (p.scheme == "" || p.scheme == o.Scheme) && p.matchName(o.Host) && (p.anyPort || p.host.Port == o.Host.Port)
}

// Host is a name or an IP address, and a port. Two Hosts that mean the same are equal.
type Host struct {
	// Name is in lower case, without a dot at its end; empty if IP is valid.
	Name string
	IP   netip.Addr
	Port uint16
}

// The length of DNS's longest name, and of the longest part of one (RFC 1035, section 2.3.4).
const (
	maxName  = 253
	maxLabel = 63
)

// ParseHost reads "example.com:8080" or "[::1]". The error completes a sentence about the input.
func ParseHost(text string) (Host, error) {
	if inner, ok := strings.CutPrefix(text, "["); ok {
		address, rest, closed := strings.Cut(inner, "]")
		ip, err := netip.ParseAddr(address)
		if !closed || err != nil || !ip.Is6() || ip.Zone() != "" {
			return Host{}, errors.New("has brackets without an IPv6 address in them")
		}
		port, err := parsePort(rest)
		return Host{IP: ip.Unmap(), Port: port}, err
	}
	name, rest := text, ""
	if colon := strings.IndexByte(text, ':'); colon >= 0 {
		name, rest = text[:colon], text[colon:]
	}
	port, err := parsePort(rest)
	if err != nil {
		return Host{}, err
	}
	if ip, err := netip.ParseAddr(name); err == nil {
		return Host{IP: ip, Port: port}, nil
	}
	name, err = cleanName(name)
	return Host{Name: name, Port: port}, err
}

func parsePort(text string) (uint16, error) {
	if text == "" || text == ":" {
		return 0, nil
	}
	digits, ok := strings.CutPrefix(text, ":")
	if !ok || strings.Trim(digits, "0123456789") != "" {
		return 0, errors.New("has something after the host that is not a port; write an IPv6 address in brackets")
	}
	n, err := strconv.ParseUint(digits, 10, 16)
	if err != nil || n == 0 {
		return 0, errors.New("has a port that is not from 1 to 65535")
	}
	return uint16(n), nil
}

func cleanName(name string) (string, error) {
	name = strings.TrimSuffix(strings.ToLower(name), ".")
	if name == "" {
		return "", errors.New("has no host")
	}
	if len(name) > maxName {
		return "", fmt.Errorf("has a name of more than %d characters", maxName)
	}
	last := ""
	for last = range strings.SplitSeq(name, ".") {
		switch {
		case last == "" || len(last) > maxLabel:
			return "", fmt.Errorf("has a name with a part that is empty or longer than %d characters", maxLabel)
		case strings.Trim(last, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "":
			return "", errors.New("has a name with a character other than a to z, 0 to 9, - and _; write a name in another " +
				"alphabet in its xn-- form")
		}
	}
	// Browsers read such a name ("127.1", "0x7f000001") as an IPv4 address, and send the usual form.
	if strings.Trim(last, "0123456789") == "" || strings.HasPrefix(last, "0x") {
		return "", errors.New("has a name that ends in a number and is not an IPv4 address")
	}
	return name, nil
}

// Loopback says whether the host is always this machine: localhost, below it (RFC 6761, 6.3), or a loopback address.
func (h Host) Loopback() bool {
	return h.IP.IsLoopback() || h.Name == "localhost" || strings.HasSuffix(h.Name, ".localhost")
}

func (h Host) String() string {
	name := h.Name
	if h.IP.IsValid() {
		name = h.IP.String()
	}
	switch {
	case h.Port != 0:
		return net.JoinHostPort(name, strconv.Itoa(int(h.Port)))
	case h.IP.Is6():
		return "[" + name + "]"
	default:
		return name
	}
}

// HostPattern matches one host, all hosts below a name, or every host.
type HostPattern struct {
	host  Host
	below bool // those below host, and not host itself
	every bool
}

// ParseHostPattern reads "voice.example.com:8443", "*.example.com" or "*"; without a port every port matches. The error
// completes a sentence about the input.
func ParseHostPattern(text string) (HostPattern, error) {
	if name, rest, _ := strings.Cut(text, ":"); name == "*" {
		if len(text) > 1 {
			rest = ":" + rest
		}
		port, err := parsePort(rest)
		return HostPattern{host: Host{Port: port}, every: true}, err
	}
	text, below := strings.CutPrefix(text, "*.")
	if strings.Contains(text, "*") {
		return HostPattern{}, errors.New("has a * that is neither all of it nor its first part, as in *.example.com")
	}
	host, err := ParseHost(text)
	if err == nil && below && host.IP.IsValid() {
		err = errors.New("has a * before an address")
	}
	return HostPattern{host: host, below: below}, err
}

// Every says whether the pattern matches every name.
func (p HostPattern) Every() bool { return p.every }

func (p HostPattern) matchName(h Host) bool {
	switch {
	case p.every:
		return true
	case p.below:
		return strings.HasSuffix(h.Name, "."+p.host.Name)
	default:
		return h.Name == p.host.Name && h.IP == p.host.IP
	}
}

// Match says whether the pattern matches h; a default port also matches no port, because a Host has no scheme.
func (p HostPattern) Match(h Host) bool {
	if !p.matchName(h) {
		return false
	}
	return p.host.Port == 0 || h.Port == p.host.Port || h.Port == 0 && (p.host.Port == 80 || p.host.Port == 443)
}

// Hosts are the hosts that a server answers to; the zero value has only those of loopback.
type Hosts struct {
	Patterns []HostPattern
	// Listen is the server's address. An unspecified one allows every IP address, to which no page's name is equal.
	Listen netip.Addr
}

// Allow says whether a server answers to h.
func (hs Hosts) Allow(h Host) bool {
	listen := hs.Listen.Unmap().WithZone("")
	switch {
	case h.Loopback() || hs.Named(h):
		return true
	case !h.IP.IsValid() || !listen.IsValid():
		return false
	default:
		return listen.IsUnspecified() || h.IP == listen
	}
}

// Named says whether one of the operator's patterns matches h.
func (hs Hosts) Named(h Host) bool {
	return slices.ContainsFunc(hs.Patterns, func(p HostPattern) bool { return p.Match(h) })
}
