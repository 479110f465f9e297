package load

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"voicegw/client/voice"
)

// Script is a parsed script. It is immutable and safe for concurrent use.
type Script struct {
	Name string
	// Provider, Agent and Voice are sent in session.start; empty means the gateway's default.
	Provider, Agent, Voice string
	User                   string
	NoMicrophone           bool
	// PushToTalk reports the start and end of speech to the model instead of letting it detect them.
	PushToTalk bool
	// Begin creates the session; nil for a plain one.
	Begin *Begin
	Turns []Turn
}

// SeesTools reports whether the script depends on the gateway's tools, which some wires show only on request.
func (s *Script) SeesTools() bool {
	return slices.ContainsFunc(s.Turns, func(t Turn) bool {
		e := t.Expect
		return t.WaitFor == voice.ForTool || t.Approval != voice.ApprovalNobody || len(e.Tools)+len(e.NoTools)+len(e.Asks) > 0
	})
}

// Begin gets a voice session with a ticket, from Chat or PendingRequest.
type Begin struct {
	Chat string
	// PendingRequest is the first question, sent in POST /v1/sessions.
	PendingRequest string
	Expect         Expect
	Line           int
}

// Turn is an action and its expected results.
type Turn struct {
	voice.Turn
	Line int
	// Text is typed, with variables, or spoken by the built-in voice.
	Text string
	// Recording is spoken instead: a name, or AnyRecording.
	Recording string
	Expect    Expect
}

// AnyRecording is the next of the run's recordings.
const AnyRecording = "any"

// Expect is the expected result of a turn. The zero value expects only an answer.
type Expect struct {
	// Tools must be called in the turn and succeed; NoTools, or with AnyTool any tool, must not be called.
	Tools, NoTools []string
	// Text and NoText match the assistant's transcript, Said the user's.
	Text, NoText, Said *regexp.Regexp
	// Within limits the time to the first audio, FlushWithin the time to the flush of the interrupted answer. Zero
	// means no limit.
	Within, FlushWithin time.Duration
	// Asks are tools that must ask for approval.
	Asks []string
	// Error is the code of an expected error; the turn may then fail.
	Error string
}

// AnyTool in Expect.NoTools means every tool.
const AnyTool = "any"

// Count returns the number of expectations.
func (e Expect) Count() int {
	n := len(e.Tools) + len(e.NoTools) + len(e.Asks)
	for _, set := range []bool{e.Text != nil, e.NoText != nil, e.Said != nil, e.Within > 0, e.FlushWithin > 0, e.Error != ""} {
		if set {
			n++
		}
	}
	return n
}

// NeedsText reports whether transcripts are kept until the turn is judged.
func (e Expect) NeedsText() bool { return e.Text != nil || e.NoText != nil || e.Said != nil }

// Variables are the values of ${name} in a script.
type Variables struct {
	// Session is the caller, Call its call, Pass the repetition of the script in it; all from 1.
	Session, Call, Pass int
}

var variable = regexp.MustCompile(`\$\{([^}]*)\}`)

var variables = []string{"session", "call", "pass"}

// Fill replaces the variables in a text.
func (v Variables) Fill(text string) string {
	return strings.NewReplacer("${session}", strconv.Itoa(v.Session), "${call}", strconv.Itoa(v.Call), "${pass}", strconv.Itoa(v.Pass)).
		Replace(text)
}
