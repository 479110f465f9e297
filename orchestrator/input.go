package orchestrator

import (
	"encoding/json"
	"time"

	"voicegw/cost"
	"voicegw/orchestrator/calls"
	"voicegw/orchestrator/policy"
	"voicegw/registry"
	"voicegw/transport"
)

// Input is one event of a session. The set is closed.
type Input interface{ input() }

// OfCall carries the result of a running tool call, or of a question to the user.
type OfCall struct{ In calls.Input }

// Began is the first input of a session.
type Began struct {
	// PendingRequest is what the user asked before the session; it is answered first. It may be
	// empty.
	PendingRequest string
	// Context is what was said before the session, in lines. The model gets it with its first
	// turn; the client does not see it. It may be empty. If there is a Context or a
	// PendingRequest, the model does not greet.
	Context string
	// Greeting tells the model how to open the conversation. If it is empty, the model waits.
	Greeting string
}

// FromModel is an event of the model, except the user's speech, the audio and what was used, which
// have inputs of their own.
type FromModel struct{ Event transport.Event }

// Used reports the tokens that the model has used since the last Used, and what they cost. They
// count also if the connection that reports them was given up.
type Used struct {
	Tokens transport.Tokens
	Cost   cost.Amount
	// Late means that they belong to a turn that has ended and was estimated. Estimate is what a Guessed
	// has counted for it, and no Used yet has replaced.
	Late     bool
	Estimate cost.Amount
}

// UserSpeechStarted reports that the user began to speak, as the model or the gateway heard.
type UserSpeechStarted struct {
	Item string
	// AudioMS is the position on the client's audio clock.
	AudioMS int64
	// At is when that sample reached the gateway.
	At time.Time
}

// UserSpeechStopped reports that the user stopped speaking.
type UserSpeechStopped struct {
	Item    string
	AudioMS int64
	// EndMS is the position of the user's last sound on the client's audio clock, and EndAt is when that
	// sample reached the gateway. If Unsure, neither the model nor the gateway's detector knows the
	// position, and both are those of the model's report.
	EndMS  int64
	EndAt  time.Time
	Unsure bool
	// SpeechMS is how long the user spoke.
	SpeechMS int64
}

// UserHeard reports that the gateway's own speech detector still hears the user. It comes at
// least every [HeardEvery] during speech.
type UserHeard struct {
	// AudioMS is the position on the client's audio clock.
	AudioMS int64
	// Sustained is true once the detector has heard [SustainedSpeech]: more than a cough.
	Sustained bool
}

// SustainedSpeech is how much sound the user's speech must have before it stops an answer that the
// model has finished and the client still plays.
const SustainedSpeech = minSpeech

// UserQuiet reports that the gateway's own speech detector has heard the end of the user's speech, while
// the model is the one that reports speech: the model may report the end late, or not at all.
type UserQuiet struct {
	// EndAt is when the user's last sound reached the gateway.
	EndAt time.Time
}

// HeardEvery is how often UserHeard must be repeated while the user speaks.
const HeardEvery = 5 * time.Second

// AudioBegan reports that the model has sent the first audio of an item.
type AudioBegan struct{ Item string }

// AudioEnded reports that the model has sent all audio of an item, AudioMS in all.
type AudioEnded struct {
	Item    string
	AudioMS int64
}

// AudioSent reports how much of an item has been sent to the client: more than last time.
type AudioSent struct {
	Item string
	// Sent is how much of the item has been sent in all, and Until is when a client that plays at
	// once will have played it, by its [PlayClock].
	Sent  time.Duration
	Until time.Time
}

// UserImage is a still image that the user shows. It begins no turn.
type UserImage struct {
	// MIME and Data are those of transport.Image.
	MIME string
	Data []byte
}

// UserContext is text that the user's page gives the model without a turn, such as what the user is looking at. It is
// nothing that the user has said or done: it asks for no answer, brings no new budget, and approves nothing.
type UserContext struct{ Text string }

// UserText is text that the user typed; it begins a turn.
type UserText struct{ ID, Text string }

// UserInterrupt reports that the user pressed stop.
type UserInterrupt struct{}

// UserActivity is push-to-talk: the client reports when the user begins and ends speaking.
type UserActivity struct {
	Active  bool
	AudioMS int64
}

// Played is the client's report of how much of an item it has played.
type Played struct {
	Item string
	MS   int64
	Done bool
}

// ConfirmationAnswer is the user's answer to a question, from the client.
type ConfirmationAnswer struct {
	Token    string
	Approved bool
}

// HungUp reports that the user ended the session.
type HungUp struct{}

// Over reports that the session has ended, for any reason: from here on only calls that are
// still running are recorded.
type Over struct{}

// LinkExpiring reports that the connection to the model will end by itself: it should be replaced at
// the first quiet moment after From, and must be at By.
type LinkExpiring struct{ From, By time.Time }

// LinkLost reports that the connection to the model has ended. Until LinkBack, no event of a model may
// be passed on.
type LinkLost struct {
	// Kind is why it has ended, and After how long the provider asks to wait; zero if that is unknown.
	Kind  transport.Kind
	After time.Duration
}

// LinkBack reports that there is a new connection, which a SwitchLink asked for, to a model with
// these capabilities. Kept reports that what the user has said, and the model has not answered, can
// be sent again by SayAgain.
type LinkBack struct {
	Caps transport.Capabilities
	How  LinkHow
	Kept bool
}

// LinkFailed reports that an attempt has failed to open the connection that a SwitchLink or a Redial
// asked for.
type LinkFailed struct {
	// Kind is why, and After how long the provider asks to wait; zero if that is unknown.
	Kind  transport.Kind
	After time.Duration
}

// NextAgent is an agent that a session can go on with, as the session has found it.
type NextAgent struct {
	// From is the present agent, Name the next one.
	From, Name string
	// Version is that of its document; empty without one.
	Version string
	// Tools are its tools; nil without any. Budget is what its turns may use.
	Tools  *registry.Snapshot
	Budget policy.Budget
	// Instructions and Declared are for a model that takes others in mid-call.
	Instructions string
	Declared     []transport.Tool
	// Elsewhere means that it speaks with another provider or model.
	Elsewhere bool
	// Source is for the session, which gets it back in AgentSwitched. It is not looked at.
	Source any
}

// AgentFound brings the agent that a tool asks for. It comes immediately before the result of that tool,
// whose SWITCH_AGENT is refused without it. Agent is not changed any more.
type AgentFound struct{ Agent *NextAgent }

// SwitchAgent lets another agent go on with the conversation, because somebody else than the model wants
// it: at the next moment at which the model owes nothing. Agent is not changed any more.
type SwitchAgent struct {
	Agent  *NextAgent
	Reason string
}

// Tick reports only that time has passed; see State.WakeAt.
type Tick struct{}

// JobEnded reports that long work has ended which a call of the conversation began. It may come again and
// again until JobTold.
type JobEnded struct {
	// Job is its id, Tool what began it, Name what it is called.
	Job, Tool, Name string
	// Result is the envelope that came of it.
	Result json.RawMessage
}

func (OfCall) input()             {}
func (Began) input()              {}
func (Used) input()               {}
func (FromModel) input()          {}
func (UserSpeechStarted) input()  {}
func (UserSpeechStopped) input()  {}
func (UserHeard) input()          {}
func (UserQuiet) input()          {}
func (AudioBegan) input()         {}
func (AudioEnded) input()         {}
func (AudioSent) input()          {}
func (UserText) input()           {}
func (UserImage) input()          {}
func (UserContext) input()        {}
func (UserInterrupt) input()      {}
func (UserActivity) input()       {}
func (Played) input()             {}
func (ConfirmationAnswer) input() {}
func (HungUp) input()             {}
func (Over) input()               {}
func (LinkExpiring) input()       {}
func (LinkLost) input()           {}
func (LinkBack) input()           {}
func (LinkFailed) input()         {}
func (AgentFound) input()         {}
func (SwitchAgent) input()        {}
func (JobEnded) input()           {}
func (Tick) input()               {}
