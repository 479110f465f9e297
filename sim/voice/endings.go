package voice

import "strings"

// inflected says a word that is a stem with a grammatical ending: -s, -'s, -ed, -ing, -ly,
// -er, -est, -ness, -ment, -ful, -less, or begins with un- or re-. It returns nil
// when the word is not one.
func inflected(word string) []sound {
	if stem, ok := strings.CutSuffix(word, "'s"); ok {
		return withS(known(stem, true))
	}
	if stem, ok := strings.CutSuffix(word, "s'"); ok {
		return withS(known(stem, true))
	}
	if s := plural(word); s != nil {
		return s
	}
	if stem, ok := strings.CutSuffix(word, "ed"); ok {
		if s := withD(verbStem(stem)); s != nil {
			return s
		}
	}
	if stem, ok := strings.CutSuffix(word, "ing"); ok {
		if s := join(verbStem(stem), sound{phIX, 0}, sound{phNG, 0}); s != nil {
			return s
		}
	}
	for _, e := range endings {
		stem, ok := strings.CutSuffix(word, e.letters)
		if !ok {
			continue
		}
		for _, try := range e.stems(stem) {
			if s := known(try, false); s != nil {
				if strings.HasPrefix(e.letters, "i") && strings.HasSuffix(try, "y") {
					s = s[:len(s)-1] // the y has become part of the ending
				}
				return join(s, mustSounds(e.phones)...)
			}
		}
	}
	return prefixed(word)
}

// endings that are added to words of the lexicon.
var endings = []struct {
	letters, phones string
	stems           func(string) []string
}{
	{"ly", "L IY", plainStems}, {"ily", "AX L IY", yStem}, {"ably", "AX B L IY", eStems}, {"ness", "N AX S", plainStems}, {"iness", "IY N AX S", yStem},
	{"ment", "M AX N T", plainStems}, {"ments", "M AX N T S", plainStems}, {"ful", "F AX L", plainStems}, {"less", "L AX S", plainStems},
	{"er", "AXR", eStems}, {"ier", "IY AXR", yStem}, {"ers", "AXR Z", eStems}, {"or", "AXR", eStems}, {"ors", "AXR Z", eStems}, {"est", "AX S T", eStems}, {"iest", "IY AX S T", yStem},
	{"able", "AX B AX L", eStems}, {"ing", "IX NG", eStems}, {"th", "TH", plainStems}, {"ship", "SH IH P", plainStems}, {"y", "IY", eStems}, {"wise", "W AY2 Z", plainStems},
	{"day", "D EY", plainStems}, {"like", "L AY2 K", plainStems}, {"fully", "F AX L IY", plainStems}, {"ward", "W AXR D", plainStems},
}

func plainStems(s string) []string { return []string{s} }
func yStem(s string) []string      { return []string{s + "y"} }

// eStems are the words that may stand before an ending with a vowel: with an e that was
// dropped, as they are, with the last consonant once instead of twice.
func eStems(s string) []string {
	out := []string{s, s + "e"}
	if n := len(s); n > 2 && s[n-1] == s[n-2] {
		out = append(out, s[:n-1])
	}
	return out
}

// plural says words with a plural or third person s.
func plural(word string) []sound {
	n := len(word)
	if n < 4 || word[n-1] != 's' || strings.HasSuffix(word, "ss") || strings.HasSuffix(word, "us") || strings.HasSuffix(word, "is") {
		return nil
	}
	if stem, ok := strings.CutSuffix(word, "ies"); ok && len(stem) > 2 {
		return withS(known(stem+"y", true))
	}
	if stem, ok := strings.CutSuffix(word, "es"); ok {
		if s := known(word[:n-1], false); s != nil {
			return withS(s)
		}
		if hissing(stem) || strings.HasSuffix(stem, "o") {
			return withS(known(stem, true))
		}
	}
	if strings.HasSuffix(word, "as") || strings.HasSuffix(word, "os") {
		return withS(known(word[:n-1], false))
	}
	return withS(known(word[:n-1], true))
}

// hissing reports whether a stem takes -es.
func hissing(stem string) bool {
	for _, e := range []string{"ss", "x", "ch", "sh", "zz"} {
		if strings.HasSuffix(stem, e) {
			return true
		}
	}
	return false
}

// verbStem says what stands before -ed or -ing.
func verbStem(stem string) []sound {
	for _, try := range eStems(stem) {
		if s := known(try, false); s != nil {
			return s
		}
	}
	if y, ok := strings.CutSuffix(stem, "i"); ok && len(y) > 1 {
		return known(y+"y", true)
	}
	n := len(stem)
	if n < 3 || !strings.ContainsAny(stem, "aeiouy") {
		return nil
	}
	last, before := stem[n-1], stem[n-2]
	switch {
	case last == before && strings.IndexByte("bdgmnprt", last) >= 0:
		return known(stem[:n-1], true)
	case strings.IndexByte("cvuzs", last) >= 0 && last != before, strings.HasSuffix(stem, "dg"), strings.HasSuffix(stem, "rg"), strings.HasSuffix(stem, "ng") && before != 'n':
		return known(stem+"e", true)
	case strings.HasSuffix(stem, "at") || strings.HasSuffix(stem, "ut") || strings.HasSuffix(stem, "ir") || strings.HasSuffix(stem, "ur") || strings.HasSuffix(stem, "id") || strings.HasSuffix(stem, "ap"):
		if !vowelLetter(stem[max(0, n-3)]) {
			return known(stem+"e", true)
		}
	case consonantLetter(last) && consonantLetter(before) && last == 'l' && strings.IndexByte("bdgktpf", before) >= 0:
		return known(stem+"e", true)
	case n <= 4 && consonantLetter(last) && vowelLetter(before) && last != 'w' && last != 'x' && last != 'y' && !vowelLetter(stem[max(0, n-3)]):
		return known(stem+"e", true)
	}
	return known(stem, true)
}

// prefixed says a word of the lexicon behind un- or re-.
func prefixed(word string) []sound {
	for _, p := range []struct{ letters, phones string }{{"un", "AH N"}, {"re", "R IY"}, {"non", "N AA2 N"}, {"pre", "P R IY"}, {"mis", "M IH S"}, {"dis", "D IH S"}} {
		if stem, ok := strings.CutPrefix(word, p.letters); ok && len(stem) > 3 {
			if s := known(stem, false); s != nil {
				return append(mustSounds(p.phones), s...)
			}
			if p.letters == "un" && len(stem) > 4 {
				if s := inflected(stem); s != nil {
					return append(mustSounds(p.phones), s...)
				}
			}
		}
	}
	return nil
}

// join puts an ending behind a stem, without touching the stem; no stem, no word.
func join(stem []sound, ending ...sound) []sound {
	if stem == nil {
		return nil
	}
	out := make([]sound, 0, len(stem)+len(ending))
	return append(append(out, stem...), ending...)
}

// withS adds the s of plurals, as the sound before it asks.
func withS(stem []sound) []sound {
	if len(stem) == 0 {
		return nil
	}
	switch last := stem[len(stem)-1].ph; {
	case last == phS || last == phZ || last == phSH || last == phZH || last == phCH || last == phJH:
		return join(stem, sound{phIX, 0}, sound{phZ, 0})
	case last.info().voiced:
		return join(stem, sound{phZ, 0})
	}
	return join(stem, sound{phS, 0})
}

// withD adds the d of past tenses.
func withD(stem []sound) []sound {
	if len(stem) == 0 {
		return nil
	}
	switch last := stem[len(stem)-1].ph; {
	case last == phT || last == phD:
		return join(stem, sound{phIX, 0}, sound{phD, 0})
	case last.info().voiced:
		return join(stem, sound{phD, 0})
	}
	return join(stem, sound{phT, 0})
}
