package caller

import (
	"regexp"
	"strconv"
	"strings"
	"time"

	"voicegw/client/voice"
)

// Script is a file that was read. It never changes after ParseScript, so any number of
// callers may use it at once.
type Script struct {
	Name string
	// Provider, Agent and Voice are asked for in session.start; empty leaves them to the
	// gateway.
	Provider, Agent, Voice string
	// User is who calls, with variables.
	User string
	// NoMicrophone sends no audio at all.
	NoMicrophone bool
	// PushToTalk tells the model where speech begins and ends, instead of having it listen
	// for that.
	PushToTalk bool
	// Begin is how the session comes to be; nil for a plain one.
	Begin *Begin
	// Turns are gone through in order, at least one.
	Turns []Turn
}

// Begin is a way to a voice session by a ticket.
type Begin struct {
	// Chat is said to the text agent, which gives the ticket.
	Chat string
	// PendingRequest is asked in POST /v1/sessions, which gives the ticket. Either this or
	// Chat is set.
	PendingRequest string
	// Expect is what the answer to the request must be like.
	Expect Expect
	// Line is where it stands in the file.
	Line int
}

// Turn is one thing to do, and what is to come of it.
type Turn struct {
	voice.Turn
	// Line is where it stands in the file.
	Line int
	// Text is what is typed, or spoken by the built-in voice, with variables where it is
	// typed.
	Text string
	// Recording is what is spoken instead: the name of one, or AnyRecording.
	Recording string
	Expect    Expect
}

// AnyRecording is each of the run's recordings in its turn.
const AnyRecording = "any"

// Expect is what a turn must have come to. The zero value expects nothing but an answer.
type Expect struct {
	// Tools must be called in the turn and must not fail; NoTools must not be called,
	// AnyTool stands for all.
	Tools, NoTools []string
	// Text must match what the assistant says, NoText must not; Said must match what the
	// user was understood to say.
	Text, NoText, Said *regexp.Regexp
	// Within is the longest time to the first audio, FlushWithin to the flush of the answer
	// that the turn interrupts. Zero is any.
	Within, FlushWithin time.Duration
	// Asks are tools that must ask the user.
	Asks []string
	// Error is the code of an error that must come; the turn may fail then.
	Error string
}

// AnyTool in Expect.NoTools is every tool.
const AnyTool = "any"

// Count is how many things are expected.
func (e Expect) Count() int {
	n := len(e.Tools) + len(e.NoTools) + len(e.Asks)
	for _, set := range []bool{e.Text != nil, e.NoText != nil, e.Said != nil, e.Within > 0, e.FlushWithin > 0, e.Error != ""} {
		if set {
			n++
		}
	}
	return n
}

// NeedsText says whether what was said must be kept until the turn is judged.
func (e Expect) NeedsText() bool { return e.Text != nil || e.NoText != nil || e.Said != nil }

// Variables are the values of what stands as ${name} in a script.
type Variables struct {
	// Session is which caller, Call which of its calls, Pass how often the turns have been
	// gone through in it: all from 1.
	Session, Call, Pass int
}

// variable is what Fill fills in.
var variable = regexp.MustCompile(`\$\{([^}]*)\}`)

// variables are the known ones.
var variables = []string{"session", "call", "pass"}

// Fill puts variables into a text.
func (v Variables) Fill(text string) string {
	if !strings.Contains(text, "${") {
		return text
	}
	return variable.ReplaceAllStringFunc(text, func(found string) string {
		switch strings.TrimSuffix(strings.TrimPrefix(found, "${"), "}") {
		case "session":
			return strconv.Itoa(v.Session)
		case "call":
			return strconv.Itoa(v.Call)
		case "pass":
			return strconv.Itoa(v.Pass)
		default:
			return found // ParseScript has refused it
		}
	})
}
