package orchestrator

import (
	"encoding/json"
	"time"

	"voicegw/internal/cost"
	"voicegw/orchestrator/calls"
	"voicegw/registry"
	"voicegw/transport"
)

// Input is one event of a session. The set is closed.
type Input interface{ take(m *machine) }

// OfCall carries the result of a running tool call or of a confirmation.
type OfCall struct{ In calls.Input }

// Began is the first input of a session.
type Began struct {
	PendingRequest string // the user's request from before the session, answered first. It may be empty.
	// Context is the earlier conversation, in lines. The model gets it with its first turn; the client does not see it.
	// With a Context or a PendingRequest, the model does not greet.
	Context  string
	Greeting string // asks the model to open the conversation. If empty, the model waits.
	// Notice is said exactly, before all else; see Exact. It may be empty.
	Notice string
}

// FromModel is an event of the model, except speech, audio and usage, which have their own inputs.
type FromModel struct{ Event transport.Event }

// Used reports tokens used since the last Used, and their cost. It counts even if the reporting connection was closed.
type Used struct {
	Tokens transport.Tokens
	Cost   cost.Amount
	// Late means that the tokens belong to a turn that has ended with an estimate. Estimate is the part of a Guessed
	// that this replaces.
	Late     bool
	Estimate cost.Amount
}

// UserSpeechStarted reports that the user began to speak, as detected by the model or the gateway.
type UserSpeechStarted struct {
	Item    string
	AudioMS int64     // the position on the client's audio clock
	At      time.Time // when that sample reached the gateway
}

// UserSpeechStopped reports that the user stopped speaking.
type UserSpeechStopped struct {
	Item    string
	AudioMS int64
	// EndMS is the position of the last sound on the client's audio clock, and EndAt is when that sample reached the
	// gateway. If Unsure, both are the position of the model's report, because neither the model nor the detector knows
	// better.
	EndMS    int64
	EndAt    time.Time
	Unsure   bool
	SpeechMS int64 // the duration of the speech
}

// UserHeard reports, at least every [HeardEvery], that the gateway's detector still hears the user.
type UserHeard struct {
	AudioMS   int64 // the position on the client's audio clock
	Sustained bool  // true once the detector has heard [SustainedSpeech], which is more than a cough
}

// SustainedSpeech is the amount of sound needed to stop an answer that is complete but still playing.
const SustainedSpeech = minSpeech

// UserQuiet is the end of speech by the gateway's detector, for a model that reports speech itself, perhaps late or
// never.
type UserQuiet struct {
	EndAt time.Time // when the last sound reached the gateway
}

// HeardEvery is the interval of UserHeard during speech.
const HeardEvery = 5 * time.Second

// AudioBegan reports that the model has sent the first audio of an item.
type AudioBegan struct{ Item string }

// AudioEnded reports that the model has sent all audio of an item, AudioMS in total.
type AudioEnded struct {
	Item    string
	AudioMS int64
}

// AudioSent reports progress in sending an item to the client.
type AudioSent struct {
	Item string
	// Sent is the total sent of the item. Until is when a client that plays at once has played it, by its [PlayClock].
	Sent  time.Duration
	Until time.Time
}

// UserImage is a still image from the user. It begins no turn.
type UserImage struct {
	// MIME and Data are those of transport.Image.
	MIME string
	Data []byte
}

// UserContext is text for the model that asks for no answer, renews no budget and approves nothing.
type UserContext struct {
	Text string
	// Role is the speaker of an earlier part of the conversation; empty for text from the user's page.
	Role transport.Role
	// Known means that the model has got the text.
	Known bool

	exact bool // an exact sentence of this session
}

// UserAsk asks for an answer to the conversation so far.
type UserAsk struct {
	Instructions string // for this answer alone; may be empty
}

// UserText is text that the user typed; it begins a turn.
type UserText struct{ ID, Text string }

// UserInterrupt reports that the user pressed stop.
type UserInterrupt struct{}

// UserActivity reports the start and end of push-to-talk speech.
type UserActivity struct {
	Active  bool
	AudioMS int64
}

// Played is the client's playback report for an item.
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

// Over reports that the session has ended. After it, only running calls are recorded.
type Over struct{}

// LinkExpiring asks for a new connection to the model: at the first quiet moment after From, at the latest at By.
type LinkExpiring struct{ From, By time.Time }

// LinkLost reports that the connection to the model has ended. No model event may follow before LinkBack.
type LinkLost Loss

// LinkBack reports a new connection to such a model. Kept: the user's unanswered speech is available for SayAgain.
type LinkBack struct {
	Caps transport.Capabilities
	How  LinkHow
	Kept bool
}

// LinkFailed reports a failed attempt to open a connection.
type LinkFailed Loss

// NextAgent is an agent that can take over the session.
type NextAgent struct {
	From, Name string // From is the current agent, Name the next one
	Version    string // the version of its document; empty without one
	// Tools are its tools; may be nil. Budget is the budget of its turns.
	Tools  *registry.Snapshot
	Budget calls.Budget
	// Instructions and Declared are for a model that accepts new ones during a call.
	Instructions string
	Declared     []transport.Tool
	Elsewhere    bool // it uses another provider or model
	Source       any  // opaque; the session gets it back in AgentSwitched
}

// AgentFound brings the agent that a tool asks for, just before the tool's result. It must not change.
type AgentFound struct{ Agent *NextAgent }

// SwitchAgent hands the conversation to another agent, which must not change, as soon as the model owes nothing.
type SwitchAgent struct {
	Agent  *NextAgent
	Reason string
}

// Tick reports that time has passed; see State.WakeAt.
type Tick struct{}

// JobEnded reports the end of a job that a call of this conversation started. The session repeats it until JobTold.
type JobEnded struct {
	Job, Tool, Name string          // Job is its id, Tool the tool that started it, Name its title
	Result          json.RawMessage // its envelope
}
