// Package scenario decides about the speech and the actions of the simulated model.
//
// A Scenario is read from YAML (Parse, Default); a Dialogue is a conversation that follows it. The dialogue is pure
// and has no clock: it takes the user's words or results and returns the steps of a turn, which the wires carry out.
package scenario

import (
	_ "embed"
	"fmt"
	"regexp"
	"sync"
	"time"
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
	key string
	run func(b *builder)
	// then and onError are steps after the results of a call.
	then, onError []step
	as            template // of treat_as
}

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
