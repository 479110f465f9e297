// Package checks checks what an assistant says before it is heard or read. A [Set] is the operator's ordered list of
// checks. A [Gate] stands between a model and its listener: it releases words and sound once the checks have passed them,
// or after the hold-back, and stops an answer that a check refuses. The decisions are a pure state machine, line.
package checks

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"voicegw/internal/logging"
)

// Outcome is what follows if a check stops an answer.
type Outcome string

// The outcomes.
const (
	Replace Outcome = "replace" // the user gets Rule.Say instead of the rest
	Cut     Outcome = "cut"     // the answer ends there; if nothing of it was heard, the model is asked to say something else
	End     Outcome = "end"     // the conversation ends with Rule.Say
)

// Rule is one check. It has Patterns, Words, Claims or a Remote.
type Rule struct {
	Name    string
	Outcome Outcome
	Say     string // may be empty, except with Replace
	// Block means that text that the check could not decide in time is refused. Otherwise it passes.
	Block    bool
	Patterns []*regexp.Regexp
	Words    []string // words or phrases, in any case
	Claims   bool     // the Gate's Listener knows which statements are untrue
	Remote   Remote
	Timeout  time.Duration // of a request of Remote; zero means 3 s

	phrases map[string][][]string // Words, folded, by the first of each
	longest int                   // of phrases; a number of words
	slots   chan struct{}
	counts  [4]atomic.Int64 // of results
}

// Text is text of an assistant that a Remote checks.
type Text struct {
	SessionID, ConversationID string // ConversationID may be empty
	Text                      string // the answer so far
	New                       string // the end of Text that was not checked before
}

// Remote is a check by another program. It may be used concurrently and must return soon after the end of ctx.
type Remote interface {
	Check(ctx context.Context, t Text) (pass bool, err error)
}

// Why is the reason for a stop.
type Why string

// The reasons.
const (
	Matched Why = "matched" // the check refuses the text
	Late    Why = "late"    // no decision within the hold-back
	Failed  Why = "failed"  // the check failed
)

// passed is the result of a request to a Remote that refuses nothing.
const passed Why = "passed"

var results = []Why{passed, Matched, Late, Failed}

// Stop is the decision to stop an answer.
type Stop struct {
	Rule *Rule
	Item string
	Why  Why
	Text string // of Rule.Claims: all words up to the untrue ones
}

// Set is an ordered list of checks. It is immutable after New and may be used concurrently. A nil Set checks nothing.
type Set struct {
	HoldBack time.Duration // how long speech waits for its checks; zero lets it pass and stops it afterwards
	rules    []*Rule
	remote   bool // some rule is
	words    bool // some rule has words
	seldom   *logging.Throttle
}

// Limits of a set.
const (
	MaxRules  = 20
	maxPhrase = 200  // bytes of an entry of Rule.Words
	maxAtOnce = 64   // requests of one check at the same time, over all conversations
	maxWindow = 4096 // bytes before an unchecked text that patterns see
	maxClause = 1024 // bytes of a sentence; a longer one is divided
)

// New returns a set of rules, which it takes over; nil without rules. An error names the rule.
func New(holdBack time.Duration, logger *slog.Logger, rules ...*Rule) (*Set, error) {
	if len(rules) == 0 {
		return nil, nil
	}
	s := &Set{HoldBack: holdBack, rules: rules, seldom: logging.NewThrottle(logger)}
	for _, r := range rules {
		if err := r.prepare(); err != nil {
			return nil, fmt.Errorf("the check %s %w", r.Name, err)
		}
		s.remote, s.words = s.remote || r.Remote != nil, s.words || r.Words != nil
	}
	for _, r := range rules {
		for _, by := range rules {
			if refused, _ := by.match(r.Say, 0, true); by.Remote == nil && refused {
				return nil, fmt.Errorf("the check %s says words that the check %s refuses: change say", r.Name, by.Name)
			}
		}
	}
	return s, nil
}

func (r *Rule) prepare() error {
	kinds := 0
	for _, has := range []bool{len(r.Patterns) > 0, len(r.Words) > 0, r.Claims, r.Remote != nil} {
		if has {
			kinds++
		}
	}
	switch {
	case kinds != 1:
		return errors.New("needs patterns, words, claims or an endpoint, and only one of them")
	case r.Outcome == Replace && strings.TrimSpace(r.Say) == "":
		return errors.New("replaces answers and needs say, the words that the user gets instead")
	}
	for _, words := range r.Words {
		phrase := tokens(words, 0)
		if len(phrase) == 0 || len(words) > maxPhrase {
			return fmt.Errorf("has the entry %q: each needs a letter or a digit, and at most %d bytes", words, maxPhrase)
		}
		var folded []string
		for _, t := range phrase {
			folded = append(folded, t.word)
		}
		if r.phrases == nil {
			r.phrases = map[string][][]string{}
		}
		r.phrases[folded[0]] = append(r.phrases[folded[0]], folded)
		r.longest = max(r.longest, len(folded))
	}
	if r.Timeout <= 0 {
		r.Timeout = 3 * time.Second
	}
	r.slots = make(chan struct{}, maxAtOnce)
	return nil
}

// Count is how often a check came to a result.
type Count struct {
	Check, Result string // Result is "passed", for requests to a Remote alone, or a Why
	N             int64
}

// Counts returns the counters of all checks. s may be nil.
func (s *Set) Counts() (all []Count) {
	if s == nil {
		return nil
	}
	for _, r := range s.rules {
		for i, result := range results {
			all = append(all, Count{r.Name, string(result), r.counts[i].Load()})
		}
	}
	return all
}

func (r *Rule) count(result Why) { r.counts[slices.Index(results, result)].Add(1) }

// match looks for r in a text that has passed up to a byte. If it finds nothing, the text passes up to upTo.
func (r *Rule) match(text string, passed int, final bool) (found bool, upTo int) {
	if r.Words != nil {
		return r.matchWords(text, passed, final)
	}
	window := text[runeStart(text, passed-maxWindow):]
	plain := visible(window)
	for _, p := range r.Patterns {
		if p.MatchString(window) || plain != window && p.MatchString(plain) {
			return true, passed
		}
	}
	return false, sentences(text, passed, final)
}

// matchWords keeps the last words back, because they may be the beginning of a phrase.
func (r *Rule) matchWords(text string, passed int, final bool) (found bool, upTo int) {
	all := tokens(text, runeStart(text, passed-2*maxPhrase))
	whole := len(all) // complete words
	if n := len(all); n > 0 && !final && all[n-1].end == len(text) && !all[n-1].single {
		whole--
	}
	for i := range all[:whole] {
		for _, p := range r.phrases[all[i].word] {
			if i+len(p) <= whole && slices.EqualFunc(all[i:i+len(p)], p, func(t token, w string) bool { return t.word == w }) {
				return true, passed
			}
		}
	}
	keep := max(whole-(r.longest-1), 0)
	switch {
	case final:
		return false, len(text)
	case keep < len(all):
		return false, max(passed, all[keep].start)
	}
	return false, len(text)
}

type token struct {
	word       string // folded
	start, end int
	single     bool // of a script without spaces: each character is a word
}

// Compatibility forms, case, lookalikes and invisible characters make no difference.
func fold(word string) string {
	return latin(norm.NFKC.String(cases.Fold().String(visible(word))))
}

// visible returns the text without invisible characters and compatibility forms.
func visible(text string) string {
	return norm.NFKC.String(strings.Map(func(r rune) rune {
		if invisible(r) {
			return -1
		}
		return r
	}, text))
}

// invisible reports whether a character has no shape: Default_Ignorable_Code_Point of UAX #44.
func invisible(r rune) bool {
	return r >= utf8.RuneSelf && unicode.In(r, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// latin replaces letters of other scripts that look like Latin ones, in a word that has Latin ones too.
func latin(word string) string {
	if utf8.RuneCountInString(word) == len(word) || !strings.ContainsFunc(word, func(r rune) bool { return unicode.Is(unicode.Latin, r) }) {
		return word
	}
	return lookalikes.Replace(word)
}

// lookalikes are the usual ones of UTS #39: Cyrillic, Greek and rare Latin letters.
var lookalikes = func() *strings.Replacer {
	pairs := []string{"i\u0307", "i"}
	for i, r := range []rune("\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0456\u0458\u0455\u0501\u04bb\u051b\u051d\u043a\u043c\u0442" +
		"\u043f\u0432\u03b1\u03bf\u03c1\u03bd\u03ba\u03b9\u03c4\u03c5\u03c7\u0131\u0251\u0261") {
		pairs = append(pairs, string(r), "aeopcyxijsdhqwkmtnbaopvkituxiag"[i:i+1])
	}
	return strings.NewReplacer(pairs...)
}()

func unspaced(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
}

// tokens returns the words of text from a byte on.
func tokens(text string, from int) (all []token) {
	start := -1
	end := func(at int, single bool) {
		if start >= 0 {
			all = append(all, token{fold(text[start:at]), start, at, single})
		}
		start = -1
	}
	for i, r := range text[from:] {
		i += from
		switch {
		case unspaced(r):
			end(i, false)
			start = i
			end(i+utf8.RuneLen(r), true)
		case unicode.In(r, unicode.L, unicode.N, unicode.M, unicode.Other_Alphabetic) || start >= 0 && invisible(r):
			if start < 0 {
				start = i
			}
		default:
			end(i, false)
		}
	}
	end(len(text), false)
	return all
}

// sentences returns the end of the last complete sentence after from, or from.
func sentences(text string, from int, final bool) int {
	if final {
		return len(text)
	}
	end, ended := from, false
	for i, r := range text[from:] {
		switch {
		case r == '\n' || strings.ContainsRune("。！？", r):
			end, ended = from+i+utf8.RuneLen(r), false
		case strings.ContainsRune(".!?…", r):
			ended = true
		case ended && unicode.IsSpace(r):
			end, ended = from+i+utf8.RuneLen(r), false
		case !unicode.In(r, unicode.Pe, unicode.Pf, unicode.Pi) && r != '"' && r != '\'':
			ended = false
		}
	}
	if end == from && len(text)-from > maxClause {
		return runeStart(text, from+maxClause)
	}
	return end
}

func runeStart(text string, at int) int {
	if at <= 0 {
		return 0
	}
	for at < len(text) && !utf8.RuneStart(text[at]) {
		at++
	}
	return at
}
