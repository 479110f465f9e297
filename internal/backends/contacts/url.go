package contacts

import (
	"cmp"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

const maxURL = 2048

// webAddresses finds the addresses with a scheme and takes them. It applies the expression to parts of at most maxURL
// bytes, because the expression's time grows with the square of the length.
func (x *Extractor) webAddresses(p *page) []hit[URL] {
	var hits []hit[URL]
	for at := 0; ; {
		colon := strings.Index(p.text[at:], "://")
		if colon < 0 {
			return hits
		}
		from := at + colon
		for from > at && strings.IndexByte(schemeBytes, p.text[from-1]) >= 0 {
			from--
		}
		from += len(p.text[from:at+colon]) - len(strings.TrimLeft(p.text[from:at+colon], "+-."))
		known := x.schemes[strings.ToLower(p.text[from:at+colon])]
		at += colon + len("://")
		if !known {
			continue
		}
		end, whole := x.webAddress(p.text, from)
		if end < at {
			continue
		}
		start := from
		at = end
		if trimmed := start + len(trimURL(p.text[start:end])); whole {
			if normal, ok := x.normalURL(p.text[start:trimmed]); ok && isPublic(normal) {
				hits = append(hits, hit[URL]{start, trimmed, URL{URL: normal}})
			}
		}
		p.take(start, end) // also an invalid address
	}
}

// schemeBytes are the characters of schemes (RFC 3986, section 3.1).
const schemeBytes = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-."

// webAddress returns the end of the address at an offset, or the offset itself without an address. whole is false for
// an address that is too long.
func (x *Extractor) webAddress(text string, at int) (end int, whole bool) {
	word := text[at:]
	if i := strings.IndexFunc(word, unicode.IsSpace); i >= 0 {
		word = word[:i]
	}
	seen := word
	if len(word) > maxURL {
		seen = strings.ToValidUTF8(word[:maxURL], "")
	}
	n := len(x.urls.FindString(seen))
	if n == len(seen) && n < len(word) {
		return at + len(word), false
	}
	return at + n, n > 0
}

// closing are characters that end an address although it could contain them: quotation marks, and the punctuation of
// scripts without spaces.
const closing = "»«“”„‘’›‹。，、；：！？）】」』》"

func trimURL(text string) string {
	if i := strings.IndexAny(text, closing); i >= 0 {
		text = text[:i]
	}
	return text
}

// bareName is a name with dots in it, or a number, with or without a port.
var bareName = regexp.MustCompile(`(?:` + label + `\.)+` + label + `(?::[0-9]{1,5}\b)?`)

func (x *Extractor) bareAddresses(p *page) []hit[URL] {
	var hits []hit[URL]
	for _, m := range bareName.FindAllIndex(p.left, -1) {
		start, end := m[0], m[1]
		if start > 0 && (strings.ContainsRune(`/\@._-$~`, p.before(start)) || p.left[start-1] == 0) || !p.free(start, end) {
			continue
		}
		end -= x.bareCut(p.text[start:end])
		end += x.barePath(p.text[end:])
		text := p.text[start:end]
		if !x.bareHost(text) {
			continue
		}
		if normal, ok := x.normalURL("https://" + text); ok {
			if isPublic(normal) {
				hits = append(hits, hit[URL]{start, end, URL{URL: normal}})
			}
			p.take(start, end)
		}
	}
	return hits
}

// bareCut returns the length of the next sentence at the end of a name.
func (x *Extractor) bareCut(text string) int {
	if _, err := netip.ParseAddr(text); err == nil || strings.Contains(text, ":") {
		return 0
	}
	_, cut := x.domainOf(text)
	return cut
}

const maxBarePath = 512

func (x *Extractor) barePath(rest string) int {
	if !strings.HasPrefix(rest, "/") {
		return 0
	}
	const stem = "https://x"
	if len(rest) > maxBarePath {
		rest = strings.ToValidUTF8(rest[:maxBarePath], "")
	}
	if i := strings.IndexFunc(rest, unicode.IsSpace); i >= 0 {
		rest = rest[:i]
	}
	end, _ := x.webAddress(stem+rest, 0)
	return max(0, len(trimURL((stem + rest)[:end]))-len(stem))
}

var portOrPath = regexp.MustCompile(`^[^/:]+(:[0-9]+|/)`)

func (x *Extractor) bareHost(text string) bool {
	host := text
	if i := strings.IndexAny(text, "/:"); i >= 0 {
		host = text[:i]
	}
	more := portOrPath.MatchString(text)
	if _, err := netip.ParseAddr(host); err == nil {
		return more
	}
	labels := strings.Split(host, ".")
	last := labels[len(labels)-1]
	if len(labels) < 2 || !x.isTLD(last) || sentenceBegins(strings.Join(labels[:len(labels)-1], "."), last) {
		return false
	}
	if more || strings.EqualFold(labels[0], "www") || len(labels) > 2 {
		return true
	}
	// These top-level domains are more often the extension of a file than of a host.
	if lists["fileTypes"][strings.ToLower(last)] {
		return false
	}
	// Abbreviations: i.e, u.s, p.m
	return utf8.RuneCountInString(labels[0]) > 1 || utf8.RuneCountInString(last) > 2
}

// normalURL returns an address in the form of URL.URL, or false if it is invalid.
func (x *Extractor) normalURL(text string) (string, bool) {
	if len(text) > maxURL {
		return "", false
	}
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" {
		return "", false
	}
	host := u.Hostname()
	if _, err := netip.ParseAddr(host); err != nil {
		if host, err = idna.Lookup.ToASCII(strings.TrimSuffix(host, ".")); err != nil || host == "" {
			return "", false
		}
	}
	u.Scheme = strings.ToLower(u.Scheme)
	port := u.Port()
	switch {
	case u.Scheme == "http" && port == "80", u.Scheme == "https" && port == "443", u.Scheme == "ftp" && port == "21":
		port = ""
	}
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	u.Host = host
	if port != "" {
		u.Host += ":" + port
	}
	u.Path = cmp.Or(u.Path, "/")
	normal := u.String()
	return normal, !strings.ContainsFunc(normal, unicode.IsControl)
}

// privateNames end the names of private hosts. They are reserved (RFC 2606, 6761, 6762, 8375, and .internal by ICANN),
// or used by routers and companies.
var privateNames = []string{
	"local", "localhost", "localdomain", "internal", "intern", "intranet", "private", "lan", "corp", "home", "home.arpa", "test", "invalid",
}

// carrier is the private network of carriers (RFC 6598), this the network of hosts without an address (RFC 1122 section
// 3.2.1.3).
var (
	carrier = netip.MustParsePrefix("100.64.0.0/10")
	this    = netip.MustParsePrefix("0.0.0.0/8")
)

// isPublic reports whether a normalised address can be a page on the internet. Remote schemes lead to repositories and
// files.
func isPublic(address string) bool {
	u, err := url.Parse(address)
	if err != nil || lists["remoteSchemes"][u.Scheme] {
		return false
	}
	host := strings.ToLower(u.Hostname())
	if ip, err := netip.ParseAddr(host); err == nil {
		ip = ip.Unmap()
		return ip.IsGlobalUnicast() && !ip.IsPrivate() && !carrier.Contains(ip) && !this.Contains(ip)
	}
	labels := strings.Split(host, ".")
	// A host name ends in a letter; 0x7f.1 and 010.0.0.1 are disguised addresses.
	last := labels[len(labels)-1]
	if len(labels) < 2 || strings.Trim(last, "0123456789") == "" || strings.HasPrefix(last, "0x") {
		return false
	}
	return !slices.ContainsFunc(privateNames, func(name string) bool { return strings.HasSuffix(host, "."+name) })
}
