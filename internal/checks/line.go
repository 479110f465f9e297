package checks

import (
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// A line is the queue between a model and its listener: a pure state machine. It reads no clock and is not safe for
// concurrent use. Inputs leave their results in out, asked and claim, which the caller takes.
//
// Words pass when each check has passed them, sound when the words that it can contain have passed. A provider aligns
// neither, so a passed text covers the shortest time in which it can be spoken. Other events wait for everything before
// them. The hold-back limits each wait. After it, a check that has not decided blocks or passes, as configured.
type line[T any] struct {
	set     *Set
	patient bool // without a hold-back: everything waits for its checks
	answer  *answer
	items   []*item[T] // the latest, oldest first
	entries []entry[T]
	asks    []*ask[T] // without a verdict
	held    time.Duration

	out   []Released[T]
	asked []*ask[T]
	claim *ask[T] // for compared, once out is released; nil without one
}

type answer struct {
	n       int // counts the answers of the line
	stopped bool
}

type item[T any] struct {
	id      string
	answer  *answer
	text    string
	final   bool
	latest  T      // value of the latest words
	marks   []mark // for each check
	passed  int    // bytes that all checks have passed
	runes   int    // the same in characters
	told    int    // released bytes
	whole   bool   // the final words were released
	audio   time.Duration
	began   bool      // sound was released
	dropped bool      // it was interrupted before it was heard
	since   time.Time // when the oldest words came that no remote check has got; zero without any
	open    time.Time // when the latest words came, while their last one may be incomplete; zero once it was checked
}

type mark struct{ passed, asked int }

type ask[T any] struct {
	rule *Rule
	at   int // the index of rule
	of   *item[T]
	text string // up to the end of the checked text
	from int    // the part before was asked earlier
}

type kind uint8

const (
	ofOther kind = iota
	ofWords
	ofAudio
)

type entry[T any] struct {
	kind  kind
	of    *item[T] // nil for other events
	end   int      // of words: their length
	until time.Duration
	took  time.Duration
	final bool
	at    time.Time
	value T
}

// Released is something that may reach the listener.
type Released[T any] struct {
	Value T
	Words bool // Text is all of the item's words so far
	Text  string
	Final bool
	stop  *Stop // nothing is released here, but an answer was stopped
}

const (
	perCharacter = 50 * time.Millisecond // the fastest speech
	maxItems     = 16
	maxHeld      = 2 * time.Minute // of sound
	maxEntries   = 8192
	maxAsks      = 2 // of one check for one item at the same time
)

func newLine[T any](set *Set, patient bool) line[T] {
	return line[T]{set: set, patient: patient, answer: &answer{}}
}

func (l *line[T]) item(id string) *item[T] {
	for _, it := range l.items {
		if it.id == id {
			return it
		}
	}
	if len(l.items) >= maxItems {
		l.items = slices.Delete(l.items, 0, 1)
	}
	it := &item[T]{id: id, answer: l.answer, marks: make([]mark, len(l.set.rules))}
	l.items = append(l.items, it)
	return it
}

func (l *line[T]) words(at time.Time, id, text string, final bool, v T) {
	it := l.item(id)
	if it.answer.stopped || it.dropped {
		return
	}
	it.revise(text)
	it.text, it.final, it.latest = text, it.final || final, v
	if it.since.IsZero() && l.set.remote {
		it.since = at
	}
	if it.open = at; it.final || !l.set.words {
		it.open = time.Time{}
	}
	next := entry[T]{kind: ofWords, of: it, end: len(text), final: final, at: at, value: v}
	if n := len(l.entries); l.patient && n > 0 && l.entries[n-1].of == it {
		l.entries[n-1] = next
	} else {
		l.entries = append(l.entries, next)
	}
	for i, r := range l.set.rules {
		switch {
		case r.Claims: // see claims
			continue
		case r.Remote != nil:
			l.ask(it, i, false)
			continue
		}
		found, upTo := r.match(text, it.marks[i].passed, it.final)
		if found {
			l.halt(it, r, Matched)
			return
		}
		it.marks[i].passed = max(it.marks[i].passed, upTo)
	}
	it.settle()
}

// revise drops the verdicts about changed words.
func (it *item[T]) revise(text string) {
	if strings.HasPrefix(text, it.text) {
		return
	}
	same := 0
	for same < min(len(text), len(it.text)) && text[same] == it.text[same] {
		same++
	}
	for same > 0 && same < len(text) && !utf8.RuneStart(text[same]) {
		same--
	}
	for i := range it.marks {
		it.marks[i].passed, it.marks[i].asked = min(it.marks[i].passed, same), min(it.marks[i].asked, same)
	}
	it.passed, it.told = min(it.passed, same), min(it.told, same)
	it.runes = utf8.RuneCountInString(it.text[:it.passed])
}

func (it *item[T]) settle() {
	passed := len(it.text)
	for _, m := range it.marks {
		passed = min(passed, m.passed)
	}
	if passed > it.passed {
		it.runes += utf8.RuneCountInString(it.text[it.passed:passed])
		it.passed = passed
	}
}

// ask requests a remote check of the complete sentences or, with now, of all complete words.
func (l *line[T]) ask(it *item[T], rule int, now bool) {
	m, open := &it.marks[rule], 0
	for _, a := range l.asks {
		if a.of == it && a.at == rule {
			open++
		}
	}
	upTo := sentences(it.text, m.asked, it.final)
	if i := strings.LastIndexAny(it.text, " \n"); now && i >= upTo {
		upTo = i + 1
	}
	switch {
	case upTo <= m.asked:
		return
	case open == 0 && strings.TrimSpace(it.text[m.asked:upTo]) == "":
		m.asked, m.passed = upTo, upTo
		return
	case open >= maxAsks:
		return
	}
	upTo = min(upTo, runeStart(it.text, m.asked+maxSent-utf8.UTFMax))
	a := &ask[T]{rule: l.set.rules[rule], at: rule, of: it, text: it.text[:upTo], from: m.asked}
	m.asked = upTo
	l.asks, l.asked = append(l.asks, a), append(l.asked, a)
	if upTo == len(it.text) {
		it.since = time.Time{}
	}
}

func (l *line[T]) verdict(a *ask[T], pass, failed bool) {
	l.asks = slices.DeleteFunc(l.asks, func(b *ask[T]) bool { return a == b })
	it := a.of
	switch {
	case it.answer.stopped, it.dropped:
		return
	case failed && a.rule.Block:
		l.halt(it, a.rule, Failed)
		return
	case !failed && !pass:
		l.halt(it, a.rule, Matched)
		return
	}
	if strings.HasPrefix(it.text, a.text) {
		it.marks[a.at].passed = max(it.marks[a.at].passed, len(a.text))
	}
	l.ask(it, a.at, false)
	it.settle()
}

func (l *line[T]) audio(at time.Time, id string, took time.Duration, v T) {
	it := l.item(id)
	if it.answer.stopped || it.dropped {
		return
	}
	it.audio += took
	l.held += took
	l.entries = append(l.entries, entry[T]{kind: ofAudio, of: it, until: it.audio, took: took, at: at, value: v})
}

// other takes another event. begins means that it begins an answer.
func (l *line[T]) other(at time.Time, begins bool, v T) {
	if begins {
		l.answer = &answer{n: l.answer.n + 1}
	}
	l.entries = append(l.entries, entry[T]{at: at, value: v})
}

// halt stops an answer: nothing more of it is released, except events and the end of the transcript.
func (l *line[T]) halt(it *item[T], r *Rule, why Why) *Stop {
	it.answer.stopped = true
	for _, of := range l.items {
		if of.answer == it.answer && of.told > 0 && !of.whole {
			of.whole = true
			l.out = append(l.out, Released[T]{Value: of.latest, Words: true, Text: of.text[:of.told], Final: true})
		}
	}
	l.remove(func(e entry[T]) bool { return e.of != nil && e.of.answer.stopped })
	stop := &Stop{Rule: r, Item: it.id, Why: why}
	l.out = append(l.out, Released[T]{stop: stop})
	return stop
}

// interrupt drops the sound of the answers up to the n-th, and the words of items that were not heard at all.
func (l *line[T]) interrupt(n int) {
	for _, it := range l.items {
		it.dropped = it.dropped || it.answer.n <= n && it.audio > 0 && !it.began
	}
	l.remove(func(e entry[T]) bool {
		return e.of != nil && (e.of.dropped || e.kind == ofAudio && e.of.answer.n <= n)
	})
}

func (l *line[T]) remove(which func(entry[T]) bool) {
	l.entries = slices.DeleteFunc(l.entries, func(e entry[T]) bool {
		if !which(e) {
			return false
		}
		l.held -= e.took
		return true
	})
}

// expired reports whether the hold-back of an entry is over.
func (l *line[T]) expired(e entry[T], at time.Time) bool {
	return !l.patient && !at.Before(e.at.Add(l.set.HoldBack)) || l.held > maxHeld || len(l.entries) > maxEntries
}

// pump releases everything that is due at the time at.
func (l *line[T]) pump(at time.Time) {
	l.halfway(at)
	l.late(at)
	waits, sound, blocked := false, false, false // something before waits; sound waits; another event waits
	l.remove(func(e entry[T]) (done bool) {
		switch {
		case blocked:
		case e.kind == ofWords && l.claims(e, at):
			blocked = true
		case e.kind == ofWords:
			done = l.tell(e, at)
		case e.kind == ofOther:
			done = !waits
			blocked = !done
		default:
			done = !sound && (e.until <= e.of.covered() || l.expired(e, at))
			sound = !done
			e.of.began = e.of.began || done
		}
		waits = waits || !done
		if done && e.kind != ofWords {
			l.out = append(l.out, Released[T]{Value: e.value})
		}
		return done
	})
}

// claims asks for a comparison of an entry's words with the tool calls before them: of complete sentences or, when the
// hold-back is over, of all. It reports whether the words wait for that.
func (l *line[T]) claims(e entry[T], at time.Time) bool {
	for i, r := range l.set.rules {
		from, upTo := e.of.marks[i].passed, min(e.end, len(e.of.text))
		if !r.Claims || upTo <= from {
			continue
		}
		if !l.halves() || !l.expired(e, at) {
			upTo = sentences(e.of.text[:upTo], from, e.final)
		}
		if upTo > from {
			l.claim = &ask[T]{rule: r, at: i, of: e.of, text: e.of.text[:upTo], from: from}
			return true
		}
	}
	return false
}

func (l *line[T]) compared(a *ask[T], unmatched bool) {
	if unmatched {
		l.halt(a.of, a.rule, Matched).Text = a.text
		return
	}
	a.of.marks[a.at].passed = len(a.text)
	a.of.settle()
}

// halves reports whether an incomplete sentence is checked after half of the hold-back.
func (l *line[T]) halves() bool { return !l.patient && l.set.HoldBack > 0 }

// halfway checks, after half of the hold-back, incomplete sentences and words.
func (l *line[T]) halfway(at time.Time) {
	if !l.halves() {
		return
	}
	for _, it := range l.items {
		if !it.since.IsZero() && !at.Before(it.since.Add(l.set.HoldBack/2)) {
			it.since = time.Time{}
			for i, r := range l.set.rules {
				if r.Remote != nil && !it.answer.stopped {
					l.ask(it, i, true)
				}
			}
		}
		if !it.open.IsZero() && !at.Before(it.open.Add(l.set.HoldBack/2)) {
			l.closeWord(it)
		}
	}
}

// closeWord checks the last word of an answer as a complete one, and stops the answer if it is refused.
func (l *line[T]) closeWord(it *item[T]) {
	it.open = time.Time{}
	for i, r := range l.set.rules {
		if r.Words != nil && !it.answer.stopped && !it.dropped {
			if found, _ := r.match(it.text, it.marks[i].passed, true); found {
				l.halt(it, r, Matched)
			}
		}
	}
}

// late stops an answer that a blocking check has not decided within the hold-back.
func (l *line[T]) late(at time.Time) {
	if !l.halves() {
		return
	}
	for _, a := range l.asks {
		if a.rule.Block && !a.of.answer.stopped && slices.ContainsFunc(l.entries, func(e entry[T]) bool {
			return e.of == a.of && l.expired(e, at)
		}) {
			l.halt(a.of, a.rule, Late)
		}
	}
}

// tell releases words and reports whether all of the entry were.
func (l *line[T]) tell(e entry[T], at time.Time) (whole bool) {
	it := e.of
	end := min(e.end, len(it.text))
	upTo := min(end, it.passed)
	if l.expired(e, at) {
		upTo = end
	}
	whole = upTo == end
	if last := whole && e.final && !it.whole; upTo > it.told || last {
		it.told, it.whole = max(it.told, upTo), last
		l.out = append(l.out, Released[T]{Value: e.value, Words: true, Text: it.text[:it.told], Final: last})
	}
	return whole
}

// covered returns how much of the item's sound contains only passed words.
func (it *item[T]) covered() time.Duration {
	if it.final && it.passed == len(it.text) {
		return it.audio
	}
	return time.Duration(it.runes) * perCharacter
}

// wakeAt returns when pump must run without another input; zero for never.
func (l *line[T]) wakeAt() (at time.Time) {
	if !l.halves() {
		return at
	}
	for _, e := range l.entries {
		if e.kind != ofOther {
			at = e.at.Add(l.set.HoldBack)
			break
		}
	}
	for _, it := range l.items {
		for _, since := range []time.Time{it.since, it.open} {
			if half := since.Add(l.set.HoldBack / 2); !since.IsZero() && !it.answer.stopped && (at.IsZero() || half.Before(at)) {
				at = half
			}
		}
	}
	return at
}
