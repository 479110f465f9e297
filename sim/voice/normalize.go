package voice

import "strings"

// spoken is one word as it is said: what normalization makes of a written one.
type spoken struct {
	word  string // a word of lower-case letters and apostrophes, or a letter name
	chunk int    // index of the written word
	brk   breakKind
}

// normalizer turns written words into spoken ones.
type normalizer struct {
	toks []token
	out  []spoken
	// shouting means that the text has no lower-case letter, so that capitals
	// say nothing.
	shouting bool
}

// normalize returns what is to be said for the tokens of a text.
func normalize(toks []token) []spoken {
	n := &normalizer{toks: toks, shouting: true}
	for _, t := range toks {
		if t.core != strings.ToUpper(t.core) {
			n.shouting = false
		}
	}
	if len(toks) == 1 {
		n.shouting = false
	}
	for i := range toks {
		n.token(i)
	}
	return n.out
}

// say adds words for token i. A "," among them is a short pause.
func (n *normalizer) say(i int, words ...string) {
	for _, w := range words {
		if w == "," {
			n.pause(minorBreak)
			continue
		}
		n.out = append(n.out, spoken{word: w, chunk: i})
	}
}

// pause puts a break after what was said last; the stronger one wins.
func (n *normalizer) pause(b breakKind) {
	if len(n.out) > 0 {
		last := &n.out[len(n.out)-1]
		last.brk = max(last.brk, b)
	}
}

// core returns the core of token i, or "" beyond the ends.
func (n *normalizer) core(i int) string {
	if i < 0 || i >= len(n.toks) {
		return ""
	}
	return n.toks[i].core
}

func (n *normalizer) token(i int) {
	t := &n.toks[i]
	if strings.ContainsAny(t.lead, "([{\"") {
		n.pause(minorBreak)
	}
	if t.core == "-" || t.core == "--" || strings.ContainsAny(t.tail, "-") && t.core == "" {
		n.pause(minorBreak)
	}
	abbreviated := false
	if t.core != "" {
		abbreviated = n.abbreviation(i)
		if !abbreviated && !n.special(i) {
			n.words(i, t.core)
		}
	}
	n.pause(n.tailBreak(i, abbreviated))
}

// tailBreak returns the break that the marks after token i ask for.
func (n *normalizer) tailBreak(i int, abbreviated bool) breakKind {
	tail := n.toks[i].tail
	switch {
	case strings.Contains(tail, "?"):
		return question
	case strings.Contains(tail, "!"):
		return exclamation
	case strings.Contains(tail, "."):
		// The period of an abbreviation ends a sentence only at the end of the text.
		if abbreviated && i+1 < len(n.toks) {
			return noBreak
		}
		return fullStop
	case strings.ContainsAny(tail, ",;:-)]}\""):
		return minorBreak
	case strings.Contains(n.toks[i].text, "\n"):
		return minorBreak
	}
	return noBreak
}

// abbreviation says token i if it is one.
func (n *normalizer) abbreviation(i int) bool {
	t := &n.toks[i]
	low := strings.ToLower(t.core)
	full, ok := abbreviations[low]
	if !ok {
		return false
	}
	if needsPeriod[low] && !strings.HasPrefix(t.tail, ".") {
		return false
	}
	if low == "no" && strings.IndexFunc(n.core(i+1), digit) != 0 {
		return false // "Say no."
	}
	n.say(i, strings.Fields(full)...)
	return true
}

// special says tokens that are more than words: numbers, times, addresses.
func (n *normalizer) special(i int) bool {
	core := n.core(i)
	if s, ok := symbols[core]; ok {
		n.say(i, strings.Fields(s)...)
		return true
	}
	if strings.IndexFunc(core, digit) < 0 {
		return n.address(i, core)
	}
	if bigScale[strings.ToLower(n.core(i-1))] && money(n.core(i-2), "x") != nil {
		return false
	}
	for _, f := range []func() []string{
		func() []string { return n.moneyAt(i) },
		func() []string { return timestamp(core) },
		func() []string { return clockTime(core) },
		func() []string { return date(core) },
		func() []string { return ordinalToken(core) },
		func() []string { return telephone(core) },
		func() []string { return n.plainNumber(i) },
		func() []string { return quantity(core) },
		func() []string { return fraction(core) },
		func() []string { return span(core) },
		func() []string { return n.version(i) },
	} {
		if words := f(); words != nil {
			n.say(i, words...)
			return true
		}
	}
	return n.address(i, core)
}

// moneyAt says money; a "million" behind it is said before the currency.
func (n *normalizer) moneyAt(i int) []string {
	core := n.core(i)
	if next := strings.ToLower(n.core(i + 1)); bigScale[next] && n.toks[i].tail == "" {
		if words := money(core, next); words != nil {
			// The scale is said here, the currency by the scale's own token.
			cut := len(words) - 2
			n.toks[i+1].core = words[cut] + " " + words[cut+1]
			return words[:cut]
		}
	}
	return money(core, "")
}

// plainNumber says a number, as a day after a month and a year where it looks like one.
func (n *normalizer) plainNumber(i int) []string {
	core := strings.TrimPrefix(n.core(i), "#")
	var out []string
	if core != n.core(i) {
		out = append(out, "number")
	}
	if v, ok := atoi(core); ok && v >= 1 && v <= 31 && monthOf(n.core(i-1)) > 0 {
		return ordinal(v)
	}
	words := spokenInteger(core)
	if words == nil {
		return nil
	}
	out = append(out, words...)
	if next := n.core(i + 1); spacedUnit(next) && n.toks[i].tail == "" {
		n.toks[i+1].core = strings.Join(units[next].say(core), " ")
	}
	return out
}

func ordinalToken(s string) []string {
	if len(s) < 3 {
		return nil
	}
	v, ok := atoi(s[:len(s)-2])
	switch strings.ToLower(s[len(s)-2:]) {
	case "st", "nd", "rd", "th":
		if ok {
			return ordinal(v)
		}
	}
	return nil
}

// telephone says "+15551234567" digit by digit.
func telephone(s string) []string {
	if p, ok := strings.CutPrefix(s, "+"); ok && len(p) > 6 && allDigits(p) {
		return append([]string{"plus"}, digits(p)...)
	}
	return nil
}

// version says "1.2.3" and "v2.0" with a point between the parts.
func (n *normalizer) version(i int) []string {
	s := strings.ToLower(n.core(i))
	var out []string
	if p, ok := strings.CutPrefix(s, "v"); ok {
		s = p
		if !strings.EqualFold(n.core(i-1), "version") {
			out = append(out, "version")
		}
	}
	for i, p := range strings.Split(s, ".") {
		v, ok := atoi(p)
		if !ok {
			return nil
		}
		if i > 0 {
			out = append(out, "point")
		}
		out = append(out, cardinal(v)...)
	}
	return out
}

// address says an e-mail address or a web address. It reports whether core is one.
func (n *normalizer) address(i int, core string) bool {
	s := core
	for _, scheme := range []string{"https://", "http://", "wss://", "ws://"} {
		if rest, ok := strings.CutPrefix(strings.ToLower(s), scheme); ok {
			s = core[len(core)-len(rest):]
		}
	}
	isURL := len(s) < len(core) || strings.HasPrefix(s, "www.") || hasDomain(s)
	isMail := strings.Count(s, "@") == 1 && strings.Contains(s, ".")
	if !isURL && !isMail {
		return false
	}
	start := 0
	for j, r := range s + "/" {
		if alnum(r) {
			continue
		}
		n.words(i, s[start:j])
		start = j + 1
		if name, ok := addressSigns[r]; ok && j < len(s) {
			n.say(i, name)
		}
	}
	return true
}

var addressSigns = map[rune]string{
	'.': "dot", '/': "slash", '@': "at", '-': "dash", '_': "underscore", ':': "colon", '?': "question", '=': "equals", '&': "and", '#': "hash", '+': "plus", '%': "percent",
}

// hasDomain reports whether s looks like a host name with a well-known ending.
func hasDomain(s string) bool {
	host, _, _ := strings.Cut(s, "/")
	j := strings.LastIndexByte(host, '.')
	if j < 1 {
		return false
	}
	switch strings.ToLower(host[j+1:]) {
	case "com", "org", "net", "io", "dev", "ai", "edu", "gov", "uk", "de", "eu", "app", "example", "test", "go", "json", "yaml", "md", "txt", "local":
		return true
	}
	return false
}

// words says core as one or several ordinary words.
func (n *normalizer) words(i int, core string) {
	dash := strings.Contains(core, " - ") // fold writes long dashes so
	for _, part := range parts(core) {
		if dash && part == "-" {
			n.pause(minorBreak)
			continue
		}
		n.part(i, part)
	}
}

// part says one run of letters and apostrophes, of digits, or one sign.
func (n *normalizer) part(i int, part string) {
	switch {
	case allDigits(part):
		n.say(i, number(part)...)
	case !letter(rune(part[0])):
		if s, ok := symbols[part]; ok && part != "#" && part != "°" {
			n.say(i, strings.Fields(s)...)
		}
	case len(part) == 1:
		n.single(i, part)
	case !n.shouting && initialism(part):
		n.say(i, spell(part)...)
	case pluralOfCapitals(part):
		n.plural(i, part[:len(part)-1])
	default:
		n.say(i, strings.ToLower(part))
	}
}

// pluralOfCapitals reports whether part is like "APIs" or "IDs".
func pluralOfCapitals(part string) bool {
	stem, ok := strings.CutSuffix(part, "s")
	return ok && len(stem) > 1 && stem == strings.ToUpper(stem)
}

// plural says capitals with a plural s.
func (n *normalizer) plural(i int, stem string) {
	words := []string{strings.ToLower(stem)}
	if initialism(stem) {
		words = spell(stem)
	}
	words[len(words)-1] += "'s"
	n.say(i, words...)
}

// single says a single letter: an article, a pronoun, or its name.
func (n *normalizer) single(i int, part string) {
	alone := n.toks[i].core == part
	start := i == 0 || strings.ContainsAny(n.toks[i-1].tail, ".!?:")
	switch {
	case part == "a" && alone, part == "A" && alone && (start && n.toks[i].tail == "" || n.shouting):
		n.say(i, "a")
	case part == "I" || part == "i" && alone:
		n.say(i, "i")
	default:
		n.say(i, letterName(rune(part[0])))
	}
}

// parts cuts a word where letters meet digits, signs or a capital inside the word.
func parts(core string) []string {
	var out []string
	start := 0
	class := func(b byte) int {
		switch {
		case digit(rune(b)):
			return 1
		case letter(rune(b)), b == '\'':
			return 2
		}
		return 0
	}
	upper := func(b byte) bool { return b >= 'A' && b <= 'Z' }
	for i := 1; i <= len(core); i++ {
		cut := i == len(core) || class(core[i]) != class(core[i-1]) || class(core[i]) == 0 ||
			upper(core[i]) && letter(rune(core[i-1])) && !upper(core[i-1])
		if cut {
			if p := strings.Trim(core[start:i], "'"); p != "" {
				out = append(out, p)
			}
			start = i
		}
	}
	return out
}
