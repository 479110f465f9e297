package calls

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	maxClaimText   = 32 << 10 // how much of a text is read, in bytes
	maxClauseWords = 96       // of a sentence; the rest counts as another one
	maxWord        = 32       // bytes of a word; no word of a table is longer
)

// word is a word of a sentence. clause numbers its clause.
type word struct {
	wordEntry
	start, end int
	clause     int
	quoted     bool
}

func (w word) is(c wordClass) bool { return w.class&c != 0 }

// sentence is a sentence that is being read.
type sentence struct {
	*wordTable
	text   string
	words  [maxClauseWords]word
	n      int
	clause int
	quote  rune // the open quotation mark, or the colon after "you could say"; zero outside of a quotation
	last   rune // the last character
	seen   wordClass
	letter bool
}

// Find returns the claims in a text, in the order of their languages and positions. It allocates nothing without any.
// Times and numbers of words are limited, so it takes at most a few ms. It is safe for concurrent use.
func (l ClaimLanguages) Find(text string) (all []Claim) {
	for cut := maxClaimText; len(text) > maxClaimText; cut-- {
		if utf8.RuneStart(text[cut]) {
			text = text[:cut]
		}
	}
	for _, t := range l.tables {
		s, before := sentence{wordTable: t, text: text}, len(all)
		if all = s.read(all); s.letter {
			all = all[:before:before]
		}
	}
	return all
}

func (s *sentence) read(all []Claim) []Claim {
	for at := 0; at < len(s.text); {
		r, size := utf8.DecodeRuneInString(s.text[at:])
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			at = s.word(at)
			s.last = 'a'
			if s.n == maxClauseWords {
				all = s.over('.', all)
			}
			continue
		}
		switch next := s.next(at + size); {
		case r == '>' && (s.last == 0 || s.last == '\n'):
			s.quote = r
		case strings.ContainsRune("!?…\n", r), r == '.' && s.stops(at+1):
			all = s.over(r, all)
			if r == '\n' && s.quote == '>' {
				s.quote = 0
			}
		case s.divides(r, next):
			if r == ':' && s.quote == 0 && anyIs(s.words[:s.n], wBlock) {
				s.quote = r
			}
			s.clause++
		case isQuote(r) && (s.quote == 0 || s.quote == ':'):
			s.quote = r
		case isQuote(r):
			s.quote = 0
		}
		s.last = r
		at += size
	}
	return s.over('.', all)
}

// divides reports whether a character before next ends a clause.
func (s *sentence) divides(r, next rune) bool {
	return strings.ContainsRune(";—–()", r) || (r == ',' || r == ':') && !unicode.IsDigit(next) || r == '-' && s.last == ' '
}

// next returns the character at a position; zero at the end.
func (s *sentence) next(at int) rune {
	if at >= len(s.text) {
		return 0
	}
	r, _ := utf8.DecodeRuneInString(s.text[at:])
	return r
}

// stops reports whether a full stop before that position ends the sentence. It does not within a name or after a number,
// a title, or a letter.
func (s *sentence) stops(at int) bool {
	next := s.next(at)
	if next != 0 && !unicode.IsSpace(next) && !isQuote(next) && next != ')' && next != '*' {
		return false
	}
	if s.n == 0 || s.last != 'a' {
		return true
	}
	last := s.words[s.n-1]
	text := s.text[last.start:last.end]
	if s.ordinals && len(text) <= 2 && text[0] <= '9' || len(text) == 1 && unicode.IsLower(s.next(at+1)) { // "9 a.m. call"
		return false
	}
	return !slices.Contains(nameTitles, text)
}

// nameTitles are abbreviations before a name.
var nameTitles = []string{"Dr", "Mr", "Mrs", "Ms", "St", "Prof", "Hr", "Fr", "Nr", "Str", "No", "Sr", "Sra", "Mme", "M"}

func isQuote(r rune) bool { return strings.ContainsRune("\"“”„«»`", r) }

// word reads a word and returns the position after it. An apostrophe ends a word, a hyphen between letters does not.
func (s *sentence) word(at int) int {
	var buf [maxWord]byte
	w := word{start: at, clause: s.clause, quoted: s.quote != 0}
	n := 0
	for at < len(s.text) {
		r, size := utf8.DecodeRuneInString(s.text[at:])
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) && (r != '-' || !unicode.IsLetter(s.next(at+size))) {
			break
		}
		at += size
		n = appendLower(&buf, n, r)
	}
	w.end, w.wordEntry = at, s.wordTable.words[string(buf[:n])]
	if w.wordEntry == (wordEntry{}) && n < maxWord {
		w.wordEntry = s.noun(buf[:n], s.compounds && unicode.IsUpper(s.next(w.start)))
	}
	if text := s.text[w.start:at]; len(text) == 4 && (strings.HasPrefix(text, "19") || strings.HasPrefix(text, "20")) {
		w.class |= wFull // a year
	}
	if w.is(wSep) {
		s.clause++
		w.clause = s.clause
	}
	s.words[s.n] = w
	s.see(w)
	s.n++
	return at
}

// see records what a word means for its whole sentence.
func (s *sentence) see(w word) {
	s.seen |= w.class
	switch before := s.words[max(s.n-2, 0):s.n]; {
	case w.is(wSees) && (anyIs(before, wSelf) || s.n > 0 && s.words[0].is(wManner)):
		s.seen |= wSource
	case w.is(wPeriod) && anyIs(before, wLast), w.is(wLast) && anyIs(before, wPeriod):
		s.seen |= wHabit
	}
}

// noun returns the entry of a noun without its ending, or of the noun's end: "deliverie-s", "Telefonnummer-n".
func (s *sentence) noun(word []byte, compound bool) wordEntry {
	const least = 4 // bytes
	for _, ending := range s.endings {
		stem := len(word) - len(ending)
		if stem < least-1 || string(word[stem:]) != ending {
			continue
		}
		for from := 0; from == 0 || compound && from <= stem-least; from = max(from+1, least-1) {
			e := s.wordTable.words[string(word[from:stem])]
			if e.class &= wWork | wIdea; ending != "" {
				e.class &^= wIdea // "Kunden" are not ideas
			}
			if e.class != 0 || e.marks != 0 {
				return wordEntry{class: e.class, marks: e.marks}
			}
		}
	}
	return wordEntry{}
}

// appendLower adds a small letter at n and returns the new length. A full buffer is not a word of a table.
func appendLower(buf *[maxWord]byte, n int, r rune) int {
	if r < utf8.RuneSelf {
		if r >= 'A' && r <= 'Z' {
			r += 'a' - 'A'
		}
		if n < maxWord {
			buf[n] = byte(r)
			return n + 1
		}
		return maxWord
	}
	if n > maxWord-utf8.UTFMax {
		return maxWord
	}
	return n + utf8.EncodeRune(buf[n:], unicode.ToLower(r))
}

// over checks a complete sentence and begins the next one.
func (s *sentence) over(end rune, all []Claim) []Claim {
	if s.seen&(wVerb|wInfinitive|wFinished) != 0 && s.seen&wHabit == 0 {
		for from := 0; from < s.n && !anyIs(s.words[:from], wHedge); {
			to := from
			for to < s.n && s.words[to].clause == s.words[from].clause {
				to++
			}
			// "I've booked it, is that all?" asks nothing about the booking. "I've booked it, haven't I?" does.
			if end != '?' || to < s.n && !anyIs(s.words[max(s.n-3, to):s.n], wTag) && !s.asks(s.words[from:to]) {
				// "It is booked, if you agree" and "Ist es gebucht, reicht das" are not states.
				open := s.free && to < s.n && s.asks(s.words[from:to]) && anyIs(s.words[from:to], wPron|wYour|wThe) ||
					s.seen&wSource != 0 || anyIs(s.words[:from], wCondition) || to < s.n && s.words[to].is(wCondition)
				all = s.claims(s.words[from:to], open, all)
			}
			from = to
		}
	}
	s.letter = s.letter || s.seen&wLetter != 0
	s.n, s.clause, s.seen = 0, 0, 0
	if s.quote == ':' {
		s.quote = 0
	}
	return all
}

// asks reports whether a clause begins with an auxiliary: "Is it booked, or not?"
func (s *sentence) asks(c []word) bool {
	for _, w := range c {
		if !w.is(wAdv | wAnd) {
			return w.is(wIs | wWas | wHas | wHave)
		}
	}
	return false
}

// claims adds those of a clause. In an open one, a question or with a condition or a source, only the speaker's own
// action is one.
func (s *sentence) claims(c []word, open bool, all []Claim) []Claim {
	for i, w := range c {
		if w.quoted || s.denied(c, i) {
			continue
		}
		start, weak, ok := 0, false, false
		if w.is(wVerb | wInfinitive) {
			start, ok = s.own(c, i)
		}
		if !ok && !open && w.is(wVerb) {
			if start, weak, ok = s.passive(c, i); !ok {
				start, weak, ok = 0, true, s.short(c, i)
			}
		}
		if !ok && !open && w.is(wFinished) && s.isDone(c) {
			start, weak, ok, w.kind = 0, true, true, KindDone
		}
		if ok {
			all = append(all, Claim{Kind: w.kind, Start: c[start].start, End: c[len(c)-1].end, Weak: weak})
			if w.kind == KindDone {
				break
			}
		}
	}
	return all
}

// denied reports whether the words after the participle at i, or an own text as its object, rule a claim out.
func (s *sentence) denied(c []word, i int) bool {
	w, rest, end := c[i], c[i+1:], i+1
	for end < len(c) && !c[end].is(wStop) {
		end++
	}
	if anyIs(rest[:min(2, len(rest))], wAfter) || anyIs(c[i+1:end], wIdea) || s.free && anyIs(c, wIdea) ||
		w.needs == 0 && anyIs(rest[:min(1, len(rest))], wFull|wIs|wWas) {
		return true
	}
	switch w.kind {
	case KindChange, KindCreate, KindDelete, KindOrder, KindCall:
		return anyIs(c, wWork)
	}
	return false
}

// object returns the marks of the object of the participle at i, and those in the rest of the clause that count
// everywhere. In a language without an order of words it is anywhere.
func (s *sentence) object(c []word, i int) (m marks) {
	k := 0
	if s.free {
		for _, w := range c {
			m |= w.marks
		}
		return m | nounMark
	}
	for k = i + 1; k < len(c) && c[k].is(wParticle); k++ {
		m |= c[k].marks & everywhereMarks
	}
	for ; k < len(c) && !c[k].is(wStop); k++ {
		if c[k].is(wPron) && c[k].is(wThe) && k+1 < len(c) && c[k+1].is(wSelf|wYou|wPron|wYour|wThe) { // "that your"
			break
		}
		m |= c[k].marks | nounMark
	}
	for ; k < len(c); k++ {
		m |= c[k].marks & everywhereMarks
	}
	return m
}

func anyIs(c []word, k wordClass) bool {
	for _, w := range c {
		if w.is(k) {
			return true
		}
	}
	return false
}

// onlyAre reports whether all words are in one of these classes.
func onlyAre(c []word, k wordClass) bool {
	for _, w := range c {
		if !w.is(k) {
			return false
		}
	}
	return true
}

// gap returns the position of the first word before i that cannot stand between an auxiliary and its participle.
func (s *sentence) gap(c []word, i int) int {
	j := i - 1
	for j >= 0 && (c[j].is(wAdv|wClitic) || s.free && !c[j].is(wHave|wIs|wWas|wBlock) ||
		c[j].is(wYou|wPron) && j > 0 && c[j-1].is(wHave|wClitic)) { // "I've got you booked"
		j--
	}
	return j
}

// own finds the speaker's own action and returns where its subject begins.
func (s *sentence) own(c []word, i int) (start int, ok bool) {
	w, j := c[i], s.gap(c, i)
	object := s.object(c, i)
	if w.is(wStateOnly) || w.needs != 0 && w.needs&object == 0 {
		return 0, false
	}
	switch {
	case w.is(wInfinitive) && (!w.is(wVerb) || i > 0 && c[i-1].is(wTo)):
		start, ok = s.managed(c, i)
	case j < 0:
	case s.pastTense && c[j].is(wSelf) && !c[j].is(wPlural) && !w.is(wNotPast):
		start, ok = j, true
	case c[j].is(wHave):
		start, ok = s.speaker(c, j, i)
	case s.pastTense && anyIs(c[j+1:i], wAnd): // "I've looked at it and booked it"
		start, ok = nearestSelf(c, j)
	}
	if !ok || c[start].is(wPlural) && object&oursMark != 0 {
		return 0, false
	}
	return start, s.begins(c, start, i)
}

// begins reports whether the words between the beginning of the clause, or of its part, and the participle at i let the
// speaker at start assert something.
func (s *sentence) begins(c []word, start, i int) bool {
	from := 0
	if start > 0 && c[start-1].is(wAnd) {
		from = start
	}
	if start > from+1 && c[from].is(wAdv) && c[start-1].wordEntry == (wordEntry{}) { // "hi Tom"
		return onlyAre(c[from:start-1], wAdv) && !anyIs(c[from:i], wBlock)
	}
	// Other words before the speaker belong to a relative clause: "the table I have booked".
	return !anyIs(c[from:i], wBlock) && (s.free || onlyAre(c[from:start], wAdv|wAnd|wFinished|wSep|wClitic))
}

// managed finds the speaker of "was able to" before an infinitive.
func (s *sentence) managed(c []word, i int) (start int, ok bool) {
	for k := i - 1; k >= 0; k-- {
		switch {
		case !c[k].is(wLately):
		case s.free:
			for _, start := range []int{k - 1, k + 1} {
				if start >= 0 && c[start].is(wSelf) {
					return start, true
				}
			}
		case i-k == 2:
			return nearestSelf(c, k)
		}
	}
	return 0, false
}

// nearestSelf finds the speaker at j or before, without another subject in between.
func nearestSelf(c []word, j int) (start int, ok bool) {
	for k := j; k >= 0 && !c[k].is(wPron|wYou|wIs|wWas|wBlock); k-- {
		if c[k].is(wSelf) {
			return k, true
		}
	}
	return 0, false
}

// speaker finds the speaker before the auxiliary at j or, in some languages, after it.
func (s *sentence) speaker(c []word, j, i int) (start int, ok bool) {
	k := j - 1
	for k >= 0 && c[k].is(wClitic) {
		k--
	}
	if k >= 0 && c[k].is(wSelf) {
		return k, true
	}
	if s.free && j+1 < i && c[j+1].is(wSelf) {
		return j, true
	}
	if k > 0 && c[k].is(wAnd) { // "I went ahead and have booked it"
		return nearestSelf(c, k-1)
	}
	return 0, false
}

// passive finds a state or a passive of something that actions change, without another actor.
func (s *sentence) passive(c []word, i int) (start int, weak, ok bool) {
	w, j := c[i], s.gap(c, i)
	if j < 0 || w.is(wNotPassive) || !c[j].is(wIs|wWas) || anyIs(c[:i], wBlock) {
		return 0, false, false
	}
	if s.byOther(c, i) || c[j].is(wWas) && anyIs(c[j:i], wFull) {
		return 0, false, false
	}
	now := anyIs(c[j:min(i+3, len(c))], wFresh) || s.free && anyIs(c[:i], wFresh)
	state := !c[j].is(wWas)
	if state && (!w.is(wOfState) && !now || !now && i+1 < len(c) && c[i+1].is(wTo)) { // "is scheduled to end"
		return 0, false, false
	}
	begin, end := s.span(c, i, j)
	start, certain, ok := subject(c, begin, end, w, s.object(c, i), state)
	return start, !now, ok && (certain || !state || now || s.closes(c, j, i))
}

// closes reports whether the participle at i ends its clause, and nothing after the auxiliary at j says how long the state lasts.
func (s *sentence) closes(c []word, j, i int) bool {
	return onlyAre(c[i+1:], wParticle) && !anyIs(c[j:i], wFull) && !anyIs(c[:j], wAll)
}

// span returns where the subject of a passive begins and ends; the auxiliary is at j, the participle at i.
func (s *sentence) span(c []word, i, j int) (begin, end int) {
	if s.free && onlyAre(c[:j], wAdv) {
		return j + 1, i
	}
	for end = j; end > 0 && c[end-1].is(wHas|wAdv); {
		end--
	}
	for k := begin; k+1 < end; k++ { // "I've moved it and you're booked"
		if c[k].is(wAnd) && c[k+1].is(wPron|wYou|wYour|wThe) {
			begin = k + 1
		}
	}
	return begin, end
}

// byOther reports whether a passive names the actor, or speaks of another state: "is booked out".
func (s *sentence) byOther(c []word, i int) bool {
	from := i + 1
	if from < len(c) && c[from].marks&c[i].needs&everywhereMarks != 0 { // "signed up"
		from++
	}
	if anyIs(c[from:max(from, min(i+3, len(c)))], wFull) {
		return true
	}
	if s.free {
		from = 0
	}
	for k := from; k < len(c) && k <= i+3; k++ {
		if c[k].is(wBy) && (k+1 == len(c) || !c[k+1].is(wMedium) && !unicode.IsDigit(s.next(c[k+1].start))) {
			return true
		}
	}
	return false
}

// subject finds the subject of the participle w in c[from:to]; after are the marks of what follows it. certain: it is
// the user's or was just spoken of.
func subject(c []word, from, to int, w word, after marks, state bool) (start int, certain, ok bool) {
	for from < to && c[from].is(wAdv|wAnd|wFinished) && !c[from].is(wPron|wYour|wThe) {
		from++
	}
	if from >= to {
		return 0, false, false
	}
	first, rest, m := c[from], c[from+1:to], after&everywhereMarks
	for _, r := range rest {
		m |= r.marks
	}
	switch {
	case anyIs(rest, wLast|wPron): // "your last order", "the hotel says that it"
	case first.is(wPron|wYou) && onlyAre(rest, wAdv|wClitic):
		return from, true, first.is(wPron) && !w.is(wStateOnly) || holdsOf(w, m, state)
	case first.is(wYour):
		return from, true, len(rest) > 0 && (w.needs&^nounMark == 0 || w.needs&(m|first.marks) != 0)
	case first.is(wThe):
		return from, false, m&^everywhereMarks != 0 && (w.needs&^nounMark == 0 || w.needs&m != 0)
	}
	return 0, false, false
}

// holdsOf reports whether "you" may be the subject of the participle w, by the marks of what follows it.
func holdsOf(w word, m marks, state bool) bool {
	return w.is(wFinished) || !state && w.needs&(m|userMark) != 0 ||
		w.is(wOfState|wStateOnly) && w.kind == KindBook && (w.needs == 0 || w.needs&m != 0)
}

// short reports whether a clause is only something and its participle: "Appointment booked", "Timer set for ten minutes".
func (s *sentence) short(c []word, i int) bool {
	last := c[len(c)-1]
	return len(c) == 1 && last.is(wOfState) && !last.is(wFinished) && onlyAre(s.words[:s.n-1], wAdv) || // "Okay, booked!"
		s.free && i == 1 && len(c) == 2 && c[0].is(wIs) && last.is(wOfState) || // "Ist gebucht."
		isPhrase(c, i)
}

// isPhrase reports whether a few words and the participle at i are all, but for a purpose.
func isPhrase(c []word, i int) bool {
	const most = 3
	if i == 0 || i >= most || !c[i].is(wOfState) || i+1 < len(c) && !c[i+1].is(wPurpose) || anyIs(c[i:], wIs|wWas|wBlock|wHave) {
		return false
	}
	var m marks
	for _, w := range c[:i] {
		if m |= w.marks; w.marks == 0 && w.class != 0 && !w.is(wAdv|wYour) {
			return false
		}
	}
	return (m != 0 || i == 1 && c[0].is(wAll)) && !anyIs(c[:i], wPron|wYou|wSelf|wBlock)
}

// isDone reports whether a clause says that something is done, and nothing else.
func (s *sentence) isDone(c []word) bool {
	state := wIs | wWas
	if anyIs(c, wSelf) {
		state = wHave
	}
	whole := len(c) == 2 && c[0].is(wAll|wIs) || anyIs(c, wPron) && anyIs(c, state)
	return whole && onlyAre(c, wAdv|wPron|wIs|wHas|wWas|wFinished|wHave|wSelf|wYou|wPurpose)
}
