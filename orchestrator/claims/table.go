package claims

import (
	"embed"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// Tables are text: each line has a class and its words. "option" lines set properties of the language, the names of
// kinds classify participles, and "tool:" with a kind the words of tools. '#' begins a comment.
//
//go:embed tables/*.txt
var files embed.FS

// class is a set of word classes.
type class uint64

const (
	self      class = 1 << iota // the speaker
	have                        // auxiliary of the speaker's own action
	has                         // precedes was: "has been"
	is                          // auxiliary of a state
	was                         // auxiliary of the passive
	pron                        // a subject: "it"
	you                         // a subject that only some states fit
	your                        // begins a subject
	the                         // begins a subject, with less certainty
	and                         // joins clauses
	adv                         // may stand before a participle
	fresh                       // an adverb that speaks of now
	finished                    // a whole claim
	sep                         // begins a clause
	block                       // before the participle: nothing is asserted
	after                       // shortly after it: the same
	by                          // names another actor
	medium                      // follows by and is no actor
	full                        // shortly after a passive: the state is another one
	habit                       // anywhere in the sentence: a habit, or the past
	letter                      // anywhere in a text: it is written for the user to send
	work                        // the assistant's own texts
	idea                        // after a participle: nothing that a tool changes
	clitic                      // may stand between the speaker and the auxiliary
	plural                      // of self: "we"
	to                          // before an infinitive
	lately                      // "able" of "I was able to"
	condition                   // begins a clause after a state, which it makes open
	source                      // anywhere in the sentence: its states are read somewhere, or are instructions
	sees                        // after the speaker, the same
	manner                      // begins a sentence with the next
	hedge                       // anywhere before: a belief
	tag                         // asks about what was said before
	last                        // with period: the past
	period
	all
	particle // belongs to the verb before it
	stop     // ends an object
	purpose  // may follow a short claim
	verb     // a participle
	ofState  // of a verb: also with is
	stateOnly
	notPassive
	notPast
	infinitive
)

var classes = map[string]class{
	"self": self, "have": have, "has": has, "is": is, "was": was, "pron": pron, "you": you, "your": your, "the": the,
	"and": and, "adv": adv, "fresh": fresh, "finished": finished, "sep": sep, "block": block, "after": after, "by": by,
	"medium": medium, "full": full, "habit": habit, "letter": letter, "work": work, "idea": idea, "clitic": clitic, "lately": lately,
	"plural": plural, "to": to, "condition": condition, "source": source, "sees": sees,
	"manner": manner, "hedge": hedge, "tag": tag, "last": last, "period": period,
	"all": all, "particle": particle, "stop": stop, "purpose": purpose,
}

// suffixes of participles in a table.
var suffixes = map[byte]class{'=': ofState, '@': stateOnly, '!': notPassive, '%': notPast, '~': infinitive}

// marks is a set of letters: what a word denotes, or which objects a verb needs. Each table explains its letters.
type marks uint64

const (
	noun       = marks(1) << ('n' - 'A') // any object
	ours       = marks(1) << ('z' - 'A') // something of the speaker
	everywhere = marks(1)<<26 - 1        // capital letters: also after the object
)

func marksOf(letters string) (m marks) {
	for _, l := range []byte(letters) {
		m |= 1 << (l - 'A')
	}
	return m
}

type entry struct {
	class        class
	kind         Kind
	marks, needs marks // needs: of the verb's object
}

type table struct {
	code  string
	words map[string]entry
	// free: anything may stand between an auxiliary and its participle, and the speaker may follow the auxiliary.
	// pastTense: the participle is also the past tense. ordinals: a full stop may follow a number. compounds: the end of
	// a noun may be a word.
	free, pastTense, ordinals, compounds bool
}

var load = sync.OnceValues(loadAll)

// loadAll reads the tables, and the words of tools in all of them.
func loadAll() (map[string]*table, map[string]Kinds) {
	tables, tools := map[string]*table{}, map[string]Kinds{}
	found, err := files.ReadDir("tables")
	if err != nil {
		panic(err) // unreachable: the files are part of the program
	}
	for _, f := range found {
		text, err := files.ReadFile("tables/" + f.Name())
		if err != nil {
			panic(err)
		}
		t := &table{code: strings.TrimSuffix(f.Name(), ".txt"), words: map[string]entry{}}
		for line := range strings.Lines(string(text)) {
			if err := t.line(line, tools); err != nil {
				panic(fmt.Errorf("%s: %w", f.Name(), err))
			}
		}
		tables[t.code] = t
	}
	return tables, tools
}

func (t *table) line(line string, tools map[string]Kinds) error {
	fields := strings.Fields(line)
	if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
		return nil
	}
	name, words := fields[0], fields[1:]
	ofTools, isTools := strings.CutPrefix(name, "tool:")
	switch kind, isKind := kindOf(ofTools); {
	case name == "option":
		for _, o := range words {
			t.free, t.pastTense = t.free || o == "free", t.pastTense || o == "past"
			t.ordinals, t.compounds = t.ordinals || o == "ordinals", t.compounds || o == "compounds"
		}
	case isTools && isKind:
		for _, w := range words {
			tools[w] |= kind.set()
		}
	case isKind:
		for _, w := range words {
			t.addVerb(w, kind)
		}
	case strings.HasPrefix(name, "object:"):
		for _, w := range words {
			e := t.words[w]
			e.marks |= marksOf(name[len("object:"):])
			t.words[w] = e
		}
	case classes[name] != 0:
		for _, w := range words {
			e := t.words[w]
			e.class |= classes[name]
			t.words[w] = e
		}
	default:
		return fmt.Errorf("unknown class %q", name)
	}
	return nil
}

func (t *table) addVerb(word string, kind Kind) {
	c := verb
	for s := suffixes[word[len(word)-1]]; s != 0; s = suffixes[word[len(word)-1]] {
		c, word = c|s, word[:len(word)-1]
	}
	if c&infinitive != 0 {
		c = infinitive
	}
	word, needs, _ := strings.Cut(word, "/")
	e := t.words[word]
	e.class, e.kind, e.needs = e.class|c, kind, e.needs|marksOf(needs)
	t.words[word] = e
}

// Languages is a set of languages. The zero Languages finds nothing.
type Languages struct{ tables []*table }

// Known returns the codes of all languages, sorted.
func Known() []string {
	tables, _ := load()
	var all []string
	for code := range tables {
		all = append(all, code)
	}
	slices.Sort(all)
	return all
}

// ParseLanguages returns the languages with these codes (ISO 639-1). The error names an unknown one.
func ParseLanguages(codes []string) (l Languages, err error) {
	tables, _ := load()
	for _, code := range codes {
		t := tables[code]
		if t == nil {
			return Languages{}, fmt.Errorf("no claims are known in the language %q; use one of %s", code, strings.Join(Known(), ", "))
		}
		if !slices.Contains(l.tables, t) {
			l.tables = append(l.tables, t)
		}
	}
	return l, nil
}

// None reports whether the set is empty.
func (l Languages) None() bool { return len(l.tables) == 0 }
