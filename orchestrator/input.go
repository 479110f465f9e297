package orchestrator

import (
	"time"

	"voicegw/orchestrator/calls"
	"voicegw/transport"
)

// Input is one thing that has happened. The set is closed.
type Input interface{ input() }

// OfCall is what came of a tool call that runs, or of a question to the user.
type OfCall struct{ In calls.Input }

// Began is the first input of a session.
type Began struct {
	// PendingRequest is what the user asked before the session: it is answered
	// first. Empty for none.
	PendingRequest string
	// Context is what was said before the session, in lines: the model is told of it
	// with its first turn, the client is not. Empty for none. With it, or a pending
	// request, there is no greeting.
	Context string
	// Greeting tells the model how to open the conversation. Empty: it waits.
	Greeting string
}

// FromModel is an event of the model, but for the user's speech and the audio,
// which have inputs of their own.
type FromModel struct{ Event transport.Event }

// UserSpeechStarted and UserSpeechStopped are where the user's speech was heard,
// by the model or by the gateway itself.
type UserSpeechStarted struct {
	Item string
	// AudioMS is on the client's audio clock.
	AudioMS int64
	// At is when that sample reached the gateway.
	At time.Time
}

// UserSpeechStopped is the other end of UserSpeechStarted.
type UserSpeechStopped struct {
	Item    string
	AudioMS int64
	// EndAt is when the last voiced sample reached the gateway.
	EndAt time.Time
	// SpeechMS is how long the user spoke.
	SpeechMS int64
}

// UserHeard says that the gateway's own ear still hears the user speak. It comes at least
// every [HeardEvery] while that is so.
type UserHeard struct {
	// AudioMS is on the client's audio clock.
	AudioMS int64
}

// HeardEvery is how often the orchestrator wants to hear that the user still speaks.
const HeardEvery = 5 * time.Second

// AudioBegan says that the first audio of an item has come from the model.
type AudioBegan struct{ Item string }

// AudioEnded says that all audio of an item has come: AudioMS in all.
type AudioEnded struct {
	Item    string
	AudioMS int64
}

// AudioSent says how much of an item has left for the client: more than at the last time.
type AudioSent struct {
	Item string
	// Sent is all that has left of the item, and Until is when a client that plays at once
	// has played it, as [PlayClock] has it.
	Sent  time.Duration
	Until time.Time
}

// UserText is a typed turn.
type UserText struct{ ID, Text string }

// UserInterrupt says that the user pressed stop.
type UserInterrupt struct{}

// UserActivity is push-to-talk: the user says when speech starts and ends.
type UserActivity struct {
	Active  bool
	AudioMS int64
}

// Played is the client's report of what of an item was heard.
type Played struct {
	Item string
	MS   int64
	Done bool
}

// ConfirmationAnswer is the user's answer, from the client.
type ConfirmationAnswer struct {
	Token    string
	Approved bool
}

// HungUp says that the user ended the session.
type HungUp struct{}

// Over says that the session has ended, whatever ended it: from here on only what still
// runs is journalled.
type Over struct{}

// Tick says only that time has passed: see State.WakeAt.
type Tick struct{}

func (OfCall) input()             {}
func (Began) input()              {}
func (FromModel) input()          {}
func (UserSpeechStarted) input()  {}
func (UserSpeechStopped) input()  {}
func (UserHeard) input()          {}
func (AudioBegan) input()         {}
func (AudioEnded) input()         {}
func (AudioSent) input()          {}
func (UserText) input()           {}
func (UserInterrupt) input()      {}
func (UserActivity) input()       {}
func (Played) input()             {}
func (ConfirmationAnswer) input() {}
func (HungUp) input()             {}
func (Over) input()               {}
func (Tick) input()               {}
