package scenario

import (
	_ "embed"
	"fmt"
	"regexp"
	"sync"
	"time"

	"voicegw/sim/fault"
)

// Scenario is a parsed scenario file. It is immutable after Parse and may be used
// concurrently by any number of dialogues.
type Scenario struct {
	start     []step // nil means the built-in greeting
	rules     []rule
	otherwise []step // nil means auto
}

// rule is one entry of `rules`.
type rule struct {
	when  when
	heard template // empty if the rule does not give the words of speech
	do    []step   // nil if the rule only gives the words of speech
	times int      // how often it may be used; 0 means no limit
}

// input is the kind of input to which a rule applies.
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
	utterance int            // onSpeech: its number, from 1; 0 means any
	text      *regexp.Regexp // onText and onPrompt; nil means any
	tool      string         // onResult; "" is any
	ok        *bool          // onResult; nil means either
	errType   string         // onResult; "" is any
	output    *regexp.Regexp // onResult; nil means any
	declared  string         // a tool the client must have declared; "" means no condition
	// remembers must each match a line of the model's memory, forgot must match none.
	remembers, forgot []*regexp.Regexp
}

// step is one step of the file.
type step struct {
	kind    stepKind
	say     []template    // one of them is said; also the words of a refusal
	wait    time.Duration // also the length of a silence
	calls   []callStep
	then    []step // kind call: after the results
	onError []step // kind call: instead of then, if a result is an error
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

// callStep is one call of the file.
type callStep struct {
	tool   string
	id     template // empty: the wire makes an id
	args   any      // as read: map[string]any with templates as template
	noID   bool
	repeat int
	late   time.Duration
}

//go:embed default.yaml
var defaultYAML []byte

// loadDefault parses the built-in scenario once; a test checks that it is valid.
var loadDefault = sync.OnceValue(func() *Scenario {
	s, err := Parse("default.yaml", defaultYAML)
	if err != nil {
		panic(fmt.Sprintf("scenario: the built-in scenario is wrong: %v", err))
	}
	return s
})

// Default returns the built-in scenario.
func Default() *Scenario { return loadDefault() }
