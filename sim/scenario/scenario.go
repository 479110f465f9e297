package scenario

import (
	_ "embed"
	"fmt"
	"regexp"
	"sync"
	"time"

	"voicegw/sim/fault"
)

// Scenario is a parsed scenario file. It is immutable and safe for concurrent use.
type Scenario struct {
	start     []step // nil for the built-in greeting
	rules     []rule
	otherwise []step // nil for auto
}

type rule struct {
	when  when
	heard template // empty if the rule gives no words for speech
	do    []step   // nil if the rule only gives the words of speech
	times int      // maximum uses; 0 for no limit
}

type input int

const (
	onSpeech input = iota
	onText
	onResult
	onPrompt
)

// when is the condition of a rule. Zero values match anything.
type when struct {
	input     input
	utterance int            // onSpeech: its number, from 1
	text      *regexp.Regexp // onText and onPrompt
	tool      string         // onResult
	ok        *bool          // onResult
	errType   string         // onResult
	output    *regexp.Regexp // onResult
	declared  string         // a tool that the client must have declared
	// remembers must each match a line of the model's memory, forgot must match none.
	remembers, forgot []*regexp.Regexp
}

type step struct {
	kind    stepKind
	say     []template    // one is said; also the words of a refusal
	wait    time.Duration // also the length of a silence
	calls   []callStep
	then    []step // kind call: after the results
	onError []step // kind call: instead of then after an error
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

type callStep struct {
	tool   string
	id     template // empty: the wire makes an id
	args   any      // as read: map[string]any, with text as templates
	noID   bool
	repeat int
	late   time.Duration
}

//go:embed default.yaml
var defaultYAML []byte

var loadDefault = sync.OnceValue(func() *Scenario {
	s, err := Parse("default.yaml", defaultYAML)
	if err != nil {
		panic(fmt.Sprintf("scenario: the built-in scenario is wrong: %v", err))
	}
	return s
})

// Default returns the built-in scenario.
func Default() *Scenario { return loadDefault() }
