package calls

import (
	"cmp"
	"embed"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

// Tables are text: each line has a class and its words. "option" lines set properties of the language, the names of
// kinds classify participles, "ending" lines endings of nouns, and "tool:" with a kind the words of tools. '#' begins a comment.
//
//go:embed claimtables/*.txt
var tableFiles embed.FS

// wordClass is a set of word classes.
type wordClass uint64

const (
	wSelf      wordClass = 1 << iota // the speaker
	wHave                            // auxiliary of the speaker's own action
	wHas                             // precedes was: "has been"
	wIs                              // auxiliary of a state
	wWas                             // auxiliary of the passive
	wPron                            // a subject: "it"
	wYou                             // a subject that only some states fit
	wYour                            // begins a subject
	wThe                             // begins a subject, with less certainty
	wAnd                             // joins clauses
	wAdv                             // may stand before a participle
	wFresh                           // an adverb that speaks of now
	wFinished                        // a whole claim
	wSep                             // begins a clause
	wBlock                           // before the participle: nothing is asserted
	wAfter                           // shortly after it: the same
	wBy                              // names another actor
	wMedium                          // follows by and is not an actor
	wFull                            // shortly after a passive: the state is another one
	wHabit                           // anywhere in the sentence: a habit, or the past
	wLetter                          // anywhere in a text: it is written for the user to send
	wWork                            // the assistant's own texts
	wIdea                            // after a participle: nothing that a tool changes
	wClitic                          // may stand between the speaker and the auxiliary
	wPlural                          // of self: "we"
	wTo                              // before an infinitive
	wLately                          // "able" of "I was able to"
	wCondition                       // begins a clause after a state, which it makes open
	wSource                          // anywhere in the sentence: its states are read somewhere, or are instructions
	wSees                            // after the speaker, the same
	wManner                          // begins a sentence with the next
	wHedge                           // anywhere before: a belief
	wTag                             // asks about what was said before
	wLast                            // with period: the past
	wPeriod
	wAll
	wParticle // belongs to the verb before it
	wStop     // ends an object
	wPurpose  // may follow a short claim
	wVerb     // a participle
	wOfState  // of a verb: also with is
	wStateOnly
	wNotPassive
	wNotPast
	wInfinitive
)

var wordClasses = map[string]wordClass{
	"self": wSelf, "have": wHave, "has": wHas, "is": wIs, "was": wWas, "pron": wPron, "you": wYou, "your": wYour,
	"the": wThe, "and": wAnd, "adv": wAdv, "fresh": wFresh, "finished": wFinished, "sep": wSep, "block": wBlock,
	"after": wAfter, "by": wBy, "medium": wMedium, "full": wFull, "habit": wHabit, "letter": wLetter,
	"work": wWork, "idea": wIdea, "clitic": wClitic, "lately": wLately, "plural": wPlural, "to": wTo,
	"condition": wCondition, "source": wSource, "sees": wSees, "manner": wManner, "hedge": wHedge, "tag": wTag,
	"last": wLast, "period": wPeriod, "all": wAll, "particle": wParticle, "stop": wStop, "purpose": wPurpose,
}

// verbSuffixes are suffixes of participles in a table.
var verbSuffixes = map[byte]wordClass{'=': wOfState, '@': wStateOnly, '!': wNotPassive, '%': wNotPast, '~': wInfinitive}

// marks is a set of letters: what a word denotes, or which objects a verb needs. Each table explains its letters.
type marks uint64

const (
	nounMark        = marks(1) << ('n' - 'A') // any object
	userMark        = marks(1) << ('u' - 'A') // the user
	oursMark        = marks(1) << ('z' - 'A') // something of the speaker
	everywhereMarks = marks(1)<<26 - 1        // capital letters: also after the object
)

func marksOf(letters string) (m marks) {
	for _, l := range []byte(letters) {
		m |= 1 << (l - 'A')
	}
	return m
}

type wordEntry struct {
	class        wordClass
	kind         ClaimKind
	marks, needs marks // needs: of the verb's object
}

type wordTable struct {
	code  string
	words map[string]wordEntry
	// free: anything may stand between an auxiliary and its participle, and the speaker may follow the auxiliary.
	// pastTense: the participle is also the past tense. ordinals: a full stop may follow a number. compounds: the end of
	// a noun may be a word.
	free, pastTense, ordinals, compounds bool
	endings                              []string // of nouns, the empty one first
}

var loadTables = sync.OnceValues(readTables)

// readTables reads the tables, and the words of tools in all of them.
func readTables() (map[string]*wordTable, map[string]ClaimKinds) {
	tables, tools := map[string]*wordTable{}, map[string]ClaimKinds{}
	found, err := tableFiles.ReadDir("claimtables")
	if err != nil {
		panic(err) // unreachable: the files are part of the program
	}
	for _, f := range found {
		text, err := tableFiles.ReadFile("claimtables/" + f.Name())
		if err != nil {
			panic(err)
		}
		t := &wordTable{code: strings.TrimSuffix(f.Name(), ".txt"), words: map[string]wordEntry{}, endings: []string{""}}
		for line := range strings.Lines(string(text)) {
			if err := t.line(line, tools); err != nil {
				panic(fmt.Errorf("%s: %w", f.Name(), err))
			}
		}
		tables[t.code] = t
	}
	return tables, tools
}

func (t *wordTable) line(line string, tools map[string]ClaimKinds) error {
	fields := strings.Fields(line)
	if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
		return nil
	}
	name, words := fields[0], fields[1:]
	ofTools, isTools := strings.CutPrefix(name, "tool:")
	kind, isKind := kindOf(ofTools)
	letters, isObject := strings.CutPrefix(name, "object:")
	for _, w := range words {
		switch {
		case name == "option":
			t.free, t.pastTense = t.free || w == "free", t.pastTense || w == "past"
			t.ordinals, t.compounds = t.ordinals || w == "ordinals", t.compounds || w == "compounds"
		case name == "ending":
			t.endings = append(t.endings, w)
		case isTools && isKind:
			tools[w] |= kind.set()
		case isKind:
			t.addVerb(w, kind)
		case isObject:
			t.add(w, wordEntry{marks: marksOf(letters)})
		case wordClasses[name] != 0:
			t.add(w, wordEntry{class: wordClasses[name]})
		default:
			return fmt.Errorf("unknown class %q", name)
		}
	}
	return nil
}

func (t *wordTable) addVerb(word string, kind ClaimKind) {
	c := wVerb
	for s := verbSuffixes[word[len(word)-1]]; s != 0; s = verbSuffixes[word[len(word)-1]] {
		c, word = c|s, word[:len(word)-1]
	}
	if c&wInfinitive != 0 {
		c = wInfinitive
	}
	word, needs, _ := strings.Cut(word, "/")
	t.add(word, wordEntry{class: c, kind: kind, needs: marksOf(needs)})
}

// add adds to what the table has for a word. A kind replaces an earlier one.
func (t *wordTable) add(word string, e wordEntry) {
	had := t.words[word]
	t.words[word] = wordEntry{had.class | e.class, cmp.Or(e.kind, had.kind), had.marks | e.marks, had.needs | e.needs}
}

// ClaimLanguages is a set of languages. The zero value finds nothing.
type ClaimLanguages struct{ tables []*wordTable }

// KnownClaimLanguages returns the codes of all languages, sorted.
func KnownClaimLanguages() []string {
	tables, _ := loadTables()
	return slices.Sorted(maps.Keys(tables))
}

// ParseClaimLanguages returns the languages with these codes (ISO 639-1). The error names an unknown one.
func ParseClaimLanguages(codes []string) (l ClaimLanguages, err error) {
	tables, _ := loadTables()
	for _, code := range codes {
		t := tables[code]
		if t == nil {
			return ClaimLanguages{}, fmt.Errorf("no claims are known in the language %q; use one of %s", code,
				strings.Join(KnownClaimLanguages(), ", "))
		}
		if !slices.Contains(l.tables, t) {
			l.tables = append(l.tables, t)
		}
	}
	return l, nil
}

// None reports whether the set is empty.
func (l ClaimLanguages) None() bool { return len(l.tables) == 0 }
