package scenario

import (
	_ "embed"
	"fmt"
	"regexp"
	"sync"
	"time"

	"voicegw/sim/fault"
)

// Scenario is a parsed scenario file. It never changes after Parse, so any
// number of dialogues may use it at once.
type Scenario struct {
	name      string
	start     []step // nil is the built-in greeting
	rules     []rule
	otherwise []step // nil is auto
}

// Name is the file's own name for itself, empty when it has none.
func (s *Scenario) Name() string { return s.name }

// rule is one entry of `rules`.
type rule struct {
	when  when
	heard template // empty when the rule does not say what speech said
	do    []step   // nil when the rule only says what was heard
	times int      // how often it may be used; 0 is without limit
}

// input is what kind of input a rule is about.
type input int

const (
	onSpeech input = iota
	onText
	onResult
	onPrompt
)

// when is the condition of a rule.
type when struct {
	input     input
	utterance int            // onSpeech: which one, from 1; 0 is any
	text      *regexp.Regexp // onText and onPrompt; nil is any
	tool      string         // onResult; "" is any
	ok        *bool          // onResult; nil is either
	errType   string         // onResult; "" is any
	output    *regexp.Regexp // onResult; nil is any
	declared  string         // a tool the client must have declared; "" is none
}

// step is one step as it stands in the file.
type step struct {
	kind    stepKind
	say     []template    // one of them is said; also the words of a refusal
	wait    time.Duration // also the length of a silence
	calls   []callStep
	then    []step // kind call: after the results
	onError []step // kind call: instead of then, when a result is an error
	fault   fault.Action
	end     End
	keep    map[string]template // kind remember: values by name
	as      template            // kind treat_as
}

type stepKind int

const (
	stepSay stepKind = iota
	stepSilence
	stepWait
	stepCall
	stepFault
	stepEnd
	stepAuto
	stepRemember
	stepRefuse
	stepTreatAs
)

// callStep is one call as it stands in the file.
type callStep struct {
	tool   string
	id     template // empty: the wire makes one
	args   any      // as read: map[string]any with templates as template
	noID   bool
	repeat int
	late   time.Duration
}

//go:embed default.yaml
var defaultYAML []byte

// loadDefault parses the built-in scenario once; a test holds it to be right.
var loadDefault = sync.OnceValue(func() *Scenario {
	s, err := Parse("default.yaml", defaultYAML)
	if err != nil {
		panic(fmt.Sprintf("scenario: the built-in scenario is wrong: %v", err))
	}
	return s
})

// Default is the scenario that is built in.
func Default() *Scenario { return loadDefault() }

// DefaultYAML is the source of Default, to begin one's own file with.
func DefaultYAML() []byte { return append([]byte(nil), defaultYAML...) }
