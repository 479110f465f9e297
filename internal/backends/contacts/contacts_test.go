package contacts

import (
	"cmp"
	_ "embed"
	"regexp"
	"strings"
	"sync"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"voicegw/registry/registrytest"
)

var extractor = sync.OnceValue(New)

//go:embed testdata/texts.txt
var texts string

var heading = regexp.MustCompile(`(?m)^## (\d+ .*) \[(-|[A-Z]{2})\]\n`)

// known is a text and the contacts that a person finds in it.
type known struct{ name, region, text, want string }

func knownTexts(t testing.TB) []known {
	t.Helper()
	var all []known
	marks := heading.FindAllStringSubmatchIndex(texts, -1)
	for i, m := range marks {
		end := len(texts)
		if i+1 < len(marks) {
			end = marks[i+1][0]
		}
		text, want, ok := strings.Cut(texts[m[1]:end], "\n----\n")
		if !ok {
			t.Fatalf("%s has no answer", texts[m[2]:m[3]])
		}
		region := strings.Trim(texts[m[4]:m[5]], "-")
		all = append(all, known{texts[m[2]:m[3]], region, text, strings.TrimSpace(want)})
	}
	return all
}

// written are the found contacts in the form of the file.
func written(c Contacts) string {
	var lines []string
	for _, e := range c.Emails {
		lines = append(lines, "email "+e.Address)
	}
	for _, p := range c.Phones {
		line := "phone " + p.E164 + " " + p.Region + " " + p.Type
		if p.Extension != "" {
			line += " x" + p.Extension
		}
		lines = append(lines, line)
	}
	for _, u := range c.URLs {
		lines = append(lines, "url "+u.URL)
	}
	for _, p := range c.Persons {
		lines = append(lines, "person "+cmp.Or(p.Title, "-")+" / "+p.Name+" / "+cmp.Or(p.Position, "-"))
	}
	if c.NeedsRegion {
		lines = append(lines, "needs region")
	}
	return strings.Join(lines, "\n")
}

// TestKnownTexts compares with results written by hand.
func TestKnownTexts(t *testing.T) {
	all := knownTexts(t)
	if len(all) < 40 {
		t.Fatalf("only %d texts", len(all))
	}
	for _, k := range all {
		t.Run(k.name, func(t *testing.T) {
			if diff := gocmp.Diff(strings.Split(k.want, "\n"), strings.Split(written(extractor().Extract(k.text, k.region)), "\n")); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

// TestGuards: each row would be taken for a contact, or missed, without its rule.
func TestGuards(t *testing.T) {
	for _, tc := range []struct{ region, text, want string }{
		{"US", "The factor is 212.5550123", ""},
		{"PL", "Razem 512.345.678", ""},
		{"DK", "Host 32.12.34.56", ""},
		{"DK", "tlf 32.12.34.56", "phone +4532123456 DK fixed_line_or_mobile"},
		{"LV", "am 20.01.2026 dort", ""},
		{"NO", "Den 21. 01. 2026", ""},
		{"US", "chapter 2.1.2.5.5.5.0.1.2.3", ""},
		{"PL", "512 345 678 EUR", ""},
		{"US", "2125550123abc", ""},
		{"US", "2125550123,50", ""},
		{"", "+4920100000000000", ""}, // the plan has it, but E.164 ends at 15 digits
		{"US", "A2125550123", ""},
		{"US", "#2125550123", ""},
		{"US", "A-212-555-0123", ""},
		{"US", "ext-212-555-0123 is not, Tel.212-555-0124 is", "phone +12125550124 US fixed_line_or_mobile"},
		{"US", "My number is 212 555 0123", "phone +12125550123 US fixed_line_or_mobile"},
		{"US", "Order number 212 555 0123", ""},
		{"US", "Your order\n212-555-0123", "phone +12125550123 US fixed_line_or_mobile"},
		{"", "LOOK AT EXAMPLE DOT ORG", ""},
		{"", strings.Repeat("a", 65) + "@example.org", ""},
		{"", "see..ada@example.org", "email ada@example.org"},
		{"", "s.ch and u.de", ""},
		{"", "https://example.org/" + strings.Repeat("a", 3000), ""},
		{"", "Ada Lovelace, Head of Research and Charles Babbage, CTO",
			"person - / Ada Lovelace / Head of Research\nperson - / Charles Babbage / CTO"},
		{"", "Sales Manager, Oslo Area", ""},
		{"", "Oslo, Head of Research", ""},
		{"", "Head of Research Ada Lovelace", ""},
	} {
		if got := written(extractor().Extract(tc.text, tc.region)); got != tc.want {
			t.Errorf("%s %.60q: got %q, want %q", tc.region, tc.text, got, tc.want)
		}
	}
}

// TestPlaces: spans count characters, Text is the text of the span, and every list is in the order of the text without
// duplicates.
func TestPlaces(t *testing.T) {
	for _, k := range knownTexts(t) {
		found := extractor().Extract(k.text, k.region)
		check(t, k.text, found)
		registrytest.Fits(t, "extract-contacts", found)
	}
}

// check compares the found contacts with the text.
func check(t *testing.T, text string, c Contacts) {
	t.Helper()
	runes := []rune(text)
	type place struct {
		list, key, text string
		Span
	}
	var places []place
	for _, e := range c.Emails {
		places = append(places, place{"email", strings.ToLower(e.Address), e.Text, e.Span})
		bare := quotedLocal.ReplaceAllString(e.Address, "x@") // quotes may hold any characters of a line
		if strings.Count(bare, "@") != 1 || strings.ContainsAny(bare, " \n") {
			t.Errorf("%q is not an address", e.Address)
		}
	}
	for _, p := range c.Phones {
		places = append(places, place{"phone", p.E164 + "x" + p.Extension, p.Text, p.Span})
		if !regexp.MustCompile(`^\+[1-9][0-9]{6,14}$`).MatchString(p.E164) || p.Region == "" || p.Type == "" {
			t.Errorf("%+v is not a number", p)
		}
	}
	for _, u := range c.URLs {
		places = append(places, place{"url", u.URL, u.Text, u.Span})
		if !strings.Contains(u.URL, "://") {
			t.Errorf("%q has no scheme", u.URL)
		}
	}
	seen, last := map[string]bool{}, map[string]int{}
	for _, p := range places {
		if p.Start < 0 || p.Start >= p.End || p.End > len(runes) || string(runes[p.Start:p.End]) != p.text {
			t.Errorf("%s %q does not stand at %v", p.list, p.text, p.Span)
		}
		if key := p.list + p.key; seen[key] {
			t.Errorf("%s is there twice", key)
		} else {
			seen[key] = true
		}
		if p.Start < last[p.list] {
			t.Errorf("%s %q is out of order", p.list, p.text)
		}
		last[p.list] = p.Start
		for _, o := range places {
			if o.list != p.list && o.Start < p.End && p.Start < o.End {
				t.Errorf("%s %q and %s %q overlap", p.list, p.text, o.list, o.text)
			}
		}
	}
	for i, p := range c.Persons {
		if p.Name == "" || p.Title == "" && p.Position == "" || p.Start >= p.End || p.End > len(runes) || i > 0 && p.Start < c.Persons[i-1].End {
			t.Errorf("person %+v", p)
		}
	}
}

// TestSameTextSameAnswer: concurrent calls, of one Extractor or several, give the same answer.
func TestSameTextSameAnswer(t *testing.T) {
	all := knownTexts(t)
	want := make([]Contacts, len(all))
	for i, k := range all {
		want[i] = New().Extract(k.text, k.region)
	}
	var asking sync.WaitGroup
	for range 4 {
		asking.Go(func() {
			for i, k := range all {
				if diff := gocmp.Diff(want[i], extractor().Extract(k.text, k.region)); diff != "" {
					t.Errorf("%s\n%s", k.name, diff)
				}
			}
		})
	}
	asking.Wait()
}

var quotedLocal = regexp.MustCompile(`^"(?:[^"\\\n]|\\.)+"@`)

// TestFoundAgain: a found contact is found again alone, in its normal form and as in its text; a text repeated twice
// holds no more.
func TestFoundAgain(t *testing.T) {
	x := extractor()
	for _, k := range knownTexts(t) {
		c := x.Extract(k.text, k.region)
		for _, e := range c.Emails {
			if again := x.Extract(e.Address, ""); len(again.Emails) != 1 || again.Emails[0].Address != e.Address {
				t.Errorf("%s: %s has %+v", k.name, e.Address, again.Emails)
			}
		}
		for _, p := range c.Phones {
			if again := x.Extract(p.E164, ""); len(again.Phones) != 1 || again.Phones[0].E164 != p.E164 || again.Phones[0].Region != p.Region {
				t.Errorf("%s: %s has %+v", k.name, p.E164, again.Phones)
			}
		}
		for _, u := range c.URLs {
			if again := x.Extract(u.URL, ""); len(again.URLs) != 1 || again.URLs[0].URL != u.URL {
				t.Errorf("%s: %s has %+v", k.name, u.URL, again.URLs)
			}
		}
		twice := x.Extract(k.text+"\n\n\n"+k.text, k.region)
		if diff := gocmp.Diff(written(c), written(twice)); diff != "" {
			t.Errorf("%s, twice:\n%s", k.name, diff)
		}
	}
}

// TestRegions: a region that does not exist is refused.
func TestRegions(t *testing.T) {
	x := extractor()
	for region, want := range map[string]bool{"DE": true, "US": true, "de": false, "XX": false, "": false, "001": false} {
		if x.HasRegion(region) != want {
			t.Errorf("HasRegion(%q) is %t", region, !want)
		}
	}
	if c := x.Extract("Tel. 030 23125 100", "XX"); len(c.Phones) != 0 || !c.NeedsRegion {
		t.Errorf("%+v", c)
	}
}

// TestNotUTF8: the places are those of the text with each run of broken bytes as one character.
func TestNotUTF8(t *testing.T) {
	c := extractor().Extract("\xff\xfe ada@example.org \x80", "")
	if len(c.Emails) != 1 || c.Emails[0].Start != 2 || c.Emails[0].End != 17 {
		t.Errorf("%+v", c.Emails)
	}
}

func FuzzExtract(f *testing.F) {
	for _, k := range knownTexts(f) {
		f.Add(k.text, k.region)
	}
	f.Add("((((+1 2 3 4 5 6 7 8 9 / (0) / - - -", "DE")
	f.Add("a@b.org@c.org..d@e.org (at) (dot) [at]", "")
	f.Fuzz(func(t *testing.T, text, region string) {
		if len(text) > 20_000 {
			return
		}
		c := extractor().Extract(text, region)
		check(t, strings.ToValidUTF8(text, "\uFFFD"), c)
	})
}

// long is 20,000 characters, as dense with contacts as text can be.
func long(t testing.TB) string {
	var b strings.Builder
	for b.Len() < 60_000 {
		for _, k := range knownTexts(t) {
			b.WriteString(k.text)
		}
	}
	return string([]rune(b.String())[:20_000])
}

func BenchmarkExtract(b *testing.B) {
	text := long(b)
	x := extractor()
	for b.Loop() {
		x.Extract(text, "DE")
	}
}

// BenchmarkExtractWorst measures the most expensive text for its length: nested candidates that are not contacts.
func BenchmarkExtractWorst(b *testing.B) {
	const size = 20_000
	x := extractor()
	for name, part := range map[string]string{
		"digits": "030 23125 / 99 / ", "points": "1.", "words": "a.b-c at Dr Ada Director dot ", "letters": "a",
		"spelled": "a dot a at b ", "names": "Dr. Ada ", "roles": "Head of ", "signs": "a@", "hosts": "a.org", "brackets": "a(at)",
		"schemes": "https://", "capitals": "AB12 ", "open": "https://a(", "paths": "a.org/(", "colons": "://", "brackets of one": "https://(", "unknown": "a://",
	} {
		text := strings.Repeat(part, size/len(part)) + "@b.nonesuch"
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				x.Extract(text, "DE")
			}
		})
	}
}

func BenchmarkNew(b *testing.B) {
	for b.Loop() {
		New()
	}
}

func TestOutputIsTheAnswer(t *testing.T) { registrytest.Describes[Contacts](t, "extract-contacts") }
