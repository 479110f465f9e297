package contacts

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

// The maximum lengths of RFC 5321, section 4.5.3.1, in bytes.
const (
	maxLocal  = 64
	maxDomain = 253
)

// The characters of addresses. RFC 5322 allows more before the @, but those are mostly punctuation around an address.
const (
	localPart = `[\p{L}\p{N}\p{M}_%+&'=-]+`
	label     = `[\p{L}\p{N}\p{M}](?:[\p{L}\p{N}\p{M}-]*[\p{L}\p{N}\p{M}])?`
	// People hide addresses from programs in these forms.
	hiddenAt  = `[ \t]*[\[({<][ \t]*(?:at|ät|@)[ \t]*[\])}>][ \t]*`
	hiddenDot = `[ \t]*[\[({<][ \t]*(?:dot|punkt|point|punto|\.)[ \t]*[\])}>][ \t]*`
)

var (
	plainEmail = regexp.MustCompile(localPart + `(?:\.+` + localPart + `)*@(?:` + label + `\.)+` + label)
	// A quoted local part (RFC 5322 section 3.4.1): "john doe"@example.org.
	quotedEmail = regexp.MustCompile(`"(?:[^"\\\x00-\x1f\x7f]|\\[^\x00-\x1f\x7f]){1,62}"@(?:` + label + `\.)+` + label)
	// The port or path of a git, scp or rsync remote.
	remotePath = regexp.MustCompile(`^:[^\s:;,()<>"']+`)
	// Spelled with brackets: ada [at] example (dot) org; one of the two may be plain.
	bracketEmail = regexp.MustCompile(`(?i)` + localPart + `(?:(?:\.|` + hiddenDot + `)` + localPart + `)*(?:` + hiddenAt + `|@)` +
		label + `(?:(?:\.|` + hiddenDot + `)` + label + `)+`)
	// Spelled with words: ada AT example DOT org.
	wordEmail = regexp.MustCompile(localPart + `(?:(?:\.|[ \t]+(?:dot|DOT)[ \t]+)` + localPart + `)*[ \t]+(?:at|AT)[ \t]+` +
		label + `(?:(?:\.|[ \t]+(?:dot|DOT)[ \t]+)` + label + `)+`)

	atSign  = regexp.MustCompile(`(?i)` + hiddenAt + `|[ \t]+at[ \t]+`)
	dotSign = regexp.MustCompile(`(?i)` + hiddenDot + `|[ \t]+dot[ \t]+`)
	mailCue = regexp.MustCompile(`(?i)\be?-?mails?\b[^.!?\n]{0,24}$`)
)

// privateTLDs end names inside companies.
var privateTLDs = []string{"internal", "intern", "intranet", "lan", "corp", "home", "onion"}

func (x *Extractor) emails(p *page) []hit[Email] {
	var hits []hit[Email]
	find := func(form *regexp.Regexp, good func(start, end int) bool) {
		for at := 0; at < len(p.left); {
			m := form.FindIndex(p.left[at:])
			if m == nil {
				return
			}
			start, end := at+m[0], at+m[1]
			at = end
			if !good(start, end) {
				// An address may begin after the first word.
				if i := strings.IndexAny(p.text[start:end], " \t"); i >= 0 {
					at = start + i + 1
				}
				continue
			}
			if h, ok := x.email(p, start, end); ok {
				hits = append(hits, h)
				p.take(h.start, h.end)
				at = h.end
			} else if p.before(start) == '@' {
				p.take(start, end) // a handle: @ada@social.example
			}
		}
	}
	hits = append(hits, x.quotedEmails(p)...)
	find(plainEmail, func(start, end int) bool {
		remote := remoteEnd(p, start, end)
		if remote > 0 {
			p.take(start, remote)
		}
		return remote == 0
	})
	find(bracketEmail, func(start, end int) bool {
		return strings.ContainsAny(p.text[start:end], "[({<")
	})
	find(wordEmail, func(start, end int) bool { return spelled(p.text[:start], p.text[start:end]) })
	return hits
}

// quotedEmails finds the addresses with a quoted local part and takes them.
func (x *Extractor) quotedEmails(p *page) []hit[Email] {
	var hits []hit[Email]
	for at := 0; at < len(p.left); {
		m := quotedEmail.FindIndex(p.left[at:])
		if m == nil {
			break
		}
		start, end := at+m[0], at+m[1]
		at = start + 1
		split := strings.LastIndexByte(p.text[start:end], '@')
		local := p.text[start : start+split]
		domain, cut := x.domainOf(p.text[start+split+1 : end])
		inside := local[1 : len(local)-1]
		if ascii, err := idna.Lookup.ToASCII(domain); err == nil && domain != "" && len(ascii) <= maxDomain && len(local) <= maxLocal &&
			inside == strings.TrimSpace(inside) && !wordBefore(p, start) {
			hits = append(hits, hit[Email]{start, end - cut, Email{Address: local + "@" + ascii}})
			p.take(start, end-cut)
			at = end - cut
		}
	}
	return hits
}

// wordBefore reports whether a quotation mark ends a quotation.
func wordBefore(p *page, at int) bool {
	r := p.before(at)
	return inWord(r) || r != 0 && strings.ContainsRune(`.!?"\`, r)
}

func inWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// remoteEnd returns the end of a remote (git, scp, rsync, ssh) whose beginning looks like an address; 0 for an address.
func remoteEnd(p *page, start, end int) int {
	text := p.text[start:end]
	if strings.HasSuffix(p.text[:start], "://") {
		return end + len(remotePath.FindString(p.text[end:]))
	}
	if m := remotePath.FindString(p.text[end:]); strings.Trim(m, ":.!?") != "" {
		return end + len(m)
	}
	// At these hosts git@ is a login, not a mailbox.
	local, host, _ := strings.Cut(text, "@")
	if local == "git" && lists["forges"][strings.ToLower(host)] {
		return end
	}
	return 0
}

// spelled reports whether words with "at" and "dot" are an address. "look at example dot org" is not.
func spelled(before, words string) bool {
	at := atSign.FindStringIndex(words)
	if at == nil {
		return false
	}
	local := words[:at[0]]
	if strings.Contains(words[at[0]:at[1]], "AT") {
		return strings.ContainsFunc(local, unicode.IsLower)
	}
	if !dotSign.MatchString(words[at[1]:]) {
		return false
	}
	return dotSign.MatchString(local) || mailCue.MatchString(before)
}

// email reads the address in a part of the text. Characters around the address may be part of something else.
func (x *Extractor) email(p *page, start, end int) (hit[Email], bool) {
	no := hit[Email]{}
	if p.before(start) == '@' {
		return no, false
	}
	plain := dotSign.ReplaceAllString(atSign.ReplaceAllString(p.text[start:end], "@"), ".")
	local, domain, ok := strings.Cut(plain, "@")
	if !ok || strings.ContainsAny(domain, "@ \t") || strings.ContainsAny(local, " \t") {
		return no, false
	}
	skip := localSkip(local)
	local = local[skip:]
	domain, cut := x.domainOf(domain)
	if local == "" || strings.HasSuffix(local, ".") || domain == "" || len(local) > maxLocal {
		return no, false
	}
	ascii, err := idna.Lookup.ToASCII(domain)
	start, end = start+skip, end-cut
	after := p.after(end)
	continued := cut == 0 && (after == '@' || after == '_' || after == '-' && inWord(p.after(end+1)))
	if err != nil || len(ascii) > maxDomain || continued {
		return no, false
	}
	return hit[Email]{start, end, Email{Address: local + "@" + ascii}}, true
}

func localSkip(local string) int {
	skip := 0
	if i := strings.LastIndex(local, ".."); i >= 0 {
		skip = i + 2
	}
	// to=ada@example.org names a field, list+ada=example.org@… an address.
	if i := strings.LastIndex(local, "="); i >= skip && !strings.Contains(local[skip:i], "+") {
		skip = i + 1
	}
	for skip < len(local) && strings.IndexByte(".'&%-=", local[skip]) >= 0 {
		skip++
	}
	return skip
}

// domainOf returns the domain at the start of s, or "". cut is the length of the rest of s, such as the next sentence.
func (x *Extractor) domainOf(s string) (domain string, cut int) {
	domain = s
	for strings.Contains(domain, ".") {
		i := strings.LastIndexByte(domain, '.')
		if last := domain[i+1:]; x.isTLD(last) && !sentenceBegins(domain[:i], last) {
			return domain, len(s) - len(domain)
		}
		domain = domain[:i]
	}
	return "", 0
}

// sentenceBegins reports whether the last label begins the next sentence without a space: "ada@example.org.So we did".
func sentenceBegins(before, last string) bool {
	first, n := utf8.DecodeRuneInString(last)
	return unicode.IsUpper(first) && (strings.ContainsFunc(last[n:], unicode.IsLower) || !strings.ContainsFunc(before, unicode.IsUpper))
}

// isTLD reports whether a label is a top-level domain of the internet or of a private network.
func (x *Extractor) isTLD(label string) bool {
	label = strings.ToLower(label)
	if strings.HasPrefix(label, "xn--") {
		u, err := idna.Lookup.ToUnicode(label)
		return err == nil && x.tlds[u]
	}
	return x.tlds[label]
}
