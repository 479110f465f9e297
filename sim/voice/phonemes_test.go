package voice

import (
	"strings"
	"testing"
)

func TestPhonemesOfWords(t *testing.T) {
	for word, want := range map[string]string{
		// From the lexicon.
		"hello": "HH AX L OW1", "one": "W AH1 N", "wednesday": "W EH1 N Z D EY", "machine": "M AX SH IY1 N",
		// From the rules.
		"banana": "B AE1 N AX N AX", "elephant": "EH1 L AX F AX N T", "photography": "F OW T AA1 G R AX F IY",
		"electricity": "EH2 L AX K T R IH1 S IX T IY", "communication": "K AX M Y UW2 N IX K EY1 SH AX N", "stop": "S T AA1 P",
		// Endings.
		"making": "M EY1 K IX NG", "stopped": "S T AA1 P T", "wanted": "W AA1 N T IX D", "boxes": "B AA1 K S IX Z", "happier": "HH AE1 P IY AXR",
		"cats'": "K AE1 T S", "dogs": "D AO1 G Z", "connecting": "K AX N EH1 K T IX NG", "easily": "IY1 Z AX L IY", "reconnecting": "R IY2 K AX N EH1 K T IX NG",
		// Capitals, letters, symbols.
		"APIs": "EY2 P IY AY1 Z", "HTTP": "EY1 CH | T IY1 | T IY1 | P IY1", "NASA": "N AE1 S AX", "URLs": "Y UW1 | AA1 R | EH1 L Z", "kb_search": "K EY1 B IY1 | S ER1 CH",
		"getUser": "G EH1 T | Y UW1 Z AXR", "&": "AE N D", "STOP": "S T AA1 P", "café": "K AE F EY1",
	} {
		if got := strings.TrimSuffix(Phonemes(word), " ."); got != want {
			t.Errorf("%s is %q, want %q", word, got, want)
		}
	}
}

func TestSentences(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"It is 14:30 on 2026-11-21.", "it is fourteen thirty on november twenty first , twenty twenty six ."},
		{"The meeting at 9:05am costs $1,250.50, about 12.5% more.", "the meeting at nine oh five l:a l:m costs one thousand two hundred fifty dollars and fifty cents , about twelve point five percent more ."},
		{"In 1984 there were 3/4 of them at 5km.", "in nineteen eighty four there were three quarters of them at five kilometers ."},
		{"Mail ada@example.com or see https://example.com/docs.", "mail ada at example dot com or see example dot com slash docs ."},
		{"Dr. Smith in the U.S. today", "doctor smith in the l:u l:s today"},
		{"Call 555-123-4567 or +15551234567 now!", "call five five five , one two three , four five six seven or plus one five five five one two three four five six seven now !"},
		{"Version v1.2.3 of gpt-4", "version one point two point three of gpt four"},
		{"$5 million for 24 kHz -3 degrees at 10:00, 5-10 times.", "five million dollars for twenty four kilohertz minus three degrees at ten o'clock , five to ten times ."},
		{"Meet on November 21, 2026 or Nov. 3rd.", "meet on november twenty first , twenty twenty six or november third ."},
		{"Option A is a choice I like?", "option l:a is a choice i like ?"},
		{"Say no. Then e.g. stop (now).", "say no . then for example stop , now ."},
		{"one—two “three”…", "one , two , three ."},
		{"1,000,000 users & 0.05 s", "one million users and zero point zero five l:s"},
	} {
		var b []string
		for _, w := range normalize(split(c.text)) {
			b = append(b, w.word)
			if w.brk != noBreak {
				b = append(b, []string{"", ",", ".", "?", "!"}[w.brk])
			}
		}
		if got := strings.Join(b, " "); got != c.want {
			t.Errorf("%q\n got %s\nwant %s", c.text, got, c.want)
		}
	}
}

func TestTheBeforeAVowel(t *testing.T) {
	sc := compose(mustPrepare("the apple the pear"), 1)
	var vowels []string
	for _, s := range sc.segs {
		if s.weak && s.ph.isVowel() {
			vowels = append(vowels, s.ph.info().name)
		}
	}
	if got := strings.Join(vowels, " "); got != "IY AX" {
		t.Errorf("the, the: %s", got)
	}
}

func mustPrepare(text string) []spoken {
	_, words := prepare(text)
	return words
}

func TestNumbers(t *testing.T) {
	for s, want := range map[string]string{
		"0": "zero", "7": "seven", "19": "nineteen", "20": "twenty", "42": "forty two", "100": "one hundred", "1205": "one thousand two hundred five",
		"1,000,000": "one million", "007": "zero zero seven", "-3.14": "minus three point one four", "123456789012345": "one hundred twenty three trillion four hundred fifty six billion seven hundred eighty nine million twelve thousand three hundred forty five",
		".5": "point five", "1,00": "", "": "", "1.2.3": "", "1234567890123456": "one two three four five six seven eight nine zero one two three four five six",
	} {
		if got := strings.Join(number(s), " "); got != want {
			t.Errorf("%q is %q, want %q", s, got, want)
		}
	}
	for n, want := range map[uint64]string{1: "first", 2: "second", 12: "twelfth", 20: "twentieth", 23: "twenty third", 100: "one hundredth", 11: "eleventh"} {
		if got := strings.Join(ordinal(n), " "); got != want {
			t.Errorf("rank %d is %q, want %q", n, got, want)
		}
	}
	for n, want := range map[uint64]string{1984: "nineteen eighty four", 2005: "two thousand five", 1900: "nineteen hundred", 1906: "nineteen oh six", 2026: "twenty twenty six"} {
		if got := strings.Join(year(n), " "); got != want {
			t.Errorf("year %d is %q, want %q", n, got, want)
		}
	}
}

// Every rule and entry loads, and each entry of the lexicon can be said.
func TestTablesLoad(t *testing.T) {
	n := 0
	for _, r := range rules() {
		n += len(r)
	}
	if n < 500 {
		t.Errorf("%d rules", n)
	}
	if len(lexicon()) < 1000 {
		t.Errorf("%d words", len(lexicon()))
	}
	for w, s := range lexicon() {
		if !sayable(s) {
			t.Errorf("%s has no vowel", w)
		}
	}
	for _, e := range endings {
		mustSounds(e.phones)
	}
}
