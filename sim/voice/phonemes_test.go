package voice

import (
	"strings"
	"testing"
)

// phonemes returns the pronunciation of text: ARPAbet with stress digits, words separated by " | ", pauses by " , ", " .
// ", " ? " or " ! ".
func phonemes(text string) string {
	_, words := prepare(text)
	var b strings.Builder
	for i, w := range words {
		if i > 0 && words[i-1].brk == noBreak {
			b.WriteString(" | ")
		}
		for j, s := range pronounce(w.word) {
			if j > 0 {
				b.WriteByte(' ')
			}
			b.WriteString(s.ph.info().name)
			if s.stress > 0 {
				b.WriteByte('0' + s.stress)
			}
		}
		if w.brk != noBreak {
			b.WriteString([]string{"", " , ", " . ", " ? ", " ! "}[w.brk])
		}
	}
	return strings.TrimSpace(b.String())
}

func TestPhonemesOfWords(t *testing.T) {
	for word, want := range map[string]string{
		// From the lexicon, some with an s.
		"hello": "HH AX L OW1", "one": "W AH1 N", "wednesday": "W EH1 N Z D EY", "machine": "M AX SH IY1 N",
		"machines": "M AX SH IY1 N Z", "answered": "AE1 N S AXR D",
		// From the rules.
		"banana": "B AE1 N AX N AX", "elephant": "EH1 L AX F AX N T", "photography": "F OW T AA1 G R AX F IY",
		"electricity": "EH2 L AX K T R IH1 S IX T IY", "communication": "K AX M Y UW2 N IX K EY1 SH AX N", "stop": "S T AA1 P",
		"stopped": "S T AA1 P T", "wanted": "W AA1 N T IX D", "boxes": "B AA1 K S IX Z", "dogs": "D AO1 G Z",
		// Capitals and signs.
		"APIs": "EY2 P IY AY1 Z", "HTTP": "EY1 CH | T IY1 | T IY1 | P IY1", "URLs": "Y UW1 | AA1 R | EH1 L Z", "kb_search": "K EY1 B IY1 | S ER1 CH",
		"getUser": "G EH1 T | Y UW1 Z AXR", "&": "AE N D", "STOP": "S T AA1 P", "café": "K AE F EY1",
	} {
		if got := strings.TrimSuffix(phonemes(word), " ."); got != want {
			t.Errorf("%s is %q, want %q", word, got, want)
		}
	}
}

func TestSentences(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"In 1984 there were 42 of them.", "in one thousand nine hundred eighty four there were forty two of them ."},
		{"Mail ada@example.com now", "mail ada at example dot com now"},
		{"about 12.5% more, or 1,250", "about twelve point five percent more , or one two hundred fifty"},
		{"It is 14:30 on 2026-11-21.", "it is fourteen thirty on two thousand twenty six eleven twenty one ."},
		{"Call 0155 now!", "call zero one five five now !"},
		{"Option A is what I like?", "option l:a is what i like ?"},
		{"Say no. Then stop (now).", "say no . then stop , now ."},
		{"one—two “three”…", "one , two , three ."},
		{"a well-known\nGPT", "a well known , l:g l:p l:t"},
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
		"007": "zero zero seven", "123456789012345": "one hundred twenty three trillion four hundred fifty six billion seven hundred eighty nine million twelve thousand three hundred forty five",
		"1234567890123456": "one two three four five six seven eight nine zero one two three four five six",
	} {
		if got := strings.Join(number(s), " "); got != want {
			t.Errorf("%q is %q, want %q", s, got, want)
		}
	}
}

// TestTablesLoad: every rule and entry loads, and each entry of the lexicon can be spoken.
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
}
