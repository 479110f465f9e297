package claims

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	maxText  = 32 << 10 // how much of a text is read, in bytes
	maxWords = 96       // of a sentence; the rest counts as another one
	maxWord  = 32       // bytes of a word; no word of a table is longer
)

// word is a word of a sentence. clause numbers its clause.
type word struct {
	entry
	start, end int
	clause     int
	quoted     bool
}

func (w word) is(c class) bool { return w.class&c != 0 }

// sentence is a sentence that is being read.
type sentence struct {
	*table
	text   string
	words  [maxWords]word
	n      int
	clause int
	quote  rune // the open quotation mark, or the colon after "you could say"; zero outside of a quotation
	last   rune // the last character
	seen   class
	letter bool
}

// Find returns the claims in a text, in the order of their languages and positions. It allocates nothing without any.
// Times and numbers of words are limited, so it takes at most a few ms. It is safe for concurrent use.
func (l Languages) Find(text string) (all []Claim) {
	for cut := maxText; len(text) > maxText; cut-- {
		if utf8.RuneStart(text[cut]) {
			text = text[:cut]
		}
	}
	for _, t := range l.tables {
		s, before := sentence{table: t, text: text}, len(all)
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
			if s.n == maxWords {
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
			if r == ':' && s.quote == 0 && anyIs(s.words[:s.n], block) {
				s.quote = r
			}
			s.clause++
		default:
			s.quotes(r)
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
	return !slices.Contains(titles, text)
}

// titles are abbreviations before a name.
var titles = []string{"Dr", "Mr", "Mrs", "Ms", "St", "Prof", "Hr", "Fr", "Nr", "Str", "No", "Sr", "Sra", "Mme", "M"}

func isQuote(r rune) bool {
	switch r {
	case '"', '“', '”', '„', '«', '»', '`':
		return true
	}
	return false
}

func (s *sentence) quotes(r rune) {
	switch {
	case !isQuote(r):
	case s.quote == 0, s.quote == ':':
		s.quote = r
	default:
		s.quote = 0
	}
}

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
	w.end, w.entry = at, s.table.words[string(buf[:n])]
	if s.compounds && w.entry == (entry{}) && n < maxWord && unicode.IsUpper(s.next(w.start)) {
		w.entry = s.compound(buf[:n])
	}
	if text := s.text[w.start:at]; len(text) == 4 && (strings.HasPrefix(text, "19") || strings.HasPrefix(text, "20")) {
		w.class |= full // a year
	}
	if w.is(sep) {
		s.clause++
		w.clause = s.clause
	}
	s.seen |= w.class
	switch before := s.words[max(s.n-2, 0):s.n]; {
	case w.is(sees) && (anyIs(before, self) || s.n > 0 && s.words[0].is(manner)):
		s.seen |= source
	case w.is(period) && anyIs(before, last), w.is(last) && anyIs(before, period):
		s.seen |= habit
	}
	s.words[s.n] = w
	s.n++
	return at
}

// compound returns the entry of a noun's end: "Telefonnummer".
func (s *sentence) compound(noun []byte) entry {
	const least = 4 // bytes
	for from := least - 1; from <= len(noun)-least; from++ {
		if e := s.table.words[string(noun[from:])]; e.class&(work|idea) != 0 || e.marks != 0 {
			return entry{class: e.class & (work | idea), marks: e.marks}
		}
	}
	return entry{}
}

// appendLower adds a small letter at n and returns the new length. A full buffer is no word of a table.
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
	if s.seen&(verb|infinitive|finished) != 0 && s.seen&habit == 0 {
		for from := 0; from < s.n && !anyIs(s.words[:from], hedge); {
			to := from
			for to < s.n && s.words[to].clause == s.words[from].clause {
				to++
			}
			// "I've booked it, is that all?" asks nothing about the booking. "I've booked it, haven't I?" does.
			if asked := end == '?'; !asked || to < s.n && !anyIs(s.words[max(s.n-3, to):s.n], tag) {
				// "It is booked, if you agree" is no state.
				open := asked && s.asks(s.words[from:to]) || s.seen&source != 0 || anyIs(s.words[:from], condition) ||
					to < s.n && s.words[to].is(condition)
				all = s.claims(s.words[from:to], open, all)
			}
			from = to
		}
	}
	s.letter = s.letter || s.seen&letter != 0
	s.n, s.clause, s.seen = 0, 0, 0
	if s.quote == ':' {
		s.quote = 0
	}
	return all
}

// asks reports whether a clause begins with an auxiliary: "Is it booked, or not?"
func (s *sentence) asks(c []word) bool {
	for _, w := range c {
		if !w.is(adv | and) {
			return w.is(is | was | has | have)
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
		if w.is(verb | infinitive) {
			start, ok = s.own(c, i)
		}
		if !ok && !open && w.is(verb) {
			if start, weak, ok = s.passive(c, i); !ok {
				start, weak, ok = 0, true, s.short(c, i)
			}
		}
		if !ok && !open && w.is(finished) && s.isDone(c) {
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
	for end < len(c) && !c[end].is(stop) {
		end++
	}
	if anyIs(rest[:min(2, len(rest))], after) || anyIs(c[i+1:end], idea) || s.free && anyIs(c, idea) ||
		w.needs == 0 && anyIs(rest[:min(1, len(rest))], full|is|was) {
		return true
	}
	switch w.kind {
	case KindChange, KindCreate, KindDelete, KindOrder, KindCall:
		return anyIs(c, work)
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
		return m | noun
	}
	for k = i + 1; k < len(c) && c[k].is(particle); k++ {
		m |= c[k].marks & everywhere
	}
	for ; k < len(c) && !c[k].is(stop); k++ {
		if c[k].is(pron) && c[k].is(the) && k+1 < len(c) && c[k+1].is(self|you|pron|your|the) { // "that your"
			break
		}
		m |= c[k].marks | noun
	}
	for ; k < len(c); k++ {
		m |= c[k].marks & everywhere
	}
	return m
}

func anyIs(c []word, k class) bool {
	for _, w := range c {
		if w.is(k) {
			return true
		}
	}
	return false
}

// onlyAre reports whether all words are in one of these classes.
func onlyAre(c []word, k class) bool {
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
	for j >= 0 && (c[j].is(adv|clitic) || s.free && !c[j].is(have|is|was|block) ||
		c[j].is(you|pron) && j > 0 && c[j-1].is(have|clitic)) { // "I've got you booked"
		j--
	}
	return j
}

// own finds the speaker's own action and returns where its subject begins.
func (s *sentence) own(c []word, i int) (start int, ok bool) {
	w, j := c[i], s.gap(c, i)
	object := s.object(c, i)
	if w.is(stateOnly) || w.needs != 0 && w.needs&object == 0 {
		return 0, false
	}
	switch {
	case w.is(infinitive) && (!w.is(verb) || i > 0 && c[i-1].is(to)):
		start, ok = s.managed(c, i)
	case j < 0:
	case s.pastTense && c[j].is(self) && !c[j].is(plural) && !w.is(notPast):
		start, ok = j, true
	case c[j].is(have):
		start, ok = s.speaker(c, j, i)
	default:
		start, ok = s.joined(c, j, i)
	}
	if !ok || c[start].is(plural) && object&ours != 0 {
		return 0, false
	}
	from := 0
	if start > 0 && c[start-1].is(and) {
		from = start
	}
	if start > from+1 && c[from].is(adv) && c[start-1].entry == (entry{}) { // "hi Tom"
		return start, onlyAre(c[from:start-1], adv) && !anyIs(c[from:i], block)
	}
	// Other words before the speaker belong to a relative clause: "the table I have booked".
	return start, !anyIs(c[from:i], block) && (s.free || onlyAre(c[from:start], adv|and|finished|sep|clitic))
}

// managed finds the speaker of "was able to" before an infinitive.
func (s *sentence) managed(c []word, i int) (start int, ok bool) {
	for k := i - 1; k >= 0; k-- {
		switch {
		case !c[k].is(lately):
		case s.free:
			for _, start := range []int{k - 1, k + 1} {
				if start >= 0 && c[start].is(self) {
					return start, true
				}
			}
		case i-k == 2:
			return nearest(c, k)
		}
	}
	return 0, false
}

// nearest finds the speaker at j or before, without another subject in between.
func nearest(c []word, j int) (start int, ok bool) {
	for k := j; k >= 0 && !c[k].is(pron|you|is|was|block); k-- {
		if c[k].is(self) {
			return k, true
		}
	}
	return 0, false
}

// speaker finds the speaker before the auxiliary at j or, in some languages, after it.
func (s *sentence) speaker(c []word, j, i int) (start int, ok bool) {
	k := j - 1
	for k >= 0 && c[k].is(clitic) {
		k--
	}
	if k >= 0 && c[k].is(self) {
		return k, true
	}
	return j, s.free && j+1 < i && c[j+1].is(self)
}

// joined finds the speaker of an action that follows another one: "I've looked at it and booked it".
func (s *sentence) joined(c []word, j, i int) (start int, ok bool) {
	if !s.pastTense || !anyIs(c[j+1:i], and) {
		return 0, false
	}
	return nearest(c, j)
}

// passive finds a state or a passive of something that actions change, without another actor.
func (s *sentence) passive(c []word, i int) (start int, weak, ok bool) {
	w, j := c[i], s.gap(c, i)
	if j < 0 || w.is(notPassive) || !c[j].is(is|was) || anyIs(c[:i], block) {
		return 0, false, false
	}
	if s.byOther(c, i) || anyIs(c[i+1:min(i+3, len(c))], full) || c[j].is(was) && anyIs(c[j:i], full) {
		return 0, false, false
	}
	now := anyIs(c[j:min(i+3, len(c))], fresh) || s.free && anyIs(c[:i], fresh)
	state := !c[j].is(was)
	if state && (!w.is(ofState) && !now || !now && i+1 < len(c) && c[i+1].is(to)) { // "is scheduled to end"
		return 0, false, false
	}
	end := j
	for end > 0 && c[end-1].is(has|adv) {
		end--
	}
	begin := 0
	if s.free && onlyAre(c[:j], adv) {
		begin, end = j+1, i
	}
	for k := begin; k+1 < end; k++ { // "I've moved it and you're booked"
		if c[k].is(and) && c[k+1].is(pron|you|your|the) {
			begin = k + 1
		}
	}
	start, certain, ok := s.subject(c, begin, end, w, s.object(c, i))
	return start, !now, ok && (certain || !state || now)
}

// byOther reports whether a passive names the actor.
func (s *sentence) byOther(c []word, i int) bool {
	from := i + 1
	if s.free {
		from = 0
	}
	for k := from; k < len(c) && k <= i+3; k++ {
		if c[k].is(by) && (k+1 == len(c) || !c[k+1].is(medium) && !unicode.IsDigit(s.next(c[k+1].start))) {
			return true
		}
	}
	return false
}

// subject finds the subject of the participle w in c[from:to]; after are the marks of what follows it. certain: it is
// the user's or was just spoken of.
func (s *sentence) subject(c []word, from, to int, w word, after marks) (start int, certain, ok bool) {
	for from < to && c[from].is(adv|and|finished) && !c[from].is(pron|your|the) {
		from++
	}
	if from >= to {
		return 0, false, false
	}
	first, rest, m := c[from], c[from+1:to], after&everywhere
	for _, r := range rest {
		m |= r.marks
	}
	switch {
	case anyIs(rest, last|pron): // "your last order", "the hotel says that it"
	case first.is(pron|you) && onlyAre(rest, adv|clitic):
		return from, true, first.is(pron) && !w.is(stateOnly) || w.is(ofState) && (w.kind == KindBook || w.is(finished))
	case first.is(your):
		return from, true, len(rest) > 0 && (w.needs&^noun == 0 || w.needs&(m|first.marks) != 0)
	case first.is(the):
		return from, false, m&^everywhere != 0 && (w.needs&^noun == 0 || w.needs&m != 0)
	}
	return 0, false, false
}

// short reports whether a clause is only something and its participle: "Appointment booked", "Timer set for ten minutes".
func (s *sentence) short(c []word, i int) bool {
	const most = 3
	if s.n == 1 && c[0].is(ofState) && !c[0].is(finished) { // "Booked!"
		return true
	}
	if i == 0 || i >= most || !c[i].is(ofState) || i+1 < len(c) && !c[i+1].is(purpose) || anyIs(c[i:], is|was|block|have) {
		return false
	}
	var m marks
	for _, w := range c[:i] {
		if m |= w.marks; w.marks == 0 && w.class != 0 && !w.is(adv|your) {
			return false
		}
	}
	return (m != 0 || i == 1 && c[0].is(all)) && !anyIs(c[:i], pron|you|self|block)
}

// isDone reports whether a clause says that something is done, and nothing else.
func (s *sentence) isDone(c []word) bool {
	whole := len(c) == 2 && c[0].is(all|is) || anyIs(c, pron) && (anyIs(c, is|was) && !anyIs(c, self) || anyIs(c, self) && anyIs(c, have))
	return whole && onlyAre(c, adv|pron|is|has|was|finished|have|self|you|purpose)
}
