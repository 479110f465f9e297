package registry

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"voicegw/registry/document"
	"voicegw/registry/spec"
)

// IntentType is a kind of change to the session that a tool requests.
type IntentType string

// Intents. Only the state controller applies them, and only on success.
const (
	// IntentEndVoiceSession ends the voice session at the time in After.
	IntentEndVoiceSession IntentType = "END_VOICE_SESSION"
	// IntentSuppressAudio disables the model's audio (Value true) or enables it again.
	IntentSuppressAudio IntentType = "SUPPRESS_AUDIO"
	// IntentSuppressTranscript disables transcripts (Value true) or enables them again.
	IntentSuppressTranscript IntentType = "SUPPRESS_TRANSCRIPT"
	// IntentSetPendingMessage queues Message for the next turn.
	IntentSetPendingMessage IntentType = "SET_PENDING_MESSAGE"
	// IntentSwitchAgent switches the conversation to another agent.
	IntentSwitchAgent IntentType = "SWITCH_AGENT"
	// IntentTransferCall ends the voice session after the farewell and connects the phone call with another number.
	IntentTransferCall IntentType = "TRANSFER_CALL"
	// IntentSayExactly says Text to the user in these words. The model gets the tool's answer afterwards.
	IntentSayExactly IntentType = "SAY_EXACTLY"
)

// EndAfter is when a voice session ends.
type EndAfter string

// The moments.
const (
	EndAfterCurrentTurn    EndAfter = "current_turn"
	EndAfterFarewellSpoken EndAfter = "farewell_spoken"
	EndNow                 EndAfter = "now"
)

// Intent is a change to the session that a tool requests. Make one with [EndVoiceSession], [SuppressAudio],
// [SuppressTranscript], [SetPendingMessage], [SwitchAgent], [TransferCall] or [SayExactly]; fields of other types must be
// zero. Its JSON has only the fields of its type.
type Intent struct {
	Type    IntentType `json:"type"`
	After   EndAfter   `json:"after,omitempty"`   // for END_VOICE_SESSION
	Message string     `json:"message,omitempty"` // for SET_PENDING_MESSAGE and SWITCH_AGENT, at most MaxPendingMessage characters
	Agent   string     `json:"agent,omitempty"`   // for SWITCH_AGENT: the agent's name, at most MaxAgent bytes
	Reason  string     `json:"reason,omitempty"`  // for SWITCH_AGENT, at most MaxReason characters
	To      string     `json:"to,omitempty"`      // for TRANSFER_CALL: the name of a number in the gateway's configuration
	Value   bool       `json:"value,omitempty"`   // for SUPPRESS_AUDIO and SUPPRESS_TRANSCRIPT
	Text    string     `json:"text,omitempty"`    // for SAY_EXACTLY, at most MaxSentence characters
	// MustHear is for SAY_EXACTLY: the text is said again if something interrupts it.
	MustHear bool `json:"mustHear,omitempty"`
}

// MaxPendingMessage limits the message of SET_PENDING_MESSAGE, MaxSentence the text of SAY_EXACTLY, in characters.
const (
	MaxPendingMessage = 2000
	MaxSentence       = 1000
)

// MaxAgent and MaxReason limit the name, in bytes, and the reason, in characters, of SWITCH_AGENT.
const (
	MaxReason = 300
)

// EndVoiceSession ends the voice session.
func EndVoiceSession(after EndAfter) Intent { return Intent{Type: IntentEndVoiceSession, After: after} }

// SuppressAudio disables the model's audio, or enables it again.
func SuppressAudio(off bool) Intent { return Intent{Type: IntentSuppressAudio, Value: off} }

// SuppressTranscript disables transcripts, or enables them again.
func SuppressTranscript(off bool) Intent { return Intent{Type: IntentSuppressTranscript, Value: off} }

// SetPendingMessage queues message for the next turn.
func SetPendingMessage(message string) Intent {
	return Intent{Type: IntentSetPendingMessage, Message: message}
}

// SwitchAgent switches the conversation to the agent of that name. message is for that agent and may be empty.
func SwitchAgent(agent, reason, message string) Intent {
	return Intent{Type: IntentSwitchAgent, Agent: agent, Reason: reason, Message: message}
}

// TransferCall ends the voice session and connects the phone call with the number of that name. Without a phone, or with
// another name, it is refused.
func TransferCall(to string) Intent { return Intent{Type: IntentTransferCall, To: to} }

// SayExactly says text to the user in exactly these words, before the model answers. It is refused outside voice sessions.
func SayExactly(text string, mustHear bool) Intent {
	return Intent{Type: IntentSayExactly, Text: text, MustHear: mustHear}
}

// MarshalJSON encodes the fields of the intent's type; a SUPPRESS intent always has Value.
func (i Intent) MarshalJSON() ([]byte, error) {
	type plain Intent
	if i.Type == IntentSuppressAudio || i.Type == IntentSuppressTranscript {
		return json.Marshal(struct {
			Type  IntentType `json:"type"`
			Value bool       `json:"value"`
		}{i.Type, i.Value})
	}
	return json.Marshal(plain(i))
}

func (i Intent) check() error {
	var want Intent
	switch i.Type {
	case IntentEndVoiceSession:
		switch i.After {
		case EndAfterCurrentTurn, EndAfterFarewellSpoken, EndNow:
		default:
			return fmt.Errorf("the intent %s after %q: it is current_turn, farewell_spoken or now", i.Type,
				document.Shorten(string(i.After), 40))
		}
		want = Intent{Type: i.Type, After: i.After}
	case IntentSuppressAudio, IntentSuppressTranscript:
		want = Intent{Type: i.Type, Value: i.Value}
	case IntentSetPendingMessage:
		if n := utf8.RuneCountInString(i.Message); n == 0 || n > MaxPendingMessage {
			return fmt.Errorf("the intent %s with %d characters: it has 1 to %d", i.Type, n, MaxPendingMessage)
		}
		want = Intent{Type: i.Type, Message: i.Message}
	case IntentSwitchAgent:
		switch {
		case i.Agent == "" || len(i.Agent) > spec.MaxAgent:
			return fmt.Errorf("the intent %s with an agent of %d bytes: it has 1 to %d", i.Type, len(i.Agent), spec.MaxAgent)
		case utf8.RuneCountInString(i.Reason) > MaxReason || utf8.RuneCountInString(i.Message) > MaxPendingMessage:
			return fmt.Errorf("the intent %s with a reason or message that is too long: at most %d and %d characters",
				i.Type, MaxReason, MaxPendingMessage)
		}
		want = Intent{Type: i.Type, Agent: i.Agent, Reason: i.Reason, Message: i.Message}
	case IntentTransferCall:
		if i.To == "" || len(i.To) > spec.MaxAgent {
			return fmt.Errorf("the intent %s to a name of %d bytes: it has 1 to %d", i.Type, len(i.To), spec.MaxAgent)
		}
		want = Intent{Type: i.Type, To: i.To}
	case IntentSayExactly:
		if n := utf8.RuneCountInString(i.Text); strings.TrimSpace(i.Text) == "" || n > MaxSentence {
			return fmt.Errorf("the intent %s with %d characters: it has 1 to %d, and not only white space", i.Type, n, MaxSentence)
		}
		want = Intent{Type: i.Type, Text: i.Text, MustHear: i.MustHear}
	default:
		return fmt.Errorf("the intent %q is unknown", document.Shorten(string(i.Type), 40))
	}
	if i != want {
		return fmt.Errorf("the intent %s has a field that it does not take", i.Type)
	}
	return nil
}
