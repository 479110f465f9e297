package contacts

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/nyaruka/phonenumbers"
	"mvdan.cc/xurls/v2"
)

// Span is a place in the text, in characters (Unicode code points) counted from 0; End is
// the first character after it.
type Span struct {
	Start int `json:"start"`
	End   int `json:"end"`
}

// Email is an e-mail address.
type Email struct {
	// Address is the address to which mail is sent: the domain in lower case and in
	// ASCII (RFC 5891), the part before the @ as it was written.
	Address string `json:"address"`
	// Text is the address as written in the text: "ada (at) example (dot) org".
	Text string `json:"text"`
	Span
}

// Phone is a phone number that is valid in its country's numbering plan.
type Phone struct {
	// E164 is the number with its country code: +442079460018.
	E164 string `json:"e164"`
	// Region is the ISO 3166 code of its country, or 001 for a number that belongs to no country.
	Region string `json:"region"`
	// Type is the kind of the number: fixed_line, mobile, fixed_line_or_mobile, toll_free,
	// premium_rate, shared_cost, voip, personal_number, pager, uan, voicemail or other.
	Type string `json:"type"`
	// Extension is dialled afterwards; it is usually empty.
	Extension string `json:"extension,omitempty"`
	Text      string `json:"text"`
	Span
}

// URL is a web address.
type URL struct {
	// URL is complete and normalised: scheme and host in lower case, the host in ASCII,
	// no default port, a path of at least "/". The scheme is https if none was written.
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

// Contacts holds the contacts in a text: each list in the order of the text, each entry once,
// at its first place. No list is nil.
type Contacts struct {
	Emails  []Email  `json:"emails"`
	Phones  []Phone  `json:"phones"`
	URLs    []URL    `json:"urls"`
	Persons []Person `json:"persons"`
	// NeedsRegion says that something looks like a phone number without a country code, but
	// no region was given to read it by.
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

// New returns an Extractor: it compiles its expressions and reads the numbering plans,
// which takes about 10 ms. One is enough for a process.
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

// HasRegion reports whether region can be given to Extract: an ISO 3166 alpha-2 code, in
// capitals, of a country with a numbering plan.
func (x *Extractor) HasRegion(region string) bool { return x.regions[region] }

// Extract finds the contacts in text. region is the country by whose plan numbers
// without a country code are read; if it is empty, only numbers with a code are found. A
// region that HasRegion does not know counts as empty. Invalid UTF-8 is read as U+FFFD.
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

	at := newPlaces(text)
	found := Contacts{Emails: []Email{}, Phones: []Phone{}, URLs: []URL{}, Persons: []Person{}, NeedsRegion: needsRegion}
	found.Emails = once(found.Emails, emails, func(e hit[Email]) (string, Email) {
		e.value.Text, e.value.Span = text[e.start:e.end], at.span(e.start, e.end)
		return strings.ToLower(e.value.Address), e.value
	})
	found.Phones = once(found.Phones, phones, func(e hit[Phone]) (string, Phone) {
		e.value.Text, e.value.Span = text[e.start:e.end], at.span(e.start, e.end)
		return e.value.E164 + "x" + e.value.Extension, e.value
	})
	found.URLs = once(found.URLs, web, func(e hit[URL]) (string, URL) {
		e.value.Text, e.value.Span = text[e.start:e.end], at.span(e.start, e.end)
		return e.value.URL, e.value
	})
	found.Persons = once(found.Persons, persons, func(e hit[Person]) (string, Person) {
		e.value.Span = at.span(e.start, e.end)
		return e.value.Name + "\x00" + e.value.Title + "\x00" + e.value.Position, e.value
	})
	return found
}

// hit is a contact that was found, with its place in bytes.
type hit[T any] struct {
	start, end int
	value      T
}

// once sorts hits by their place in the text and keeps the first of those with the same key.
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

// page is a text that is being read. Each contact that is found is removed from left, so that
// it is not found again as something else.
type page struct {
	text string
	left []byte // the text, with zeros in place of what was taken
}

// take marks a part as found.
func (p *page) take(start, end int) {
	for i := start; i < end; i++ {
		p.left[i] = 0
	}
}

// free reports whether nothing of a part has been taken.
func (p *page) free(start, end int) bool { return !slices.Contains(p.left[start:end], 0) }

// before returns the character before a place, and after the one at it; 0 at the ends.
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

// places converts places in bytes to places in characters.
type places struct{ runes []int32 }

func newPlaces(text string) places {
	runes := make([]int32, len(text)+1)
	n := int32(0)
	for i := range len(text) {
		runes[i] = n
		if i+1 == len(text) || utf8.RuneStart(text[i+1]) {
			n++
		}
	}
	runes[len(text)] = n
	return places{runes}
}

func (p places) span(start, end int) Span { return Span{int(p.runes[start]), int(p.runes[end])} }
