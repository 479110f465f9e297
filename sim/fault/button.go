package fault

import (
	"fmt"
	"slices"
	"time"

	"voicegw/internal/strict"
)

// Button is a fault that a person can inject into an open connection.
type Button struct {
	Do    Kind
	Label string
	// For is the default duration; zero if the fault has none.
	For time.Duration
}

var buttons = []Button{
	{Drop, "Drop the provider's connection", 0},
	{Close, "Close the connection with a code", 0},
	{GoAway, "Announce the end of the connection, then end it", 10 * time.Second},
	{Expire, "Let the provider's session expire", 0},
	{Delay, "Hold everything back", 2 * time.Second},
	{Silence, "Drop everything the model says", 5 * time.Second},
	{SlowRead, "Read slowly", 500 * time.Millisecond},
	{DuplicateCall, "Send the next tool call twice", 0},
	{LateCall, "Send the next tool call after its turn", 2 * time.Second},
	{CancelCall, "Withdraw the next tool call", 300 * time.Millisecond},
	{MissingID, "Send the next tool call without an id", 0},
	{Malformed, "Send a broken frame", 0},
	{UnknownEvent, "Send an event of an unknown type", 0},
	{Quota, "Report that the quota is used up", 0},
	{Deaf, "Hear the user, but never answer again", 0},
	{RefuseResume, "Refuse the next resume of the conversation (Gemini)", 0},
	{Amnesia, "Forget everything at the next resume (Gemini)", 0},
	{LateHandle, "Send resumption handles late (Gemini)", 5 * time.Second},
	{NoHandle, "Send no resumption handles (Gemini)", 0},
	{BusyHandle, "Send resumption handles also during answers (Gemini)", 0},
}

// Buttons lists the faults that a person can inject.
func Buttons() []Button { return slices.Clone(buttons) }

// PressError is a mistake in a request, worded for the person who made it.
type PressError struct {
	// Field is "do", "for_ms" or "code".
	Field   string
	Message string
}

func (e *PressError) Error() string { return e.Message }

// Press makes a button's action. A nil d means the button's default duration, code 0 the provider's default. The
// error is a *PressError.
func Press(do string, d *time.Duration, code int) (Action, error) {
	i := slices.IndexFunc(buttons, func(b Button) bool { return string(b.Do) == do })
	if i < 0 {
		return Action{}, &PressError{"do", "do must be one of " + strict.Join(words()) + "."}
	}
	a := Action{Kind: buttons[i].Do, For: buttons[i].For, Code: code}
	switch {
	case d != nil && a.For == 0:
		return Action{}, &PressError{"for_ms", fmt.Sprintf("for_ms does not apply to %s.", do)}
	case d != nil && (*d < 0 || *d > longest):
		return Action{}, &PressError{"for_ms", fmt.Sprintf("for_ms must be between 0 and %d.", longest.Milliseconds())}
	case code != 0 && !a.coded():
		return Action{}, &PressError{"code", fmt.Sprintf("code does not apply to %s.", do)}
	case code != 0 && !sendable(code):
		return Action{}, &PressError{"code", fmt.Sprintf(
			"code %d cannot be sent in a close frame: 1000 to 1003, 1007 to 1014 and 3000 to 4999 can.", code)}
	}
	if d != nil {
		a.For = *d
	}
	a.fill()
	return a, nil
}

func words() []string {
	var all []string
	for _, b := range buttons {
		all = append(all, string(b.Do))
	}
	return all
}

// OfCall reports whether a fault concerns a tool call; pressed by hand, it affects the next one.
func (k Kind) OfCall() bool {
	return k == DuplicateCall || k == LateCall || k == CancelCall || k == MissingID
}
