// Package contacts finds contact data in a text: e-mail addresses, phone numbers, web addresses, and persons with their
// titles and positions.
//
// The same text always gives the same result. The package checks only the form: an address may have no mailbox, and a
// number may be unassigned. In doubt, it finds no contact: a phone number must be valid in its country's numbering plan
// (nyaruka/phonenumbers, from Google's libphonenumber), and the text around it must not indicate orders, days or money.
package contacts

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/nyaruka/phonenumbers"
	"mvdan.cc/xurls/v2"
)

// Span is a place in the text in characters (Unicode code points) from 0. End is exclusive.
type Span struct {
	Start int `json:"start"`
	End   int `json:"end"`
}

// Email is an e-mail address.
type Email struct {
	// Address has a domain in lower case and in ASCII (RFC 5891). The part before the @ is that of the text.
	Address string `json:"address"`
	Text    string `json:"text"` // the original text, such as "ada (at) example (dot) org"
	Span
}

// Phone is a phone number that is valid in its country's numbering plan.
type Phone struct {
	E164   string `json:"e164"`   // the number with its country code, such as +442079460018
	Region string `json:"region"` // the ISO 3166 code of its country, or 001 for a number without a country
	// Type is fixed_line, mobile, fixed_line_or_mobile, toll_free,
	// premium_rate, shared_cost, voip, personal_number, pager, uan, voicemail or other.
	Type      string `json:"type"`
	Extension string `json:"extension,omitempty"` // dialled after the number. It may be empty.
	Text      string `json:"text"`
	Span
}

// URL is a web address.
type URL struct {
	// URL is normalised: scheme and host in lower case, the host in ASCII, no default port, a path of at least "/". The
	// default scheme is https.
	URL  string `json:"url"`
	Text string `json:"text"`
	Span
}

// Person is a name with a title, a position or both.
type Person struct {
	Name     string `json:"name"`
	Title    string `json:"title,omitempty"`
	Position string `json:"position,omitempty"`
	Span            // of the whole
}

// Contacts are the contacts in a text, in its order, each once with its first place. No list is nil.
type Contacts struct {
	Emails  []Email  `json:"emails"`
	Phones  []Phone  `json:"phones"`
	URLs    []URL    `json:"urls"`
	Persons []Person `json:"persons"`
	// NeedsRegion means that there may be phone numbers without a country code, which need a region.
	NeedsRegion bool `json:"needs_region,omitempty"`
}

// Extractor finds contacts. It may be used concurrently.
type Extractor struct {
	// Fixed after New.
	urls    *regexp.Regexp // anchored: an address with a scheme, at the start of a text
	tlds    map[string]bool
	schemes map[string]bool
	regions map[string]bool
}

// New returns an Extractor. It takes about 10 ms, to compile expressions and read the numbering plans.
func New() *Extractor {
	x := &Extractor{urls: regexp.MustCompile(`^(?:` + xurls.Strict().String() + `)`), tlds: map[string]bool{},
		schemes: map[string]bool{}, regions: phonenumbers.GetSupportedRegions()}
	x.urls.Longest()
	for _, list := range [][]string{xurls.TLDs, xurls.PseudoTLDs, privateTLDs} {
		for _, tld := range list {
			x.tlds[tld] = true
		}
	}
	for _, scheme := range slices.Concat(xurls.Schemes, xurls.SchemesUnofficial) {
		x.schemes[scheme] = true
	}
	x.Extract("warm: +44 20 7946 0018, https://example.org", "")
	return x
}

// HasRegion reports whether region is a region for Extract: the ISO 3166 alpha-2 code, in capitals, of a country with a
// numbering plan.
func (x *Extractor) HasRegion(region string) bool { return x.regions[region] }

// Extract finds the contacts in text. region is the country of phone numbers without a country code. It finds none of
// them if HasRegion(region) is false. Invalid UTF-8 counts as U+FFFD.
func (x *Extractor) Extract(text, region string) Contacts {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if !x.regions[region] {
		region = ""
	}
	p := &page{text: text, left: []byte(text)}
	web := x.webAddresses(p)
	emails := x.emails(p)
	web = append(web, x.bareAddresses(p)...)
	p.maskNumbers()
	phones, needsRegion := phones(p, region)
	persons := persons(p)

	runes, n := make([]int, len(text)+1), 0 // the character offset of each byte that begins one
	for i := range text {
		runes[i], n = n, n+1
	}
	runes[len(text)] = n
	span := func(start, end int) Span { return Span{runes[start], runes[end]} }
	found := Contacts{Emails: []Email{}, Phones: []Phone{}, URLs: []URL{}, Persons: []Person{}, NeedsRegion: needsRegion}
	found.Emails = once(found.Emails, emails, func(e hit[Email]) (string, Email) {
		e.value.Text, e.value.Span = text[e.start:e.end], span(e.start, e.end)
		return strings.ToLower(e.value.Address), e.value
	})
	found.Phones = once(found.Phones, phones, func(e hit[Phone]) (string, Phone) {
		e.value.Text, e.value.Span = text[e.start:e.end], span(e.start, e.end)
		return e.value.E164 + "x" + e.value.Extension, e.value
	})
	found.URLs = once(found.URLs, web, func(e hit[URL]) (string, URL) {
		e.value.Text, e.value.Span = text[e.start:e.end], span(e.start, e.end)
		return e.value.URL, e.value
	})
	found.Persons = once(found.Persons, persons, func(e hit[Person]) (string, Person) {
		e.value.Span = span(e.start, e.end)
		return e.value.Name + "\x00" + e.value.Title + "\x00" + e.value.Position, e.value
	})
	return found
}

type hit[T any] struct {
	start, end int
	value      T
}

// once sorts hits by their place in the text and appends the first one with each key.
func once[T any](into []T, hits []hit[T], finish func(hit[T]) (key string, value T)) []T {
	slices.SortStableFunc(hits, func(a, b hit[T]) int { return a.start - b.start })
	seen := map[string]bool{}
	for _, h := range hits {
		key, value := finish(h)
		if !seen[key] {
			seen[key] = true
			into = append(into, value)
		}
	}
	return into
}

// page is a text with its unused part, so that no part of the text belongs to two contacts.
type page struct {
	text string
	left []byte // the text, with zeros instead of taken parts
}

func (p *page) take(start, end int) {
	for i := start; i < end; i++ {
		p.left[i] = 0
	}
}

func (p *page) free(start, end int) bool { return !slices.Contains(p.left[start:end], 0) }

// before returns the character before a place, after the character at it; 0 at the ends.
func (p *page) before(at int) rune {
	r, n := utf8.DecodeLastRuneInString(p.text[:at])
	if n == 0 {
		return 0
	}
	return r
}

func (p *page) after(at int) rune {
	r, n := utf8.DecodeRuneInString(p.text[at:])
	if n == 0 {
		return 0
	}
	return r
}
