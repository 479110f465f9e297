package contacts

import (
	"slices"
	"testing"
)

// TestEveryKindOfNumber: a caller must know whether a number costs money, reaches a person, or a machine. The numbers are
// the examples of their countries' plans.
func TestEveryKindOfNumber(t *testing.T) {
	for number, want := range map[string]Phone{
		"+49 30 123456":       {E164: "+4930123456", Region: "DE", Type: "fixed_line"},
		"+49 1512 3456789":    {E164: "+4915123456789", Region: "DE", Type: "mobile"},
		"+1 201-555-0123":     {E164: "+12015550123", Region: "US", Type: "fixed_line_or_mobile"},
		"+44 800 123 4567":    {E164: "+448001234567", Region: "GB", Type: "toll_free"},
		"+44 901 234 5678":    {E164: "+449012345678", Region: "GB", Type: "premium_rate"},
		"+49 180 1234567":     {E164: "+491801234567", Region: "DE", Type: "shared_cost"},
		"+44 56 1234 5678":    {E164: "+445612345678", Region: "GB", Type: "voip"},
		"+44 70 1234 5678":    {E164: "+447012345678", Region: "GB", Type: "personal_number"},
		"+44 7640 123456":     {E164: "+447640123456", Region: "GB", Type: "pager"},
		"+44 55 1234 5678":    {E164: "+445512345678", Region: "GB", Type: "uan"},
		"+41 860 12345 67 89": {E164: "+41860123456789", Region: "CH", Type: "voicemail"},
	} {
		t.Run(number, func(t *testing.T) {
			want.Text, want.Span = number, Span{len("Call "), len("Call " + number)}
			got := extractor().Extract("Call "+number+" please.", "")
			if len(got.Phones) != 1 || got.Phones[0] != want {
				t.Errorf("found %+v, want %+v", got.Phones, want)
			}
		})
	}
}

// TestTextNextToANumber: the neighbouring text decides whether it is a number: a unit makes it an amount, a letter a part
// of a longer text, and an extension is dialled after it.
func TestTextNextToANumber(t *testing.T) {
	for text, want := range map[string][]string{
		"Call 030 123456 x12":                        {"+4930123456 x12"},
		"Call 030 123456x":                           nil,
		"Call 030 123456 now":                        {"+4930123456"},
		"It has 030 123456 bytes":                    nil,
		"It costs 030 123456 EUR":                    nil,
		"Part 030 123456-ab":                         nil,
		"Call 030 123456, durchwahl 7":               {"+4930123456 x7"},
		"Call 030 123456/57":                         {"+4930123456", "+4930123457"},
		"Call 0049 30 123456":                        {"+4930123456"},
		"Fax 030 123456. Call 0151 23456789 instead": {"+4930123456", "+4915123456789"},
	} {
		t.Run(text, func(t *testing.T) {
			var got []string
			for _, p := range extractor().Extract(text, "DE").Phones {
				line := p.E164
				if p.Extension != "" {
					line += " x" + p.Extension
				}
				got = append(got, line)
			}
			if !slices.Equal(got, want) {
				t.Errorf("found %v, want %v", got, want)
			}
		})
	}
}

// TestNamesOfTheInternet: an address ends in a registered domain, in any script, or in a private one.
func TestNamesOfTheInternet(t *testing.T) {
	for text, want := range map[string][]string{
		"Write to ada@example.xn--p1ai soon":  {"ada@example.xn--p1ai"},
		"Write to ada@example.xn--zzzzz soon": nil,
		"Write to ada@example.museum soon":    {"ada@example.museum"},
		"Write to ada@printer.lan soon":       {"ada@printer.lan"},
		"Write to ada@printer.nowhere soon":   nil,
		"Write to ada@example.org.So we did":  {"ada@example.org"},
	} {
		t.Run(text, func(t *testing.T) {
			var got []string
			for _, e := range extractor().Extract(text, "").Emails {
				got = append(got, e.Address)
			}
			if !slices.Equal(got, want) {
				t.Errorf("found %v, want %v", got, want)
			}
		})
	}
}
