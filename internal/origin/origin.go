package origin

import (
	"errors"
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
	if host.Port == 0 {
		host.Port = DefaultPort(scheme)
	}
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
	scheme  string // empty for every scheme
	host    HostPattern
	anyPort bool
}

// ParsePattern reads "https://*.example.com", "http://localhost:*" or "*". Without a scheme it matches https, and bare
// is true. The error completes a sentence about the input.
func ParsePattern(text string) (p Pattern, bare bool, err error) {
	if text == "*" {
		return Pattern{host: HostPattern{every: true}, anyPort: true}, false, nil
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
	if p.host, err = ParseHostPattern(rest); err != nil {
		return Pattern{}, false, err
	}
	if p.anyPort && p.host.host.Port != 0 {
		return Pattern{}, false, errors.New("has two ports")
	}
	if p.host.host.Port == 0 {
		p.host.host.Port = DefaultPort(scheme)
	}
	return p, bare, nil
}

// Every says whether the pattern matches every host.
func (p Pattern) Every() bool { return p.host.every }

// Match says whether the pattern matches o.
func (p Pattern) Match(o Origin) bool {
	return (p.scheme == "" || p.scheme == o.Scheme) && p.host.matchName(o.Host) && (p.anyPort || p.host.host.Port == o.Host.Port)
}
